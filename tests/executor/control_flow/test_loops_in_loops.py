"""Loops in loops and branches, and through arrays, with gradients: one plan, and the numbers of single operators."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import flags

from .test_loop_gradients import executor, feeds, loop, number, program, step

layers = fluid.layers


@pytest.fixture(autouse=True)
def engine():
    yield
    flags.set_engine("plan")


def in_a_loop(x, n):
    return loop(n, lambda i, a: loop(n, lambda j, b: [step(b) + x], a), x)


def inner_trip_count_varies(x, n):
    """The inner loop has no iteration in the first one of the outer loop."""
    return loop(n, lambda i, a: loop(i, lambda j, b: [step(b) * 1.5], a), x)


def two_inner_loops(x, n):
    def body(i, a):
        (once,) = loop(i, lambda j, b: [step(b)], a)
        (twice,) = loop(number(2), lambda j, b: [step(b, "b") + once], once * 0.5)
        return [twice]

    return loop(n, body, x)


def three_deep(x, n):
    def inner(i, a):
        return loop(number(2), lambda j, b: loop(i, lambda k, c: [step(c)], b), a)

    return loop(n, inner, x)


def in_a_branch(x, n):
    def inner_loop():
        return loop(n, lambda i, a: [step(a)], x)[0]

    return [layers.cond(layers.less_than(n, number(4)), inner_loop, lambda: step(x, "b"))]


def in_a_branch_of_a_loop(x, n):
    def body(i, a):
        def inner_loop():
            return loop(i, lambda j, b: [step(b)], a)[0]

        return [layers.cond(layers.less_than(i, number(3)), inner_loop, lambda: step(a, "b"))]

    return loop(n, body, x)


def through_one_array(x, n):
    """Inner loops continue from the values of the previous outer iteration."""
    i, j = number(0), number(0)
    states = layers.array_write(layers.scale(x, 1.0), j)
    stop, limit = number(2), n
    outer, inner = layers.less_than(i, limit), layers.less_than(j, stop)
    trips = layers.While(outer)
    with trips.block():
        inner_loop = layers.While(inner)
        with inner_loop.block():
            made = step(layers.array_read(states, j))
            layers.increment(j)
            layers.array_write(made, j, states)
            layers.less_than(j, stop, cond=inner)
        layers.increment(i)
        layers.assign(stop + 2, stop)
        layers.less_than(i, limit, cond=outer)
        layers.less_than(j, stop, cond=inner)
    return [layers.array_read(states, j), layers.array_read(states, number(0))]


def all_elements(axis, stack):
    def build(x, n):
        i = number(0)
        made = layers.array_write(layers.scale(x, 0.5), i)
        going = layers.less_than(i, n)
        trips = layers.While(going)
        with trips.block():
            new = step(layers.array_read(made, i))
            layers.increment(i)
            layers.array_write(new, i, made)
            layers.less_than(i, n, cond=going)
        return [layers.tensor_array_to_tensor(made, axis=axis, use_stack=stack)[0] * 0.5]

    build.__name__ = f"all_elements_{axis}_{stack}"
    return build


BUILDS = [in_a_loop, inner_trip_count_varies, two_inner_loops, three_deep, in_a_branch, in_a_branch_of_a_loop,
          through_one_array]  # fmt: skip
WAYS = ((0, True), (1, True), (2, True), (-1, True), (0, False), (1, False))
FOUND = [all_elements(axis, stack) for axis, stack in WAYS]


def compared(build):
    main, startup, loss, gradients = program(build)
    slow, scope = executor(startup, "interpret")
    expected = [slow.run(main, feed=feed, fetch_list=[loss, *gradients], scope=scope) for feed in feeds()]
    exe, scope = executor(startup, "plan")
    for _ in range(2):
        for feed, values in zip(feeds(), expected, strict=True):
            found = exe.run(main, feed=feed, fetch_list=[loss, *gradients], scope=scope)
            for name, one, other in zip([loss, *gradients], values, found, strict=True):
                assert one.shape == other.shape and one.dtype == other.dtype
                np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12, err_msg=str(name))
    return exe.describe(main, scope)


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_one_plan(build):
    text = compared(build)
    assert "run in segments" not in text and text.count(" loop(") >= 2


@pytest.mark.parametrize("build", FOUND, ids=lambda build: build.__name__)
def test_arrays_become_one_tensor(build):
    text = compared(build).partition("run in segments")[0]
    assert "join_elements(" in text and "split_elements(" in text


def test_a_loop_and_its_gradient_are_in_one_segment():
    def build(x, n):
        made = layers.create_parameter([3, 3], "float64", "c")
        out = (
            fluid.default_main_program()
            .current_block()
            .create_var(name="own", dtype="float64", shape=[-1, 3])
        )
        layers.py_func(lambda value: np.array(value) * 2.0, x, out, lambda *given: np.array(given[-1]) * 2.0)
        return loop(n, lambda i, a: [step(a)], layers.matmul(out, made))

    text = compared(build)
    segments = text.partition("run in segments")[2]
    assert "stash_push(" in segments and "iteration by iteration" not in segments


def test_numbers_drawn_before_an_array_is_read():
    """The step cannot be replayed then: the plan itself reports the missing element."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x, at = fluid.data("x", [None, 3]), fluid.data("at", [1], "int64")
        array = layers.array_write(layers.dropout(x, 0.5), number(0))
        i = layers.fill_constant([1], "int64", 0)
        going = layers.less_than(i, at)
        with layers.While(going).block():
            layers.increment(i)
            layers.array_write(x * 1.0, i, array)
            layers.less_than(i, at, cond=going)
        read = layers.array_read(array, at) * 1.0
    exe = fluid.Executor()
    exe.run(startup)
    value = np.ones((2, 3), "float32")
    for last in (1, 3, 2):
        (found,) = exe.run(main, {"x": value, "at": np.array([last])}, [read])
        np.testing.assert_array_equal(found, value)
    assert "run in segments" not in exe.describe(main)
    with pytest.raises(fluid.core.EnforceNotMet, match="elements.*index -1|must not be negative"):
        exe.run(main, {"x": value, "at": np.array([-1])}, [read])


def test_elements_without_rows():
    main, startup, loss, gradients = program(through_one_array)
    exe, scope = executor(startup, "plan")
    for rows in (2, 0, 0, 3):
        feed = {"x": np.ones((rows, 3)), "n": np.array([2])}
        found = exe.run(main, feed=feed, fetch_list=[loss, *gradients], scope=scope)
        assert found[1].shape == (rows, 3)
    assert "run in segments" not in exe.describe(main, scope)


def losses_of(main, startup, fetches):
    """The results of some steps of several sizes, in a new scope."""
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    return [
        [value.tolist() for value in exe.run(main, feed=feed, fetch_list=fetches, scope=scope)]
        for feed in feeds()
    ]


def test_threads_and_forks():
    main, startup, loss, gradients = program(through_one_array)
    fetches = [loss, *gradients]
    wanted = losses_of(main, startup, fetches)
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(losses_of, main, startup, fetches) for _ in range(8)]
        assert [each.result() for each in found] == [wanted] * 8
    child = os.fork()
    if child == 0:
        failed = True
        try:
            failed = losses_of(main, startup, fetches) != wanted
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0


def test_ctrl_c_in_a_loop_with_a_stash():
    main = fluid.Program()
    with fluid.program_guard(main):
        x = fluid.data("x", [2, 3])
        x.stop_gradient = False
        loss = layers.reduce_mean(loop(number(2**40), lambda i, a: [layers.tanh(a)], x)[0])
        gradients = fluid.gradients([loss], [x])
    interrupt = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        fluid.Executor(fluid.CPUPlace()).run(main, {"x": np.ones((2, 3), "float32")}, gradients)
    interrupt.join()


def test_an_unused_inner_loop_ends():
    """Only its own next iteration reads its counter."""
    x, zero, two = fluid.data("x", [2]), *(layers.fill_constant([1], "int64", n) for n in (0, 2))
    first = layers.array_read(layers.array_write(layers.scale(x, 1.0), zero), zero)

    def body(i, value):
        start = [layers.fill_constant([1], "int64", 0), layers.scale(value, 1.0)]
        layers.while_loop(lambda j, _: layers.less_than(j, two), lambda j, each: [j + 1, each * 2.0], start)
        return [i + 1, layers.scale(value, 3.0)]

    start = layers.fill_constant([1], "int64", 0)
    _, out = layers.while_loop(lambda i, _: layers.less_than(i, two), body, [start, layers.scale(first, 1.0)])
    exe, feed = fluid.Executor(), {"x": np.ones(2, "float32")}
    for _ in range(3):
        np.testing.assert_array_equal(exe.run(feed=feed, fetch_list=[out])[0], [9.0, 9.0])
    assert "run in segments" not in exe.describe(fluid.default_main_program())
