"""Operators between processes, in one process: each copies; shapes and gradients are those of several."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.framework.gradients.exchange import exchange_gradients
from fluidlite.layers import collective

from ...refusals import refuses


def run(build, x, **grad_of):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        var = fluid.data("x", x.shape, str(x.dtype))
        out = build(var)
        return main, fluid.Executor(fluid.CPUPlace()).run(main, {"x": x}, [out])[0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize(
    "layer, op_type, suffix",
    [
        (collective._allreduce, "allreduce", "tmp_0"),
        (collective._c_allreduce, "c_allreduce_sum", "c_allreduce_sum_0"),
        (lambda x: collective._c_allreduce(x, reduce_type="max"), "c_allreduce_max", "c_allreduce_max_0"),
        (lambda x: collective._c_allreduce(x, reduce_type="min"), "c_allreduce_min", "c_allreduce_min_0"),
        (lambda x: collective._c_allreduce(x, reduce_type="prod"), "c_allreduce_prod", "c_allreduce_prod_0"),
        (lambda x: collective._c_allgather(x, 1), "c_allgather", "c_allgather_0"),
        (lambda x: collective._c_reducescatter(x, 1), "c_reducescatter", "c_reducescatter_0"),
    ],
)
def test_alone_they_copy(layer, op_type, suffix, dtype):
    x = np.arange(6).reshape(3, 2).astype(dtype)
    main, out = run(layer, x)
    (op,) = main.global_block().ops
    assert op.type == op_type and op.output("Out") == [f"x.{suffix}"]
    assert out.dtype == x.dtype and (out == x).all()


@pytest.mark.parametrize(
    "layer, op_type",
    [
        (lambda x: collective._broadcast(x, 0), "broadcast"),
        (collective._c_broadcast, "c_broadcast"),
        (collective._c_sync_calc_stream, "c_sync_calc_stream"),
        (lambda x: collective._c_sync_comm_stream(x, 0), "c_sync_comm_stream"),
    ],
)
def test_those_that_write_where_they_read(layer, op_type):
    x = np.arange(6, dtype=np.float32)
    main, out = run(lambda var: layer(fluid.layers.scale(var, 2.0)), x)
    op = main.global_block().ops[-1]
    assert op.type == op_type and op.input("X") == op.output("Out")
    assert (out == 2 * x).all()


def test_the_reductions_have_their_numbers():
    main = fluid.Program()
    with fluid.program_guard(main):
        x = fluid.data("x", [2])
        for name in ("sum", "prod", "max", "min"):
            assert collective._allreduce(x, reduce_type=name).stop_gradient
    assert [op.attrs["reduce_type"] for op in main.global_block().ops] == [0, 1, 2, 3]


def test_gradients():
    """The gradient of allreduce is an allreduce; that of allgather, a reducescatter."""
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main):
        w = fluid.layers.create_parameter([2, 2], "float32", name="w")
        out = collective._c_allgather(collective._c_allreduce(w), 1)
        fluid.backward.append_backward(fluid.layers.mean(out))
    types = [op.type for op in main.global_block().ops]
    assert types[-2:] == ["c_reducescatter", "c_allreduce_sum"]
    assert main.global_block().ops[-1].output("Out") == ["w@GRAD"]


def test_shapes_follow_the_number_of_processes(programs):
    x = fluid.data("x", [6, 2])
    assert collective._c_allgather(x, 3).shape == (18, 2)
    assert collective._c_reducescatter(x, 3).shape == (2, 2)
    assert collective._c_allgather(fluid.data("open", [-1, 2]), 3).shape == (-1, 2)


def test_what_does_not_fit(programs):
    x = fluid.data("x", [4, 2])
    refuses(lambda: collective._c_reducescatter(x, 3), ValueError, "evenly divided")
    refuses(lambda: collective._c_reducescatter("x", 1), TypeError, "must be a Variable")
    refuses(lambda: collective._c_allreduce(x, reduce_type="mean"), TypeError, "reduce type")
    refuses(lambda: collective._allreduce(x, reduce_type="mean"), TypeError, "reduce type")
    refuses(lambda: collective._c_allgather(x, 0), fluid.core.EnforceNotMet, "nranks")


@pytest.mark.parametrize("layer", [collective._c_allgather, collective._c_reducescatter])
def test_a_program_for_two_needs_two(layer):
    with pytest.raises(fluid.core.EnforceNotMet, match="launch -n 2"):
        run(lambda x: layer(x, 2), np.ones((2, 2), np.float32))


def test_it_is_done_whether_or_not_it_is_asked_for(monkeypatch):
    """The other processes wait for it."""
    from fluidlite.ops.program import collective as operators

    asked = []

    class Other(type(operators.world())):
        def all_reduce(self, array, reduction="sum"):
            asked.append(reduction)
            return 2 * array

    monkeypatch.setattr(operators, "world", Other)

    def build(x):
        collective._c_allreduce(x, reduce_type="max")
        return collective._c_allreduce(x)

    _, out = run(build, np.ones(2, np.float32))
    assert asked == ["max", "sum"] and out.tolist() == [2, 2]


def test_several_processes_without_mpi(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setitem(__import__("sys").modules, "mpi4py", None)
    with pytest.raises(fluid.core.EnforceNotMet, match=r"pip install 'fluidlite\[mpi\]'"):
        run(collective._c_allreduce, np.ones(2, np.float32))


@pytest.mark.parametrize("bucket, begun, whole", [(1, 4, 0), (20, 2, 0), (1000, 0, 1)])
def test_gradients_travel_in_messages_of_several(bucket, begun, whole):
    """A message begins when it is full, those that never are go before the update; sparse gradients have their own."""

    def losses(change):
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 5
        with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
            rows = fluid.layers.embedding(fluid.data("ids", [4, 1], "int64"), [9, 3], is_sparse=True)
            hidden = fluid.layers.fc(fluid.layers.reshape(rows, [4, 3]), 2)
            loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(hidden, 1)))
            fluid.optimizer.SGD(0.1).minimize(loss)
            change(main)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            fed = {"ids": np.array([[1], [3], [1], [8]])}
            return main, [exe.run(main, fed, [loss])[0].item() for _ in range(3)]

    _, expected = losses(lambda main: None)
    main, found = losses(lambda main: exchange_gradients(main, bucket))
    assert found == expected and expected[2] < expected[0]
    types = [op.type for op in main.global_block().ops]
    assert types.count("begin_gradient_sums") == begun and types.count("gradient_sums") == begun + whole
    assert types.count("c_allreduce_sum") == 1
    last = max(k for k, name in enumerate(types) if name == "gradient_sums")
    assert last < types.index("sgd") and "mean_grad" not in types[types.index("gradient_sums") :]
    if begun == 4:
        assert types.index("begin_gradient_sums") < types.index("mul_grad", types.index("mul_grad") + 1)
