"""fluid.incubate.fleet.utils.utils: programs as text and bytes, what is in them, whether saved models run."""

import logging
import os
from types import SimpleNamespace

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import FormatError
from fluidlite.incubate.fleet.utils import utils


@pytest.fixture(autouse=True)
def logged(caplog):
    """The package's logger writes by itself; what it says is looked at here."""
    utils.logger.addHandler(caplog.handler)
    yield caplog
    utils.logger.removeHandler(caplog.handler)


@pytest.fixture
def saved(tmp_path):
    """A folder with relu(x @ 2) plus the sums of looked up rows of ones, and the name of what it gives."""
    main, startup = fluid.Program(), fluid.Program()
    two, ones = fluid.initializer.Constant(2.0), fluid.initializer.Constant(1.0)
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x, ids = fluid.data("x", [None, 4]), fluid.data("ids", [None, 1], "int64", lod_level=1)
        y = fluid.layers.fc(x, 3, act="relu", param_attr=fluid.ParamAttr("w", two), bias_attr=False)
        rows = fluid.layers.embedding(ids, [5, 3], param_attr=fluid.ParamAttr("rows", ones))
        out = y + fluid.layers.sequence_pool(rows, "sum")
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path), ["x", "ids"], [out], exe, main)
        fluid.io.save_inference_model(
            str(tmp_path), ["x", "ids"], [out], exe, main, "joined_program", "joined"
        )
    return str(tmp_path), out.name


def test_both_forms_of_programs(saved):
    folder, _ = saved
    assert utils.program_type_trans(folder, "__model__", False) == "__model__.pbtxt"
    assert utils.program_type_trans(folder, "__model__.pbtxt", True) == "__model__.pbtxt.bin"
    first = utils.load_program(os.path.join(folder, "__model__"))
    text = utils.load_program(os.path.join(folder, "__model__.pbtxt"), is_text=True)
    restored = utils.load_program_binary(os.path.join(folder, "__model__.pbtxt.bin"))
    assert str(first) == str(text) == str(restored)
    assert [op.type for op in text.global_block().ops][:3] == ["feed", "feed", "mul"]
    with pytest.raises(FormatError, match=r"__model__ is not the text of a ProgramDesc"):
        utils.load_program_text(os.path.join(folder, "__model__"))
    with open(os.path.join(folder, "broken"), "w", encoding="utf-8") as file:
        file.write("blocks { idx: }")
    with pytest.raises(FormatError, match="broken is not the text of a ProgramDesc"):
        utils.load_program_text(os.path.join(folder, "broken"))


def test_what_a_program_has(saved):
    folder, _ = saved
    utils.parse_program(utils.load_program(os.path.join(folder, "__model__")), folder)

    def lines(name):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read().splitlines()

    kept = lines(utils.persistable_vars_out_fn)
    assert kept[0] == "persistable vars:" and sorted(kept[1:]) == [
        "{'name': 'rows', 'shape': '(5, 3)', 'lod_level': 0, 'dtype': 'VarType.FP32', 'type': 'VarType.LOD_TENSOR'}",
        "{'name': 'w', 'shape': '(4, 3)', 'lod_level': 0, 'dtype': 'VarType.FP32', 'type': 'VarType.LOD_TENSOR'}",
    ]
    every = lines(utils.all_vars_out_fn)
    assert every[0] == "all vars:" and "{'name': 'feed', 'type': 'VarType.FEED_MINIBATCH'}" in every
    assert "{'name': 'ids', 'shape': '(-1, 1)', 'lod_level': 1, 'dtype': 'VarType.INT64'}" in every
    done = lines(utils.ops_out_fn)
    wanted = "{'type': 'mul', 'input_arg_names': \"['x', 'w']\", 'output_arg_names': \"['fc_0.tmp_0']\"}"
    assert done[0] == "ops:" and wanted in done


def test_pruned_programs_are_compared(saved, logged):
    folder, _ = saved
    pruned = utils.load_program(os.path.join(folder, "__model__"))
    assert utils.check_pruned_program_vars(pruned.clone(), pruned)
    whole = pruned.clone()
    whole.global_block().var("rows").desc.set_shape([6, 3])
    assert not utils.check_pruned_program_vars(whole, pruned)
    assert "variable: rows not match" in logged.text
    assert utils.check_pruned_program_vars(fluid.Program(), pruned), "only logged"
    assert "not find variable 'w' in train program" in logged.text


def test_a_saved_model_is_tried(saved, logged, tmp_path):
    folder, name = saved
    (tmp_path / "xs").write_text("1 1 1 1\n2 0 0 0 0.5 0.5 0 0\n")
    (tmp_path / "ids.txt").write_text("0\n1\n2\n")
    feeds = SimpleNamespace(
        feeded_vars_names=["x", "ids"],
        feeded_vars_dims=[4, 1],
        feeded_vars_types=[np.float32, np.int64],
        feeded_vars_filelist=[str(tmp_path / "xs"), str(tmp_path / "ids.txt")],
    )
    fetches = SimpleNamespace(fetch_vars_names=[name])
    with fluid.scope_guard(fluid.Scope()):
        [found] = utils.check_saved_vars_try_dump(folder, "__model__", False, feeds, fetches)
        np.testing.assert_array_equal(found, [[9] * 3, [5] * 3, [3] * 3])
        assert f"fetch_targets name: {name}" in logged.text
        feeds.feeded_vars_filelist = None
        np.random.seed(0)
        drawn = np.random.random((2, 4)).astype("float32")
        np.random.seed(0)
        [found] = utils.check_saved_vars_try_dump(
            folder, "joined_program", False, feeds, fetches, 2, save_filename="joined"
        )
        np.testing.assert_allclose(found, 2 * drawn.sum(1, keepdims=True).repeat(3, 1) + 1, rtol=1e-6)
        feeds.feeded_vars_dims = [5, 1]
        with pytest.raises(RuntimeError, match=r"feed variable 'x' shape not match.*\(4,\).*\(5,\)"):
            utils.check_saved_vars_try_dump(folder, "__model__", False, feeds, fetches)
        utils.save_var(np.zeros((4, 2), "float32"), "w", [4, 2], "float32", os.path.join(folder, "w"))
        with pytest.raises(RuntimeError, match=r"shape of \(4, 3\).*\[ w \].*\(4, 2\)"):
            utils.check_saved_vars_try_dump(folder, "__model__", False, feeds, fetches)


def test_variables_and_numbers_in_files(tmp_path):
    array, path = np.arange(6, dtype="float32").reshape(2, 3), str(tmp_path / "v")
    utils.save_var(array, "v", [2, 3], "float32", path)
    [found] = utils.load_var("other", [2, 3], "float32", path)
    np.testing.assert_array_equal(found, array)
    (tmp_path / "numbers").write_text("0 1 2 3 4\n5 6\n7\n")
    read = utils.reader(2, str(tmp_path / "numbers"), 1)
    assert [part.tolist() for part in read] == [[[0.0], [1.0]], [[2.0], [3.0]], [[5.0], [6.0]]]
    assert [part.shape for part in utils.reader(1, str(tmp_path / "numbers"), (2, 2))] == [(1, 2, 2)]


def test_operators_that_servers_should_not_run_are_logged(logged):
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        ids = fluid.layers.data("ids", [1], dtype="int64")
        fluid.layers.embedding(ids, [3, 2])
    with logged.at_level(logging.WARNING):
        utils.check_not_expected_ops(program)
    assert "find op type '['lookup_table']' in program" in logged.text


def test_a_block_is_drawn(programs, tmp_path):
    fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    utils.graphviz(fluid.default_main_program().global_block(), str(tmp_path), "net")
    assert "digraph" in (tmp_path / "net.dot").read_text()
