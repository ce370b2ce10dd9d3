"""Programs with feed and fetch operators."""

import numpy as np
import pytest

import fluidlite as fluid

EXE = fluid.executor


@pytest.fixture
def program():
    x, y = fluid.data("x", [None, 2]), fluid.layers.data("y", [2])
    total = fluid.layers.elementwise_add(x, y)
    mean = fluid.layers.mean(total)
    main = fluid.default_main_program()
    fluid.io.prepend_feed_ops(main, ["x", "y"])
    fluid.io.append_fetch_ops(main, [total.name, mean.name])
    return main, total, mean


FEED = {"x": np.ones((3, 2), "float32"), "y": np.ones((3, 2), "float32")}


@pytest.mark.parametrize("engine", ["plan", "interpret"])
def test_they_run_like_others(program, engine, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ENGINE", engine)
    main, total, mean = program
    assert [op.type for op in main.global_block().ops] == [
        "feed", "feed", "elementwise_add", "mean", "fetch", "fetch",
    ]  # fmt: skip
    exe = fluid.Executor(fluid.CPUPlace())
    for _ in range(3):
        got = exe.run(main, feed=FEED, fetch_list=[mean, total])
        assert [value.tolist() for value in got] == [[2.0], [[2.0, 2.0]] * 3]
    with pytest.raises(fluid.core.EnforceNotMet, match=r"'y'.*not fed"):
        exe.run(main, feed={"x": FEED["x"]}, fetch_list=[total])
    parallel = fluid.CompiledProgram(main).with_data_parallel(places=fluid.cpu_places(2))
    feed = {name: np.concatenate([value, value]) for name, value in FEED.items()}
    assert exe.run(parallel, feed=feed, fetch_list=[total])[0].shape == (6, 2)


def test_whether_a_block_has_them(program):
    main, total, mean = program
    block, empty = main.global_block(), fluid.Program().global_block()
    assert EXE.has_feed_operators(block, {"x": 1, "y": 2}, "feed")
    assert EXE.has_fetch_operators(block, [total, mean.name], "fetch")
    assert not EXE.has_feed_operators(empty, {"x": 1}, "feed")
    with pytest.raises(Exception, match="'feed_targets' does not have"):
        EXE.has_feed_operators(block, {"x": 1}, "feed")
    with pytest.raises(Exception, match="Feed operators in program desc do not match 'feed_targets'"):
        EXE.has_feed_operators(block, {"x": 1, "y": 2, "z": 3}, "feed")
    with pytest.raises(Exception, match="'fetch_targets' does not have"):
        EXE.has_fetch_operators(block, [total], "fetch")
    with pytest.raises(AssertionError, match="'feed', not by 'other'"):
        EXE.has_feed_operators(block, {"x": 1, "y": 2}, "other")


def test_check_feed_shape_type():
    var = fluid.data("x", [2, 3])
    assert EXE.check_feed_shape_type(var, np.ones((2, 3), "float32"))
    assert EXE.check_feed_shape_type(var, np.ones((4, 3), "float32"), num_places=2)
    with pytest.raises(ValueError, match="'x' should have dimensions = 2"):
        EXE.check_feed_shape_type(var, np.ones((4, 3), "float32"))
