"""Folders of tensor files and combined files."""

import os
from pathlib import Path

import numpy as np
import pytest

from fluidlite import core, io
from fluidlite.base.dtypes import VarType
from fluidlite.base.errors import EnforceNotMet, FormatError, NotSupportedError
from fluidlite.base.place import CPUPlace
from fluidlite.executor.lod_tensor import LoDTensor
from fluidlite.executor.parallel.compiler import CompiledProgram
from fluidlite.executor.scope import Scope, scope_guard
from fluidlite.framework import IrGraph, Program

from ...refusals import refuses

DATA = Path(__file__).parent / "data"
PARAMS = ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]


def one_variable(name="t_float32", shape=(2, 3), dtype="float32", **options):
    program = Program()
    return program, program.global_block().create_var(
        name=name, shape=list(shape), dtype=dtype, persistable=True, **options
    )


def test_which_variables(program):
    block = program.global_block()
    block.create_var(name="reader", type=VarType.READER, persistable=True)
    assert sorted(var.name for var in io.get_program_parameter(program)) == PARAMS
    persistables = io.get_program_persistable_vars(program)
    assert len(persistables) == 4 + 16 + 1
    assert io.is_parameter(block.var("fc_0.w_0"))
    assert not io.is_parameter(block.var("learning_rate_0"))
    assert not io.is_persistable(block.var("fc_0.tmp_0"))
    assert not io.is_persistable(block.var("reader"))
    assert [io.is_belong_to_optimizer(block.var(name)) for name in ("learning_rate_0", "fc_0.w_0")] == [
        True,
        False,
    ]


def test_params_in_a_folder(program, values, tmp_path):
    assert io.save_params(None, tmp_path / "new" / "folder", program) is None
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == PARAMS
    values.clear()
    io.load_params(None, tmp_path / "new" / "folder", program)
    assert sorted(set(values.names) - set(values.differing())) == PARAMS


@pytest.mark.parametrize("filename", [None, "all"])
def test_persistables(program, values, tmp_path, filename):
    io.save_persistables(None, str(tmp_path), program, filename)
    assert sorted(os.listdir(tmp_path)) == (["all"] if filename else sorted(values.names))
    values.clear()
    io.load_persistables(None, str(tmp_path), program, filename)
    assert values.differing() == []


def test_bytes_in_place_of_a_folder(program, values):
    data = io.save_persistables(None, None, program)
    values.clear()
    io.load_persistables(None, None, program, data)
    assert values.differing() == []
    refuses(lambda: io.save_persistables(None, None, program, "all"), TypeError, "needs dirname")
    with pytest.raises(TypeError, match="must be the bytes of a combined file"):
        io.load_persistables(None, None, program)


def test_a_combined_file_of_paddle(scope, tmp_path):
    program = Program()
    for dtype in ("int64", "float32", "int8", "float64", "int32", "int16"):
        program.global_block().create_var(name=f"t_{dtype}", shape=[2, 3], dtype=dtype, persistable=True)
    program.global_block().create_var(
        name="z_lod", shape=[-1, 2], dtype="float32", persistable=True, lod_level=2
    )
    io.load_persistables(None, DATA, program, "combined")
    assert scope.find_var("z_lod").get_tensor().lod() == [[0, 2, 3], [0, 2, 2, 5]]
    assert np.array(scope.find_var("t_int8").get_tensor()).tolist() == [[-2, -1, 0], [1, 2, 3]]
    io.save_persistables(None, tmp_path, program, "own")
    assert (tmp_path / "own").read_bytes() == (DATA / "combined").read_bytes()


@pytest.mark.parametrize("filename", [None, "all"])
def test_without_variables_nothing_is_written_and_nothing_read(scope, tmp_path, filename):
    program = Program()
    io.save_persistables(None, tmp_path / "new", program, filename)
    assert not (tmp_path / "new").exists()
    io.load_persistables(None, tmp_path / "new", program, filename)


def test_chosen_variables(program, values, tmp_path):
    block = program.global_block()
    io.save_vars(None, tmp_path, program, vars=[block.var("fc_0.w_0"), block.var("fc_0.w_0")])
    io.save_vars(None, tmp_path, program, predicate=lambda var: var.name == "learning_rate_0")
    assert sorted(os.listdir(tmp_path)) == ["fc_0.w_0", "learning_rate_0"]
    values.clear()
    io.load_vars(None, tmp_path, vars=[block.var("fc_0.w_0")])
    assert "fc_0.w_0" not in values.differing()
    assert "learning_rate_0" in values.differing()


def test_a_compiled_program_is_as_good(program, values, tmp_path):
    io.save_params(None, tmp_path, CompiledProgram(program))
    assert sorted(os.listdir(tmp_path)) == PARAMS


def test_arguments_of_wrong_type(program, values, tmp_path):
    with pytest.raises(TypeError, match="expected type is fluid.Program, but received <class 'str'>"):
        io.save_params(None, tmp_path, "program")
    refuses(lambda: io.save_vars(None, tmp_path, program), TypeError, "vars and predicate are both None")
    with pytest.raises(TypeError, match="must be a list of Variables, got 'fc_0.w_0'"):
        io.save_vars(None, tmp_path, program, vars=["fc_0.w_0"])
    array = program.global_block().create_var(name="array", type=VarType.LOD_TENSOR_ARRAY, persistable=True)
    with pytest.raises(NotSupportedError, match="'array' is a VarType.LOD_TENSOR_ARRAY"):
        io.save_vars(None, tmp_path, program, vars=[array])


def test_a_variable_without_value_says_to_run_the_startup_program(program, values, tmp_path):
    program.global_block().create_parameter(name="late", shape=[2], dtype="float32")
    for filename in (None, "all"):
        with pytest.raises(EnforceNotMet, match="'late' is not initialized.*Run the startup program"):
            io.save_params(None, tmp_path / "out", program, filename)
    assert not (tmp_path / "out").exists()


def test_names_with_folders_in_them_stay_inside(scope, tmp_path):
    program, var = one_variable("scope/w")
    scope.var("scope/w").get_tensor().set(np.ones((2, 3), "float32"))
    io.save_vars(None, tmp_path, program, vars=[var])
    assert (tmp_path / "scope" / "w").is_file()
    for name in ("../w", "/tmp/w"):
        program, var = one_variable(name)
        scope.var(name).get_tensor().set(np.ones((2, 3), "float32"))
        for action in (io.save_vars, io.load_vars):
            with pytest.raises(ValueError, match="stays in that folder"):
                action(None, tmp_path, program, vars=[var])


def test_a_failed_write_leaves_the_old_file(program, values, tmp_path, monkeypatch):
    io.save_params(None, tmp_path, program, "all")
    before = (tmp_path / "all").read_bytes()
    from fluidlite.io import saving

    def fails(file, tensor):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(saving, "write_tensor", fails)
    for filename in ("all", None):
        with pytest.raises(OSError, match="disk full"):
            io.save_params(None, tmp_path, program, filename)
    assert os.listdir(tmp_path) == ["all"]
    assert (tmp_path / "all").read_bytes() == before


def test_a_folder_in_the_way(program, values, tmp_path):
    (tmp_path / "all").mkdir()
    with pytest.raises(IsADirectoryError, match="there is a folder of that name"):
        io.save_params(None, tmp_path, program, "all")


def test_a_missing_file_changes_nothing(program, values, tmp_path):
    io.save_params(None, tmp_path, program)
    (tmp_path / "fc_1.b_0").unlink()
    values.clear()
    with pytest.raises(
        FileNotFoundError, match=r"fc_1\.b_0: the value of variable 'fc_1\.b_0' was not saved"
    ):
        io.load_params(None, tmp_path, program)
    assert values.differing() == values.names


def test_a_damaged_file_changes_nothing(program, values, tmp_path):
    io.save_params(None, tmp_path, program)
    path = tmp_path / "fc_1.w_0"
    path.write_bytes(path.read_bytes()[:-1])
    values.clear()
    refuses(lambda: io.load_params(None, tmp_path, program), FormatError, r"fc_1\.w_0 is cut off")
    assert values.differing() == values.names


def test_another_number_of_variables(program, values, tmp_path):
    io.save_params(None, tmp_path, program, "all")
    values.clear()
    with pytest.raises(FormatError, match="all ends after 4 tensors, expected 21"):
        io.load_persistables(None, tmp_path, program, "all")
    with pytest.raises(FormatError, match="bytes after its 3 tensors"):
        io.load_vars(None, tmp_path, program, vars=io.get_program_parameter(program)[:3], filename="all")
    assert values.differing() == values.names


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        (
            (4, 3),
            "float32",
            r"requires 't_float32' with shape \[4, 3\], while .*t_float32 has it with shape \[2, 3\]",
        ),
        ((6,), "float32", r"with shape \[6\], while"),
        ((2, 3), "float64", "requires 't_float32' of float64, while .*t_float32 has it with float32"),
    ],
)
def test_another_shape_or_type(scope, shape, dtype, message):
    program = Program()
    var = program.global_block().create_parameter(name="t_float32", shape=list(shape), dtype=dtype)
    scope.var("t_float32").get_tensor().set(np.ones(shape, dtype))
    refuses(lambda: io.load_vars(None, DATA / "vars", program, vars=[var]), RuntimeError, message)
    assert (np.array(scope.find_var("t_float32").get_tensor()) == 1).all()


@pytest.mark.parametrize("shape", [[-1, 3], [1]])
def test_variables_that_are_no_parameters_take_any_size(scope, shape):
    program, var = one_variable(shape=shape)
    io.load_vars(None, DATA / "vars", program, vars=[var])
    assert scope.find_var("t_float32").get_tensor().shape() == [2, 3]


def test_memory_is_kept_where_the_shape_stays(scope):
    program, var = one_variable()
    tensor = scope.var("t_float32").get_tensor()
    tensor.set(np.zeros((2, 3), "float32"))
    memory = tensor.array
    io.load_vars(None, DATA / "vars", program, vars=[var])
    assert tensor.array is memory
    assert memory[0].tolist() == [-2, -1, 0]


def test_a_variable_that_holds_something_else(scope):
    program, var = one_variable()
    scope.var("t_float32").set("not a tensor")
    with pytest.raises(TypeError, match="holds a str, not a LoDTensor"):
        io.load_vars(None, DATA / "vars", program, vars=[var])


def test_the_scope_is_the_global_one(program, values, tmp_path):
    io.save_params(None, tmp_path, program)
    with scope_guard(Scope()):
        io.load_params(None, tmp_path, program)
    assert values.differing() == []


def test_the_value_of_a_parameter(program, values):
    weight = program.global_block().var("fc_0.w_0")
    np.testing.assert_array_equal(io.get_parameter_value(weight, None), values.arrays["fc_0.w_0"])
    np.testing.assert_array_equal(
        io.get_parameter_value_by_name("fc_0.b_0", None, program), values.arrays["fc_0.b_0"]
    )
    with pytest.raises(AssertionError, match="takes a Parameter"):
        io.get_parameter_value(program.global_block().var("x"), None)


def test_levels_of_detail_are_loaded_and_dropped(scope, tmp_path):
    program, var = one_variable("w", [-1, 1], lod_level=1)
    tensor = scope.var("w").get_tensor()
    tensor.replace(LoDTensor.wrap(np.ones((3, 1), "float32")).array)
    tensor.set_lod([[0, 1, 3]])
    io.save_vars(None, tmp_path, program, vars=[var])
    tensor.set_lod([])
    io.load_vars(None, tmp_path, program, vars=[var])
    assert tensor.lod() == [[0, 1, 3]]


@pytest.mark.parametrize("filename", [None, "all"])
@pytest.mark.parametrize(
    ("lod", "rows"),
    [([[0, 2, 5]], 5), ([[0, 1, 2], [0, 2, 5]], 5), ([[0, 0, 0]], 0), ([[0, 0, 5, 5]], 5), ([], 5)],
)
def test_sequences_come_back_as_they_were(scope, tmp_path, filename, lod, rows):
    program, _ = one_variable("w", [-1, 2], lod_level=len(lod))
    tensor = scope.var("w").get_tensor()
    tensor.replace(np.arange(2.0 * rows, dtype="float32").reshape(rows, 2))
    tensor.set_lod(lod)
    io.save_persistables(None, tmp_path, program, filename)
    for other in (None, [[0, 1, 3]]):
        tensor.replace(np.zeros((3, 2), "float32"))
        tensor.set_lod(other or [])
        io.load_persistables(None, tmp_path, program, filename)
        assert tensor.lod() == lod and tensor.shape() == [rows, 2]
        assert np.array(tensor).ravel().tolist() == [float(k) for k in range(2 * rows)]
        assert not any(level.flags.writeable for level in tensor.offsets)


def test_save_keeps_elements_only_as_in_fluid(scope, tmp_path):
    program, _ = one_variable("w", [-1, 1], lod_level=1)
    tensor = scope.var("w").get_tensor()
    tensor.replace(np.ones((3, 1), "float32"))
    tensor.set_lod([[0, 1, 3]])
    io.save(program, str(tmp_path / "model"))
    tensor.set_lod([])
    io.load(program, str(tmp_path / "model"))
    assert tensor.lod() == [] and np.array(tensor).tolist() == [[1], [1], [1]]


def test_persistable_nodes_of_a_graph(program, scope, tmp_path):
    """Only variables that an operator uses are nodes of a graph, and saved."""
    names = PARAMS
    for number, name in enumerate(names):
        shape = [abs(size) for size in program.global_block().var(name).shape]
        scope.var(name).get_tensor().set(np.full(shape, number, "float32"), CPUPlace())
    graph = IrGraph(core.Graph(program.desc), for_test=False)
    io._save_persistable_nodes(None, tmp_path, graph)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    (tmp_path / names[0]).unlink()
    for name in names:
        scope.find_var(name).get_tensor().set(np.full(1, -1.0, "float32"), CPUPlace())
    io._load_persistable_nodes(None, tmp_path, graph)
    held = [float(np.ravel(scope.find_var(name).get_tensor())[0]) for name in names]
    assert held == [-1.0, *range(1, len(names))]
