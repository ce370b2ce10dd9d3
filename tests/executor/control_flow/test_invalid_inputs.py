"""Invalid input of programs with blocks and sequences: messages, rollback, and the step after."""

import gc
import os
import signal
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.core import EnforceNotMet

from ...engines import run_by

layers = fluid.layers
F = "float32"


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(F)


def ragged(*levels, width=4):
    rows = fluid.LoDTensor()
    rows.set(numbers(sum(levels[-1]), width), fluid.CPUPlace())
    rows.set_recursive_sequence_lengths([list(level) for level in levels])
    return rows


def recurrent():
    """A DynamicRNN over sequences."""
    x = fluid.data("x", [None, 4], F, lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        step, memory = rnn.step_input(x), rnn.memory(shape=[5], value=0.0)
        state = layers.fc([step, memory], 5, act="tanh")
        rnn.update_memory(memory, state)
        rnn.output(state)
    return layers.reduce_sum(layers.sequence_pool(rnn(), "last")), {"x": ragged([2, 3])}


def windows():
    x = fluid.data("x", [None, 4], F, lod_level=1)
    return layers.reduce_sum(layers.sequence_pool(layers.sequence_conv(x, 6), "max")), {"x": ragged([2, 3])}


def labelled():
    """A loop that reads labels."""
    x, y = fluid.data("x", [None, 4], F), fluid.data("y", [None, 1], "int64")
    n, i = fluid.data("n", [1], "int64"), layers.fill_constant([1], "int64", 0)
    costs = layers.array_write(layers.fill_constant([1], F, 0.0), i)
    condition = layers.less_than(i, n)
    loop = layers.While(condition)
    with loop.block():
        guess = layers.fc(x, 10, act="softmax", param_attr="w", bias_attr="b")
        cost = layers.mean(layers.cross_entropy(guess, y))
        total = layers.elementwise_add(layers.array_read(costs, i), cost)
        layers.increment(i)
        layers.array_write(total, i, costs)
        layers.less_than(i, n, cond=condition)
    feed = {"x": numbers(5, 4), "y": np.arange(5).reshape(5, 1), "n": np.array([2])}
    return layers.mean(layers.array_read(costs, i)), feed


def looked_up():
    """Tables in both branches."""
    ids, flag = fluid.data("ids", [None, 1], "int64"), fluid.data("flag", [None], "bool")

    def branch(table):
        return lambda: layers.reduce_sum(layers.embedding(ids, [10, 4], param_attr=table))

    return layers.mean(layers.cond(flag, branch("first"), branch("second"))), {
        "ids": np.arange(5).reshape(5, 1),
        "flag": np.array([True]),
    }


def element():
    """An element of an array that lacks the one in the middle."""
    x, i = fluid.data("x", [None, 4], F), fluid.data("i", [None], "int64")
    hidden = layers.fc(x, 3)
    array = layers.array_write(hidden, layers.fill_constant([1], "int64", 0))
    layers.array_write(hidden, layers.fill_constant([1], "int64", 2), array)
    return layers.reduce_sum(layers.array_read(array, i)), {"x": numbers(2, 4), "i": np.array([0])}


def two_ways():
    x, mask = fluid.data("x", [None, 4], F), fluid.data("mask", [None, 1], "bool")
    ways = layers.IfElse(mask)
    for block in (ways.true_block, ways.false_block):
        with block():
            ways.output(layers.fc(ways.input(x), 3))
    return layers.reduce_sum(ways()[0]), {
        "x": numbers(5, 4),
        "mask": np.array([[1], [0], [1], [0], [1]], bool),
    }


def steps():
    """A StaticRNN whose number of steps is fed."""
    x = fluid.data("x", [None, None, 4], F)
    rnn = layers.StaticRNN()
    with rnn.step():
        step = rnn.step_input(x)
        memory = rnn.memory(shape=[-1, 5], batch_ref=step)
        state = layers.fc([step, memory], 5)
        rnn.update_memory(memory, state)
        rnn.step_output(state)
    return layers.reduce_sum(rnn()), {"x": numbers(4, 2, 4)}


def unpadded():
    x, length = fluid.data("x", [None, 3, 4], F), fluid.data("length", [None], "int64")
    rows = layers.sequence_unpad(layers.fc(x, 4, num_flatten_dims=2), length)
    return layers.reduce_sum(layers.sequence_pool(rows, "sum")), {
        "x": numbers(2, 3, 4),
        "length": np.array([3, 1]),
    }


BAD = [
    (recurrent, {"x": numbers(5, 4)}, "operator lod_rank_table: .*0 levels of sequences"),
    (recurrent, {"x": ragged([1, 1], [2, 3])}, "operator sum "),
    (windows, {"x": numbers(5, 4)}, "operator sequence_conv.*no LoD information"),
    (windows, {"x": ragged([1, 1], [2, 3])}, "operator sequence_conv.*must have one level of sequences, got 2"),
    (labelled, {"y": np.full((5, 1), 10)}, r"operator cross_entropy2: Label.*must be in \[0, 10\).*got 10 at"),
    (labelled, {"y": np.full((5, 1), -1)}, r"operator cross_entropy2: Label.*must be in \[0, 10\).*got -1"),
    (looked_up, {"ids": np.full((5, 1), 10)}, r"operator lookup_table: Ids.*must be in \[0, 10\).*got 10"),
    (looked_up, {"flag": np.array([True, False])}, r"operator conditional_block: its condition 'flag' must have one"),
    (looked_up, {"flag": np.zeros(0, bool)}, r"conditional_block: its condition 'flag' .*got shape \[0\]"),
    (element, {"i": np.array([-1])}, "operator read_from_array .*must not be negative, got -1"),
    (element, {"i": np.array([1])}, "operator read_from_array .*element 1 of 3 .* has not been written"),
    (element, {"i": np.array([0, 1])}, r"operator read_from_array .*one element, got shape \[2\]"),
    (two_ways, {"mask": np.ones((3, 1), bool)}, r"operator split_lod_tensor: Mask must.*5 rows.*got shape \[3, 1\]"),
    (steps, {"x": numbers(0, 2, 4)}, r"operator recurrent: its inputs \['x'\] must have a step"),
    (unpadded, {"length": np.array([4, 1])}, r"operator sequence_unpad: lengths must be in \[0, 3\]"),
    (unpadded, {"length": np.array([1])}, "operator sequence_unpad.*X has 2 rows but Length has 1"),
]  # fmt: skip


class Network:
    """A program that trains with Adam, in a scope of its own."""

    def __init__(self, build):
        self.main, start = fluid.Program(), fluid.Program()
        self.main.random_seed = start.random_seed = 1
        with fluid.program_guard(self.main, start), fluid.unique_name.guard():
            self.loss, self.feed = build()
            fluid.optimizer.Adam(0.01).minimize(self.loss)
        self.executor, self.scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        self.executor.run(start, scope=self.scope)

    def step(self, **more):
        feed = {**self.feed, **more}
        return float(
            self.executor.run(self.main, feed=feed, fetch_list=[self.loss], scope=self.scope)[0].sum()
        )

    def state(self):
        names = [var.name for var in self.main.list_vars() if var.persistable]
        return {name: np.array(self.scope.find_var(name).get_tensor()) for name in names}


@pytest.mark.parametrize("warm", (0, 2))
@pytest.mark.parametrize(("build", "bad", "message"), BAD, ids=lambda value: getattr(value, "__name__", ""))
def test_errors_are_reported_and_nothing_changes(build, bad, message, warm, engine):
    network, untouched = Network(build), Network(build)
    want = [untouched.step() for _ in range(warm + 2)]
    got = [network.step() for _ in range(warm)]
    before = network.state()
    with pytest.raises(EnforceNotMet, match=f"(?s){message}.*test_invalid_inputs.py:"):
        network.step(**bad)
    for name, value in network.state().items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    got += [network.step() for _ in range(2)]
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(
    ("build", "feed"),
    [
        (recurrent, {"x": ragged([0, 0])}),
        (windows, {"x": ragged([0, 0])}),
        (two_ways, {"x": numbers(0, 4), "mask": np.zeros((0, 1), bool)}),
        (two_ways, {"mask": np.zeros((5, 1), bool)}),
        (two_ways, {"mask": np.ones((5, 1), bool)}),
        (steps, {"x": numbers(4, 0, 4)}),
        (unpadded, {"length": np.array([0, 0])}),
        (element, {"x": numbers(0, 4)}),
        (labelled, {"n": np.array([0])}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_nothing_to_compute_is_no_mistake(build, feed):
    """Steps with empty batches or sides, and the steps after them, are as interpreted."""
    losses = []
    for engine in ("plan", "interpret"):
        with run_by(engine):
            network = Network(build)
            losses.append([network.step(), network.step(**feed), network.step(), network.step(**feed)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5, atol=1e-6)


def looping(loop_with_gradients):
    x, n = fluid.data("x", [8, 8], F), fluid.data("n", [1], "int64")
    hidden, i = layers.fc(x, 8), layers.fill_constant([1], "int64", 0)

    def body(i, hidden):
        return [layers.increment(i), layers.tanh(layers.fc(hidden, 8, param_attr="w", bias_attr=False))]

    _, hidden = layers.while_loop(lambda i, hidden: layers.less_than(i, n), body, [i, hidden])
    loss = layers.mean(hidden)
    if loop_with_gradients:
        fluid.optimizer.SGD(0.01).minimize(loss)
    return loss


@pytest.mark.parametrize("gradients", (False, True))
def test_residuals_are_freed_with_the_step(gradients):
    """No cycle of references waits for the garbage collector."""
    from fluidlite.executor.interpreter.frame import Frame

    main, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, start), fluid.unique_name.guard():
        loss = looping(gradients)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(start)
    gc.collect()
    gc.disable()
    try:
        for trips in (3, 200, 50):
            exe.run(main, feed={"x": numbers(8, 8), "n": np.array([trips])}, fetch_list=[loss])
        assert not [thing for thing in gc.get_objects() if type(thing) is Frame]
    finally:
        gc.enable()


def test_scopes_and_programs_go():
    network = Network(recurrent)
    for _ in range(3):
        network.step()
    scope, main = weakref.ref(network.scope), weakref.ref(network.main)
    network.scope = None
    assert scope() is None
    del network
    gc.collect()
    assert main() is None


def test_threads_share_an_executor_and_a_program():
    network = Network(recurrent)
    test = network.main.clone(for_test=True)
    batches = [{"x": ragged(lengths)} for lengths in ([2, 3], [1, 4, 2], [5], [1, 1, 1, 1])]

    def run(batch):
        return network.executor.run(test, feed=batch, fetch_list=[network.loss.name], scope=network.scope)[0]

    want, wrong = [run(batch) for batch in batches], []

    def work(first):
        try:
            for iteration in range(12):
                at = (first + iteration) % len(batches)
                np.testing.assert_allclose(run(batches[at]), want[at], rtol=1e-5)
        except Exception as error:
            wrong.append(error)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong


def test_a_changed_block_is_seen():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x, flag = fluid.data("x", [None, 2], F), fluid.data("flag", [1], "bool")
        out = layers.cond(flag, lambda: layers.scale(x, 2.0), lambda: layers.scale(x, 3.0))
    exe, feed = fluid.Executor(fluid.CPUPlace()), {"x": numbers(3, 2), "flag": np.array([True])}
    for factor in (2.0, 5.0):
        (op,) = (op for op in main.blocks[1].ops if op.type == "scale")
        op._set_attr("scale", factor)
        for _ in range(3):
            np.testing.assert_allclose(
                exe.run(main, feed=feed, fetch_list=[out])[0], factor * feed["x"], rtol=1e-6
            )


@pytest.mark.parametrize("gradients", (False, True))
def test_ctrl_c_ends_a_long_loop(gradients, engine):
    """Variables that the step updates at its end are unchanged, and the next step is right."""
    main, start, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = start.random_seed = 1
    with fluid.program_guard(main, start), fluid.unique_name.guard():
        loss = looping(gradients)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(start, scope=scope)

    def run(trips):
        feed = {"x": numbers(8, 8), "n": np.array([trips])}
        return exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0]

    run(2)
    before = np.array(scope.find_var("w").get_tensor())
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(10**9)
    assert time.monotonic() - begin < 10
    np.testing.assert_array_equal(scope.find_var("w").get_tensor(), before)
    assert np.isfinite(run(2)).all()
    assert (np.array(scope.find_var("w").get_tensor()) != before).any() == gradients
