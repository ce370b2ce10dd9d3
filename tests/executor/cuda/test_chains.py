"""Fusion of elementwise operators on a GPU."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fluidlite import layers, optimizer
from fluidlite.executor.cuda import chains as device_chains
from fluidlite.executor.cuda import launch as device_launch
from fluidlite.framework import default_main_program
from fluidlite.framework.gradients.backward import append_backward

from .test_fusion import agree, data, joined

pytestmark = pytest.mark.usefixtures("alone", "cuda")


def batch(steps=2, rows=4, width=8, kind="float32"):
    random = np.random.default_rng(3)
    return [{n: random.uniform(-2, 2, (rows, width)).astype(kind) for n in "xy"} for _ in range(steps)]


def test_functions_and_arithmetic():
    x, y = data()
    out = layers.tanh(layers.elementwise_mul(layers.relu(x), y)) - layers.scale(y, 0.5, 1.0)
    out = layers.elementwise_max(out, layers.leaky_relu(x, 0.3))
    assert joined([out], batch(1)[0]) == [
        Counter(
            relu=1, elementwise_mul=1, tanh=1, scale=1, elementwise_sub=1, leaky_relu=1, elementwise_max=1
        )
    ]
    agree([out.name], batch())


def test_fetched_intermediate_results_are_stored():
    x, y = data()
    first = layers.exp(x)
    second = layers.square(first)
    total = layers.reduce_sum(first)
    out = layers.sqrt(second + y * y)
    assert len(joined([out, second, total], batch(1)[0])) <= 3
    agree([out.name, second.name, total.name], batch())


def test_gradients_are_fused():
    x, y = data()
    x.stop_gradient = y.stop_gradient = False
    w = layers.create_parameter([8], "float32", name="w")
    out = layers.sigmoid(x * y) / (layers.exp(y) + 1.0)
    loss = layers.mean(layers.square(layers.elementwise_mul(out, w, axis=1)))
    optimizer.SGD(0.5).minimize(loss)
    found = joined([loss, "x@GRAD", "y@GRAD"], batch(1)[0])
    assert max(sum(each.values()) for each in found if each["sigmoid_grad"]) >= 4
    agree([loss.name, "x@GRAD", "y@GRAD", "w"], batch(3))


def test_small_operands_are_broadcast():
    x, y = data()
    row, column = layers.create_parameter([8], "float32"), layers.create_parameter([4, 1], "float32")
    one = layers.create_parameter([1], "float32")
    column = layers.reshape(column, [4])
    out = layers.elementwise_add(x, row, axis=1) * y
    out = layers.elementwise_div(out + layers.elementwise_add(x, column, axis=0), one)
    found = joined([out], batch(1)[0])
    assert max(sum(each.values()) for each in found) >= 4
    agree([out.name], batch())


def test_shapes_and_types_are_not_mixed():
    x, y = data()
    whole = layers.cast(layers.cast(x, "int64") + layers.cast(y, "int64"), "float32")
    narrow = layers.reduce_sum(layers.relu(x), dim=1)
    out = layers.tanh(layers.exp(narrow))
    assert Counter(tanh=1, exp=1) in joined([out, whole], batch(1)[0])
    agree([out.name, whole.name], batch())


def test_doubles():
    x, y = layers.data("x", [8], dtype="float64"), layers.data("y", [8], dtype="float64")
    out = layers.tanh(layers.relu(x) - y)
    assert joined([out], batch(1, kind="float64")[0]) == [Counter(relu=1, elementwise_sub=1, tanh=1)]
    agree([out.name], batch(kind="float64"))


def test_a_sum_of_equal_gradients():
    x, y = data()
    x.stop_gradient = False
    middle = layers.relu(x)
    loss = layers.mean(middle + layers.tanh(middle) * y + layers.square(middle))
    append_backward(loss, parameter_list=[])
    agree([loss.name, "x@GRAD"], batch())


def test_a_variable_written_twice_has_two_values():
    x, y = data()
    block = default_main_program().global_block()
    out = layers.relu(x)
    block.append_op("tanh", inputs={"X": [out]}, outputs={"Out": [out]})
    result = layers.exp(out)
    assert [sum(each.values()) for each in joined([result], batch(1)[0])] == [3]
    agree([result.name], batch())


def test_counters_are_not_copied():
    x, _ = data()
    step = layers.autoincreased_step_counter()
    rate = layers.cast(step, "float32") * 0.5
    out = layers.elementwise_mul(layers.exp(layers.scale(x, 0.1)), rate)
    agree([out.name, rate.name], batch(3))


def test_long_runs_are_split():
    x, y = data()
    out = x
    for _ in range(50):
        out = layers.tanh(out + y)
    found = joined([out], batch(1)[0])
    assert 2 <= len(found) <= 8
    agree([out.name], batch())


def test_arrays_that_do_not_fit_run_one_by_one(monkeypatch):
    x, y = data()
    x.stop_gradient = False
    loss = layers.mean(layers.square(layers.relu(x) - y))
    append_backward(loss, parameter_list=[])
    counted = []

    def noted(*given):
        counted.append(1)
        return device_launch.one_by_one(*given)

    monkeypatch.setattr(device_chains.launch, "real", lambda *arrays: False)
    monkeypatch.setattr(device_chains, "one_by_one", noted)
    agree([loss.name, "x@GRAD"], batch())
    assert counted
