"""Fused and eliminated calls of plans for the CPU: results are those of the interpreter."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

from ..engines import run_by

RANDOM = np.random.RandomState(0)


def numbers(low, high):
    return fluid.ParamAttr(initializer=fluid.initializer.Uniform(low, high))


def instructions(exe):
    """The operators of each native instruction of the plans so far."""
    lines = exe.describe().splitlines()
    return [line.strip().partition("(")[0] for line in lines if line.endswith("; native")]


def both(exe, feed, fetches):
    """Results of a plan and of the interpreter, which must be alike to within rounding."""
    planned = exe.run(feed=feed, fetch_list=fetches)
    with run_by("interpret"):
        for got, want in zip(planned, exe.run(feed=feed, fetch_list=fetches), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
    return planned


@pytest.mark.parametrize("channels, groups", [(3, 1), (4, 2), (6, 6)])
def test_convolution_and_normalisation_by_moving_statistics(channels, groups):
    x = fluid.data("x", [None, channels, None, 7])
    made = layers.conv2d(x, 12, 3, groups=groups, padding=1, bias_attr=numbers(-1, 1))
    out = layers.batch_norm(made, "relu", is_test=True, param_attr=numbers(0.5, 2), bias_attr=numbers(-1, 1))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for name, low in (("batch_norm_0.w_1", -1.0), ("batch_norm_0.w_2", 0.5)):
        tensor = fluid.global_scope().find_var(name).get_tensor()
        tensor.set(np.linspace(low, 2, 12, dtype="float32"), fluid.CPUPlace())
        (planned,) = both(exe, {"x": RANDOM.randn(2, channels, 5, 7).astype("float32")}, [out])
        both(exe, {"x": RANDOM.randn(1, channels, 9, 7).astype("float32")}, [out])
        assert planned.min() == 0 < planned.max()
    assert "conv2d+elementwise_add+batch_norm" in "\n".join(instructions(exe))
    broken = RANDOM.randn(1, channels, 9, 7).astype("float32")
    broken[0, :, 4, 4] = np.nan
    assert np.isnan(exe.run(feed={"x": broken}, fetch_list=[out])[0]).sum() == 12 * 9


def test_convolutions_on_plain_images_have_an_activation_as_epilogue():
    x = fluid.data("x", [None, 4, None, 7])
    first = layers.conv2d(x, 8, 1, act="relu", bias_attr=numbers(-1, 1))
    made = layers.conv2d(first, 6, 1, bias_attr=numbers(-1, 1))
    out = layers.batch_norm(made, "relu", is_test=True, param_attr=numbers(0.5, 2), bias_attr=numbers(-1, 1))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for rows in (2, 5):
        planned = both(exe, {"x": RANDOM.randn(3, 4, rows, 7).astype("float32")}, [out])
        assert planned[0].min() == 0 < planned[0].max()
    assert {"conv2d+elementwise_add+relu", "conv2d+elementwise_add+batch_norm+relu"} <= set(instructions(exe))


def test_what_others_read_is_not_put_into_one():
    x = fluid.data("x", [None, 3, 6, 6])
    made = layers.conv2d(x, 4, 3)
    normal = layers.batch_norm(made, is_test=True)
    both_read = layers.elementwise_add(made, normal)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    both(exe, {"x": RANDOM.randn(2, 3, 6, 6).astype("float32")}, [both_read])
    assert {"conv2d+elementwise_add", "batch_norm"} <= set(instructions(exe))


@pytest.mark.parametrize("filters", [4, 8])
@pytest.mark.parametrize("act", ["relu", "sigmoid", "tanh"])
def test_training_keeps_what_gradients_read(act, filters):
    x = fluid.data("x", [None, 3, 8, 8])
    y = fluid.data("y", [None, 1], "int64")
    made = layers.batch_norm(layers.conv2d(layers.reshape(x, [-1, 3, 8, 8]), filters, 3, act=act), act)
    logits = layers.fc(layers.pool2d(made, 3, "max", 1, 1), 5)
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, y))
    pairs = fluid.backward.append_backward(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": RANDOM.randn(4, 3, 8, 8).astype("float32"), "y": RANDOM.randint(0, 5, (4, 1))}
    both(exe, feed, [loss, *(gradient for _, gradient in pairs)])
    convolution = "conv2d+elementwise_add" if filters == 8 else f"conv2d+elementwise_add+{act}"
    assert {convolution, f"batch_norm+{act}"} <= set(instructions(exe))


def test_the_gradient_of_images_is_not_computed_unless_it_is_fetched():
    x = fluid.data("x", [None, 16])
    made = layers.conv2d(layers.reshape(x, [-1, 1, 4, 4]), 2, 3, bias_attr=False)
    loss = layers.mean(layers.square(made))
    fluid.backward.append_backward(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": RANDOM.randn(3, 16).astype("float32")}
    both(exe, feed, ["conv2d_0.w_0@GRAD"])
    assert instructions(exe).count("conv2d_grad") == 1
    images, _ = both(exe, feed, ["reshape2_0.tmp_0@GRAD", "conv2d_0.w_0@GRAD"])
    assert np.abs(images).max() > 0


def test_the_logarithm_of_softmax_is_one_call():
    x = fluid.data("x", [None, 7])
    probabilities = layers.softmax(x)
    out, wanted = layers.log(probabilities), layers.log(layers.softmax(layers.scale(x, 2.0)))
    exe = fluid.Executor()
    data = np.random.RandomState(3).randn(5, 7).astype("float32") * 30
    both(exe, {"x": data}, [wanted])
    assert "softmax+log" in exe.describe()
    both(exe, {"x": data}, [out, probabilities])
    assert "softmax+log" not in exe.describe().rpartition("fetched")[2]


@pytest.mark.parametrize("channels, stride", [(1024, 1), (1030, 2)])
def test_gradients_of_filters_that_see_many_channels(channels, stride):
    x = fluid.data("x", [None, channels, 3, 4])
    out = layers.conv2d(x, 8, 1, stride, param_attr=numbers(-0.1, 0.1), bias_attr=False)
    loss = layers.reduce_mean(layers.square(out))
    gradients = [gradient.name for _, gradient in fluid.backward.append_backward(loss)]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for n in (1, 3):
        both(exe, {"x": RANDOM.randn(n, channels, 3, 4).astype("float32")}, [loss, *gradients])
