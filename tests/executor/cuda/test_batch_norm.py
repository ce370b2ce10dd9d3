"""Batch normalisations on a GPU are fused with the operators that follow; results equal those of the CPU."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fluidlite import layers, optimizer
from fluidlite.framework import default_main_program

from .test_fusion import agree, joined

pytestmark = [pytest.mark.usefixtures("alone"), pytest.mark.usefixtures("cuda")]

NORM, RELU, ADD = "batch_norm", "relu", "elementwise_add"


def batches(steps=3):
    random = np.random.default_rng(0)
    return [
        {"x": random.normal(size=(6, 4, 5, 5)).astype("float32"), "y": random.random((6, 4), "float32")}
        for _ in range(steps)
    ]


def squeezed(image):
    return layers.squeeze(layers.pool2d(image, global_pooling=True, pool_type="avg"), [2, 3])


def network(make):
    """The loss of a network whose middle `make` makes of an image that depends on parameters."""
    x, y = layers.data("x", [4, 5, 5]), layers.data("y", [4])
    image = layers.conv2d(x, 4, 3, padding=1, bias_attr=False)
    loss = layers.mean(layers.square_error_cost(squeezed(make(image)), y))
    optimizer.SGD(0.1).minimize(loss)
    return loss


def check(loss, *expected, fetches=()):
    """Assert that normalisations are fused as `expected`, and that results equal those of the CPU."""
    names = [loss.name, *fetches]
    found = joined(names, batches()[0])
    for types in expected:
        assert Counter(types) in found, [dict(launch) for launch in found]
    assert sum(launch[NORM] for launch in found) == sum(types.count(NORM) for types in expected)
    agree(names, batches())
    return found


def test_relu():
    found = check(network(lambda image: layers.batch_norm(image, act="relu")), [NORM, RELU])
    assert Counter(["relu_grad", "batch_norm_grad"]) in found


def test_normalisation_without_epilogue():
    found = check(network(layers.batch_norm), [NORM])
    assert Counter(["batch_norm_grad"]) in found


@pytest.mark.parametrize("first", [False, True])
def test_shortcut(first):
    def make(image):
        made = layers.batch_norm(image)
        return layers.elementwise_add(*((made, image) if first else (image, made)), act="relu")

    check(network(make), [NORM, ADD, RELU])


def test_shortcut_with_a_normalisation_of_its_own():
    def make(image):
        made = layers.batch_norm(layers.conv2d(image, 4, 3, padding=1))
        return layers.elementwise_add(layers.batch_norm(image), made, act="relu")

    check(network(make), [NORM], [NORM, ADD, RELU])


def test_sum_without_relu():
    check(network(lambda image: layers.elementwise_add(layers.batch_norm(image), image)), [NORM, ADD])


def test_sum_with_itself_is_not_fused():
    def make(image):
        made = layers.batch_norm(image)
        return layers.elementwise_add(made, made)

    check(network(make), [NORM])


def test_bias_is_not_fused():
    def make(image):
        bias = layers.create_parameter([4], "float32", "bias")
        return layers.relu(layers.elementwise_add(layers.batch_norm(image), bias, axis=1))

    check(network(make), [NORM])


def test_moving_statistics():
    def make(image):
        return layers.batch_norm(image, act="relu", use_global_stats=True)

    found = check(network(make), [NORM, RELU])
    assert Counter(["relu_grad", "batch_norm_grad"]) in found


def test_fetched_variables_are_computed():
    loss = network(lambda image: layers.batch_norm(image, act="relu"))
    check(loss, [NORM], fetches=["batch_norm_0.tmp_2"])


def test_fetched_gradients_are_computed():
    loss = network(lambda image: layers.batch_norm(image, act="relu"))
    found = check(loss, [NORM, RELU], fetches=["batch_norm_0.tmp_2@GRAD"])
    assert Counter(["batch_norm_grad"]) in found


def test_results_with_other_readers_are_computed():
    def make(image):
        made = layers.batch_norm(image)
        return layers.elementwise_mul(layers.relu(made), layers.tanh(made))

    check(network(make), [NORM])


def test_one_element_a_channel_is_left_to_the_reference_kernel():
    x, y = layers.data("x", [4]), layers.data("y", [4])
    made = layers.batch_norm(layers.fc(x, 4), act="relu")
    loss = layers.mean(layers.square_error_cost(made, y))
    optimizer.SGD(0.1).minimize(loss)
    random = np.random.default_rng(0)
    feeds = [{name: random.random((1, 4), "float32") for name in ("x", "y")}]
    assert Counter([NORM, RELU]) in joined([loss.name], feeds[0])
    agree([loss.name], feeds)


def test_moving_statistics_may_go_to_other_variables():
    x = layers.data("x", [3, 2], append_batch_size=False)
    block = default_main_program().global_block()
    given = {
        slot: layers.create_global_var([2], 1.0, "float32", persistable=True, name=slot)
        for slot in ("Scale", "Bias", "Mean", "Variance")
    }
    slots = ("Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance")
    made = {slot: block.create_var(name=slot, dtype="float32") for slot in slots}
    block.append_op("batch_norm", {"X": x, **given}, made, {})
    agree(["MeanOut", "Mean", "Variance"], [{"x": np.arange(6.0, dtype="float32").reshape(3, 2)}] * 3)
