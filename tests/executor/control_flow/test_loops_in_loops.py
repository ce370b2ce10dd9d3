"""Loops in loops and branches, and through arrays, with gradients: one plan, and the numbers of single operators."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import agree, data, default, looped, number, numbers, run
from .test_loop_gradients import feeds, loop, program, step

layers = fluid.layers


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


WAYS = ((0, True), (1, True), (2, True), (-1, True), (0, False), (1, False))
FOUND = [all_elements(axis, stack) for axis, stack in WAYS]


def compared(build):
    return agree(program(build), [*feeds()] * 2, 1e-9, 1e-12)


def test_inner_loops_through_one_array_are_in_one_plan():
    text = compared(through_one_array)
    assert "run in segments" not in text and text.count(" loop(") >= 2


@pytest.mark.parametrize("build", FOUND)
def test_arrays_become_one_tensor(build):
    text = compared(build)
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
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
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
    sizes = (2, 0, 0, 3)
    feeds = [{"x": np.ones((rows, 3)), "n": np.array([2])} for rows in sizes]
    found, text = run(program(through_one_array)._replace(fetched=["x@GRAD"]), feeds, "plan")
    assert [np.array(each[0]).shape for each in found[:-1]] == [(rows, 3) for rows in sizes]
    assert "run in segments" not in text


def test_threads_and_forks():
    built = program(through_one_array)

    def losses():
        return [[np.array(value).tolist() for value in step] for step in run(built, [*feeds()], "plan")[0]]

    wanted = losses()
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(losses) for _ in range(8)]
        assert [each.result() for each in found] == [wanted] * 8
    child = os.fork()
    if child == 0:
        failed = True
        try:
            failed = losses() != wanted
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0


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


def test_a_loop_is_differentiated_twice():
    """Each gradient pops a stash of its own."""
    x, trips = data("x", [2, 3])(), fluid.data("trips", [1], "int64")

    def iteration(i, value):
        inner = looped(i, value, lambda each: layers.sin(each) * x)
        return [layers.increment(i), layers.tanh(inner + x)]

    start = [number(0), layers.scale(x, 1.0)]
    _, out = layers.while_loop(lambda i, value: layers.less_than(i, trips), iteration, start)
    first, second = layers.reduce_sum(out), layers.reduce_sum(layers.square(out))
    fetched = [out, *fluid.gradients([first], [x]), *fluid.gradients([second], [x])]
    random = np.random.default_rng(2)
    feeds = [{"x": numbers(random, 2, 3), "trips": np.array([count])} for count in (3, 0, 1, 4, 2, 3)]
    text = agree(default(fetched), feeds)
    assert "run in segments" not in text and text.count(" loop(") == 6
