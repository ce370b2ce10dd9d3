"""If a save fails, or its process ends in the middle, all old files stay."""

import resource
from contextlib import contextmanager

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet
from fluidlite.dygraph.jit.models import save as save_layer
from fluidlite.layers import tensor
from fluidlite.paddle.hapi.model import Model
from fluidlite.paddle.saving import save as save_plain

LIMIT = 100_000
SIZE = 200
"""A weight of so many rows and columns is over the limit, everything else is not."""


@contextmanager
def a_small_disk():
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def of_programs(save):
    """Save a network that is trained further before each save."""

    def made(folder):
        with fluid.scope_guard(fluid.Scope()), fluid.program_guard(fluid.Program(), fluid.Program()):
            with fluid.unique_name.guard():
                x = fluid.data("x", [None, 10])
                y = fluid.layers.fc(fluid.layers.fc(x, SIZE), SIZE)
                fluid.optimizer.Momentum(0.1, 0.9).minimize(fluid.layers.mean(y))
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            save(exe, str(folder), y)

    return made


def by_operator(build):
    """Saves by an operator of a program."""

    def run(exe, folder, y):
        main = fluid.default_main_program()
        with fluid.program_guard(fluid.Program()):
            block = fluid.default_main_program().global_block()
            parameters = [block._clone_variable(var) for var in main.all_parameters()]
            build(parameters, f"{folder}/file")
            exe.run()

    return of_programs(run)


def of_layers(save):
    def made(folder):
        with fluid.dygraph.guard():
            net = fluid.dygraph.Linear(SIZE, SIZE)
            save(net, folder / "net")

    return made


SAVES = {
    "save_persistables, in separate files": of_programs(lambda exe, path, y: fluid.io.save_persistables(exe, path)),
    "save_persistables, in one file": of_programs(
        lambda exe, path, y: fluid.io.save_persistables(exe, path, filename="all")
    ),
    "fluid.save": of_programs(
        lambda exe, path, y: fluid.save(fluid.default_main_program(), f"{path}/model")
    ),
    "save_inference_model, in separate files": of_programs(
        lambda exe, path, y: fluid.io.save_inference_model(path, ["x"], [y], exe)
    ),
    "save_inference_model, in one file": of_programs(
        lambda exe, path, y: fluid.io.save_inference_model(path, ["x"], [y], exe, params_filename="params")
    ),
    "operator save": by_operator(lambda parameters, path: [tensor.save(var, path + var.name) for var in parameters]),
    "operator save_combine": by_operator(tensor.save_combine),
    "save_dygraph": of_layers(lambda net, path: fluid.save_dygraph(net.state_dict(), str(path))),
    "paddle.save": of_layers(lambda net, path: save_plain(net.state_dict(), path)),
    "jit.save": of_layers(lambda net, path: save_layer(net, str(path), [np.ones((1, SIZE), "float32")])),
    "Model.save": of_layers(lambda net, path: Model(net).save(str(path))),
}  # fmt: skip


@pytest.mark.parametrize("case", SAVES)
def test_a_full_disk_leaves_what_was_saved_before(case, tmp_path):
    SAVES[case](tmp_path)
    before = contents(tmp_path)
    with a_small_disk(), pytest.raises((OSError, EnforceNotMet), match=f"cannot write the file {tmp_path}/"):
        SAVES[case](tmp_path)
    if case == "operator save":  # each is a save of its own
        assert set(contents(tmp_path)) == set(before)
    else:
        assert contents(tmp_path) == before
    SAVES[case](tmp_path)
    assert set(contents(tmp_path)) == set(before)
    assert any(contents(tmp_path)[name] != data for name, data in before.items())


def test_drafts_in_a_folder_are_no_variables(tmp_path):
    SAVES["save_persistables, in separate files"](tmp_path)
    names = set(fluid.load_program_state(str(tmp_path)))
    (tmp_path / ".fluidlite-00c0ffee-0.tmp").write_bytes(b"half")
    assert set(fluid.load_program_state(str(tmp_path))) == names


FRESH = """
import sys
import numpy as np
import paddle.fluid as fluid

block = fluid.default_main_program().global_block()
x = fluid.data("x", [2, 3], "float32")
made = [block.create_var(name=name, shape=[2, 3], dtype="float32", persistable=True) for name in "yz"]
exe = fluid.Executor(fluid.CPUPlace())
paths = [{"file_path": path} for path in sys.argv[2:]]
if sys.argv[1] == "save":
    block.append_op(type="save", inputs={"X": [x]}, outputs={}, attrs=paths[0])
    block.append_op(type="save_combine", inputs={"X": [x]}, outputs={}, attrs=paths[1])
    exe.run(feed={"x": np.arange(6, dtype="float32").reshape(2, 3)})
else:
    block.append_op(type="load", inputs={}, outputs={"Out": made[:1]}, attrs=paths[0])
    block.append_op(type="load_combine", inputs={}, outputs={"Out": made[1:]}, attrs=paths[1])
    print(np.array(exe.run(fetch_list=made)).tolist())
"""


def test_operators_save_and_load_in_processes_that_do_nothing_else(python, tmp_path):
    run = ("-m", "fluidlite", "-c", FRESH)
    done = python(*run, "save", tmp_path / "one", tmp_path / "all")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    done = python(*run, "load", tmp_path / "one", tmp_path / "all")
    assert done.stdout == f"{[[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]] * 2}\n", done.stderr
