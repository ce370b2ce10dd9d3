"""Gradients of loops with data-dependent trip counts: compiled against interpreted."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import flags
from fluidlite.executor.interpreter import control

layers = fluid.layers


def number(value, dtype="int64"):
    return layers.fill_constant([1], dtype, value)


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
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 4
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, n = fluid.data("x", [None, 3], "float64"), fluid.data("n", [1], "int64")
        x.stop_gradient = False
        outs = build(x, n)
        loss = layers.reduce_sum(layers.sums([layers.square(out) for out in outs]))
        fluid.backward.append_backward(loss)
        names = [each.name for each in (x, *main.all_parameters())]
        gradients = [name + "@GRAD" for name in names if name + "@GRAD" in main.global_block().vars]
    return main, startup, loss, gradients


def executor(startup, engine):
    flags.set_engine(engine)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    return exe, scope


@pytest.fixture(autouse=True)
def engine():
    yield
    flags.set_engine("plan")


def feeds():
    random = np.random.default_rng(3)
    for rows, count in ((2, 3), (4, 5), (1, 1), (3, 0), (2, 7), (1, 4), (2, 1)):
        yield {"x": random.uniform(-1, 1, (rows, 3)), "n": np.array([count])}


@pytest.mark.parametrize("build", LOOPS, ids=lambda build: build.__name__)
def test_as_operator_by_operator(build, monkeypatch):
    main, startup, loss, gradients = program(build)
    slow, scope = executor(startup, "interpret")
    expected = [slow.run(main, feed=feed, fetch_list=[loss, *gradients], scope=scope) for feed in feeds()]
    backwards, counts = control._backward_iterations, []
    monkeypatch.setattr(
        control, "_backward_iterations", lambda *given: counts.append(feed["n"]) or backwards(*given)
    )
    exe, scope = executor(startup, "plan")
    for feed, values in zip(feeds(), expected, strict=True):
        found = exe.run(main, feed=feed, fetch_list=[loss, *gradients], scope=scope)
        for name, one, other in zip([loss, *gradients], values, found, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12, err_msg=str(name))
    text = exe.describe(main, scope)
    assert text.count(" loop(") >= 2 and "run in segments" not in text
    assert not counts


@pytest.mark.parametrize("build", LOOPS, ids=lambda build: build.__name__)
def test_gradients_are_slopes(build):
    if build is with_one_that_stops:
        pytest.skip("the slope goes through what the gradient stops at")
    main, startup, loss, gradients = program(build)
    exe, scope = executor(startup, "plan")
    random, small = np.random.default_rng(5), 1e-6
    for feed in feeds():
        found = exe.run(main, feed=feed, fetch_list=gradients, scope=scope)
        for name, gradient in zip(gradients, found, strict=True):
            way = random.uniform(-1, 1, gradient.shape)
            parameter = name.removesuffix("@GRAD")
            tensor = None if parameter == "x" else scope.find_var(parameter).get_tensor()
            before = feed["x"] if tensor is None else np.array(tensor)
            ends = []
            for sign in (1, -1):
                moved = before + sign * small * way
                if tensor is not None:
                    tensor.set(moved, fluid.CPUPlace())
                given = dict(feed, x=moved) if tensor is None else feed
                ends.append(exe.run(main, feed=given, fetch_list=[loss], scope=scope)[0].item())
            if tensor is not None:
                tensor.set(before, fluid.CPUPlace())
            slope = (ends[0] - ends[1]) / (2 * small)
            assert slope == pytest.approx((gradient * way).sum(), rel=1e-5, abs=1e-6), name


@pytest.mark.parametrize("build", [by_the_counter, a_branch], ids=lambda build: build.__name__)
def test_one_plan_serves_all_batches(build):
    main, startup, _, _ = program(build)
    exe, scope = executor(startup, "plan")
    random = np.random.default_rng(1)
    sizes = [2, 10000, *random.integers(2, 3000, 40).tolist()]
    for rows in sizes:
        feed = {"x": np.full((rows, 3), 0.1), "n": np.array([3])}
        found = exe.run(main, feed=feed, fetch_list=["x@GRAD"], scope=scope)[0]
        assert found.shape == (rows, 3)
        np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), rtol=1e-9)
    text = exe.describe(main, scope)
    assert text.count(" instructions on the CPU") == 1 and text.count(" loop(") == 2


def test_memory_of_stashes_is_freed():
    main, startup, _, _ = program(by_the_counter)
    exe, scope = executor(startup, "plan")

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
