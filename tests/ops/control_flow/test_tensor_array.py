"""Tensor arrays: write_to_array, read_from_array, lod_array_length, tensor_array_to_tensor and its gradient."""

import re

import numpy as np
import pytest

from fluidlite.base.tensor_array import TensorArray
from fluidlite.ops.registry import LodArray, find

A, B = np.arange(6, dtype="float32").reshape(2, 3), np.ones((4, 3), "float32")


def call(op_type, inputs, attrs=None, lods=None):
    """The results of an operator's kernel; `inputs` has one value a slot."""
    given = {slot: [value] for slot, value in inputs.items()}
    definition = find(op_type)
    levels = (
        {slot: [(lods or {}).get(slot, ())] for slot in inputs} if definition.sequences.takes_lod else None
    )
    return definition.call(np, given, attrs or {}, levels)


def write(array, index, value, lod=(), **attrs):
    inputs = {"X": value, "I": np.array([index])}
    if array is not None:
        inputs["Out"] = array
    return call("write_to_array", inputs, attrs, {"X": lod})[0]


def read(array, index, like=None):
    inputs = {"X": array, "I": np.array([index])}
    found = call("read_from_array", inputs if like is None else {**inputs, "X_W": like})[0]
    return found.array if isinstance(found, LodArray) else found


def test_write_to_array_makes_an_array_and_read_from_array_finds_the_element():
    array = write(None, 2, A)
    assert isinstance(array, TensorArray) and len(array) == 3
    np.testing.assert_array_equal(read(array, 2), A)
    assert write(array, 0, B) is array
    np.testing.assert_array_equal(read(array, 0), B)


def test_elements_are_copies_and_replaced_but_never_written_into():
    value = A.copy()
    array = write(None, 0, value)
    value[:] = -1
    held = read(array, 0)
    np.testing.assert_array_equal(held, A)
    write(array, 0, B)
    write(array, 0, B, accumulate=True)
    np.testing.assert_array_equal(held, A)
    np.testing.assert_array_equal(read(array, 0), 2 * B)


def test_sequences_are_kept_with_an_element():
    lod = (np.array([0, 1, 2]),)
    array = write(None, 0, A, lod)
    found = call("read_from_array", {"X": array, "I": np.array([0])})[0]
    assert [list(level) for level in found.lod] == [[0, 1, 2]]


def test_beyond_the_end_there_is_no_value_and_in_an_empty_array_no_element():
    assert read(write(None, 0, A), 7) is None
    assert read(TensorArray(), 0).size == 0


@pytest.mark.parametrize(
    "index, message",
    [(np.array([-1]), "must not be negative, got -1"), (np.array([0, 1]), r"one element, got shape \[2\]")],
)
def test_wrong_indices(index, message):
    with pytest.raises(ValueError, match=message):
        call("write_to_array", {"X": A, "I": index})
    with pytest.raises(ValueError, match=message):
        call("read_from_array", {"X": write(None, 0, A), "I": index})


def test_an_element_in_between_cannot_be_read():
    with pytest.raises(ValueError, match="element 0 of 2 of the tensor array has not been written"):
        read(write(None, 1, A), 0)


def test_a_gradient_is_taken_out_of_the_array():
    array = write(None, 1, A)
    np.testing.assert_array_equal(read(array, 1, like=A), A)
    np.testing.assert_array_equal(read(array, 1, like=A), 0 * A)
    np.testing.assert_array_equal(read(array, 5, like=B), 0 * B)


def test_lod_array_length_counts_to_the_highest_index():
    for array, length in ((TensorArray(), 0), (write(None, 3, A), 4)):
        found = call("lod_array_length", {"X": array})[0]
        assert found.dtype == "int64" and found.tolist() == [length]
    with pytest.raises(ValueError, match="X must be a tensor array"):
        call("lod_array_length", {"X": A})


@pytest.mark.parametrize(
    "axis, use_stack, sizes", [(0, False, [2, 2]), (1, False, [3, 3]), (-1, False, [3, 3])]
)
def test_tensor_array_to_tensor_joins(axis, use_stack, sizes):
    array = write(write(None, 0, A), 1, A + 10)
    out, index = call("tensor_array_to_tensor", {"X": array}, {"axis": axis})
    np.testing.assert_array_equal(out, np.concatenate([A, A + 10], axis))
    assert index.dtype == "int32" and index.tolist() == sizes


@pytest.mark.parametrize("axis, sizes", [(0, [2, 2]), (1, [3, 3]), (2, [1, 1]), (-1, [1, 1]), (-3, [2, 2])])
def test_tensor_array_to_tensor_stacks(axis, sizes):
    """The sizes are those of the elements, as real Paddle 1.8.5 says; it reads beyond them for the last axis."""
    array = write(write(None, 0, A), 1, A + 10)
    out, index = call("tensor_array_to_tensor", {"X": array}, {"axis": axis, "use_stack": True})
    np.testing.assert_array_equal(out, np.stack([A, A + 10], axis))
    assert index.tolist() == sizes


def test_elements_of_different_lengths_and_their_gradient():
    array = write(write(None, 0, A), 1, B)
    out, index = call("tensor_array_to_tensor", {"X": array}, {"axis": 0})
    assert out.shape == (6, 3) and index.tolist() == [2, 4]
    inputs = {"X": array, "Out@GRAD": out * 2}
    gradient = call("tensor_array_to_tensor_grad", inputs, {"axis": 0})[0]
    np.testing.assert_array_equal(gradient.arrays[0], 2 * A)
    np.testing.assert_array_equal(gradient.arrays[1], 2 * B)
    added = call("tensor_array_to_tensor_grad", {**inputs, "X@GRAD": gradient}, {"axis": 0})[0]
    np.testing.assert_array_equal(added.arrays[1], 4 * B)


def test_an_array_without_elements_or_with_a_hole_is_no_tensor():
    for array, what in (
        (TensorArray(), "it has no elements"),
        (write(None, 1, A), "element 0 has not been written"),
    ):
        with pytest.raises(ValueError, match=f"cannot become one tensor: {what}"):
            call("tensor_array_to_tensor", {"X": array})


@pytest.mark.parametrize(
    ("other", "attrs"),
    [
        (A.astype("int64"), {}),
        (np.concatenate([A, A], 1), {}),
        (np.concatenate([A, A]), {"use_stack": True}),
        (A.reshape(1, *A.shape), {}),
        (A[0], {"axis": 1}),
    ],
)
def test_elements_that_do_not_go_together(other, attrs):
    array = write(write(None, 0, A), 1, other)
    message = (
        f"element 0 is float32 of shape [2, 3] and element 1 is {other.dtype} of shape {list(other.shape)}"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        call("tensor_array_to_tensor", {"X": array}, {"axis": 0, "use_stack": False, **attrs})


def test_fill_zeros_like_and_assign_of_an_array():
    array = write(None, 1, A)
    zeros = call("fill_zeros_like", {"X": array})[0]
    assert zeros.arrays[0] is None
    np.testing.assert_array_equal(zeros.arrays[1], 0 * A)
    copy = call("assign", {"X": array})[0]
    write(copy, 0, B)
    assert array.arrays[0] is None and len(copy) == 2
