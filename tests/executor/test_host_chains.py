"""Chains of elementwise operators in plans of the host: bit for bit what the operators give one by one."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

ONE = [
    layers.relu,
    layers.tanh,
    layers.sigmoid,
    layers.square,
    layers.abs,
    layers.softsign,
    lambda x: layers.scale(x, 0.5, 1.0, bias_after_scale=False),
    lambda x: layers.leaky_relu(x, 0.1),
    lambda x: layers.clip(x, -0.5, 0.75),
    lambda x: layers.reshape(x, [-1, 6]),
]
TWO = [
    layers.elementwise_add,
    layers.elementwise_sub,
    layers.elementwise_mul,
    layers.elementwise_max,
    layers.elementwise_min,
    lambda x, y: layers.sums([x, y, x]),
]


def random_program(random):
    """The fetches of a random program of elementwise operators, and gradients of their mean."""
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 6])
    x.stop_gradient = y.stop_gradient = False
    row, one, column = (
        layers.create_parameter(
            shape, "float32", default_initializer=fluid.initializer.Uniform(-1, 1, int(random.randint(1, 99)))
        )
        for shape in ([6], [1], [6])
    )
    values = [x, y]
    for _ in range(random.randint(3, 14)):
        a, b = (values[random.randint(len(values))] for _ in "ab")
        kind = random.randint(4)
        if kind == 0:
            made = ONE[random.randint(len(ONE))](a)
        elif kind == 1:
            made = layers.elementwise_mul(a, one if random.randint(2) else row)
        elif kind == 2:
            made = layers.elementwise_add(a, column, axis=1, act=random.choice(["relu", "tanh", None]))
        else:
            made = TWO[random.randint(len(TWO))](a, b)
        values.append(made)
    fetched = [values[k] for k in set(random.randint(2, len(values), 2).tolist())]
    loss = layers.mean(values[-1])
    if random.randint(3):
        fetched += [loss, *filter(None, fluid.gradients(loss, [x, y]))]
        fetched += [g for _, g in fluid.backward.append_backward(loss)] if random.randint(2) else []
    return fetched


def saved(exe, program):
    """How many instructions chains have saved in each plan."""
    lines = [line for line in exe.describe(program).splitlines() if "saved by passes" in line]
    found = [part.split() for line in lines for part in line.partition(": ")[2].split(", ")]
    return [int(count) for name, count in found if name == "chains"]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed, monkeypatch):
    random = np.random.RandomState(seed)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        fetched = random_program(random)
    plain = main.clone()
    feeds = [{name: random.randn(n, 6).astype("float32") for name in "xy"} for n in (3, 1, 700, 3, 2000, 700)]
    exe = fluid.Executor()
    exe.run(startup)
    found = [exe.run(main, feed=feed, fetch_list=fetched) for feed in feeds]
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "chains")
    names = [var.name for var in fetched]
    for feed, got in zip(feeds, found, strict=True):
        for a, b in zip(got, exe.run(plain, feed=feed, fetch_list=names), strict=True):
            np.testing.assert_array_equal(a, b)
    assert not saved(exe, plain)


def test_one_instruction_for_sizes_that_change():
    x = fluid.data("x", [None, None, 5])
    bias = layers.create_parameter([5], "float32")
    out = layers.tanh(layers.elementwise_add(layers.square(x), bias) * 0.5)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for shape in ((2, 3, 5), (4, 2, 5), (300, 20, 5)):
        (got,) = exe.run(feed={"x": np.ones(shape, "float32")}, fetch_list=[out])
        assert got.shape == shape
    text = exe.describe()
    assert text.count(" on the CPU for ") == 1
    assert "square+elementwise_add+scale+tanh(x, create_parameter_0.w_0)" in text
    assert "instructions saved by passes: chains 3" in text


def test_updates_see_what_they_saw(monkeypatch):
    """Weight decay reads parameters that updates change later in the step."""

    def trained():
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 3
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 4])
            hidden = layers.fc(layers.sigmoid(layers.square(x) * 2.0), 8, act="tanh")
            loss = layers.mean(layers.square(layers.fc(hidden, 1) - 1.0))
            regularization = fluid.regularizer.L2Decay(0.1)
            fluid.optimizer.Momentum(0.1, 0.9, regularization=regularization).minimize(loss)
        exe = fluid.Executor()
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            feed = {"x": np.random.RandomState(0).randn(16, 4).astype("float32")}
            return [exe.run(main, feed=feed, fetch_list=[loss])[0].item() for _ in range(5)], saved(exe, main)

    with_chains, counts = trained()
    assert sum(counts) > 0
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "chains")
    assert trained() == (with_chains, [])


def test_chains_with_too_many_results_are_not_fused():
    x = fluid.data("x", [None, 4])
    first = layers.relu(x)
    second = layers.tanh(first)
    exe = fluid.Executor()
    exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[first, second])
    assert not saved(exe, fluid.default_main_program())


def test_unknown_passes_are_errors(monkeypatch):
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "chains,nothing")
    x = fluid.data("x", [None, 4])
    with pytest.raises(ValueError, match="may name dead_code, .*chains, .*, got nothing"):
        fluid.Executor().run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[layers.relu(x)])
