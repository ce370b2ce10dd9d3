"""Fetches of variables that nothing has given a value, as real Paddle 1.8.5 answers them."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers as L
from fluidlite.base.dtypes import VarType
from fluidlite.base.errors import EnforceNotMet

FEED = {"x": np.ones((2, 3), "float32")}


@pytest.fixture
def net():
    """A program with variables of all kinds that no operator computes, and the name of one that is computed."""
    x = fluid.data("x", [None, 3])
    fluid.data("unfed", [None, 1], "int64", lod_level=1)
    block = fluid.default_main_program().global_block()
    block.create_var(name="declared", shape=[2, 3], dtype="float32")
    block.create_var(name="shapeless")
    block.create_var(name="lasting", shape=[2, 3], dtype="float32", persistable=True)
    block.create_var(name="array", type=VarType.LOD_TENSOR_ARRAY, dtype="float32")
    block.create_var(name="rows", type=VarType.SELECTED_ROWS, shape=[3, 2], dtype="float32")
    return L.scale(x, 2.0).name


@pytest.mark.parametrize("engine", ["plan", "interpret"])
@pytest.mark.parametrize("pruned", [False, True])
def test_nothing_is_none(net, engine, pruned, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ENGINE", engine)
    exe = fluid.Executor()
    for name in ("declared", "shapeless", "lasting", "unfed"):
        value, nothing = exe.run(feed=FEED, fetch_list=[net, name], use_prune=pruned)
        assert value.tolist() == [[2.0] * 3] * 2
        assert nothing is None
        (tensor,) = exe.run(feed=FEED, fetch_list=[name], return_numpy=False, use_prune=pruned)
        assert (tensor.shape(), tensor._is_initialized()) == ([0], False)
    assert exe.run(feed=FEED, fetch_list=["array"], use_prune=pruned) == [[]]
    assert fluid.global_scope().find_var("lasting").get_tensor().shape() == [0]


def test_a_value_that_is_set_later_is_fetched(net):
    exe = fluid.Executor()
    assert exe.run(feed=FEED, fetch_list=["lasting", "unfed"]) == [None, None]
    fluid.global_scope().find_var("lasting").get_tensor().set(FEED["x"], fluid.CPUPlace())
    feed = {**FEED, "unfed": np.array([[7]])}
    assert [v.tolist() for v in exe.run(feed=feed, fetch_list=["lasting", "unfed"])] == [
        [[1.0] * 3] * 2,
        [[7]],
    ]
    assert exe.run(feed=FEED, fetch_list=["unfed"]) == [None]


@pytest.mark.parametrize("name", ["rows", "nobody"])
def test_rows_and_names_of_nothing_are_refused(net, name):
    with pytest.raises(EnforceNotMet, match=f"fetch_list names variable '{name}'"):
        fluid.Executor().run(feed=FEED, fetch_list=[net, name])


@pytest.mark.parametrize("places", [1, 2])
def test_of_several_places_nothing_is_an_empty_array(net, places):
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        places=[fluid.CPUPlace()] * places
    )
    value, nothing = fluid.Executor().run(program, feed=FEED, fetch_list=[net, "declared"])
    assert (value.shape, nothing.shape, nothing.dtype) == ((2, 3), (0,), np.float32)


@pytest.mark.parametrize("engine", ["plan", "interpret"])
@pytest.mark.parametrize("kind", ["branch", "loop", "array"])
def test_what_a_branch_or_loop_may_not_compute(kind, engine, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ENGINE", engine)
    x = fluid.data("x", [None, 3])
    count = fluid.data("count", [1], "int64")
    turn = L.fill_constant([1], "int64", 0)
    inner = (
        fluid.default_main_program().global_block().create_var(name="inner", shape=[-1, 3], dtype="float32")
    )
    found = L.create_array("float32") if kind == "array" else inner
    going_on = L.less_than(turn, count)
    if kind == "loop":
        loop = L.While(going_on)
        with loop.block():
            L.assign(L.scale(x, 3.0), inner)
            L.increment(turn, 1)
            L.less_than(turn, count, cond=going_on)
    else:
        branch = L.control_flow.ConditionalBlock([going_on], is_scalar_condition=True)
        with branch.block():
            if kind == "array":
                L.array_write(x, turn, found)
            else:
                L.assign(L.scale(x, 3.0), inner)
    doubled = L.scale(x, 2.0)
    exe = fluid.Executor()
    for n in (0, 1, 0, 2, 0):
        feed = {"x": np.full((1, 3), n + 1, "float32"), "count": np.array([n])}
        got, other = exe.run(feed=feed, fetch_list=[found, doubled])
        assert other.tolist() == [[2.0 * n + 2] * 3]
        if n == 0:
            assert got == [] if kind == "array" else got is None
        elif kind == "array":
            assert [each.tolist() for each in got] == [[[n + 1.0] * 3]]
        else:
            assert got.tolist() == [[3.0 * n + 3] * 3]
