"""Loops, with gradients, in the steps of `StaticRNN` and `DynamicRNN`: inlined into the body of a scan."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid

from .test_scans import check, data, fc, number, numbers, run, trained

layers = fluid.layers


def looped(last, start, iteration):
    """Apply `iteration(state)` to `start` `last` times."""
    return layers.while_loop(
        lambda i, state: layers.less_than(i, last),
        lambda i, state: [layers.increment(i), iteration(state)],
        [number(0), layers.scale(start, 1.0)],
    )[1]


def twice(word, state, still, last):
    """A state that the loop overwrites, a weight that each iteration reads, and the word."""
    return looped(number(2), state, lambda value: fc([word, value], 4, "twice"))


def as_often_as_said(word, state, still, last):
    return looped(last, fc([word, state], 4, "first"), lambda value: layers.sin(value) * still + state)


def until_it_is_small(word, state, still, last):
    """The trip count of each loop depends on its values."""
    start = fc([word, state], 4, "small", None)
    value, most = layers.scale(start, 3.0), layers.fill_constant([1], "float32", 0.5)
    going = layers.reduce_mean(layers.abs(value)) > most
    with layers.While(going).block():
        layers.assign(layers.tanh(value) * 0.6, value)
        layers.assign(layers.reduce_mean(layers.abs(value)) > most, going)
    return value


def in_each_other(word, state, still, last):
    def outer(value):
        inner = looped(number(2), value, lambda each: layers.tanh(each * 0.9 + fc(word, 4, "word")))
        return layers.elementwise_mul(inner, fc(inner, 4, "outer", "sigmoid"))

    return looped(last, state, outer)


def in_a_branch(word, state, still, last):
    new = fc([word, state], 4, "branch")
    more = layers.reduce_sum(new) > layers.fill_constant([1], "float32", 0.0)
    return layers.cond(
        more, lambda: looped(last, new, lambda value: layers.sin(value) + state), lambda: layers.tanh(state)
    )


def with_a_branch(word, state, still, last):
    def iteration(value):
        more = layers.reduce_sum(value) > layers.fill_constant([1], "float32", 0.0)
        return layers.cond(more, lambda: fc(value, 4, "yes"), lambda: layers.tanh(value - fc(word, 4, "no")))

    return looped(number(3), state, iteration)


def two_of_them(word, state, still, last):
    """Two loops in sequence; the gradient of one variable comes from both."""
    new = fc([word, state], 4, "two")
    one = looped(number(2), new, lambda value: layers.tanh(value + new))
    return looped(last, one, lambda value: layers.sin(value) * new)


def through_an_array(word, state, still, last):
    """As Fluid's own gradients require: the loop's values are in an array that is local to a step."""
    i, trips = number(0), last + 1
    array = layers.array_write(fc([word, state], 4, "array"), i)
    going = layers.less_than(i, trips)
    with layers.While(going).block():
        value = layers.array_read(array, i)
        layers.increment(i)
        layers.array_write(layers.tanh(fc(value, 4, "iteration", None) + still), i, array)
        layers.less_than(i, trips, cond=going)
    return layers.array_read(array, i) * layers.array_read(array, number(1))


def an_array_alone(word, state, still, last):
    array = layers.array_write(layers.tanh(state), number(0))
    layers.array_write(fc([word, state], 4, "alone"), number(1), array)
    return layers.array_read(array, number(1)) + layers.array_read(array, number(0)) * still


STEPS = [
    through_an_array, an_array_alone, twice, as_often_as_said, until_it_is_small, in_each_other, in_a_branch,
    with_a_branch, two_of_them,
]  # fmt: skip


def static(step):
    def build(x, start, still, last):
        rnn = layers.StaticRNN()
        with rnn.step():
            word, state = rnn.step_input(x), rnn.memory(init=start)
            new = step(word, state, still, last)
            rnn.update_memory(state, new)
            rnn.step_output(new)
        return [rnn()]

    return build


def dynamic(step):
    def build(words, start, still, last):
        rnn = layers.DynamicRNN()
        with rnn.block():
            word, state = rnn.step_input(words), rnn.memory(init=start)
            new = step(word, state, rnn.static_input(still), last)
            rnn.update_memory(state, new)
            rnn.output(new)
        return [rnn()]

    return build


def last():
    return fluid.data("last", [1], "int64")


def plain_batches(random):
    for steps, rows, trips in [(4, 2, 1), (1, 3, 2), (3, 1, 0), (1, 1, 1), (5, 4, 3), (4, 2, 0)]:
        made = {"start": numbers(random, rows, 4), "still": numbers(random, rows, 4)}
        yield made | {"x": numbers(random, steps, rows, 3), "last": np.array([trips])}


def ragged_batches(random):
    for lengths, trips in [
        ([2, 4, 1], 2),
        ([3], 1),
        ([1, 1], 0),
        ([5, 5, 5], 3),
        ([1, 7, 2], 2),
        ([2, 4, 1], 1),
    ]:
        words = fluid.create_lod_tensor(numbers(random, sum(lengths), 3), [lengths], fluid.CPUPlace())
        made = {name: numbers(random, len(lengths), 4) for name in ("start", "still")}
        yield made | {"words": words, "last": np.array([trips])}


STATIC = [data("x", [None, None, 3]), data("start", [None, 4]), data("still", [None, 4]), last]
DYNAMIC = [data("words", [None, 3], lod_level=1), data("start", [None, 4]), data("still", [None, 4]), last]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("ranked", [False, True], ids=["steps", "sequences"])
def test_as_operator_by_operator(step, ranked):
    random = np.random.default_rng(0)
    if ranked:
        text = check(dynamic(step), DYNAMIC, [*ragged_batches(random)])
    else:
        text = check(static(step), STATIC, [*plain_batches(random)])
    assert "run in segments" not in text and "body of" in text
    assert text.count(" loop(") >= 2 or step is an_array_alone


def test_errors_in_an_inner_loop_name_the_operator():
    ids, start = fluid.data("ids", [None, None, 1], "int64"), fluid.data("start", [None, 4])
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(ids), rnn.memory(init=start)
        new = looped(
            number(2), state, lambda value: value + layers.embedding(word, [5, 4], param_attr="table")
        )
        rnn.update_memory(state, new)
        rnn.step_output(new)
    out = rnn()
    fluid.backward.append_backward(layers.reduce_sum(out))
    exe, main = fluid.Executor(), fluid.default_main_program()
    exe.run(fluid.default_startup_program())
    good, bad = np.array([[[1], [4]], [[0], [2]]]), np.array([[[1], [4]], [[0], [7]]])
    for words in (good, good, bad, good):
        feed = {"ids": words, "start": np.zeros((2, 4), "float32")}
        if words is bad:
            with pytest.raises(
                fluid.core.EnforceNotMet, match=r"lookup_table.* 7 [\s\S]*test_loops_in_scans.py"
            ):
                exe.run(main, feed, [out, "table@GRAD"])
            continue
        found, gradient = exe.run(main, feed, [out, "table@GRAD"])
        table = np.array(fluid.global_scope().find_var("table").get_tensor())
        np.testing.assert_allclose(found, 2 * np.cumsum(table[words[..., 0]], axis=0), rtol=1e-6)
        np.testing.assert_array_equal(gradient, np.array([[2], [4], [2], [0], [4]]) * np.ones((5, 4)))
    assert "run in segments" not in exe.describe(main)


def test_an_outer_array_in_steps():
    x, still, i = data("x", [None, None, 3])(), data("still", [None, 4])(), number(0)
    array, rnn = layers.array_write(layers.scale(still, 0.5), i), layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(x), rnn.memory(init=still)
        new = state + layers.array_read(array, i) * layers.reduce_mean(word)
        rnn.update_memory(state, new)
        rnn.step_output(new)
    out, exe, random = rnn(), fluid.Executor(), np.random.default_rng(1)
    for _ in range(4):
        feed = {"x": numbers(random, 3, 2, 3), "still": numbers(random, 2, 4)}
        (found,) = exe.run(feed=feed, fetch_list=[out])
        shares = np.cumsum(feed["x"].mean(axis=(1, 2)))[:, None, None]
        np.testing.assert_allclose(found, feed["still"] * (1 + 0.5 * shares), rtol=1e-4, atol=1e-5)
    assert "its body uses an array from outside" in exe.describe(fluid.default_main_program())


def test_a_missing_element_in_an_iteration_is_reported():
    x, index = fluid.data("x", [None, None, 3]), fluid.data("index", [1], "int64")
    rnn = layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        state = rnn.memory(shape=[-1, 3], batch_ref=word)
        array = layers.array_write(word + state, number(0))
        layers.array_write(word * state, number(1), array)
        new = layers.array_read(array, index)
        rnn.update_memory(state, new)
        rnn.step_output(new)
    out, exe, main = rnn(), fluid.Executor(), fluid.default_main_program()
    feed = {"x": np.ones((3, 2, 3), "float32")}
    for at in (0, 0, 5, 0):
        feed["index"] = np.array([at])
        if at:
            with pytest.raises(
                fluid.core.EnforceNotMet, match=r"beyond the end of array[\s\S]*test_loops_in_scans.py"
            ):
                exe.run(main, feed, [out])
            continue
        (found,) = exe.run(main, feed, [out])
        np.testing.assert_array_equal(found[:, 0, 0], [1, 2, 3])
    assert "body of" in exe.describe(main)


def check_slope(build):
    """Hold the gradient of x in a program of `build` against finite differences; returns the plan as text."""
    sources = [data("x", [3, 2, 3]), data("start", [2, 4]), data("still", [2, 4]), last]
    main, startup, wanted = trained(build, sources)
    names = [each if isinstance(each, str) else each.name for each in wanted]
    random = np.random.default_rng(3)
    feed = {"x": numbers(random, 3, 2, 3), "start": numbers(random, 2, 4), "still": numbers(random, 2, 4)}
    feed["last"] = np.array([2])
    way = numbers(random, 3, 2, 3)

    def loss(step):
        moved = {**feed, "x": feed["x"] + np.float32(step) * way}
        (found,), _ = run(main, startup, [wanted[0]], [moved], "plan")
        return float(np.array(found[0]).sum())

    (found,), text = run(main, startup, wanted, [feed], "plan")
    slope = float((np.array(found[names.index("x@GRAD")]) * way).sum())
    assert abs(slope - (loss(1e-2) - loss(-1e-2)) / 2e-2) < 2e-2 * max(1.0, abs(slope))
    return text


def test_gradients_are_those_of_finite_differences():
    text = check_slope(static(in_each_other))
    assert " loop(" in text and "run in segments" not in text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_threads_and_forks():
    """Stashes of inner loops belong to the running plan and process."""
    main, startup, wanted = trained(static(in_each_other), STATIC)
    feeds = [*plain_batches(np.random.default_rng(2))]

    def losses():
        found, _ = run(main, startup, wanted[:1], feeds, "plan")
        return [np.array(each[0]).tolist() for each in found]

    expected = losses()
    with ThreadPoolExecutor(4) as pool:
        assert [each.result() for each in [pool.submit(losses) for _ in range(8)]] == [expected] * 8
    child = os.fork()
    if child == 0:
        failed = True
        try:
            failed = losses() != expected
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0


def test_ctrl_c_ends_a_loop_in_a_scan():
    """The next step finds the stashes of the interrupted one empty."""
    main, startup, _ = trained(static(as_often_as_said), STATIC)
    random, exe, scope = np.random.default_rng(2), fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = next(iter(plain_batches(random)))

    def step(trips):
        return exe.run(main, {**feed, "last": np.array([trips])}, ["x@GRAD", "still@GRAD"], scope=scope)

    kept = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
    before = [np.array(value) for value in step(2)]
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        step(2**40)
    timer.join()
    for name, value in kept.items():
        scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
    for first, second in zip(before, step(2), strict=True):
        np.testing.assert_array_equal(second, first)
    assert "run in segments" not in exe.describe(main, scope)
