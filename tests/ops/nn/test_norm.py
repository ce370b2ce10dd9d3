"""Normalisation of each sample."""

import numpy as np
import pytest

from fluidlite import dygraph, layers
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.normal(size=shape).astype("float32")


def standard(rows, epsilon=1e-5):
    rows = rows.astype(float)
    return (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + epsilon)


def test_layer_norm():
    x, scale, bias = normal(3, 2, 5), normal(10), normal(10)
    flat = x.reshape(3, 10)
    outputs = {
        "Y": (standard(flat) * scale + bias).reshape(x.shape).astype("float32"),
        "Mean": flat.mean(1),
        "Variance": flat.var(1),
    }
    inputs = {"X": x, "Scale": scale, "Bias": bias}
    check("layer_norm", inputs, {}, outputs, grads=("X", "Scale", "Bias"), atol=1e-5)


def test_layer_norm_of_the_last_axis_without_parameters():
    x = normal(3, 2, 5)
    want = standard(x.reshape(6, 5), 0.1).reshape(x.shape).astype("float32")
    check(
        "layer_norm", {"X": x}, {"begin_norm_axis": 2, "epsilon": 0.1}, {"Y": want}, grads=("X",), atol=1e-5
    )


def test_layer_norm_needs_an_axis():
    with pytest.raises(OperatorError, match=r"begin_norm_axis must be in \[1, 2\), got 2"):
        infer("layer_norm", {"X": normal(3, 2)}, {"begin_norm_axis": 2})


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_group_norm(layout):
    x, scale, bias = normal(2, 6, 3, 2), normal(6), normal(6)
    want = standard(x.reshape(2 * 3, -1)).reshape(x.shape) * scale.reshape(6, 1, 1) + bias.reshape(6, 1, 1)
    if layout == "NHWC":
        x, want = x.transpose(0, 2, 3, 1).copy(), want.transpose(0, 2, 3, 1)
    inputs = {"X": x, "Scale": scale, "Bias": bias}
    outputs = {"Y": want.astype("float32")}
    attrs = {"groups": 3, "data_layout": layout}
    check("group_norm", inputs, attrs, outputs, grads=("X", "Scale", "Bias"), atol=1e-5)


@pytest.mark.parametrize(
    ("scale", "wanted"),
    [
        (False, [1.9576476, 1.9032894, 2.9675868, 5.1505404, 3.8813789, 4.1522307, 4.2064652, 4.0440822]),
        (True, [-1.0371184, -1.0914766, -0.0271792, 2.1557744, -0.1896603, 0.0811915, 0.1354261, -0.0269569]),
    ],
)
def test_group_norm_without_bias_has_the_gradient_of_fluid(scale, wanted):
    with dygraph.guard():
        x = dygraph.to_variable((np.linspace(-1, 2, 8).reshape(1, 4, 2, 1).astype("float32")) ** 2)
        x.stop_gradient = False
        out = dygraph.GroupNorm(4, 2, epsilon=0.1, param_attr=scale, bias_attr=False)(x)
        weights = dygraph.to_variable(np.arange(8, dtype="float32").reshape(1, 4, 2, 1))
        layers.reduce_sum(out * weights).backward()
        np.testing.assert_allclose(x.gradient().ravel(), wanted, rtol=1e-4, atol=1e-5)


def test_groups_must_divide_the_channels():
    with pytest.raises(OperatorError, match="groups must divide the 6 channels of X, got 4"):
        infer("group_norm", {"X": normal(2, 6, 3, 2)}, {"groups": 4})


@pytest.mark.parametrize("op", ["group_norm", "instance_norm"])
@pytest.mark.parametrize("slot", ["Scale", "Bias"])
def test_each_channel_needs_its_parameters(op, slot):
    inputs = {"X": normal(2, 6, 3), "Scale": normal(6), "Bias": normal(6)} | {slot: normal(5)}
    with pytest.raises(OperatorError, match=f"{slot} must have 6 elements, got 5"):
        infer(op, inputs, {"groups": 2} if op == "group_norm" else {})


def test_instance_norm():
    x, scale, bias = normal(2, 3, 4, 2), normal(3), normal(3)
    want = standard(x.reshape(6, -1)).reshape(x.shape) * scale.reshape(3, 1, 1) + bias.reshape(3, 1, 1)
    inputs = {"X": x, "Scale": scale, "Bias": bias}
    check("instance_norm", inputs, {}, {"Y": want.astype("float32")}, grads=("X", "Scale", "Bias"), atol=1e-5)


def test_norm():
    x = normal(2, 3, 4)
    length = np.sqrt((x**2).sum(1, keepdims=True) + 0.1)
    check("norm", {"X": x}, {"axis": 1, "epsilon": 0.1}, {"Out": x / length, "Norm": length}, grads=("X",))


def test_norm_of_zeros_as_in_fluid():
    x = np.array([[3, 4], [0, 0]], "float32")
    want = np.array([[0.6, 0.8], [0, 0]], "float32")
    check("norm", {"X": x}, {"axis": 1, "epsilon": 1e-12}, {"Out": want})
