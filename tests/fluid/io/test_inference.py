"""Inference models: programs cut down to their outputs, with their parameters."""

import os
from pathlib import Path

import numpy as np
import pytest

from fluidlite import io, layers
from fluidlite.base import unique_name
from fluidlite.base.errors import EnforceNotMet, FormatError
from fluidlite.executor.executor import Executor
from fluidlite.executor.scope import Scope, global_scope, scope_guard
from fluidlite.framework import Program

DATA = Path(__file__).parent / "data"
PARAMS = ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]
X = np.array(
    [
        [0.09697984158992767, 0.8182567358016968, -0.7336611151695251, 0.046825163066387177],
        [0.500819742679596, 0.3380264937877655, -0.06449428200721741, -0.5903018116950989],
        [-0.01846822164952755, -0.2552306354045868, -0.04519769176840782, -0.2682192325592041],
    ],
    "float32",
)
PADDLE_SAYS = [
    [0.3944970965385437, 0.2654280662536621],
    [0.6281611919403076, -0.18681830167770386],
    [0.795058012008667, -0.8092498779296875],
]


@pytest.fixture(autouse=True)
def names():
    with unique_name.guard():
        yield


@pytest.fixture
def prediction(program):
    return program.global_block().var("fc_1.tmp_1")


def test_a_model_of_paddle_gives_what_paddle_says(scope):
    executor = Executor()
    model, feeds, fetches = io.load_inference_model(DATA / "inference", executor, params_filename="params")
    assert feeds == ["x"]
    assert [var.name for var in fetches] == ["save_infer_model/scale_0.tmp_0"]
    assert [op.type for op in model.global_block().ops][:2] == ["feed", "mul"]
    (out,) = executor.run(model, feed={"x": X}, fetch_list=fetches)
    np.testing.assert_allclose(out, PADDLE_SAYS, rtol=1e-5, atol=1e-6)


def test_tables_are_asked_for_at_the_servers_that_are_named(programs, scope, tmp_path):
    main, startup = programs
    rows = layers.embedding(layers.data("ids", [1], dtype="int64"), [5, 2])
    executor = Executor()
    executor.run(startup)
    io.save_inference_model(tmp_path, ["ids"], [rows], executor, main)
    for given, kept in ((None, []), (["here:1", "there:2"], ["here:1", "there:2"])):
        model = io.load_inference_model(tmp_path, executor, pserver_endpoints=given)[0]
        (table,) = [op for op in model.global_block().ops if op.type == "lookup_table"]
        assert table.attr("epmap") == kept


def test_a_parsed_model_with_its_ends_runs_as_well(scope):
    model = Program.parse_from_string((DATA / "inference" / "__model__").read_bytes())
    io.load_persistables(None, DATA / "inference", model, "params")
    for _ in range(3):
        (out,) = Executor().run(model, feed={"x": X}, fetch_list=["save_infer_model/scale_0.tmp_0"])
        np.testing.assert_allclose(out, PADDLE_SAYS, rtol=1e-5, atol=1e-6)


def test_from_memory(scope):
    data = [(DATA / "inference" / name).read_bytes() for name in ("__model__", "params")]
    _, feeds, _ = io.load_inference_model(None, None, *data)
    assert feeds == ["x"]
    assert global_scope().find_var("fc_1.w_0").get_tensor().shape() == [3, 2]
    with pytest.raises(TypeError, match="takes the program as bytes"):
        io.load_inference_model(None, None, "model", "params")


def test_saved_here(program, prediction, values, tmp_path):
    version, count = program._version, len(program.global_block().ops)
    outputs = io.save_inference_model(tmp_path, ["x"], [prediction], None, program)
    assert outputs == ["save_infer_model/scale_0.tmp_0"]
    assert sorted(os.listdir(tmp_path)) == sorted(["__model__", *PARAMS])
    assert (program._version, len(program.global_block().ops)) == (version, count)
    saved = Program.parse_from_string((tmp_path / "__model__").read_bytes())
    theirs = Program.parse_from_string((DATA / "inference" / "__model__").read_bytes())
    assert [op.type for op in saved.global_block().ops] == [op.type for op in theirs.global_block().ops]
    assert set(saved.global_block().vars) == set(theirs.global_block().vars)
    with scope_guard(Scope()):
        model, feeds, fetches = io.load_inference_model(tmp_path, None)
        for name in PARAMS:
            found = np.array(global_scope().find_var(name).get_tensor())
            np.testing.assert_array_equal(found, values.arrays[name])
    assert (feeds, [var.name for var in fetches]) == (["x"], outputs)
    assert [op.type for op in model.global_block().ops][-2:] == ["scale", "fetch"]
    assert set(model.global_block().vars) == set(theirs.global_block().vars)


def test_file_names(program, prediction, values, tmp_path):
    io.save_inference_model(tmp_path, "x", prediction, None, program, "m", "p")
    assert sorted(os.listdir(tmp_path)) == ["m", "p"]
    with scope_guard(Scope()):
        _, feeds, _ = io.load_inference_model(tmp_path, None, "m", "p")
    assert feeds == ["x"]


def test_the_same_weights_give_the_same_bytes_as_paddle(program, prediction, scope, tmp_path):
    io.load_params(None, DATA / "inference", program, "params")
    io.save_inference_model(tmp_path, ["x"], [prediction], None, program, params_filename="params")
    assert (tmp_path / "params").read_bytes() == (DATA / "inference" / "params").read_bytes()


def test_a_loaded_model_is_saved(scope, tmp_path):
    model, feeds, fetches = io.load_inference_model(DATA / "inference", None, params_filename="params")
    io.save_inference_model(tmp_path, feeds, fetches, None, model)
    loaded, feeds, _ = io.load_inference_model(tmp_path, None)
    assert feeds == ["x"]
    assert [op.type for op in loaded.global_block().ops].count("scale") == 2


def test_several_ends_keep_their_order(values, program, prediction, tmp_path):
    block = program.global_block()
    for name in ("z", "sum"):
        block.create_var(name=name, shape=[-1, 2], dtype="float32")
    block.append_op(type="elementwise_add", inputs={"X": prediction, "Y": "z"}, outputs={"Out": "sum"})
    targets = [block.var("sum"), block.var("fc_0.tmp_2")]
    outputs = io.save_inference_model(tmp_path, ["z", "x"], targets, None, program)
    assert outputs == ["save_infer_model/scale_0.tmp_0", "save_infer_model/scale_1.tmp_0"]
    _, feeds, fetches = io.load_inference_model(tmp_path, None)
    assert feeds == ["z", "x"]
    assert [var.shape for var in fetches] == [(-1, 2), (-1, 3)]


def test_only_what_the_outputs_need(program, values, tmp_path):
    io.save_inference_model(tmp_path, ["x"], [program.global_block().var("fc_0.tmp_2")], None, program)
    assert sorted(os.listdir(tmp_path)) == ["__model__", "fc_0.b_0", "fc_0.w_0"]


def test_program_only(program, prediction, scope, tmp_path):
    io.save_inference_model(tmp_path, ["x"], [prediction], None, program, program_only=True)
    assert os.listdir(tmp_path) == ["__model__"]


@pytest.mark.parametrize("ends", ["both", "no feeds", "none"])
def test_to_train_further(program, prediction, values, tmp_path, ends):
    feeds, targets = {"both": (["x"], [prediction]), "no feeds": (None, [prediction]), "none": ([], [])}[ends]
    made = io.save_inference_model(tmp_path, feeds, targets, None, program, export_for_deployment=False)
    assert made == [var.name for var in targets]
    assert sorted(os.listdir(tmp_path)) == sorted(["__model__.main_program", *values.names])
    saved = Program.parse_from_string((tmp_path / "__model__.main_program").read_bytes())
    assert saved.desc.serialize_to_string() == program.desc.serialize_to_string()


@pytest.mark.parametrize(
    ("feeds", "targets", "message"),
    [
        (["x", "q"], None, "var q not in this block"),
        (
            ["x", "fc_1.b_0_moment1_0"],
            None,
            r"has 'fc_1\.b_0_moment1_0', but fc_1\.tmp_1 can be computed without it",
        ),
        ([3], None, "'feed_var_names' should be a list of str"),
        (["x"], [], "'target_vars' should be a list of Variable"),
        (["x"], ["fc_1.tmp_1"], "'target_vars' should be a list of Variable"),
    ],
)
def test_ends_that_do_not_fit(program, prediction, values, tmp_path, feeds, targets, message):
    with pytest.raises(ValueError, match=message):
        io.save_inference_model(
            tmp_path / "out", feeds, [prediction] if targets is None else targets, None, program
        )
    assert not (tmp_path / "out").exists()


def test_before_the_startup_program(program, prediction, scope, tmp_path):
    with pytest.raises(EnforceNotMet, match="Run the startup program"):
        io.save_inference_model(tmp_path / "out", ["x"], [prediction], None, program)
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_there(scope, tmp_path):
    with pytest.raises(ValueError, match="There is no directory named"):
        io.load_inference_model(tmp_path / "nothing", None)
    with pytest.raises(FileNotFoundError, match="__model__"):
        io.load_inference_model(tmp_path, None)
    with pytest.raises(FileNotFoundError, match=r"the value of variable 'fc_\d\.._0' was not saved there"):
        io.load_inference_model(DATA / "inference", None)
    assert global_scope().local_var_names() == []


def test_files_that_are_something_else(scope, program, tmp_path):
    (tmp_path / "__model__").write_bytes(b"hello")
    with pytest.raises(FormatError, match="__model__ is not a"):
        io.load_inference_model(tmp_path, None)
    (tmp_path / "__model__").write_bytes(program.desc.serialize_to_string())
    with pytest.raises(FormatError, match="is not an inference model: it has no outputs"):
        io.load_inference_model(tmp_path, None)
