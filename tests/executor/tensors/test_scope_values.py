"""Numbers and SelectedRows in scopes; dimensions, memory and single elements of tensors."""

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


def _persistable_array(name="array"):
    return (
        fluid.default_main_program()
        .global_block()
        .create_var(name=name, type=core.VarDesc.VarType.LOD_TENSOR_ARRAY, dtype="float32", persistable=True)
    )


def _tensor(rows, lod=()):
    made = fluid.LoDTensor()
    made.set(np.array(rows, "float32"), CPU)
    made.set_lod(lod)
    return made


def test_programs_read_arrays_of_the_scope():
    scope = core.Scope()
    held = scope.var("array").get_lod_tensor_array()
    held.append(_tensor([[1, 2]]))
    held.append(_tensor([[3, 4], [5, 6]], [[0, 1, 2]]))
    with fluid.program_guard(fluid.Program()):
        array = _persistable_array()
        one = fluid.layers.array_read(array, fluid.layers.fill_constant([1], "int64", 1))
        joined, sizes = fluid.layers.tensor_array_to_tensor(array, axis=0)
        with fluid.scope_guard(scope):
            found = fluid.Executor(CPU).run(
                fluid.default_main_program(),
                fetch_list=[one, fluid.layers.array_length(array), joined, sizes, array],
                return_numpy=False,
            )
    assert np.array(found[0]).tolist() == [[3, 4], [5, 6]] and found[0].lod() == [[0, 1, 2]]
    assert np.array(found[1]).tolist() == [2] and np.array(found[3]).tolist() == [1, 2]
    assert np.array(found[2]).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert [np.array(each).tolist() for each in found[4]] == [[[1, 2]], [[3, 4], [5, 6]]]


def test_arrays_that_programs_write_stay_in_the_scope():
    scope = core.Scope()
    with fluid.program_guard(fluid.Program()):
        count = fluid.layers.create_global_var([1], 0, "int64", persistable=True, name="count")
        value = fluid.layers.cast(count, "float32")
        fluid.layers.array_write(value, count, _persistable_array())
        fluid.layers.increment(count)
        with fluid.scope_guard(scope):
            scope.var("count").get_tensor().set(np.zeros(1, "int64"), CPU)
            held = scope.var("array").get_lod_tensor_array()
            for _ in range(3):
                fluid.Executor(CPU).run(fluid.default_main_program())
    assert [np.array(each).tolist() for each in held] == [[0], [1], [2]]


def test_rank_tables_that_programs_make_stay_in_the_scope():
    scope = core.Scope()
    assert scope.var("table").get_lod_rank_table().items() == []
    with fluid.program_guard(fluid.Program()):
        x = fluid.layers.data("x", [2], lod_level=1)
        x.persistable = True
        table = fluid.layers.control_flow.lod_rank_table(x)
        steps = fluid.layers.control_flow.lod_tensor_to_array(x, table)
        back = fluid.layers.control_flow.array_to_lod_tensor(steps, table)
        table.persistable = steps.persistable = back.persistable = True
        with fluid.scope_guard(scope):
            scope.var("x").get_tensor().set(np.arange(12, dtype="float32").reshape(6, 2), CPU)
            scope.find_var("x").get_tensor().set_recursive_sequence_lengths([[2, 3, 1]])
            fluid.Executor(CPU).run(fluid.default_main_program())
    assert scope.find_var(table.name).get_lod_rank_table().items() == [(1, 3), (0, 2), (2, 1)]
    assert isinstance(scope.find_var(table.name).get_lod_rank_table(), core.LodRankTable)
    held = scope.find_var(steps.name).get_lod_tensor_array()
    assert [np.array(each)[:, 0].tolist() for each in held] == [[4, 0, 10], [6, 2], [8]]
    whole = scope.find_var(back.name).get_tensor()
    assert np.array(whole).ravel().tolist() == list(range(12))
    assert whole.recursive_sequence_lengths() == [[2, 3, 1]]


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
