"""Branches inlined into plans, compiled against interpreted."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.errors import EnforceNotMet

from ...simulated_cuda import simulated
from .agreement import agree, default, number

layers = fluid.layers


def persistable(name, value, shape=(1,), dtype="float32"):
    return layers.create_global_var(list(shape), value, dtype, persistable=True, name=name)


def when(condition, function):
    """A branch without results."""

    def branch():
        function()

    layers.cond(condition, branch)


def switch(x, step):
    rate = persistable("rate", -1.0)
    with layers.Switch() as cases:
        with cases.case(layers.less_than(step, number(2))):
            layers.assign(number(0.5, "float32"), rate)
        with cases.case(layers.less_than(step, number(4))):
            layers.assign(layers.reduce_sum(x) + rate, rate)
        with cases.default():
            layers.assign(layers.cast(step, "float32") * 0.1, rate)
    return [rate, layers.scale(x, 2.0) * rate]


def nested(x, step):
    outer, inner = persistable("outer", 1.0), persistable("inner", 1.0)

    def deep():
        layers.assign(inner * 3.0, inner)

    def first():
        layers.assign(outer + 1.0, outer)
        when(layers.less_than(step, number(1)), deep)

    when(layers.less_than(step, number(3)), first)
    return [outer + inner, inner]


def in_place(x, step):
    """A branch overwrites a variable that is read before and after it, also through a view."""
    state = persistable("state", 2.0, (2, 3))
    before = layers.reshape(state, [3, 2]) * 1.0
    when(layers.less_than(step, number(2)), lambda: layers.assign(state + x, state))
    return [before, layers.reshape(state, [3, 2]) + before, state]


def products(x, step):
    """Operators that plans fuse, on both sides of a branch's begin and end."""
    state = persistable("state", 1.0, (2, 3))
    weight, bias = persistable("weight", 0.5, (3, 3)), persistable("bias", 0.1, (3,))
    h = layers.mul(x, weight)

    def branch():
        made = layers.relu(layers.elementwise_add(h, bias))
        layers.assign(layers.tanh(layers.mul(made, weight)), state)

    when(layers.less_than(step, number(2)), branch)
    return [state, layers.relu(layers.elementwise_add(layers.mul(state, weight), bias))]


def updates(x, step):
    """Optimizers in a branch and after it; plans fuse adjacent updates."""
    a = layers.create_parameter([3, 3], "float32", "a", default_initializer=fluid.initializer.Constant(1.0))
    b = layers.create_parameter([3, 3], "float32", "b", default_initializer=fluid.initializer.Constant(2.0))
    ga, gb = layers.scale(a, 0.5), layers.scale(b, 0.5)
    rate = number(0.1, "float32")

    def update(parameter, gradient):
        block = fluid.default_main_program().current_block()
        slots = {"Param": parameter, "Grad": gradient, "LearningRate": rate}
        block.append_op("sgd", slots, {"ParamOut": parameter}, {"op_role": 2})

    when(layers.less_than(step, number(2)), lambda: update(a, ga))
    update(b, gb)
    return [a, b]


def in_a_loop(x, step):
    total = persistable("total", 0.0)
    i = number(0)

    def iteration(i):
        when(layers.less_than(i, step), lambda: layers.assign(total + 1.0, total))
        return [layers.increment(i)]

    layers.while_loop(lambda i: layers.less_than(i, number(3)), iteration, [i])
    return [total, i]


def by_python(x, step):
    """A branch with an operator that has no native kernel."""
    state = persistable("state", 1.0, (2, 3))
    when(layers.less_than(step, number(2)), lambda: layers.assign(layers.cumsum(x), state))
    return [state]


BRANCHES = [switch, nested, in_place, products, updates, in_a_loop, by_python]


@pytest.mark.parametrize("build", BRANCHES)
def test_compiled_as_interpreted(build):
    fetched = build(fluid.data("x", [None, 3]), fluid.data("step", [1], "int64"))
    steps = (0, 1, 3, 5, 2, 0)
    feeds = [{"x": np.full((2, 3), 0.25 * (at + 1), "float32"), "step": np.array([at])} for at in steps]
    text = agree(default(fetched), feeds, 1e-6, 0)
    assert "branch(" in text and "conditional_block" not in text
    assert "run in segments" not in text
    assert (" loop(" in text) == (build is in_a_loop)


def test_errors_of_a_branch_are_raised_when_it_is_taken():
    step = fluid.data("step", [1], "int64")
    state = persistable("state", 1.0)
    block = fluid.default_main_program().global_block()
    missing = block.create_var(name="missing", dtype="float32", shape=[1])
    when(layers.less_than(step, number(2)), lambda: layers.assign(missing * 2.0, state))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for count in (3, 1, 4, 0):
        if count > 2:
            assert exe.run(feed={"step": np.array([count])}, fetch_list=[state])[0] == 1.0
        else:
            with pytest.raises(EnforceNotMet, match="needs variable 'missing'"):
                exe.run(feed={"step": np.array([count])}, fetch_list=[state])


def test_branches_with_data_dependent_sizes_run_in_segments():
    x, step = fluid.data("x", [None, 3]), fluid.data("step", [1], "int64")
    state = persistable("state", 0.0)

    def branch():
        places = layers.where(layers.greater_than(x, layers.zeros_like(x)))
        layers.assign(layers.cast(layers.shape(places)[0], "float32"), state)

    when(layers.less_than(step, number(2)), branch)
    doubled = state * 2.0
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for count, ones, expected in [(1, 4, 8.0), (3, 2, 8.0), (0, 5, 10.0), (1, 0, 0.0)]:
        x = np.zeros((2, 3), "float32")
        x.reshape(-1)[:ones] = 1.0
        assert exe.run(feed={"x": x, "step": np.array([count])}, fetch_list=[doubled])[0] == expected


def schedules(kind, place, steps=6):
    """The rates of some steps, and how these were run."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3])
        rate = layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01])
        if kind == "warmup":
            rate = layers.linear_lr_warmup(rate, 3, 0.0, 0.1)
        fluid.optimizer.SGD(rate).minimize(layers.reduce_mean(layers.fc(x, 2)))
    exe, scope = fluid.Executor(place), fluid.Scope()
    exe.run(startup, scope=scope)
    feed = {"x": np.ones((2, 3), "float32")}
    rates = [exe.run(main, feed=feed, fetch_list=[rate], scope=scope)[0].item() for _ in range(steps)]
    return rates, exe.describe(main, scope)


@pytest.mark.parametrize("kind", ["steps", "warmup"])
def test_schedules_that_choose_are_in_the_plan_of_a_step(kind):
    rates, text = schedules(kind, fluid.CPUPlace())
    if kind == "steps":
        assert rates == pytest.approx([0.1, 0.1, 0.05, 0.05, 0.01, 0.01])
    else:
        assert rates == pytest.approx([0.0, 0.1 / 3, 0.2 / 3, 0.05, 0.01, 0.01])
    assert "branch(" in text and "pieces" not in text


@pytest.mark.parametrize("kind", ["steps", "warmup"])
def test_schedules_that_choose_are_in_the_plan_of_a_gpu(kind):
    expected, _ = schedules(kind, fluid.CPUPlace())
    with simulated():
        rates, text = schedules(kind, fluid.CUDAPlace(0))
    assert rates == pytest.approx(expected)
    assert "interpreter" not in text and "where" in text


def test_only_small_branches_are_taken_without_a_jump():
    x, step = fluid.data("x", [None, 3]), fluid.data("step", [1], "int64")
    fetched = in_place(x, step)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 3), "float32"), "step": np.array([0])}
    with simulated():
        gpu = fluid.Executor(fluid.CUDAPlace(0))
        for expected in (3.0, 4.0, 5.0):
            assert gpu.run(feed=feed, fetch_list=fetched)[2][0, 0] == expected
        assert "interpreter" in gpu.describe()
