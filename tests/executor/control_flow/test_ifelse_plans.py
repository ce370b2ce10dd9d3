"""`IfElse` with none, one or all of its rows on a side, compiled against interpreted."""

import os

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import agree, default, number
from .parts import mask_of

layers = fluid.layers
WIDTH = 3


def two_ways(x, mask):
    hidden = layers.fc(x, WIDTH, act="tanh")
    choice = layers.IfElse(mask)
    with choice.true_block():
        rows = choice.input(hidden)
        choice.output(layers.fc(rows, 2), layers.scale(rows, -1.0))
    with choice.false_block():
        rows = choice.input(hidden)
        choice.output(layers.fc(rows, 2, act="tanh"), layers.scale(rows, 2.0))
    return choice()


def several_inputs(x, mask):
    other = layers.fc(x, WIDTH)
    choice = layers.IfElse(mask)
    with choice.true_block():
        choice.output(choice.input(x) * choice.input(other))
    with choice.false_block():
        choice.output(layers.relu(choice.input(other)))
    return choice()


def one_side(x, mask):
    hidden, choice = layers.fc(x, WIDTH), layers.IfElse(mask)
    with choice.true_block():
        choice.output(layers.fc(choice.input(hidden), 2, act="sigmoid"))
    return choice()


def in_sequence(x, mask):
    (first,) = several_inputs(x, mask)
    key = layers.reduce_sum(first, dim=1, keep_dim=True)
    return two_ways(first, key > layers.fill_constant_batch_size_like(key, [-1, 1], "float32", 0.1))


def branch_inside(x, mask):
    """A branch on a condition of one element, in a side of an IfElse."""
    hidden, choice = layers.fc(x, WIDTH), layers.IfElse(mask)
    with choice.true_block():
        rows = choice.input(hidden)
        positive = layers.reduce_sum(rows) > layers.fill_constant([1], "float32", 0.0)
        choice.output(layers.cond(positive, lambda: rows * 2.0, lambda: rows * 3.0))
    with choice.false_block():
        choice.output(layers.tanh(choice.input(hidden)))
    return choice()


def needing_each_other(x, mask):
    """Results of a row that follow from all rows of its side."""
    hidden, choice = layers.fc(x, WIDTH), layers.IfElse(mask)
    with choice.true_block():
        rows = choice.input(hidden)
        choice.output(layers.fc(rows, 2) * layers.reduce_mean(rows))
    with choice.false_block():
        rows = choice.input(hidden)
        choice.output(layers.fc(rows * layers.reduce_max(rows), 2, act="tanh"))
    return choice()


PROGRAMS = [two_ways, several_inputs, in_sequence, one_side, branch_inside, needing_each_other]


def built(build):
    x, mask = fluid.data("x", [None, WIDTH]), fluid.data("mask", [None, 1], "bool")
    x.stop_gradient = False
    outs = build(x, mask)
    loss = sum(layers.reduce_sum(out * out) for out in outs)
    fluid.optimizer.Momentum(0.001, 0.5).minimize(loss)
    return [*outs, loss, "x@GRAD"]


def feeds(random, count):
    """Masks with none, one, several or all of their rows."""
    for at in range(count):
        rows = random.randint(2, 8)
        mask = random.permutation(np.arange(rows) < [0, 1, rows // 2, rows - 1, rows][at % 5])
        yield {"x": random.uniform(-1, 1, (rows, WIDTH)).astype("float32"), "mask": mask.reshape(-1, 1)}


@pytest.mark.parametrize("build", PROGRAMS)
def test_as_operator_by_operator(build):
    fetched, fed = built(build), [*feeds(np.random.RandomState(5), 10)]
    agree(default(fetched), fed, 1e-5, 1e-6)


def test_unresolved_sizes_are_guessed():
    """Data-dependent sizes of a block do not outlive the step, so the first plan may guess them wrong."""
    x, mask = fluid.data("x", [None, WIDTH]), fluid.data("mask", [None, 1], "bool")
    choice = layers.IfElse(mask)
    with choice.true_block():
        rows = choice.input(x)
        three = layers.gather_nd(rows, layers.where(rows > 0.5))
        choice.output(rows + layers.reduce_sum(three * layers.assign(np.array([1.0, 2.0, 3.0], "float32"))))
    with choice.false_block():
        choice.output(choice.input(x))
    (out,) = choice()
    exe, value = fluid.Executor(), np.zeros((4, WIDTH), "float32")
    value[0] = 1.0
    feed = {"x": value, "mask": np.array([[True], [True], [False], [False]])}
    for _ in range(12):
        (found,) = exe.run(feed=feed, fetch_list=[out])
        np.testing.assert_array_equal(found, value + np.array([[6.0], [6.0], [0.0], [0.0]], "float32"))


def test_sequences_go_two_ways():
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    mask = fluid.data("mask", [None, 1], "bool")
    choice = layers.IfElse(mask)
    rows = layers.embedding(words, [9, WIDTH])
    with choice.true_block():
        choice.output(layers.fc(choice.input(rows), 2))
    with choice.false_block():
        choice.output(layers.fc(choice.input(rows), 2, act="tanh"))
    (out,) = choice()
    loss = layers.reduce_sum(layers.sequence_pool(out, "sqrt"))
    fluid.optimizer.SGD(0.05).minimize(loss)
    random, fed = np.random.RandomState(4), []
    for _ in range(12):
        lengths = random.randint(1, 5, 6).tolist()
        tokens = fluid.create_lod_tensor(random.randint(0, 9, (sum(lengths), 1)), [lengths], fluid.CPUPlace())
        fed.append({"words": tokens, "mask": random.rand(6, 1) < random.choice([0.0, 0.5, 1.0])})
    agree(default([out, loss]), fed, 1e-5, 1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_children_of_a_fork_run_the_plans_they_inherit():
    """IfElse, a loop with a gradient and a branch in plans that were made, and have run, before the fork."""
    x, mask = fluid.data("x", [None, WIDTH]), fluid.data("mask", [None, 1], "bool")
    out = two_ways(x, mask)[0]
    zero = layers.fill_constant([1], "float32", 0.0)
    branched = layers.cond(layers.reduce_sum(out) > zero, lambda: out * 2.0, lambda: out * 3.0)
    losses = [layers.reduce_sum(branched)]
    fluid.optimizer.SGD(0.01).minimize(losses[0])
    programs, exe = [fluid.default_main_program(), fluid.Program()], fluid.Executor()
    with fluid.program_guard(programs[1], fluid.default_startup_program()):
        losses.append(layers.reduce_sum(layers.sequence_pool(recurrent(), "last")))
        fluid.optimizer.SGD(0.01).minimize(losses[1])
    exe.run(fluid.default_startup_program())
    fed = []
    random = np.random.RandomState(7)
    for one in feeds(random, 8):
        one["mask"][:] = np.arange(len(one["mask"]))[:, None] % 2 == 0
        fed.append((one, {"words": sequences(random)}))

    def steps():
        found = [
            exe.run(*each, [loss])[0].item()
            for pair in fed
            for *each, loss in zip(programs, pair, losses, strict=True)
        ]
        return np.array(found)

    steps()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, steps().tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        found = np.frombuffer(file.read())
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(found, steps())
    texts = [*map(exe.describe, programs)]
    assert "scan(" in texts[1] and "run in segments" not in texts[1]


def sequences(random):
    lengths = random.randint(1, 5, 4).tolist()
    return fluid.create_lod_tensor(random.randint(0, 9, (sum(lengths), 1)), [lengths], fluid.CPUPlace())


def recurrent():
    words, rnn = fluid.data("words", [None, 1], "int64", lod_level=1), layers.DynamicRNN()
    embedded = layers.embedding(words, [9, WIDTH])
    with rnn.block():
        word = rnn.step_input(embedded)
        state = rnn.memory(shape=[WIDTH], value=0.0)
        new = layers.fc([word, state], WIDTH, act="tanh")
        rnn.update_memory(state, new)
        rnn.output(new)
    return rnn()


def test_a_loop_after_data_dependent_sizes():
    x = fluid.data("x", [None, WIDTH])
    rows = layers.gather(x, layers.where(layers.reduce_sum(x, dim=1) > 0.0))
    loss = layers.reduce_sum(rows) + layers.reduce_sum(layers.sequence_pool(recurrent(), "last"))
    fluid.optimizer.SGD(0.01).minimize(loss)
    random = np.random.RandomState(8)
    fed = [{"x": one["x"], "words": sequences(random)} for one in feeds(random, 8)]
    text = agree(default([loss]), fed, 1e-5, 1e-6)
    assert " scan(" in text


def chosen(x):
    """An input [steps, 2, 3] with a data-dependent number of steps: some rows of x."""
    rows = layers.gather(x, layers.where(layers.reduce_sum(x, dim=1) > 0.0))
    return layers.reshape(layers.concat([rows, rows * 0.5], 1), [-1, 2, WIDTH])


def of_rows(x):
    """As many steps as x has rows; the rows per step are data-dependent."""
    every = layers.matmul(layers.slice(x, [1], [0], [1]), layers.reshape(chosen(x), [1, -1]))
    return layers.reshape(every, [0, -1, WIDTH])


@pytest.mark.parametrize("made", [chosen, of_rows])
def test_data_dependent_steps(made):
    x = fluid.data("x", [None, WIDTH])
    x.stop_gradient = False
    steps, rnn = made(x), layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(steps)
        state = rnn.memory(shape=[-1, WIDTH], batch_ref=word)
        new = layers.fc([word, state], WIDTH, act="tanh")
        rnn.update_memory(state, new)
        rnn.step_output(new)
    loss = layers.reduce_sum(layers.square(rnn()))
    fluid.optimizer.SGD(0.05).minimize(loss)
    random = np.random.RandomState(8)
    fed = [{"x": random.uniform(-1, 1, (random.randint(2, 9), WIDTH)).astype("float32")} for _ in range(10)]
    fed = [one for one in fed if (one["x"].sum(1) > 0).any()]
    text = agree(default([loss, "x@GRAD"]), fed, 1e-5, 1e-6)
    assert " scan(" in text


def test_what_is_fetched_of_one_side_has_its_rows_alone():
    x = fluid.data("x", [None, WIDTH])
    choice = layers.IfElse(mask_of(x))
    with choice.true_block():
        rows = choice.input(x)
        choice.output(rows * 2.0)
    with choice.false_block():
        choice.output(layers.tanh(choice.input(x)))
    out, exe = choice()[0], fluid.Executor()
    value = np.array([[1, 1, 1], [-1, 0, 0], [2, 0, 0], [-3, 1, 1]], "float32")
    for _ in range(3):
        found, whole = exe.run(feed={"x": value}, fetch_list=[rows, out])
        np.testing.assert_array_equal(found, value[[0, 2]])
        np.testing.assert_array_equal(whole[[0, 2]], 2 * value[[0, 2]])
    (alone,) = exe.run(feed={"x": value}, fetch_list=[out])
    np.testing.assert_array_equal(alone, whole)


def test_a_mask_with_another_row_count_is_refused():
    x, mask = fluid.data("x", [None, WIDTH]), fluid.data("mask", [None, 1], "bool")

    def body(i, value):
        choice = layers.IfElse(mask)
        with choice.true_block():
            choice.output(choice.input(value) * 2.0)
        with choice.false_block():
            choice.output(layers.tanh(choice.input(value)))
        return [layers.increment(i), choice()[0]]

    out = layers.while_loop(
        lambda i, value: layers.less_than(i, number(2)), body, [number(0), layers.scale(x, 1.0)]
    )[1]
    exe, value = fluid.Executor(), np.ones((4, WIDTH), "float32")
    for rows in (4, 4, 3, 4):
        feed = {"x": value, "mask": np.ones((rows, 1), bool)}
        if rows != 4:
            with pytest.raises(
                fluid.core.EnforceNotMet, match=r"split_lod_tensor[\s\S]*test_ifelse_plans.py"
            ):
                exe.run(feed=feed, fetch_list=[out])
            continue
        np.testing.assert_array_equal(exe.run(feed=feed, fetch_list=[out])[0], 4 * value)
