"""RecomputeOptimizer: the recomputed operators, and unchanged numbers."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from tests.engines import run_by

L, opt = fluid.layers, fluid.optimizer


pytestmark = pytest.mark.usefixtures("alone")


def network(dropout=False, join=False):
    """Five fully connected layers; returns the hidden ones and the loss."""
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
    hidden = [L.fc(x, 5, act="tanh")]
    hidden.append(L.fc(L.dropout(hidden[0], 0.5) if dropout else hidden[0], 5, act="relu"))
    hidden.append(L.fc(hidden[1], 4, act="sigmoid"))
    last = L.concat([hidden[2], hidden[0]], axis=1) if join else hidden[2]
    hidden.append(L.fc(last, 4, act="tanh"))
    loss = L.reduce_mean(L.square_error_cost(L.fc(hidden[3], 1), y))
    return hidden, loss


def minimize(loss, checkpoints, inner=None):
    optimizer = opt.RecomputeOptimizer(inner or opt.SGD(0.1))
    optimizer._set_checkpoints(checkpoints)
    return optimizer.minimize(loss)


def recomputed():
    """The operators that run a second time: type and what they make."""
    ops = fluid.default_main_program().global_block().ops
    return [(op.type, name) for op in ops for name in op.output_arg_names if ".subprog_" in name]


def test_segments_between_checkpoints_are_recomputed():
    hidden, loss = network()
    minimize(loss, [hidden[2], hidden[0]])  # in any order
    assert recomputed() == [
        ("mul", "fc_1.tmp_0.subprog_0"), ("elementwise_add", "fc_1.tmp_1.subprog_0"), ("relu", "fc_1.tmp_2.subprog_0"),
        ("mul", "fc_2.tmp_0.subprog_0"), ("elementwise_add", "fc_2.tmp_1.subprog_0"),
        ("mul", "fc_0.tmp_0.subprog_1"), ("elementwise_add", "fc_0.tmp_1.subprog_1"),
    ]  # fmt: skip
    ops = fluid.default_main_program().global_block().ops
    grads = {op.type + op.output_arg_names[0]: op.input("Out") for op in ops if op.type.endswith("_grad")}
    assert grads["relu_gradfc_1.tmp_1@GRAD"] == ["fc_1.tmp_2.subprog_0"]
    assert grads["sigmoid_gradfc_2.tmp_1@GRAD"] == ["fc_2.tmp_2"]


def test_what_another_segment_reads_is_kept():
    hidden, loss = network(join=True)
    minimize(loss, [hidden[1], hidden[3]])
    made = [name for _, name in recomputed()]
    assert "fc_0.tmp_2.subprog_1" not in made and "fc_0.tmp_1.subprog_1" in made


def test_dropout_gets_its_seed_from_outside():
    hidden, loss = network(dropout=True)
    minimize(loss, [hidden[1]])
    ops = [op for op in fluid.default_main_program().global_block().ops if op.type == "dropout"]
    assert [op.input("Seed") for op in ops] == [["seed_0.tmp_0"]] * 2
    assert ops[1].output("Out") == ["dropout_0.tmp_0.subprog_0"]


def trained(checkpoints, dropout=False, steps=4):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        hidden, loss = network(dropout)
        if checkpoints is None:
            opt.Momentum(0.1, 0.9).minimize(loss)
        else:
            minimize(loss, [hidden[k] for k in checkpoints], opt.Momentum(0.1, 0.9))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        rng, losses = np.random.RandomState(0), []
        for _ in range(steps):
            feed = {"x": rng.rand(7, 6).astype("float32"), "y": rng.rand(7, 1).astype("float32")}
            losses.append(exe.run(main, feed=feed, fetch_list=[loss])[0][0])
        return losses


@pytest.mark.parametrize("engine", ["plan", "interpret"])
@pytest.mark.parametrize("checkpoints", [[0], [1], [0, 2], [0, 1, 2, 3], []])
def test_numbers_stay_the_same(checkpoints, engine):
    with run_by(engine):
        np.testing.assert_allclose(trained(checkpoints), trained(None), rtol=1e-6)


def test_repeated_dropout_has_the_same_mask():
    fluid.default_main_program().random_seed = 0
    hidden, loss = network(dropout=True)
    minimize(loss, [hidden[1]])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((50, 6), "float32"), "y": np.ones((50, 1), "float32")}
    masks = []
    for _ in range(2):
        names = ["dropout_0.tmp_1", "dropout_0.tmp_1.subprog_0"]
        first, second = exe.run(feed=feed, fetch_list=names)
        np.testing.assert_array_equal(first, second)
        masks.append(first)
    assert not np.array_equal(*masks)


def test_wrong_use():
    _, loss = network()
    with pytest.raises(AssertionError, match="You should call _set_checkpoints first"):
        opt.RecomputeOptimizer(opt.SGD(0.1)).minimize(loss)
    with pytest.raises(TypeError, match="takes an optimizer, got None"):
        opt.RecomputeOptimizer(None)
    with pytest.raises(TypeError, match="checkpoints must be a list of Variables or names"):
        opt.RecomputeOptimizer(opt.SGD(0.1))._set_checkpoints([3])
    with pytest.raises(ValueError, match="nowhere"):
        minimize(loss, ["nowhere"])
    with pytest.raises(NotImplementedError, match="load function is not supported"):
        opt.RecomputeOptimizer(opt.SGD(0.1)).load({})
