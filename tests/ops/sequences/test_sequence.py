"""Operators on sequences; expected numbers of pooling and convolution are those of Fluid 1.8.5."""

import itertools

import numpy as np
import pytest
from scipy.special import softmax

from fluidlite.base.lod import as_lists
from fluidlite.ops.registry import LodArray, OperatorError, find

from ..harness import check, infer, run_kernel

RAMP = np.arange(12, dtype="float32").reshape(6, 2)
LOD = {"X": [[[0, 2, 2, 5, 6]]]}  # lengths 2, 0, 3, 1

POOLED = {
    "SUM": [[2, 4], [-5, -5], [18, 21], [10, 11]],
    "AVERAGE": [[1, 2], [-5, -5], [6, 7], [10, 11]],
    "SQRT": [[1.4142135, 2.828427], [-5, -5], [10.392305, 12.124356], [10, 11]],
    "MAX": [[2, 3], [-5, -5], [8, 9], [10, 11]],
    "LAST": [[2, 3], [-5, -5], [8, 9], [10, 11]],
    "FIRST": [[0, 1], [-5, -5], [4, 5], [10, 11]],
}


@pytest.mark.parametrize("kind", POOLED)
def test_sequence_pool(kind):
    outputs = {"Out": np.array(POOLED[kind], "float32")}
    attrs = {"pooltype": kind, "pad_value": -5.0}
    check("sequence_pool", {"X": RAMP}, attrs, outputs, grads=("X",), lods=LOD)


def lods_of(op_type, inputs, attrs, lods):
    """The LoD of each output."""
    lists = {slot: given if isinstance(given, list) else [given] for slot, given in inputs.items()}
    results = find(op_type).call(np, lists, attrs, lods)
    return [as_lists(result.lod) if isinstance(result, LodArray) else None for result in results]


def test_sequence_pool_leaves_the_outer_levels():
    deep = {"X": [[[0, 1, 3], [0, 2, 5, 6]]]}
    assert lods_of("sequence_pool", {"X": RAMP}, {"pooltype": "SUM"}, deep)[0] == [[0, 1, 3]]


def test_sequence_pool_refuses_other_types():
    with pytest.raises(OperatorError, match="pooltype must be one of AVERAGE, .* got 'MEDIAN'"):
        infer("sequence_pool", {"X": RAMP}, {"pooltype": "MEDIAN"})


def test_sequences_are_needed():
    with pytest.raises(OperatorError, match="operator sequence_pool: X has no LoD information"):
        run_kernel("sequence_pool", {"X": RAMP}, {"pooltype": "SUM"}, {"X": [[]]})


def test_sequence_softmax():
    x = RAMP[:, :1] / 3
    want = np.concatenate([softmax(x[a:b], axis=0) for a, b in ((0, 2), (2, 5), (5, 6))])
    check("sequence_softmax", {"X": x}, {}, {"Out": want}, grads=("X",), lods=LOD)


def test_sequence_softmax_wants_single_scores():
    with pytest.raises(OperatorError, match=r"X must have shape \[rows, 1\] or \[rows\], got \[6, 2\]"):
        infer("sequence_softmax", {"X": RAMP})


def test_sequence_reverse():
    check("sequence_reverse", {"X": RAMP}, {}, {"Y": RAMP[[1, 0, 4, 3, 2, 5]]}, lods=LOD)
    assert lods_of("sequence_reverse", {"X": RAMP}, {}, LOD) == LOD["X"]


@pytest.mark.parametrize(
    ("start", "length", "want"),
    [
        (-1, 3, [32, 20, 104, 154, 80, 74]),
        (0, 2, [20, 8, 60, 80, 26, 32]),
        (-2, 3, [6, 32, 50, 104, 154, 116]),
    ],
)
def test_sequence_conv(start, length, want):
    inputs = {"X": RAMP, "Filter": np.arange(1, 2 * length + 1, dtype="float32").reshape(-1, 1)}
    attrs = {"contextStart": start, "contextLength": length}
    outputs = {"Out": np.array([want], "float32").T}
    check("sequence_conv", inputs, attrs, outputs, grads=("X", "Filter"), lods=LOD)


@pytest.mark.parametrize(("start", "length"), [(-1, 3), (-2, 3), (-3, 5), (0, 3), (1, 2), (-3, 2)])
def test_sequence_conv_trains_padding(start, length):
    offsets, before, after = [0, 1, 4, 4, 6], max(0, -start), max(0, start + length - 1)
    draw = np.random.default_rng(3)
    padding = draw.uniform(-1, 1, (before + after, 2)).astype("float32")
    weights = draw.uniform(-1, 1, (2 * length, 3)).astype("float32")
    contexts = []
    for low, high in itertools.pairwise(offsets):
        padded = np.concatenate([padding[:before], RAMP[low:high], padding[before:]])
        contexts += [padded[before + row + start :][:length].ravel() for row in range(high - low)]
    inputs = {"X": RAMP, "PaddingData": padding, "Filter": weights}
    attrs = {"paddingTrainable": True, "contextStart": start, "contextLength": length}
    outputs = {"Out": np.array(contexts) @ weights}
    check("sequence_conv", inputs, attrs, outputs, grads=tuple(inputs), lods={"X": [[offsets]]})


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"contextStride": 2}, "contextStride must be 1, got 2"),
        (
            {"paddingTrainable": True, "contextLength": 3, "contextStart": -1},
            r"PaddingData must have shape \[2, 2\], got none",
        ),
        ({"contextLength": 2}, "must have 4 rows .* got 3"),
    ],
)
def test_sequence_conv_that_does_not_fit(attrs, message):
    with pytest.raises(OperatorError, match=message):
        infer("sequence_conv", {"X": RAMP, "Filter": np.zeros((3, 1), "float32")}, attrs)


def test_sequence_expand_repeats_sequences():
    lods = {"X": [[[0, 2, 6]]], "Y": [[[0, 3, 5]]]}
    rows = [0, 1] * 3 + [2, 3, 4, 5] * 2
    y = np.zeros((5, 1), "float32")
    check("sequence_expand", {"X": RAMP, "Y": y}, {}, {"Out": RAMP[rows]}, grads=("X",), lods=lods)
    assert lods_of("sequence_expand", {"X": RAMP, "Y": y}, {}, lods)[0] == [[0, 2, 4, 6, 10, 14]]


def test_sequence_expand_repeats_rows():
    lods = {"X": [[]], "Y": [[[0, 1, 2], [0, 4, 6]]]}
    inputs = {"X": RAMP[:2], "Y": RAMP}
    made = run_kernel("sequence_expand", inputs, {"ref_level": -1}, lods)
    np.testing.assert_array_equal(made["Out"][0], RAMP[[0, 0, 0, 0, 1, 1]])
    assert lods_of("sequence_expand", inputs, {"ref_level": 0}, lods)[0] == []


def test_sequence_expand_needs_as_many_sequences():
    lods = {"X": [[]], "Y": [[[0, 1, 2]]]}
    with pytest.raises(OperatorError, match="X has 6 rows but level -1 of Y has 2"):
        run_kernel("sequence_expand", {"X": RAMP, "Y": RAMP[:2]}, {}, lods)
    with pytest.raises(OperatorError, match=r"ref_level must be in \[-1, 1\), got 1"):
        run_kernel("sequence_expand", {"X": RAMP, "Y": RAMP[:2]}, {"ref_level": 1}, lods)


def test_sequence_concat():
    lods = {"X": [[[0, 2, 3]], [[0, 1, 3]]]}
    inputs = {"X": [RAMP[:3], RAMP[3:]]}
    check("sequence_concat", inputs, {}, {"Out": RAMP[[0, 1, 3, 2, 4, 5]]}, grads=("X",), lods=lods)
    assert lods_of("sequence_concat", inputs, {}, lods)[0] == [[0, 3, 6]]


def test_sequence_concat_needs_as_many_sequences():
    lods = {"X": [[[0, 2, 3]], [[0, 3]]]}
    with pytest.raises(OperatorError, match=r"equally many sequences, got \[2, 1\]"):
        run_kernel("sequence_concat", {"X": [RAMP[:3], RAMP[3:]]}, {}, lods)
