"""`fluid.core`: prepared programs, partial gradients, the numbers of processes."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import core, layers


def test_prepared_programs():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [2, 2])
        y = layers.scale(x, 3.0)
    block = program.global_block()
    block.create_var(name="feed", type=core.VarDesc.VarType.FEED_MINIBATCH, persistable=True)
    block.create_var(name="fetch", type=core.VarDesc.VarType.FETCH_LIST, persistable=True)
    block._prepend_op(type="feed", inputs={"X": ["feed"]}, outputs={"Out": ["x"]}, attrs={"col": 0})
    block.append_op(type="fetch", inputs={"X": [y]}, outputs={"Out": ["fetch"]}, attrs={"col": 0})
    exe, scope = core.Executor(core.CPUPlace()), core.Scope()
    tensor = core.LoDTensor()
    tensor.set(np.eye(2, dtype="float32"), core.CPUPlace())
    fetched = {}
    exe.run_prepared_ctx(core.ExecutorPrepareContext(program.desc, 0), scope, {"x": tensor}, fetched)
    np.testing.assert_array_equal(np.array(fetched[y.name]), 3 * np.eye(2))
    core.set_feed_variable(scope, tensor, "feed", 0)
    exe.run_prepared_ctx(exe.prepare(program.desc, 0, [], False), scope, True, True, False)
    np.testing.assert_array_equal(np.array(core.get_fetch_variable(scope, "fetch", 0)), 3 * np.eye(2))
    with pytest.raises(core.EnforceNotMet, match="runs block 0, got 1"):
        exe.run_prepared_ctx(core.ExecutorPrepareContext(program.desc, 1), scope, {}, {})


def test_partial_gradients():
    class Doubling(core.Layer):
        def forward(self, inputs):
            return [item * 2 for item in inputs]

    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(np.full((2, 2), 3, "float32"))
        x.stop_gradient = False
        (y,) = Doubling().forward([x * x])
        place, strategy = core.Place(), core.BackwardStrategy()
        place.set_place(core.CPUPlace())
        (found,) = core.dygraph_partial_grad([x], [y], [], [], place, strategy, True, True, False, True)
        np.testing.assert_array_equal(found.numpy(), np.full((2, 2), 12))
        (second,) = core.dygraph_partial_grad(
            [x], [found], [x], [], place, strategy, False, True, False, True
        )
        np.testing.assert_array_equal(second.numpy(), np.full((2, 2), 12))
        assert core.Layer().forward([x]) == []


def test_one_process_is_all_there_is():
    gloo = core.Gloo()
    with pytest.raises(core.EnforceNotMet, match="not initialized"):
        gloo.barrier()
    gloo.set_rank(0)
    gloo.set_size(1)
    gloo.set_prefix("a")
    gloo.set_iface("lo")
    gloo.set_http_store("127.0.0.1", 1, "scope")
    gloo.set_timeout_seconds(1, 1)
    gloo.init()
    gloo.barrier()
    assert (gloo.rank(), gloo.size(), gloo.all_gather(3), gloo.all_reduce([1.5, 2.0], "sum")) == (
        0,
        1,
        [3],
        [1.5, 2.0],
    )
    with pytest.raises(core.EnforceNotMet, match="sum, max or min"):
        gloo.all_reduce([1], "mean")
    gloo.set_size(2)
    with pytest.raises(core.EnforceNotMet, match="process 0 of 2, but this is process 0 of 1"):
        gloo.init()
