"""Operators on sequences as plans run them: exact sizes, offsets as operands, native kernels."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from . import in_native

# Offsets: usual ones, empty sequences at the ends and inside, one row each, only empty ones, none at all.
LODS = (
    [0, 2, 2, 5, 6],
    [0, 0, 7, 7],
    [0, 1, 2, 3],
    [0, 40],
    [0, 0, 0],
    [0],
)
each_lod = pytest.mark.parametrize("offsets", LODS, ids=str)


def rows(offsets, *width, seed=1):
    return np.random.default_rng(seed).uniform(-2, 2, (offsets[-1], *width))


@each_lod
@pytest.mark.parametrize("kind", ("SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST"))
@pytest.mark.parametrize("width", ((1,), (3,), (45,), (2, 3), (0,)))
def test_sequence_pool(kind, offsets, width):
    outputs = {"MaxIndex": int(kind == "MAX")}
    attrs = {"pooltype": kind, "pad_value": -5.0}
    in_native.check("sequence_pool", {"X": rows(offsets, *width)}, attrs, {"X": [[offsets]]}, outputs)


def test_sequence_pool_of_equal_elements_and_of_none():
    x = np.array([[1.0, np.nan], [1.0, 2.0], [0.0, np.nan], [-np.inf, 3.0], [-np.inf, 1.0]])
    lods = {"X": [[[0, 3, 5]]]}
    in_native.check("sequence_pool", {"X": x}, {"pooltype": "MAX"}, lods)
    in_native.check("sequence_pool", {"X": x}, {"pooltype": "SUM"}, lods, {"MaxIndex": 0})


def test_sequence_pool_keeps_the_outer_levels():
    lods = {"X": [[[0, 1, 3], [0, 2, 5, 6]]]}
    in_native.check("sequence_pool", {"X": rows([6], 4)}, {"pooltype": "SUM"}, lods, {"MaxIndex": 0})


@pytest.mark.parametrize("op_type", ("sequence_pool",))
def test_a_run_needs_sequences(op_type):
    with pytest.raises(OperatorError, match=f"operator {op_type} .*X has no LoD information"):
        in_native.check(op_type, {"X": rows([6], 1)}, {}, {"X": [[]]})
