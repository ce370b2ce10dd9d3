"""What scopes and tensors offer beside arrays: numbers, rows, dimensions, memory, single elements."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import core
from fluidlite.base.errors import EnforceNotMet

CPU = fluid.CPUPlace()


def test_numbers_in_a_scope():
    scope = core.Scope()
    whole, number = scope.var("whole"), scope.var("number")
    assert not whole.is_int() and not whole.is_float()
    whole.set_int(3)
    number.set_float(2.5)
    assert (whole.get_int(), whole.is_int(), whole.is_float()) == (3, True, False)
    assert (number.get_float(), number.is_float()) == (2.5, True)
    for call in (lambda: whole.set_float(1.0), whole.get_float, number.get_int, scope.var("new").get_int):
        with pytest.raises(EnforceNotMet):
            call()
    scope.var("tensor").get_tensor()
    with pytest.raises(EnforceNotMet, match="LoDTensor"):
        scope.var("tensor").get_selected_rows()
    assert isinstance(scope, core._Scope) and scope._remove_from_pool() is None


def test_rows_begin_empty():
    rows = core.Scope().var("rows").get_selected_rows()
    assert isinstance(rows, core.SelectedRows) and (rows.height(), rows.rows()) == (0, [])


def test_dimensions_before_memory():
    tensor = fluid.LoDTensor()
    assert tensor._get_dims() == tensor.shape() == [0] and not tensor._is_initialized()
    tensor._set_dims([2, 3])
    assert tensor.shape() == [2, 3] and not tensor._is_initialized()
    tensor._alloc_float(CPU)
    tensor._set_float_element(1, 2.5)
    assert tensor._get_float_element(1) == 2.5 and np.array(tensor)[0, 1] == 2.5
    for call in (lambda: tensor._get_float_element(6), lambda: tensor._get_double_element(0)):
        with pytest.raises(EnforceNotMet):
            call()
    tensor._alloc_int(CPU)
    assert tensor._dtype() == core.VarDesc.VarType.INT32
    tensor._alloc_double(CPU)
    tensor._set_double_element(0, 1.5)
    assert tensor._get_double_element(0) == 1.5
    assert tensor._mutable_data(CPU, core.VarDesc.VarType.FP64) == tensor.array.ctypes.data


def test_other_dimensions_of_the_same_memory():
    tensor = fluid.LoDTensor()
    tensor.set(np.arange(6, dtype="float32").reshape(2, 3), CPU)
    tensor._set_dims([3, 2])
    assert np.array(tensor).tolist() == [[0, 1], [2, 3], [4, 5]]
    tensor._set_dims([2])
    assert np.array(tensor).tolist() == [0, 1]
    tensor._set_dims([4, 2])
    assert tensor.shape() == [4, 2] and not tensor._is_initialized()


def test_sharing_copying_and_clearing():
    tensor, other = fluid.LoDTensor(), fluid.LoDTensor()
    tensor.set(np.arange(6, dtype="float32").reshape(2, 3), CPU)
    other._share_data_with(tensor)
    copy = tensor._copy(CPU)
    tensor._set_float_element(0, 9.0)
    assert np.array(other)[0, 0] == 9 and np.array(copy)[0, 0] == 0
    other._clear()
    assert other.shape() == [2, 3] and not other._is_initialized() and tensor._is_initialized()


@pytest.mark.parametrize(
    "key, part",
    [
        (0, [[0, 1, 2]]),
        (-1, [[3, 4, 5]]),
        (slice(0, 1), [[0, 1, 2]]),
        ((0, 1), [[1]]),
        ((slice(None), slice(1, 3)), [[1, 2], [4, 5]]),
    ],
)
def test_parts_keep_their_dimensions(key, part):
    tensor = fluid.LoDTensor()
    tensor.set(np.arange(6, dtype="float32").reshape(2, 3), CPU)
    assert np.array(tensor[key]).tolist() == part
    with pytest.raises(IndexError):
        tensor[2]


def test_arrays_of_tensors_become_lists():
    array = fluid.LoDTensorArray()
    tensor = fluid.LoDTensor()
    array.append(tensor)
    assert array._move_to_list() == [tensor] and len(array) == 0
