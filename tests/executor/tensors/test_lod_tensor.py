"""LoDTensor, its levels of detail, and scopes."""

import copy
import pickle

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet

from ...refusals import refuses

CPU = fluid.CPUPlace()


def test_offsets_and_lengths():
    tensor = fluid.create_lod_tensor(np.arange(12).reshape(6, 2), [[2, 1], [3, 2, 1]], CPU)
    assert tensor.lod() == [[0, 2, 3], [0, 3, 5, 6]]
    assert tensor.recursive_sequence_lengths() == [[2, 1], [3, 2, 1]]
    assert tensor.has_valid_recursive_sequence_lengths()
    words = fluid.create_lod_tensor([[1, 2], [3]], [[2, 1]], CPU)
    np.testing.assert_array_equal(np.array(words), [[1], [2], [3]])


@pytest.mark.parametrize(
    ("lod", "message"),
    [
        ([[0, 2, 5]], "5 but the tensor has 4 rows"),
        ([[1, 4]], "begin with 0"),
        ([[0, 3, 2, 4]], "decrease"),
        ([[0, 1], [0, 1, 4]], "2 sequences"),
    ],
)
def test_invalid_levels_are_refused_and_the_old_ones_kept(lod, message):
    tensor = fluid.create_lod_tensor(np.zeros((4, 1)), [[1, 3]], CPU)
    refuses(lambda: tensor.set_lod(lod), fluid.core.EnforceNotMet, message)
    assert tensor.recursive_sequence_lengths() == [[1, 3]]


def test_lists_must_match_their_lengths():
    refuses(lambda: fluid.create_lod_tensor([[1, 2], [3]], [[1, 2]], CPU), AssertionError, "do not match")
    refuses(lambda: fluid.create_lod_tensor(3, [[1]], CPU), TypeError, "int")


def test_set_copies_and_keeps_memory_where_it_can():
    tensor = fluid.LoDTensor()
    with pytest.warns(UserWarning, match="has not been set.*startup program"):
        empty = np.array(tensor)
    assert (empty.shape, empty.dtype) == ((0,), np.float64)
    for read in (len, fluid.LoDTensor._dtype, lambda tensor: tensor[0]):
        with pytest.raises(EnforceNotMet, match="has not been set"):
            read(tensor)
    assert fluid.executor.as_numpy(tensor) is None
    assert tensor.shape() == [0]
    source = np.ones((2, 3), "float32")
    tensor.set(source, CPU)
    memory = tensor.array
    source[...] = 5
    np.testing.assert_array_equal(np.array(tensor), np.ones((2, 3)))
    tensor.set(source, CPU)
    assert tensor.array is memory
    tensor.set(np.ones(4), CPU)
    assert tensor.shape() == [4]
    refuses(lambda: tensor.set(np.array([[1], None], dtype=object), CPU), TypeError, "holds numbers")


def test_arrays_of_tensors_are_copies_unless_asked():
    tensor = fluid.LoDTensor()
    tensor.set(np.ones(3, "float32"), CPU)
    copy = np.array(tensor)
    copy[0] = 9
    assert np.array(tensor)[0] == 1
    assert np.asarray(tensor, dtype="int64").dtype == np.int64
    refuses(lambda: np.array(tensor, dtype="int64", copy=False), ValueError, "without a copy")


def test_random_tensors_stay_in_their_bounds():
    tensor = fluid.create_random_int_lodtensor([[2, 3]], [1], CPU, low=2, high=4)
    values = np.array(tensor)
    assert values.shape == (5, 1) and values.dtype == np.int64
    assert values.min() >= 2 and values.max() <= 4


def test_scopes_find_their_parents_variables():
    scope = fluid.Scope()
    scope.var("a").get_tensor().set(np.ones(2), CPU)
    child = scope.new_scope()
    assert child.find_var("a") is scope.find_var("a")
    child.var("b")
    assert scope.find_var("b") is None and child.local_var_names() == ["b"]
    assert scope.find_var("missing") is None
    scope.var("c").set(["anything"])
    refuses(lambda: scope.find_var("c").get_tensor(), TypeError, "'c' holds a list")
    scope.erase(["a"])
    assert child.find_var("a") is None


def test_scope_guard_restores_after_an_error():
    before = fluid.global_scope()
    scope = fluid.Scope()
    with pytest.raises(KeyError), fluid.scope_guard(scope):
        assert fluid.global_scope() is scope
        raise KeyError
    assert fluid.global_scope() is before
    with pytest.warns(UserWarning, match="a dict"), fluid.scope_guard({}):
        assert fluid.global_scope() is before
    with (
        pytest.warns(UserWarning, match=r"name_scope\('skip_quant'\) meant"),
        fluid.scope_guard("skip_quant"),
    ):
        assert fluid.global_scope() is before


def test_offsets_are_read_only():
    lod = [np.array([0, 1, 4])]
    tensor = fluid.LoDTensor()
    tensor.set(np.zeros((4, 1)), CPU)
    assert tensor.offsets == ()
    tensor.set_lod(lod)
    lod[0][1] = 3
    tensor.lod()[0][1] = 3
    (offsets,) = tensor.offsets
    assert offsets.tolist() == [0, 1, 4] and offsets.dtype == np.int64 and not offsets.flags.writeable
    assert tensor.lod() == [[0, 1, 4]]
    assert type(tensor.lod()[0]) is list and type(tensor.lod()[0][0]) is int
    assert type(tensor.recursive_sequence_lengths()[0][0]) is int


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda tensor: pickle.loads(pickle.dumps(tensor))]
)
def test_copies_of_tensors_have_read_only_offsets_too(duplicate):
    made = duplicate(fluid.create_lod_tensor(np.ones((3, 1)), [[1, 1], [1, 2]], CPU))
    assert made.lod() == [[0, 1, 2], [0, 1, 3]] and np.array(made).tolist() == [[1], [1], [1]]
    assert not any(level.flags.writeable for level in made.offsets)


def test_made_with_lengths():
    tensor = fluid.LoDTensor([[2, 1], [1, 0, 3]])
    tensor.set(np.zeros((4, 1), "float32"), fluid.CPUPlace())
    assert tensor.lod() == [[0, 2, 3], [0, 1, 1, 4]]
    assert tensor.recursive_sequence_lengths() == [[2, 1], [1, 0, 3]]


def test_elements_set_later_may_not_match_the_levels():
    tensor = fluid.LoDTensor()
    tensor.set_lod([[0, 2, 5]])
    assert tensor.has_valid_recursive_sequence_lengths()
    tensor.set(np.zeros((3, 1), "float32"), CPU)
    assert tensor.lod() == [[0, 2, 5]] and not tensor.has_valid_recursive_sequence_lengths()
    tensor.set_recursive_sequence_lengths(np.array([[1, 2]]))
    assert tensor.lod() == [[0, 1, 3]]
    refuses(lambda: tensor.set_lod([[0.0, 3.0]]), TypeError, "whole numbers")


@pytest.mark.parametrize(
    ("data", "lengths", "dtype", "shape"),
    [
        ([[1, 2], []], [2, 0], "int64", (2, 1)),
        ([[1.5, 2], [3]], [2, 1], "float64", (3, 1)),
        ([(1, 2), (3,)], [2, 1], "int64", (3, 1)),
        ([np.array([1, 2], "int32"), np.array([3], "int32")], [2, 1], "int32", (3, 1)),
        ([np.ones((2, 3), "float32"), np.ones((1, 3), "float32")], [2, 1], "float32", (3, 3, 1)),
        ([[], []], [0, 0], "int64", (0, 1)),
    ],
)
def test_lists_keep_the_type_of_their_elements(data, lengths, dtype, shape):
    made = fluid.create_lod_tensor(data, [lengths], CPU)
    got = np.array(made)
    assert (got.dtype, got.shape) == (dtype, shape) and made.recursive_sequence_lengths() == [lengths]
    np.testing.assert_array_equal(got.ravel(), np.concatenate([np.ravel(part) for part in data]))


def test_text_is_fluids():
    tensor = fluid.create_lod_tensor(np.array([[1.5], [1e-7], [123456789.0]], "float32"), [[2, 1]], CPU)
    lines = ["lod: {{0, 2, 3}}", "dim: 3, 1", "layout: NCHW", "dtype: float", "data: [1.5 1e-07 1.23457e+08]"]
    assert str(tensor) == "".join(f"\t{line}\n" for line in lines)
    tensor = fluid.LoDTensor()
    assert str(tensor) == repr(tensor) == "LoDTensor(not set)"
    tensor.set(np.array([True, False]), CPU)
    assert str(tensor).endswith("dtype: bool\n\tdata: [1 0]\n")
    tensor.set(np.zeros((0, 3), "int64"), CPU)
    assert str(tensor).startswith("\tlod: {}\n\tdim: 0, 3\n") and "int64_t\n\tdata: []" in str(tensor)
