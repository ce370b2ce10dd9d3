"""Gradients of loops with data-dependent trip counts: compiled against interpreted."""

import numpy as np
import pytest

import fluidlite as fluid

from .agreement import agree, check_slopes, data, number, run, trained

layers = fluid.layers


def total(x):
    return layers.reshape(layers.reduce_sum(layers.abs(x)), [1])


def loop(n, body, *variables):
    """Apply `body(i, *variables)` n times; the final values."""
    outs = layers.while_loop(
        lambda i, *_: layers.less_than(i, n),
        lambda i, *each: [layers.increment(i), *body(i, *each)],
        [number(0), *variables],
    )
    return outs[1:]


def step(x, name="a"):
    weight = layers.create_parameter([3, 3], "float64", name)
    return layers.tanh(layers.matmul(x, weight))


def one(x, n):
    return loop(n, lambda i, x: [step(x)], x)


def a_parameter_twice(x, n):
    return loop(n, lambda i, x: [step(step(x)) + x], x)


def two_variables(x, n):
    return loop(n, lambda i, a, b: [step(b), a * 0.5 + b], x, layers.scale(x, 2.0))


def swapped(x, n):
    return loop(n, lambda i, a, b: [b, a * 1.5], x, layers.scale(x, 2.0))


def with_one_that_stops(x, n):
    still = layers.scale(x, 2.0)
    still.stop_gradient = True
    return loop(n, lambda i, a, b: [step(a) * b, b * 0.5], x, still)


def nothing_kept(x, n):
    return loop(n, lambda i, x: [x * 2.0], x)


def by_the_counter(x, n):
    return loop(n, lambda i, x: [layers.elementwise_mul(step(x), layers.cast(i, "float64"))], x)


def what_the_data_say(x, n):
    limit = number(9.0, "float64")
    return layers.while_loop(
        lambda x: layers.less_than(total(x), limit), lambda x: [x * 1.5 + step(x) * 0.1], [x]
    )


def by_hand(x, n):
    i, state, limit = number(0), layers.scale(x, 1.0), number(9.0, "float64")
    cond = layers.less_than(i, n)
    trips = layers.While(cond)
    with trips.block():
        layers.assign(step(state) + state, state)
        layers.increment(i)
        layers.logical_and(layers.less_than(i, n), layers.less_than(total(state), limit), out=cond)
    return [state]


def through_an_array(x, n):
    """A loop with a data-dependent trip count that writes its values to an array."""
    i = number(0)
    states = layers.array_write(layers.scale(x, 1.0), i)
    cond = layers.less_than(i, n)
    trips = layers.While(cond)
    with trips.block():
        made = step(layers.array_read(states, i))
        layers.increment(i)
        layers.array_write(made, i, states)
        small = layers.less_than(total(made), number(100.0, "float64"))
        layers.logical_and(layers.less_than(i, n), small, out=cond)
    return [layers.array_read(states, i)]


def read_from_outside(x, n):
    also = step(x, "b")
    return loop(n, lambda i, a: [step(a) * also + x], layers.scale(x, 0.5))


def a_branch(x, n):
    def body(i, x):
        return [layers.cond(layers.less_than(i, number(2)), lambda: step(x), lambda: step(x, "b") * x)]

    return loop(n, body, x)


def a_branch_by_the_data(x, n):
    def body(i, x):
        small = layers.less_than(total(x), number(2.0, "float64"))
        return [layers.cond(small, lambda: step(x) + 0.5, lambda: x * 0.4)]

    return loop(n, body, x)


def branches_of_branches(x, n):
    """Some are never taken, and some have several results."""

    def inner(i, a, b):
        return layers.cond(
            layers.less_than(i, number(1)), lambda: (step(a), b), lambda: (b * 0.5, step(a, "c"))
        )

    def body(i, a, b):
        return layers.cond(
            layers.less_than(i, number(3)), lambda: inner(i, a, b), lambda: (a * b, step(b, "b"))
        )

    return loop(n, body, x, layers.scale(x, 2.0))


def cases(x, n):
    """Some iterations overwrite an outer variable that is read before and after the loop."""
    rate = number(1.0, "float64")

    def body(i, x):
        before = rate * 2.0
        with layers.Switch() as switch:
            with switch.case(layers.less_than(i, number(1))):
                layers.assign(number(0.5, "float64"), rate)
            with switch.case(layers.less_than(i, number(3))):
                layers.assign(rate * 0.9, rate)
        return [layers.elementwise_mul(step(x), rate) + before]

    return loop(n, body, x)


def case_numbers(x, n):
    def body(i, x):
        cases = {0: lambda: step(x), 2: lambda: x * 0.5}
        return [layers.switch_case(layers.cast(i, "int32"), cases, default=lambda: step(x, "b"))]

    return loop(n, body, x)


LOOPS = [one, a_parameter_twice, two_variables, swapped, with_one_that_stops, nothing_kept, by_the_counter,
         what_the_data_say, by_hand, through_an_array, read_from_outside, a_branch, a_branch_by_the_data,
         branches_of_branches, cases, case_numbers]  # fmt: skip


def program(build):
    return trained(build, [data("x", [None, 3], "float64"), data("n", [1], "int64")])


def feeds():
    random = np.random.default_rng(3)
    for rows, count in ((2, 3), (4, 5), (1, 1), (3, 0), (2, 1)):
        yield {"x": random.uniform(-1, 1, (rows, 3)), "n": np.array([count])}


@pytest.mark.parametrize("build", LOOPS)
def test_compiled_as_interpreted(build):
    text = agree(program(build), [*feeds()], 1e-9, 1e-12)
    assert text.count(" loop(") >= 2 and "run in segments" not in text


@pytest.mark.parametrize("build", LOOPS)
def test_gradients_are_slopes(build):
    if build is with_one_that_stops:
        pytest.skip("the slope goes through what the gradient stops at")
    check_slopes(program(build), [*feeds()][1:4])


@pytest.mark.parametrize("build", [by_the_counter, a_branch])
def test_one_plan_serves_all_batches(build):
    random = np.random.default_rng(1)
    sizes = [2, 10000, *random.integers(2, 3000, 10).tolist()]
    feeds = [{"x": np.full((rows, 3), 0.1), "n": np.array([3])} for rows in sizes]
    built = program(build)
    found, text = run(built._replace(fetched=["x@GRAD"]), feeds, "plan")
    for rows, (gradient,) in zip(sizes, found, strict=False):
        gradient = np.array(gradient)
        assert gradient.shape == (rows, 3)
        np.testing.assert_allclose(gradient, np.broadcast_to(gradient[0], gradient.shape), rtol=1e-9)
    assert text.count(" instructions on the CPU") == 1 and text.count(" loop(") == 2


def test_memory_of_stashes_is_freed():
    main, startup, _ = program(by_the_counter)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)

    def capacity(rows):
        feed = {"x": np.full((rows, 3), 0.1), "n": np.array([4])}
        exe.run(main, feed=feed, fetch_list=["x@GRAD"], scope=scope)
        plans = [plan for cache in main._plans[scope].values() for plan in cache.plans]
        return sum(each.capacity for plan in plans for each in plan.assembly.tensor_arrays.values())

    feed = {"x": np.full((2, 3), 0.1), "n": np.array([4])}
    few, many = capacity(2), capacity(5000)
    assert many > 1000 * few > 0
    for _ in range(600):
        exe.run(main, feed=feed, fetch_list=["x@GRAD"], scope=scope)
    assert capacity(2) < many / 100
