"""Operators on sequences as plans run them: exact sizes, offsets as operands, native kernels."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite.ops import registry
from fluidlite.ops.registry import OperatorError

from .. import in_native

# Offsets: usual ones, empty sequences at the ends and inside, one row each, only empty ones, none at all.
LODS = ([0, 2, 2, 5, 6], [0, 0, 7, 7], [0, 1, 2, 3], [0, 40], [0, 0, 0], [0])
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


@each_lod
def test_sequence_softmax(offsets):
    in_native.check("sequence_softmax", {"X": 9 * rows(offsets, 1)}, {}, {"X": [[offsets]]})
    in_native.check("sequence_softmax", {"X": rows(offsets)}, {}, {"X": [[[0, len(offsets) - 1], offsets]]})


def test_sequence_softmax_of_very_different_scores():
    x = np.array([[0.0], [90.0], [-300.0], [1000.0], [-1000.0]])
    in_native.check("sequence_softmax", {"X": x}, {}, {"X": [[[0, 3, 5]]]})


@each_lod
@pytest.mark.parametrize("width", ((1,), (2,), (3,), (2, 5), (0,)))
def test_sequence_reverse(width, offsets):
    in_native.check("sequence_reverse", {"X": rows(offsets, *width)}, {}, {"X": [[offsets]]})


def test_sequence_reverse_of_whole_numbers():
    for kind in ("int64", "int32", "uint8", "bool"):
        x = np.arange(6).reshape(6, 1).astype(kind)
        in_native.check(
            "sequence_reverse", {"X": x}, {}, {"X": [[[0, 2, 2, 6]]]}, kinds=("float32",), grads=False
        )


WINDOWS = ((-1, 3), (0, 1), (0, 2), (-2, 3), (1, 2), (-9, 4), (9, 4), (-50, 101), (-3, 2))


@each_lod
@pytest.mark.parametrize(("start", "length"), WINDOWS)
def test_sequence_conv(start, length, offsets):
    for width, columns in ((1, 1), (3, 5), (20, 33)):
        # Sums of up to 2,020 products stay small enough for the tolerance of float32.
        inputs = {"X": rows(offsets, width) / 8, "Filter": rows([0, length * width], columns, seed=2)}
        attrs = {"contextStart": start, "contextLength": length}
        in_native.check("sequence_conv", inputs, attrs, {"X": [[offsets]]})


@pytest.mark.parametrize(("width", "columns"), ((0, 3), (3, 0)))
def test_sequence_conv_without_columns(width, columns):
    inputs = {"X": rows([4], width), "Filter": rows([2 * width], columns)}
    in_native.check("sequence_conv", inputs, {"contextLength": 2}, {"X": [[[0, 1, 4]]]})


def test_sequence_conv_of_many_rows():
    """More than are gathered at a time; sequences begin and end anywhere in these pieces."""
    lengths = np.random.default_rng(3).integers(0, 60, 50)
    offsets = [0, *np.cumsum(lengths).tolist()]
    inputs = {"X": rows(offsets, 40) / 4, "Filter": rows([120], 24, seed=2)}
    attrs = {"contextStart": -1, "contextLength": 3}
    in_native.check("sequence_conv", inputs, attrs, {"X": [[offsets]]}, kinds=("float64",))
    inputs = {"X": rows(offsets, 400) / 4, "Filter": rows([1200], 3, seed=2)}
    in_native.check("sequence_conv", inputs, attrs, {"X": [[offsets]]}, kinds=("float64",))


@pytest.mark.parametrize("length", (3, 4))
@pytest.mark.parametrize("start", (-1, 0, 2, -2, -4, 50, -70))
def test_sequence_conv_of_short_windows(start, length):
    """Rows that are computed together: of sequences of any length, of few rows, of more than are mixed at a time."""
    for lengths, width, columns in (
        ([0, 5, 1, 2, 0, 3, 4, 60, 7, 49, 0], 32, 33),
        ([1] * 130, 37, 32),
        (np.random.default_rng(3).integers(0, 30, 60).tolist(), 65, 70),
    ):
        offsets = [0, *np.cumsum(lengths).tolist()]
        inputs = {"X": rows(offsets, width) / 8, "Filter": rows([length * width], columns, seed=2) / 2}
        attrs = {"contextStart": start, "contextLength": length}
        in_native.check("sequence_conv", inputs, attrs, {"X": [[offsets]]}, kinds=("float32",))


@pytest.mark.parametrize("length", (3, 4))
def test_what_is_no_number_stays_in_the_windows_that_read_it(length):
    offsets, at = [0, 70, 140, 150], 75
    x = rows(offsets, 32).astype("float32")
    x[at, 5] = np.inf
    inputs = {"X": x, "Filter": rows([32 * length], 32, seed=2).astype("float32")}
    view = in_native.view_of(
        registry.find("sequence_conv"),
        {"X": ["x"], "Filter": ["f"]},
        {"Out": ["out"]},
        {"contextStart": -1, "contextLength": length},
        {"x": inputs["X"], "f": inputs["Filter"]},
        {"x": [offsets]},
    )
    for target in kernels.targets():
        finite = np.isfinite(in_native.run(view, target).arrays["out"]).all(axis=1)
        assert np.flatnonzero(~finite).tolist() == list(range(at + 2 - length, at + 2)), target


@each_lod
@pytest.mark.parametrize("steps", (1, 3, 50))
def test_row_conv(steps, offsets):
    for width in (1, 5, 70):
        inputs = {"X": rows(offsets, width), "Filter": rows([steps], width, seed=2)}
        in_native.check("row_conv", inputs, {}, {"X": [[offsets]]})


@pytest.mark.parametrize("shape", ((3, 4, 5), (1, 2, 40), (0, 3, 2), (2, 0, 2)))
def test_row_conv_of_a_padded_batch(shape):
    inputs = {"X": np.random.default_rng(1).uniform(-1, 1, shape), "Filter": rows([3], shape[2])}
    in_native.check("row_conv", inputs, {}, {"X": [[]]})


CONCATENATED = (
    ([0, 2, 3], [0, 1, 3]),
    ([0, 0, 4, 4], [0, 1, 1, 1], [0, 2, 5, 9]),
    ([0, 2, 2],),
    ([0, 0], [0, 0]),
    ([0], [0]),
)


@pytest.mark.parametrize("lods", CONCATENATED, ids=str)
@pytest.mark.parametrize("width", ((1,), (7,), (2, 3), (0,)))
def test_sequence_concat(width, lods):
    inputs = [rows(offsets, *width, seed=k) for k, offsets in enumerate(lods)]
    in_native.check("sequence_concat", {"X": inputs}, {}, {"X": [[offsets] for offsets in lods]})


def test_sequence_concat_of_what_does_not_fit():
    lods = {"X": [[[0, 2, 3]], [[0, 3]]]}
    with pytest.raises(OperatorError, match=r"equally many sequences, got \[2, 1\]"):
        in_native.check("sequence_concat", {"X": [rows([3], 2), rows([3], 2)]}, {}, lods)
    with pytest.raises(OperatorError, match=r"must have shape \[2\], got \[3\]"):
        in_native.check("sequence_concat", {"X": [rows([3], 2), rows([3], 3)]}, {}, lods)


@each_lod
@pytest.mark.parametrize("kind", ("int32", "int64"))
@pytest.mark.parametrize("window", (2, 5))
def test_sequence_enumerate(window, kind, offsets):
    ids = np.arange(10, 10 + offsets[-1]).reshape(-1, 1).astype(kind)
    attrs = {"win_size": window, "pad_value": -3}
    in_native.check("sequence_enumerate", {"X": ids}, attrs, {"X": [[offsets]]}, kinds=("float32",))


IMAGES = (
    ((2, 3, 5, 6), [2, 3], [1, 1], [0, 0, 0, 0]),
    ((1, 1, 4, 4), [3, 3], [2, 1], [1, 2, 2, 1]),
    ((2, 2, 3, 3), [1, 1], [1, 1], [0, 0, 0, 0]),
    ((1, 2, 2, 2), [5, 5], [3, 3], [4, 4, 4, 4]),
    ((0, 2, 3, 3), [2, 2], [1, 1], [0, 0, 0, 0]),
)


@pytest.mark.parametrize(("shape", "window", "strides", "paddings"), IMAGES)
def test_im2sequence(shape, window, strides, paddings):
    x = np.random.default_rng(1).uniform(-1, 1, shape)
    attrs = {"kernels": window, "strides": strides, "paddings": paddings}
    in_native.check("im2sequence", {"X": x}, attrs)


ONE_LEVEL = ("sequence_reverse", "sequence_conv", "sequence_enumerate")


@pytest.mark.parametrize(
    "op_type", (*ONE_LEVEL, "sequence_pool", "sequence_softmax", "row_conv", "sequence_concat")
)
def test_a_run_needs_sequences(op_type):
    x = np.zeros((6, 1), "int64") if op_type == "sequence_enumerate" else rows([6], 1)
    inputs = {"X": x, "Filter": rows([1], 1)}
    with pytest.raises(OperatorError, match=f"operator {op_type} .*X has no LoD information"):
        in_native.check(op_type, inputs, {}, {"X": [[]]})
    if op_type in ONE_LEVEL:
        with pytest.raises(OperatorError, match="X must have one level of sequences, got 2"):
            in_native.check(op_type, inputs, {}, {"X": [[[0, 1, 2], [0, 3, 6]]]})
