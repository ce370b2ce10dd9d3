"""`IfElse` in loops, branches and steps of recurrent networks, compiled against interpreted."""

import numpy as np
import pytest

import fluidlite as fluid

from .test_data_dependent_sizes import run, same
from .test_scans import number

layers = fluid.layers
WIDTH = 3


def mask_of(x, bound=0.1):
    key = layers.reduce_sum(x, dim=1, keep_dim=True)
    return key > layers.fill_constant_batch_size_like(key, [-1, 1], "float32", bound)


def fc(x, name, act="tanh", size=WIDTH):
    return layers.fc(x, size, act=act, param_attr=name, bias_attr=name + ".b")


def two_ways(x, others=None):
    """Rows that may have no logarithm on the side where they are not."""
    choice = layers.IfElse(mask_of(x))
    with choice.true_block():
        rows = choice.input(x)
        more = rows if others is None else rows * choice.input(others)
        choice.output(fc(more, "yes"), more)
    with choice.false_block():
        rows = choice.input(x)
        choice.output(layers.scale(rows, 0.5, 0.1), fc(rows, "no", "sigmoid"))
    one, other = choice()
    return layers.tanh(one + other)


def logarithms(x):
    """The block would compute NaN for rows of the other side."""
    first = layers.slice(x, [1], [0], [1])
    choice = layers.IfElse(mask_of(first, 0.0))
    with choice.true_block():
        rows = choice.input(first)
        choice.output(layers.sqrt(rows) + layers.log(rows))
    with choice.false_block():
        rows = choice.input(first)
        choice.output(layers.sqrt(layers.scale(rows, -1.0, 0.01)))
    return layers.tanh(choice()[0]) * x


def of_classes(x, others=None):
    """Softmax, cross entropy, sums along a row."""
    labels = layers.argmax(x, axis=1)
    labels = layers.reshape(labels, [-1, 1])
    choice = layers.IfElse(mask_of(x))
    with choice.true_block():
        rows = choice.input(x)
        likely = fc(rows, "yes", "softmax")
        choice.output(likely * rows, layers.reduce_max(rows, dim=1, keep_dim=True))
    with choice.false_block():
        rows, label = choice.input(x), choice.input(labels)
        loss = layers.softmax_with_cross_entropy(fc(rows, "no"), label)
        choice.output(rows - loss, layers.reduce_mean(layers.square(rows), dim=1, keep_dim=True))
    one, other = choice()
    return layers.elementwise_mul(layers.tanh(one), other)


def with_classes(x, trips):
    return layers.while_loop(
        lambda i, value: layers.less_than(i, trips),
        lambda i, value: [layers.increment(i), of_classes(value)],
        [number(0), layers.scale(x, 1.0)],
    )[1]


def in_while_loop(x, trips):
    start = layers.scale(x, 1.0)
    return layers.while_loop(
        lambda i, value: layers.less_than(i, trips),
        lambda i, value: [layers.increment(i), two_ways(value, x)],
        [number(0), start],
    )[1]


def in_while(x, trips):
    """Each iteration reads the array element that the previous one wrote."""
    i = number(0)
    states = layers.array_write(layers.scale(x, 1.0), i)
    going = layers.less_than(i, trips)
    with layers.While(going).block():
        state = layers.array_read(states, i)
        layers.increment(i)
        layers.array_write(two_ways(state), i, states)
        layers.less_than(i, trips, cond=going)
    return layers.array_read(states, trips)


def in_a_branch(x, trips):
    positive = layers.reduce_sum(x) > layers.fill_constant([1], "float32", 0.0)
    return layers.cond(positive, lambda: two_ways(x), lambda: layers.scale(x, 3.0))


def in_steps(x, trips):
    rnn = layers.StaticRNN()
    steps = layers.stack([x, layers.scale(x, -1.0), layers.scale(x, 0.5)])
    with rnn.step():
        word = rnn.step_input(steps)
        state = rnn.memory(shape=[-1, WIDTH], batch_ref=word)
        new = two_ways(word + state, word)
        rnn.update_memory(state, new)
        rnn.step_output(new)
    return layers.reduce_sum(rnn(), dim=0)


def in_steps_and_loops(x, trips):
    rnn = layers.StaticRNN()
    steps = layers.stack([x, layers.scale(x, -1.0)])
    with rnn.step():
        word = rnn.step_input(steps)
        state = rnn.memory(shape=[-1, WIDTH], batch_ref=word)
        new = in_while_loop(word + state, trips)
        rnn.update_memory(state, new)
        rnn.step_output(new)
    return layers.reduce_sum(rnn(), dim=0)


def in_sequence(x, trips):
    """No loop at all: two of them, the second in the rows of the first."""
    return two_ways(two_ways(x), x)


def of_roots(x, trips):
    return layers.while_loop(
        lambda i, value: layers.less_than(i, trips),
        lambda i, value: [layers.increment(i), logarithms(value)],
        [number(0), layers.scale(x, 1.0)],
    )[1]


def that_replace_others(x, trips):
    """A block that assigns to an outer variable, which is unchanged if no row is on that side."""
    said = layers.fill_constant([1], "float32", 1.0)

    def body(i, value):
        choice = layers.IfElse(mask_of(value))
        with choice.true_block():
            choice.output(choice.input(value) * 0.5)
            layers.assign(said * 2.0, said)
        with choice.false_block():
            choice.output(choice.input(value) * -0.7)
        return [layers.increment(i), choice()[0]]

    value = layers.while_loop(
        lambda i, value: layers.less_than(i, trips), body, [number(0), layers.scale(x, 1.0)]
    )[1]
    return layers.elementwise_mul(value, said)


def looped_ifelse(step):
    """A loop with an IfElse in its body: `step` computes the rows of one side."""

    def build(x, trips):
        def body(i, value):
            choice = layers.IfElse(mask_of(value, 0.0))
            with choice.true_block():
                choice.output(layers.tanh(step(choice.input(value), trips)))
            with choice.false_block():
                choice.output(layers.sin(choice.input(value) * 0.7))
            return [layers.increment(i), choice()[0]]

        return layers.while_loop(
            lambda i, value: layers.less_than(i, trips), body, [number(0), layers.scale(x, 1.0)]
        )[1]

    build.__name__ = step.__name__
    return build


@looped_ifelse
def nested_ifelse(rows, trips):
    return two_ways(rows, rows)


@looped_ifelse
def a_condition_inside(rows, trips):
    few = layers.less_than(trips, number(2))
    return layers.cond(few, lambda: fc(rows, "few") * 2.0, lambda: layers.sin(rows))


@looped_ifelse
def three_deep(rows, trips):
    choice = layers.IfElse(mask_of(rows, 0.5))
    with choice.true_block():
        inner = choice.input(rows)
        few = layers.less_than(trips, number(2))
        choice.output(layers.cond(few, lambda: two_ways(inner), lambda: fc(inner, "many")))
    with choice.false_block():
        choice.output(two_ways(choice.input(rows) * 0.5))
    return choice()[0]


PROGRAMS = [
    in_while_loop, in_while, in_a_branch, in_steps, in_steps_and_loops, in_sequence, of_roots,
    that_replace_others, with_classes, nested_ifelse, a_condition_inside, three_deep,
]  # fmt: skip


def built(build):
    x, trips = fluid.data("x", [None, WIDTH]), fluid.data("trips", [1], "int64")
    x.stop_gradient = False
    out = build(x, trips)
    loss = layers.reduce_sum(out * out)
    fluid.optimizer.SGD(0.01).minimize(loss)
    return [out, loss, "x@GRAD"]


def feeds(random, count):
    """Rows on one side or on both, with several trip counts."""
    for at in range(count):
        rows = random.randint(1, 6)
        x = random.uniform(-1, 1, (rows, WIDTH)).astype("float32")
        x = [x, np.abs(x), -np.abs(x)][at % 3]
        yield {"x": x, "trips": np.array([random.randint(0, 4)])}


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_as_operator_by_operator(build):
    fetched, fed = built(build), [*feeds(np.random.RandomState(5), 18)]
    want, _ = run(fetched, "interpret", fed)
    got, _ = run(fetched, "plan", fed)
    same(got, want)


def test_sequences():
    words, rnn = fluid.data("words", [None, WIDTH], lod_level=1), layers.DynamicRNN()
    words.stop_gradient = False
    with rnn.block():
        word, state = rnn.step_input(words), rnn.memory(shape=[WIDTH], value=0.0)
        new = two_ways(word + state)
        rnn.update_memory(state, new)
        rnn.output(new)
    loss = layers.reduce_sum(layers.sequence_pool(rnn(), "sqrt"))
    fluid.optimizer.SGD(0.05).minimize(loss)
    random, fed = np.random.RandomState(4), []
    for lengths in ([2, 4, 1], [3], [1, 1], [5, 5, 5], [2, 4, 1], [1, 7, 2]):
        rows = random.uniform(-1, 1, (sum(lengths), WIDTH)).astype("float32")
        fed.append({"words": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())})
    got, _ = run([loss, "words@GRAD"], "plan", fed)
    same(got, run([loss, "words@GRAD"], "interpret", fed)[0])


def mixing(x):
    """A block whose results depend on all of its rows."""
    choice = layers.IfElse(mask_of(x))
    with choice.true_block():
        rows = choice.input(x)
        choice.output(rows * layers.reduce_mean(rows))
    with choice.false_block():
        choice.output(layers.tanh(choice.input(x)))
    return choice()[0]


def of_one_side(x):
    choice = layers.IfElse(mask_of(x))
    with choice.true_block():
        rows = choice.input(x)
        choice.output(layers.tanh(rows))
    return layers.reduce_sum(choice()[0]) + layers.tanh(x)


@pytest.mark.parametrize("build", [mixing, of_one_side])
def test_blocks_that_reduce_over_rows_run_in_segments(build):
    def looped(x, trips):
        return layers.while_loop(
            lambda i, value: layers.less_than(i, trips),
            lambda i, value: [layers.increment(i), build(value)],
            [number(0), layers.scale(x, 1.0)],
        )[1]

    fetched, fed = built(looped), [*feeds(np.random.RandomState(6), 6)]
    got, _ = run(fetched, "plan", fed)
    same(got, run(fetched, "interpret", fed)[0])


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
                fluid.core.EnforceNotMet, match=r"split_lod_tensor[\s\S]*test_ifelse_in_loops.py"
            ):
                exe.run(feed=feed, fetch_list=[out])
            continue
        np.testing.assert_array_equal(exe.run(feed=feed, fetch_list=[out])[0], 4 * value)
