"""`fluid.save`, `fluid.load`, `load_program_state`, `set_program_state`."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from fluidlite import io
from fluidlite.base.errors import EnforceNotMet, FormatError
from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor
from fluidlite.executor.scope import Scope, global_scope, scope_guard
from fluidlite.framework import Program
from fluidlite.io.pickles import write_pickle

from ...refusals import refuses

DATA = Path(__file__).parent / "data"
SOME_EXECUTOR = Executor(CPUPlace())
PARAMS = ["fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"]


@pytest.fixture
def saved(program, values, tmp_path):
    """The path of a saved model, whose variables are zero in the scope by now."""
    io.save(program, tmp_path / "folder" / "model")
    values.clear()
    return tmp_path / "folder" / "model"


def change(saved: Path, array: object) -> None:
    """Put something else in the place of fc_0.w_0 (None: leave it out)."""
    path = saved.with_suffix(".pdparams")
    state = pickle.loads(path.read_bytes())
    state["fc_0.w_0"] = array
    if array is None:
        del state["fc_0.w_0"]
    path.write_bytes(pickle.dumps(state, 2))


def test_three_files(saved, values):
    assert sorted(os.listdir(saved.parent)) == ["model.pdmodel", "model.pdopt", "model.pdparams"]
    params = pickle.loads(saved.with_suffix(".pdparams").read_bytes())
    others = pickle.loads(saved.with_suffix(".pdopt").read_bytes())
    assert list(params) == PARAMS
    assert set(params) | set(others) == set(values.names)
    np.testing.assert_array_equal(params["fc_0.w_0"], values.arrays["fc_0.w_0"])
    program = Program.parse_from_string(saved.with_suffix(".pdmodel").read_bytes())
    assert [op.type for op in program.global_block().ops] == [
        "mul",
        "elementwise_add",
        "tanh",
        "mul",
        "elementwise_add",
    ]


@pytest.mark.parametrize("suffix", ["", ".pdparams", ".pdopt", ".pdmodel"])
def test_load(saved, program, values, suffix):
    io.load(program, f"{saved}{suffix}")
    assert values.differing() == []


def test_a_model_of_paddle(program, values):
    io.load(program, DATA / "adam")
    w = np.array(values.scope.find_var("fc_0.w_0").get_tensor())
    np.testing.assert_allclose(w[0], [-0.94738328, 0.65983731, -0.02318176], rtol=1e-6)
    moment = np.array(values.scope.find_var("fc_0.w_0_moment1_0").get_tensor())
    np.testing.assert_allclose(moment[0], [0.01967315, -0.0107659, -0.01419306], rtol=1e-6)


def test_an_executor_allows_for_variables_that_are_not_there_yet(saved, program, values):
    with scope_guard(Scope()):
        refuses(lambda: io.load(program, saved), EnforceNotMet, "run the startup program before fluid.load")
        assert global_scope().find_var("fc_0.w_0") is None
        io.load(program, saved, SOME_EXECUTOR)
        np.testing.assert_array_equal(
            np.array(global_scope().find_var("fc_0.w_0").get_tensor()), values.arrays["fc_0.w_0"]
        )


def test_a_program_without_optimizer_needs_no_pdopt(saved, values):
    saved.with_suffix(".pdopt").unlink()
    network = Program()
    network.global_block().create_parameter(name="fc_0.w_0", shape=[4, 3], dtype="float32")
    io.load(network, saved)
    assert "fc_0.w_0" not in values.differing()


def test_a_missing_pdopt(saved, program, values):
    saved.with_suffix(".pdopt").unlink()
    for error in (FileNotFoundError, AssertionError):  # the latter in Fluid
        with pytest.raises(error, match=r"no file .*model\.pdopt, where the value of '.*' would be"):
            io.load(program, saved)
    assert values.differing() == values.names


def test_a_parsed_program_finds_its_values_in_both_files(saved, program, values):
    """It does not know which variables are parameters. In Fluid it cannot be loaded."""
    parsed = Program.parse_from_string(program.desc.serialize_to_string())
    assert not list(filter(io.is_parameter, parsed.list_vars()))
    io.load(parsed, saved)
    assert values.differing() == []
    io.save(parsed, saved)
    values.clear()
    io.load(program, saved)
    assert values.differing() == []


def test_error_classes_of_loading(saved, program, values, tmp_path):
    """The exception classes of Paddle 1.8.5."""
    io.save_params(None, tmp_path, program, "combined")
    some = list(filter(io.is_parameter, program.list_vars()))[:1]
    (tmp_path / "foreign").write_text("hello")
    program.global_block().create_parameter(name="later", shape=[1], dtype="float32")
    for load, error in (
        (lambda: io.load(program, saved), AssertionError),
        (lambda: io.load(program, saved, object()), AssertionError),
        (lambda: io.load(program, tmp_path / "nothing"), ValueError),
        (lambda: io.load(program, tmp_path / "nothing", SOME_EXECUTOR), FileNotFoundError),
        (lambda: io.load(program, tmp_path / "combined", SOME_EXECUTOR, some), RuntimeError),
        (lambda: io.load(program, tmp_path / "foreign", SOME_EXECUTOR, some), RuntimeError),
        (lambda: io.load_program_state(tmp_path / "nothing", some), RuntimeError),
        (lambda: io.load_program_state(tmp_path / "combined", some), RuntimeError),
    ):
        with pytest.raises(error):
            load()
    assert values.differing() == values.names


def test_nothing_there(program, values, tmp_path):
    for action in (lambda path: io.load(program, path), io.load_program_state):
        with pytest.raises(
            FileNotFoundError, match=r"neither a file .*nothing\.pdparams nor a file or folder"
        ):
            action(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (None, AssertionError, r"Can not find \[fc_0\.w_0\] in model file \[.*model\.pdparams\]"),
        (np.zeros((3, 3), "float32"), RuntimeError,
         r"requires 'fc_0\.w_0' with shape \[4, 3\], while .* \[3, 3\]"),
        (np.zeros((4, 3)), RuntimeError,
         r"requires 'fc_0\.w_0' of float32, while .*pdparams has it with float64"),
        ([1, 2], FormatError, r"\[fc_0\.w_0\] in .*pdparams should be an array, got list"),
    ],
)  # fmt: skip
def test_what_does_not_fit_changes_nothing(saved, program, values, array, error, message):
    change(saved, array)
    refuses(lambda: io.load(program, saved), error, message)
    assert values.differing() == values.names


def test_a_damaged_file_changes_nothing(saved, program, values):
    path = saved.with_suffix(".pdopt")
    path.write_bytes(path.read_bytes()[:-20])
    refuses(lambda: io.load(program, saved), FormatError, r"model\.pdopt is not a file of parameters")
    assert values.differing() == values.names


def test_saving_before_the_startup_program(program, scope, tmp_path):
    refuses(lambda: io.save(program, tmp_path / "model"), EnforceNotMet, "Run the startup program")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["", "folder/"])
def test_a_path_without_a_name(program, values, path):
    refuses(lambda: io.save(program, path), AssertionError, "has no name at its end")


def test_loads_what_the_other_functions_saved(program, values, tmp_path):
    io.save_persistables(None, tmp_path / "folder", program)
    io.save_params(None, tmp_path / "params", program)
    io.save_persistables(None, tmp_path, program, "combined")
    variables = io.get_program_persistable_vars(program)
    for path, var_list, left in (
        ("folder", None, 0),
        ("folder", variables[:3], 18),
        ("params", None, 17),
        ("combined", variables, 0),
    ):
        values.clear()
        io.load(program, tmp_path / path, SOME_EXECUTOR, var_list)
        assert len(values.differing()) == left
    with pytest.raises(ValueError, match="is a combined file, which does not say what is in it"):
        io.load(program, tmp_path / "combined")
    refuses(lambda: io.load(program, DATA / "vars"), RuntimeError, "has a file for none of the 21 variables")


def test_program_state(saved, values):
    state = io.load_program_state(saved)
    assert sorted(state) == sorted(values.names)
    np.testing.assert_array_equal(state["learning_rate_0"], values.arrays["learning_rate_0"])
    saved.with_suffix(".pdopt").unlink()
    assert list(io.load_program_state(str(saved) + ".pdparams")) == PARAMS


def test_program_state_of_folders_and_combined_files(program, values, tmp_path):
    io.save_params(None, tmp_path / "params", program)
    io.save_params(None, tmp_path, program, "combined")
    variables = io.get_program_parameter(program)
    assert sorted(io.load_program_state(tmp_path / "params")) == sorted(PARAMS)
    assert list(io.load_program_state(tmp_path / "params", variables[:1])) == ["fc_0.w_0"]
    state = io.load_program_state(tmp_path / "combined", variables)
    np.testing.assert_array_equal(state["fc_1.b_0"], values.arrays["fc_1.b_0"])
    refuses(lambda: io.load_program_state(tmp_path / "combined"), ValueError, "var_list can not be None")


def test_setting_state(saved, program, values):
    state = io.load_program_state(saved)
    io.set_program_state(program, state)
    assert values.differing() == []
    values.clear()
    io.set_program_state(program, {"fc_0.w_0": state["fc_0.w_0"]})
    assert "fc_0.w_0" not in values.differing()
    assert len(values.differing()) == 20
    with pytest.warns(UserWarning, match="no variable of that name: yyy, zzz"):
        io.set_program_state(program, {**state, "zzz": np.zeros(1), "yyy": np.zeros(1)})


def test_set_state_is_copied(program, values):
    array = np.ones((4, 3), "float32")
    io.set_program_state(program, {"fc_0.w_0": array})
    array[:] = 5
    assert (np.array(values.scope.find_var("fc_0.w_0").get_tensor()) == 1).all()


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (
            np.zeros((3, 3), "float32"),
            AssertionError,
            r"'fc_0\.w_0' with shape \[4, 3\] and dtype float32, while",
        ),
        (np.zeros((4, 3)), AssertionError, "has shape .* and dtype float64"),
        ([[1, 2]] * 4, TypeError, r"got list for 'fc_0\.w_0'"),
    ],
)
def test_state_that_does_not_fit_changes_nothing(program, values, array, error, message):
    other = np.full(3, 9, "float32")
    refuses(lambda: io.set_program_state(program, {"fc_0.b_0": other, "fc_0.w_0": array}), error, message)
    assert values.differing() == []


def test_setting_state_before_the_startup_program(program, scope):
    with pytest.raises(EnforceNotMet, match="Run the startup program"):
        io.set_program_state(program, {"fc_0.w_0": np.zeros((4, 3), "float32")})


def test_nothing_is_run(saved, program, values):
    saved.with_suffix(".pdparams").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    refuses(lambda: io.load(program, saved), FormatError, r"os\.system|posix\.system")


def test_a_pickle_of_this_package_has_the_form_of_paddle(program, values, tmp_path):
    io.load(program, DATA / "adam")
    io.save(program, tmp_path / "own")
    for suffix in (".pdparams", ".pdopt"):
        theirs, ours = (
            pickle.loads((DATA / f"adam{suffix}").read_bytes()),
            io.load_program_state(tmp_path / "own"),
        )
        assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert (tmp_path / "own.pdparams").read_bytes() == (DATA / "adam.pdparams").read_bytes()
    write_pickle(tmp_path / "again", pickle.loads((DATA / "adam.pdopt").read_bytes()))
    assert io.load_program_state(DATA / "adam").keys() == io.load_program_state(tmp_path / "own").keys()
