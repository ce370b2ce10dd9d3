"""Padding, taking the padding off, and masks; expected numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

from fluidlite import layers
from fluidlite.base.dtypes import VarType
from fluidlite.eager import Tensor
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel
from .test_sequence import lods_of

RAMP = np.arange(12, dtype="float32").reshape(6, 2)
LOD = {"X": [[[0, 2, 3, 6]]], "PadValue": [[]]}
PADDED = [[[0, 1], [2, 3], [-1, -1]], [[4, 5], [-1, -1], [-1, -1]], [[6, 7], [8, 9], [10, 11]]]


def pad_with(*numbers):
    return {"X": RAMP, "PadValue": np.array(numbers, "float32")}


def test_sequence_pad():
    outputs = {"Out": np.array(PADDED, "float32"), "Length": np.array([2, 1, 3])}
    check("sequence_pad", pad_with(-1), {"padded_length": 3}, outputs, grads=("X",), lods=LOD)
    assert lods_of("sequence_pad", pad_with(-1), {}, LOD) == [[], []]


def test_the_longest_sequence_says_how_long():
    made = run_kernel("sequence_pad", pad_with(7, 8), {}, LOD)["Out"][0]
    np.testing.assert_array_equal(made[1], [[4, 5], [7, 8], [7, 8]])
    longer = run_kernel("sequence_pad", pad_with(-1), {"padded_length": 5}, LOD)["Out"][0]
    assert longer.shape == (3, 5, 2) and (longer[:, 3:] == -1).all()


def test_empty_sequences_and_no_sequence():
    made = run_kernel("sequence_pad", pad_with(9), {}, {"X": [[[0, 0, 6, 6]]], "PadValue": [[]]})
    assert made["Out"][0].shape == (3, 6, 2) and (made["Out"][0][[0, 2]] == 9).all()
    nothing = {"X": RAMP[:0], "PadValue": np.zeros(1, "float32")}
    made = run_kernel("sequence_pad", nothing, {}, {"X": [[[0]]], "PadValue": [[]]})
    assert made["Out"][0].shape == (0, 0, 2) and made["Length"][0].shape == (0,)


@pytest.mark.parametrize(
    ("pad", "attrs", "lod", "message"),
    [
        ((1, 2, 3), {}, [[0, 2, 3, 6]], r"one element or the shape \[2\] of a row, got \[3\]"),
        ((1,), {"padded_length": 2}, [[0, 2, 3, 6]], "at least 3, the length of the longest sequence, got 2"),
        ((1,), {}, [[0, 1, 3], [0, 2, 3, 6]], "X must have one level of sequences, got 2"),
    ],
)
def test_what_cannot_be_padded(pad, attrs, lod, message):
    with pytest.raises(OperatorError, match=message):
        run_kernel("sequence_pad", pad_with(*pad), attrs, {"X": [lod], "PadValue": [[]]})


def test_rows_of_one_dimension_are_refused():
    with pytest.raises(OperatorError, match=r"at least 2 dimensions, got \[6\]"):
        infer("sequence_pad", {"X": RAMP[:, 0], "PadValue": np.zeros(1, "float32")})


BATCH = np.arange(24, dtype="float32").reshape(3, 4, 2)
LENGTHS = {"X": [[]], "Length": [[]]}


def test_sequence_unpad():
    inputs = {"X": BATCH, "Length": np.array([1, 0, 3])}
    want = BATCH.reshape(-1, 2)[[0, 8, 9, 10]]
    check("sequence_unpad", inputs, {}, {"Out": want}, grads=("X",), lods=LENGTHS)
    assert lods_of("sequence_unpad", inputs, {}, LENGTHS) == [[[0, 1, 1, 4]]]


def test_a_batch_of_two_dimensions_gives_rows_of_one():
    inputs = {"X": BATCH[:, :, 0], "Length": np.array([1, 0, 3])}
    check("sequence_unpad", inputs, {}, {"Out": BATCH[[0, 2, 2, 2], [0, 0, 1, 2], :1]}, ("X",), lods=LENGTHS)


@pytest.mark.parametrize("lengths", [[1, 0, 5], [1, 0, -1], [1, 2]])
def test_lengths_that_do_not_fit(lengths):
    with pytest.raises(
        OperatorError, match=r"sequence_unpad: (lengths must be in \[0, 4\]|X has 3 rows but)"
    ):
        run_kernel("sequence_unpad", {"X": BATCH, "Length": np.array(lengths)}, {}, LENGTHS)


@pytest.mark.parametrize(
    ("lengths", "attrs", "want"),
    [
        ([1, 0, 3], {}, [[1, 0, 0], [0, 0, 0], [1, 1, 1]]),
        ([[1, 0], [3, 4]], {"maxlen": 3}, [[[1, 0, 0], [0, 0, 0]], [[1, 1, 1], [1, 1, 1]]]),
        ([], {}, np.zeros((0, 0))),
    ],
)
def test_sequence_mask(lengths, attrs, want):
    check("sequence_mask", {"X": np.array(lengths, "int64")}, attrs, {"Y": np.array(want, "int64")})


def test_the_mask_is_of_the_dtype_asked_for_and_as_wide_as_a_tensor_says():
    attrs = {"maxlen": -1, "out_dtype": int(VarType.FP32)}
    inputs = {"X": np.array([1, 0, 3], "int32"), "MaxLenTensor": np.array([2], "int32")}
    check("sequence_mask", inputs, attrs, {"Y": np.array([[1, 0], [0, 0], [1, 1]], "float32")})
    with pytest.raises(OperatorError, match="maxlen must be at least 1, or -1 .* got 0"):
        infer("sequence_mask", {"X": inputs["X"]}, {"maxlen": 0})


@pytest.mark.parametrize("width", [0, -2])
def test_a_tensor_that_says_no_width(width):
    inputs = {"X": np.array([1, 0, 3], "int32"), "MaxLenTensor": np.array([width], "int32")}
    with pytest.raises(OperatorError, match=f"sequence_mask: MaxLenTensor must be at least 1, got {width}"):
        run_kernel("sequence_mask", inputs, {"maxlen": -1, "out_dtype": int(VarType.FP32)})


def test_sequence_mask_of_eager_tensors():
    lengths = Tensor(np.array([1, 0, 2]))
    for _ in range(2):
        np.testing.assert_array_equal(
            layers.sequence_mask(lengths, dtype="float32").numpy(), [[1, 0], [0, 0], [1, 1]]
        )
    longer = layers.sequence_mask(Tensor(np.array([1, 0, 4])), dtype="float32")
    assert longer.shape == [3, 4] and longer.numpy().sum() == 5
