"""Comparisons of plans with the interpreter, and of gradients with slopes; small builders of programs with blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import fluidlite as fluid
from fluidlite import layers

from ...engines import run_by

WIDTH = 3  # of inputs; states have 4 columns


def number(value, dtype="int64"):
    return layers.fill_constant([1], dtype, value)


def numbers(random, *shape):
    return random.standard_normal(shape).astype("float32")


def ragged(random, lengths, width=WIDTH, dtype="float32"):
    """Sequences of these lengths."""
    rows = numbers(random, sum(lengths), width).astype(dtype)
    return fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())


def fc(x, size, name, act="tanh"):
    """A layer with parameters of its own name, which several layers may share."""
    inputs = x if isinstance(x, list) else [x]
    weights = [fluid.ParamAttr(f"{name}.w{each.shape[-1]}.{k}") for k, each in enumerate(inputs)]
    return layers.fc(inputs, size, act=act, param_attr=weights, bias_attr=f"{name}.b")


def data(name, shape, dtype="float32", **how):
    """A function that declares an input with gradient."""

    def make():
        made = fluid.data(name, shape, dtype, **how)
        made.stop_gradient = dtype == "int64"
        return made

    return make


def looped(trips, start, iteration):
    """Apply `iteration(state)` to `start` `trips` times."""
    return layers.while_loop(
        lambda i, state: layers.less_than(i, trips),
        lambda i, state: [layers.increment(i), iteration(state)],
        [number(0), layers.scale(start, 1.0)],
    )[1]


def repeated(trips, body):
    """Run `body(i)`, which assigns to outer variables, `trips` times; the counter."""
    i = number(0)
    going = layers.less_than(i, trips)
    with layers.While(going).block():
        body(i)
        layers.increment(i)
        layers.less_than(i, trips, cond=going)
    return i


class Built(NamedTuple):
    """A program, and what is fetched of it."""

    main: Any
    startup: Any
    fetched: list


def trained(build, sources):
    """A program that trains what `build` makes of `sources`; it fetches the loss, results and gradients."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        given = [make() for make in sources]
        outs = build(*given)
        loss = layers.sums(
            [layers.reduce_sum(layers.square(out) * (0.3 + 0.1 * k)) for k, out in enumerate(outs)]
        )
        fluid.optimizer.SGD(0.01).minimize(loss)
        gradients = [var.name + "@GRAD" for var in (*main.all_parameters(), *given)]
        wanted = [loss, *outs, *(name for name in gradients if name in main.global_block().vars)]
    return Built(main, startup, wanted)


def run(built, feeds, engine, spread=0.7):
    """What is fetched for each of the feeds, and at the end the persistable variables; and the description.

    Parameters are drawn from [-spread, spread].
    """
    main, startup, fetched = built
    exe, scope, random = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), np.random.RandomState(1)
    with run_by(engine):
        exe.run(startup, scope=scope)
        for parameter in main.all_parameters():
            tensor = scope.find_var(parameter.name).get_tensor()
            value = random.uniform(-spread, spread, tensor.shape()).astype(np.array(tensor).dtype)
            tensor.set(value, fluid.CPUPlace())
        found = [
            exe.run(main, feed=feed, fetch_list=fetched, scope=scope, return_numpy=False) for feed in feeds
        ]
        names = sorted({var.name for var in main.list_vars() if var.persistable} - {"feed", "fetch"})
        found.append([scope.find_var(name).get_tensor() for name in names if scope.find_var(name)])
        return found, exe.describe(main, scope)


def compare(expected, found, rtol=2e-4, atol=2e-5):
    """Check that two results of `run` are the same."""
    for step, (first, second) in enumerate(zip(expected, found, strict=True)):
        for k, (one, other) in enumerate(zip(first, second, strict=True)):
            a, b = np.array(one), np.array(other)
            assert (one.lod(), a.shape, a.dtype) == (other.lod(), b.shape, b.dtype)
            np.testing.assert_allclose(b, a, rtol, atol, err_msg=f"result {k} in step {step}")


def agree(built, feeds, rtol=2e-4, atol=2e-5):
    """Check that a program gives the same compiled as interpreted, step after step; returns the description."""
    kept = [{name: np.array(value) for name, value in feed.items()} for feed in feeds]
    expected, _ = run(built, feeds, "interpret")
    found, text = run(built, feeds, "plan")
    compare(expected, found, rtol, atol)
    for feed, before in zip(feeds, kept, strict=True):
        for name, value in feed.items():
            np.testing.assert_array_equal(np.array(value), before[name])  # what is fed is never changed
    return text


def default(fetched):
    """The current default programs, of which `fetched` are wanted."""
    return Built(fluid.default_main_program(), fluid.default_startup_program(), fetched)


def check(build, sources, feeds):
    """`agree` for the program that trains what `build` makes of `sources`."""
    return agree(trained(build, sources), feeds)


def check_slopes(built, feeds, small=1e-6, tolerance=1e-5):
    """Compare the gradients of fed float64 arrays with differences of the loss along a random direction."""
    exe, scope, random = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), np.random.RandomState(2)
    exe.run(built.startup, scope=scope)
    tensors = [scope.find_var(var.name).get_tensor() for var in built.main.all_parameters()]
    start = [np.array(tensor) for tensor in tensors]

    names = [name[:-5] for name in built.fetched if isinstance(name, str) and name.endswith("@GRAD")]
    names = [name for name in names if name in feeds[0] and name != "words"]
    wanted = [built.fetched[0], *(f"{name}@GRAD" for name in names)]

    def at(feed):
        for tensor, value in zip(tensors, start, strict=True):  # each step trains
            tensor.set(value, fluid.CPUPlace())
        return exe.run(built.main, feed=feed, fetch_list=wanted, scope=scope)

    for feed in feeds:
        for name, gradient in zip(names, at(feed)[1:], strict=True):
            way = random.uniform(-1, 1, np.shape(feed[name]))
            ends = [at({**feed, name: feed[name] + step * way})[0] for step in (small, -small)]
            measured = (ends[0] - ends[1]).item() / (2 * small)
            np.testing.assert_allclose((gradient * way).sum(), measured, tolerance, tolerance, err_msg=name)
