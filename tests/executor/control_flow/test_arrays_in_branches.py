"""Gradients of branches that write to tensor arrays, read them and count, and of loops twice: in one plan."""

import numpy as np
import pytest

import fluidlite as fluid

from .test_data_dependent_sizes import run, same
from .test_scans import number

layers = fluid.layers


def decided(x):
    return layers.reduce_sum(x) > layers.fill_constant([1], "float32", 0.0)


def written(x, trips):
    """One element or another, at an index that the branch counts to."""
    i = number(0)
    array = layers.array_write(layers.scale(x, 0.5), i)

    def more():
        layers.increment(i)
        layers.array_write(layers.tanh(x), i, array)
        layers.increment(i)
        layers.array_write(layers.square(x), i, array)

    def other():
        layers.increment(i)
        layers.array_write(layers.sin(x) * x, i, array)

    layers.cond(decided(x), lambda: more() or None, lambda: other() or None)
    return layers.array_read(array, i) + layers.array_read(array, number(1)) * layers.array_read(
        array, number(0)
    )


def read(x, trips):
    """A variable that only the branch reads has a gradient only where the branch is taken."""
    array = layers.array_write(layers.tanh(x), number(0))
    layers.array_write(layers.square(x), number(1), array)
    return layers.cond(
        decided(x),
        lambda: layers.array_read(array, number(0)) * layers.array_read(array, number(1)),
        lambda: layers.array_read(array, number(1)) + x,
    )


def read_and_written(x, trips):
    i = number(0)
    array = layers.array_write(layers.tanh(x), i)

    def twice():
        value = layers.array_read(array, i)
        layers.increment(i)
        layers.array_write(value * x, i, array)
        return layers.scale(value, 1.0)

    first = layers.cond(decided(x), twice, lambda: layers.scale(x, 2.0))
    return first * layers.array_read(array, i)


def in_a_switch(x, trips):
    i, one = number(0), layers.fill_constant([1], "float32", 1.0)
    array = layers.array_write(layers.scale(x, 0.5), i)
    with layers.Switch() as switch:
        with switch.case(layers.reduce_sum(x) > one):
            layers.increment(i)
            layers.array_write(layers.tanh(x), i, array)
        with switch.case(decided(x)):
            layers.increment(i)
            layers.array_write(layers.array_read(array, number(0)) * x, i, array)
        with switch.default():
            layers.array_write(layers.sin(x), i, array)
    return layers.array_read(array, i)


def in_a_loop(x, trips):
    """Per iteration one of two branches writes the element that the next iteration reads."""
    i = number(0)
    array = layers.array_write(layers.scale(x, 1.0), i)
    going = layers.less_than(i, trips)
    with layers.While(going).block():
        value = layers.array_read(array, i)

        def up():
            layers.increment(i)
            layers.array_write(layers.tanh(value * 1.5) - 0.2, i, array)

        def down():
            layers.increment(i)
            layers.array_write(layers.sin(value) + x * 0.3, i, array)

        layers.cond(decided(value), lambda: up() or None, lambda: down() or None)
        layers.less_than(i, trips, cond=going)
    return layers.array_read(array, trips)


PROGRAMS = [written, read, read_and_written, in_a_switch, in_a_loop]


def built(build):
    x, trips = fluid.data("x", [2, 3]), fluid.data("trips", [1], "int64")
    x.stop_gradient = False
    out = build(x, trips)
    loss = layers.reduce_sum(out * out)
    return [out, loss, *fluid.gradients([loss], [x])]


def feeds():
    random = np.random.RandomState(2)
    for at in range(12):
        x = random.uniform(-1, 1, (2, 3)).astype("float32")
        yield {"x": [x, np.abs(x), -np.abs(x)][at % 3], "trips": np.array([random.randint(0, 5)])}


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_as_operator_by_operator(build):
    fetched, fed = built(build), [*feeds()]
    got, text = run(fetched, "plan", fed)
    same(got, run(fetched, "interpret", fed)[0])
    assert "run in segments" not in text and " branch(" in text and "_element(" in text


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_gradients_are_those_of_finite_differences(build):
    fetched = built(build)
    way = np.random.RandomState(4).uniform(-1, 1, (2, 3)).astype("float32")
    exe = fluid.Executor()

    def at(feed, step):
        out = exe.run(feed={**feed, "x": feed["x"] + np.float32(step) * way}, fetch_list=fetched)
        return float(out[1].sum()), float((out[2] * way).sum())

    for feed in [*feeds()][:6]:
        measured = (at(feed, 5e-3)[0] - at(feed, -5e-3)[0]) / 1e-2
        slope = at(feed, 0)[1]
        assert abs(slope - measured) < 1e-2 * max(1.0, abs(slope))


def test_a_loop_is_differentiated_twice():
    """Each gradient pops a stash of its own."""
    x, trips = fluid.data("x", [2, 3]), fluid.data("trips", [1], "int64")
    x.stop_gradient = False

    def body(i, value):
        inner = layers.while_loop(
            lambda j, each: layers.less_than(j, i),
            lambda j, each: [layers.increment(j), layers.sin(each) * x],
            [number(0), layers.scale(value, 1.0)],
        )[1]
        return [layers.increment(i), layers.tanh(inner + x)]

    start = [number(0), layers.scale(x, 1.0)]
    _, out = layers.while_loop(lambda i, value: layers.less_than(i, trips), body, start)
    first, second = layers.reduce_sum(out), layers.reduce_sum(layers.square(out))
    fetched = [out, *fluid.gradients([first], [x]), *fluid.gradients([second], [x])]
    fed = [*feeds()]
    got, text = run(fetched, "plan", fed)
    want, _ = run(fetched, "interpret", fed)
    same(got, want)
    assert "run in segments" not in text and text.count(" loop(") == 6
