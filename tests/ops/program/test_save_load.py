"""save, load, save_combine, load_combine: files while a program runs."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet
from fluidlite.layers import tensor

X = np.arange(6, dtype="float32").reshape(2, 3)
Y = np.array([1, -2], "int64")


@pytest.fixture
def saved(programs, tmp_path):
    """An executor, after a program has saved x, with sequences, and x and y together."""
    x, y = fluid.data("x", [None, 3], lod_level=1), fluid.data("y", [2], "int64")
    tensor.save(x, str(tmp_path / "in" / "x"))
    tensor.save_combine([x, y], str(tmp_path / "both"))
    exe = fluid.Executor()
    feed = {"x": fluid.create_lod_tensor(X, [[1, 1]], fluid.CPUPlace()), "y": Y}
    exe.run(feed=feed)
    return exe, tmp_path, feed


def read(exe, kinds, build, **more):
    program = fluid.Program()
    with fluid.program_guard(program):
        outs = [tensor.create_tensor(kind) for kind in kinds]
        build(outs)
    return exe.run(program, fetch_list=outs, return_numpy=False)


def test_what_is_saved_is_loaded(saved):
    exe, path, _ = saved
    (found,) = read(exe, ["float32"], lambda outs: fluid.layers.load(outs[0], str(path / "in" / "x")))
    np.testing.assert_array_equal(np.array(found), X)
    assert found.lod() == [[0, 1, 2]]
    one, two = read(exe, ["float32", "int64"], lambda outs: tensor.load_combine(outs, str(path / "both")))
    np.testing.assert_array_equal(np.array(one), X)
    np.testing.assert_array_equal(np.array(two), Y)
    (half,) = read(exe, ["float16"], lambda outs: fluid.layers.load(outs[0], str(path / "in" / "x"), True))
    assert np.array(half).dtype == np.float16 and np.array(half).tolist() == X.tolist()


def test_files_are_those_of_io(saved):
    exe, path, _ = saved
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        weight = fluid.layers.create_global_var([2, 3], 0.5, "float32", persistable=True, name="w")
        exe.run(fluid.default_startup_program())
        fluid.io.save_vars(exe, str(path), vars=[weight])
        tensor.save(weight, str(path / "mine"))
        exe.run()
    assert (path / "w").read_bytes() == (path / "mine").read_bytes()


def test_parts_of_a_tensor(saved):
    exe, path, _ = saved

    def build(outs):
        attrs = {"file_path": str(path / "in" / "x"), "seek": 2, "shape": [3]}
        block = fluid.default_main_program().global_block()
        block.append_op(type="load", inputs={}, outputs={"Out": outs}, attrs=attrs)

    (found,) = read(exe, ["float32"], build)
    assert np.array(found).tolist() == [2, 3, 4]


def test_what_cannot_be(saved):
    exe, path, _ = saved
    with pytest.raises(EnforceNotMet, match="there is no file"):
        read(exe, ["float32"], lambda outs: fluid.layers.load(outs[0], str(path / "none")))
    with pytest.raises(EnforceNotMet, match="must hold one tensor, it holds 2"):
        read(exe, ["float32"], lambda outs: fluid.layers.load(outs[0], str(path / "both")))
    with pytest.raises(EnforceNotMet, match="holds 2 tensors, there are 1 variables"):
        read(exe, ["float32"], lambda outs: tensor.load_combine(outs, str(path / "both")))
    with pytest.raises(TypeError, match="list of Variables"):
        tensor.save_combine(3, "x")
    with fluid.program_guard(fluid.Program()):
        tensor.save(fluid.data("x", [None, 3]), str(path / "both"), overwrite=False)
        with pytest.raises(EnforceNotMet, match="exists"):
            exe.run(feed={"x": X})
    ops = [op.type for op in fluid.default_main_program().global_block().ops]
    with fluid.program_guard(fluid.Program()):
        tensor.load_combine([tensor.create_tensor("float32")], "x")
        ops += [op.type for op in fluid.default_main_program().global_block().ops]
    assert ops == ["save", "save_combine", "load_combine"]
