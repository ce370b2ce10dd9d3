"""Persistable variables with sequences, and results that share memory under other sequences."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.executor.cpu.plan import Plan

pytestmark = pytest.mark.usefixtures("alone")
ROWS = np.arange(12, dtype="float32").reshape(6, 2)


def tensor(array, *offsets):
    made = fluid.LoDTensor()
    made.set(array, fluid.CPUPlace())
    made.set_lod(list(offsets))
    return made


def state(lod_level=1):
    block = fluid.default_main_program().global_block()
    return block.create_var(
        name="state", shape=[-1, 2], dtype="float32", persistable=True, lod_level=lod_level
    )


@pytest.fixture
def plans(monkeypatch):
    """All plans that are compiled, as a list."""
    made = []
    begin = Plan.__init__

    def noted(self, *arguments, **more):
        begin(self, *arguments, **more)
        made.append(self)

    monkeypatch.setattr(Plan, "__init__", noted)
    return made


def steps(fetches, feeds, before=None):
    """The rows and levels of detail of each fetched value, for each step."""
    executor = fluid.Executor(fluid.CPUPlace())
    scope = fluid.global_scope()
    if before is not None:
        held = scope.var("state").get_tensor()
        held.set(np.array(before), fluid.CPUPlace())
        held.set_lod(before.lod())
    for feed in feeds:
        got = executor.run(feed=feed, fetch_list=fetches, return_numpy=False)
        yield [(np.array(one).tolist(), one.lod()) for one in got]


def test_sequences_of_the_scope_are_read(engine, plans):
    x = fluid.data("x", [None, 2], "float32")
    held = state()
    pooled = layers.sequence_pool(layers.scale(held, 2.0), "sum")
    other = layers.scale(layers.scale(x, 3.0), 2.0)
    feeds = [{"x": np.ones((n, 2), "float32")} for n in (1, 2, 3, 2, 4, 5, 6, 7)]
    got = list(steps([pooled, other], feeds, tensor(ROWS, [0, 2, 6])))
    for ((sums, _), (rows, _)), feed in zip(got, feeds, strict=True):
        assert sums == [[4.0, 8.0], [56.0, 64.0]]
        assert rows == np.full(feed["x"].shape, 6.0).tolist()
    assert len(plans) < 8, "a plan for each step"


def test_written_sequences_persist(engine, plans):
    x = fluid.data("x", [None, 2], "float32", lod_level=1)
    held = state()
    before = layers.sequence_pool(held, "sum")
    layers.assign(layers.scale(x, 2.0), held)
    feeds = [{"x": tensor(ROWS[:n], [0, 1, n])} for n in (2, 3, 4, 5, 6, 3, 4, 2)]
    got = list(steps([before], feeds, tensor(ROWS, [0, 6])))
    last = ROWS, [[0, 6]]
    for ((sums, _),), feed in zip(got, feeds, strict=True):
        rows, (offsets,) = last
        assert sums == [rows[a:b].sum(0).tolist() for a, b in zip(offsets, offsets[1:], strict=False)]
        last = np.array(feed["x"]) * 2, feed["x"].lod()
    held = fluid.global_scope().find_var("state").get_tensor()
    assert held.lod() == [[0, 1, 2]]
    assert len(plans) < 24, "plans for each step"


def test_sequences_may_appear_and_disappear(engine):
    x = fluid.data("x", [None, 2], "float32", lod_level=1)
    held = state()
    out = layers.scale(held, 1.0) + 1.0
    executor, scope = fluid.Executor(fluid.CPUPlace()), fluid.global_scope()
    for lod in ([], [], [], [[0, 2, 6]], [[0, 6]], [], [[0, 0, 6]]):
        tensor_of = scope.var("state").get_tensor()
        tensor_of.set(ROWS, fluid.CPUPlace())
        tensor_of.set_lod(lod)
        (got,) = executor.run(feed={"x": tensor(ROWS, [0, 6])}, fetch_list=[out], return_numpy=False)
        assert got.lod() == lod
        np.testing.assert_array_equal(np.array(got), ROWS + 1)
    assert x.lod_level == 1


def test_an_update_keeps_the_sequences_of_its_parameter(engine):
    x = fluid.data("x", [None, 2], "float32", lod_level=1)
    held = state()
    block = fluid.default_main_program().global_block()
    rate = layers.fill_constant([1], "float32", 1.0)
    block.append_op(
        type="sgd", inputs={"Param": held, "Grad": x, "LearningRate": rate}, outputs={"ParamOut": held}
    )
    for _ in steps([], [{"x": tensor(ROWS, [0, 3, 6])}] * 3, tensor(ROWS, [0, 6])):
        pass
    got = fluid.global_scope().find_var("state").get_tensor()
    assert got.lod() == [[0, 6]]
    np.testing.assert_array_equal(np.array(got), ROWS * -2)


def test_other_sequences_over_the_same_rows_copy_nothing(plans):
    x = fluid.data("x", [None, 2], "float32", lod_level=1)
    y = fluid.data("y", [None], "int32")
    other = layers.lod_reset(layers.scale(x, 2.0), y=y)
    pooled = layers.sequence_pool(other, "sum")
    feed = {"x": tensor(ROWS, [0, 2, 6]), "y": np.array([0, 1, 6], "int32")}
    for (rows, lod), (sums, _) in steps([other, pooled], [feed] * 3):
        assert rows == (ROWS * 2).tolist() and lod == [[0, 1, 6]]
        assert sums == [(ROWS[:1].sum(0) * 2).tolist(), (ROWS[1:].sum(0) * 2).tolist()]
    (plan,) = plans
    assert [op.type for op in plan.ops].count("lod_reset") == 1, "one instruction, which makes the offsets"


def test_rows_of_which_some_have_no_sequences_are_joined_in_a_plan(plans):
    x = fluid.data("x", [None, 2], "float32", lod_level=1)
    y = fluid.data("y", [None, 2], "float32")
    joined = layers.concat([layers.scale(x, 2.0), y], axis=0)
    feed = {"x": tensor(ROWS, [0, 2, 6]), "y": ROWS[:3]}
    ((rows, lod),) = next(steps([joined], [feed]))
    assert rows == [*(ROWS * 2).tolist(), *ROWS[:3].tolist()] and lod == []
    assert len(plans) == 1
