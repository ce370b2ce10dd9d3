"""`StaticRNN` in loops, in branches and in steps of another one: scans in the plan of the program."""

import numpy as np
import pytest

import fluidlite as fluid

from .test_loops_in_scans import STATIC, check_slope, looped, plain_batches
from .test_scans import check, fc, number, numbers, run, trained

layers = fluid.layers


def steps(words, start, name="inner", also=None):
    """The outputs of a network's steps: [steps, rows, 4]."""
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(words), rnn.memory(init=start)
        new = fc([word, state], 4, name)
        rnn.update_memory(state, new if also is None else also(new, word))
        rnn.step_output(layers.sin(new))
    return rnn()


def mean(words, start, name="inner", also=None):
    return layers.reduce_mean(steps(words, start, name, also), dim=0)


def in_a_loop(x, start, still, trips):
    return [looped(trips, start, lambda value: mean(x, value) + still)]


def on_what_the_loop_replaces(x, start, still, trips):
    words, state, i = layers.scale(x, 1.0), layers.scale(start, 1.0), number(0)
    going = layers.less_than(i, trips)
    with layers.While(going).block():
        made = steps(words, state)
        layers.assign(layers.slice(made, [2], [0], [3]), words)
        layers.assign(layers.reduce_sum(made, dim=0), state)
        layers.increment(i)
        layers.less_than(i, trips, cond=going)
    return [words, state * still]


def in_a_branch(x, start, still, trips):
    more = layers.less_than(trips, number(2))
    return [layers.cond(more, lambda: mean(x, start), lambda: mean(x * 0.5, still, "other"))]


def in_a_switch(x, start, still, trips):
    out = layers.scale(start, 0.5)
    with layers.Switch() as switch:
        with switch.case(layers.less_than(trips, number(1))):
            layers.assign(mean(x, start), out)
        with switch.case(layers.less_than(trips, number(2))):
            layers.assign(layers.reduce_max(steps(x, still, "other"), dim=0), out)
    return [out]


def in_a_branch_of_a_loop(x, start, still, trips):
    def iteration(value):
        more = layers.reduce_sum(value) > layers.fill_constant([1], "float32", 0.0)
        return layers.cond(more, lambda: mean(x, value), lambda: value * 0.5 + still)

    return [looped(trips, start, iteration)]


def in_loops_in_each_other(x, start, still, trips):
    return [looped(trips, start, lambda value: looped(number(2), value, lambda each: mean(x, each) + still))]


def with_a_loop_inside(x, start, still, trips):
    def also(new, word):
        return looped(trips, new, lambda value: layers.tanh(value + fc(word, 4, "word", None)))

    return [looped(number(2), start, lambda value: mean(x, value, also=also) + still)]


def backwards_twice(x, start, still, trips):
    """Two networks in sequence."""
    return [looped(trips, start, lambda value: mean(layers.reverse(x, 0), mean(x, value), "second") * still)]


def in_static_rnn(inner):
    """Steps with an inner StaticRNN."""

    def build(x, start, still, trips):
        rnn, words = layers.StaticRNN(), layers.scale(x, 0.7)
        with rnn.step():
            word, state = rnn.step_input(x), rnn.memory(init=start)
            new = inner(words, word, state, still, trips)
            rnn.update_memory(state, new)
            rnn.step_output(new)
        return [rnn()]

    build.__name__ = inner.__name__
    return build


@in_static_rnn
def in_steps(x, word, state, still, trips):
    return mean(layers.stack([word, layers.sin(word), word * word]), state) + still


@in_static_rnn
def in_steps_on_an_outer_variable(x, word, state, still, trips):
    return mean(x, state) + fc(word, 4, "word")


@in_static_rnn
def in_a_loop_in_steps(x, word, state, still, trips):
    return looped(trips, state, lambda value: mean(layers.stack([word, word * 0.5]), value) + still)


@in_static_rnn
def in_a_branch_in_steps(x, word, state, still, trips):
    more = layers.reduce_sum(word) > layers.fill_constant([1], "float32", 0.0)
    return layers.cond(more, lambda: mean(layers.stack([word]), state), lambda: layers.sin(state) * still)


@in_static_rnn
def in_steps_in_steps(x, word, state, still, trips):
    inner, words = layers.StaticRNN(), layers.stack([word, layers.cos(word)])
    with inner.step():
        each, before = inner.step_input(words), inner.memory(init=state)
        new = mean(layers.stack([each, each * 2.0]), before) * still
        inner.update_memory(before, new)
        inner.step_output(new)
    return layers.reduce_sum(inner(), dim=0)


@in_static_rnn
def random_ones_in_steps(x, word, state, still, trips):
    return mean(layers.dropout(layers.stack([word, word * 0.5]), 0.3, seed=5), state)


BUILDS = [
    in_a_loop, on_what_the_loop_replaces, in_a_branch, in_a_switch, in_a_branch_of_a_loop, in_loops_in_each_other,
    with_a_loop_inside, backwards_twice, in_steps, in_steps_on_an_outer_variable, in_a_loop_in_steps,
    in_a_branch_in_steps, in_steps_in_steps, random_ones_in_steps,
]  # fmt: skip


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_as_operator_by_operator(build):
    batches = [*plain_batches(np.random.default_rng(0))]
    text = check(build, STATIC, [*batches, *batches[:2]])
    assert "run in segments" not in text and "body of" in text


def test_in_a_side_of_an_ifelse():
    """Its row count is data-dependent, so it runs in segments."""

    def build(x, start, still, trips):
        choice = layers.IfElse(layers.reduce_sum(start, 1, keep_dim=True) > 0.0 * trips.astype("float32"))
        with choice.true_block():
            rows = choice.input(start)
            choice.output(mean(layers.stack([rows, rows * 2.0]), rows))
        with choice.false_block():
            choice.output(layers.sin(choice.input(start)))
        return [choice()[0] * still]

    sizes = [4, 4, 4, 3, 1, 5, 4]
    random = np.random.default_rng(0)
    feeds = []
    for k, rows in enumerate(sizes):
        start = numbers(random, rows, 4)
        start = np.abs(start) if k == 1 else -np.abs(start) if k == 2 else start
        feeds.append({"x": numbers(random, 2, rows, 3), "start": start, "still": numbers(random, rows, 4)})
        feeds[-1]["last"] = np.array([1])
    assert "run in segments" in check(build, STATIC, feeds)


def test_a_copy_of_a_loop_invariant_output():
    """An output of all steps that is a copy of a loop-invariant variable."""

    def build(x, start, still, trips):
        rnn = layers.StaticRNN()
        with rnn.step():
            word, state = rnn.step_input(x), rnn.memory(init=start)
            copy = layers.scale(still, 1.0)
            new = layers.tanh(fc(word, 4, "word") * copy + state)
            rnn.update_memory(state, new)
            rnn.step_output(new)
            rnn.step_output(copy)
        return rnn()

    text = check(build, STATIC, [*plain_batches(np.random.default_rng(0))])
    assert "body of" in text


def test_outer_variables_that_steps_write():
    """As in real Paddle 1.8.5, the value that the last step wrote."""

    def build(x, start, still, trips):
        left, rnn = layers.scale(start, 1.0), layers.StaticRNN()
        with rnn.step():
            word, state = rnn.step_input(x), rnn.memory(init=start)
            new = fc([word, state], 4, "one")
            layers.assign(new, left)
            rnn.update_memory(state, new)
            rnn.step_output(new)
        return [rnn(), left * still]

    random = np.random.default_rng(0)
    check(build, STATIC, [*plain_batches(random)])
    main, startup, wanted = trained(build, STATIC)
    (found,), _ = run(main, startup, wanted, [next(iter(plain_batches(random)))], "plan")
    out, left = map(np.array, found[1:3])
    assert not np.allclose(left, 0)
    feed = {"x": numbers(random, 3, 2, 3), "start": numbers(random, 2, 4), "last": np.array([0])}
    feed["still"] = np.ones((2, 4), "float32")
    for _ in range(3):
        (found,), _ = run(main, startup, wanted[:3], [feed], "plan")
        np.testing.assert_array_equal(np.array(found[2]), np.array(found[1])[-1])


def test_errors_in_nested_steps_name_the_operator():
    ids, start = fluid.data("ids", [None, None, 1], "int64"), fluid.data("start", [None, 4])
    outer = layers.StaticRNN()
    with outer.step():
        word, state = outer.step_input(ids), outer.memory(init=start)
        words, inner = layers.stack([word, word]), layers.StaticRNN()
        with inner.step():
            each, before = inner.step_input(words), inner.memory(init=state)
            new = before + layers.embedding(each, [5, 4], param_attr="table")
            inner.update_memory(before, new)
            inner.step_output(new)
        after = layers.reduce_sum(inner(), dim=0)
        outer.update_memory(state, after)
        outer.step_output(after)
    out, exe, main = outer(), fluid.Executor(), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    good, bad = np.array([[[1], [4]], [[0], [2]]]), np.array([[[1], [4]], [[0], [7]]])
    expected = None
    for words in (good, good, bad, good):
        feed = {"ids": words, "start": np.zeros((2, 4), "float32")}
        if words is bad:
            with pytest.raises(
                fluid.core.EnforceNotMet, match=r"lookup_table.* 7 [\s\S]*test_recurrent_in_blocks.py"
            ):
                exe.run(main, feed, [out])
            continue
        (found,) = exe.run(main, feed, [out])
        expected = found if expected is None else expected
        np.testing.assert_array_equal(found, expected)
    assert "run in segments" not in exe.describe(main)


def test_python_in_steps_of_steps():
    """An operator without native kernel in an inner scan: each iteration calls the reference kernel."""

    @in_static_rnn
    def build(x, word, state, still, trips):
        return mean(
            layers.stack([word, word * 0.5]), state, also=lambda new, word: layers.cumsum(new, axis=1)
        )

    text = check(build, STATIC, [*plain_batches(np.random.default_rng(0))])
    assert "run in segments" not in text and "reference" in text


@pytest.mark.parametrize("build", [with_a_loop_inside, in_steps_in_steps], ids=lambda build: build.__name__)
def test_gradients_are_those_of_finite_differences(build):
    assert "run in segments" not in check_slope(build)
