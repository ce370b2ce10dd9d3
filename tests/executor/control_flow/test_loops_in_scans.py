"""Loops in the steps of `StaticRNN` and `DynamicRNN`: errors, threads, forks, interrupts."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import data, looped, number, numbers, run
from .parts import loop_as_often_as_given, loops_in_each_other
from .programs import batches, in_steps, program

layers = fluid.layers


def looked_up(ids, state):
    return state + layers.embedding(ids, [5, 4], param_attr="table")


def looked_up_in_a_loop(ids, state):
    return looped(number(2), state, lambda value: looked_up(ids, value))


def looked_up_in_steps(ids, state):
    rnn = layers.StaticRNN()
    words = layers.stack([ids, ids])
    with rnn.step():
        word, before = rnn.step_input(words), rnn.memory(init=state)
        new = looked_up(word, before)
        rnn.update_memory(before, new)
        rnn.step_output(new)
    return layers.slice(rnn(), [0], [1], [2])[0]


@pytest.mark.parametrize(
    ("step", "times"), [(looked_up, 1), (looked_up_in_a_loop, 2), (looked_up_in_steps, 2)]
)
def test_errors_in_an_iteration_name_the_operator(step, times):
    ids, start = fluid.data("ids", [None, None, 1], "int64"), fluid.data("start", [None, 4])
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(ids), rnn.memory(init=start)
        new = step(word, state)
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
        np.testing.assert_allclose(found, times * np.cumsum(table[words[..., 0]], axis=0), rtol=1e-6)
        expected = times * np.array([[1], [2], [1], [0], [2]]) * np.ones((5, 4))
        np.testing.assert_array_equal(gradient, expected)
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_threads_and_forks():
    """Stashes of inner loops belong to the running plan and process."""
    built, feeds = program(in_steps, loops_in_each_other), batches()

    def losses():
        return [np.array(each[0]).tolist() for each in run(built, feeds, "plan")[0][:-1]]

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
    main, startup, _ = program(in_steps, loop_as_often_as_given)
    exe, scope, feed = fluid.Executor(), fluid.Scope(), batches()[0]
    exe.run(startup, scope=scope)

    def step(trips):
        return exe.run(main, {**feed, "trips": np.array([trips])}, ["x@GRAD", "still@GRAD"], scope=scope)

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
