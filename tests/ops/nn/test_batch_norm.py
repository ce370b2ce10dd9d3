"""Batch normalisation with the statistics of the batch and with the moving ones."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError, OpView, find

from ..harness import ArrayMeta, check, infer

rng = np.random.default_rng(0)


def given(*shape, channel):
    n = shape[channel]
    make = {"X": rng.normal(1, 2, shape), "Scale": rng.uniform(0.5, 2, n), "Bias": rng.normal(size=n)}
    make |= {"Mean": rng.normal(size=n), "Variance": rng.uniform(0.5, 2, n)}
    return {slot: value.astype("float32") for slot, value in make.items()}


@pytest.mark.parametrize(
    ("shape", "layout"),
    [((4, 3, 2, 5), "NCHW"), ((4, 2, 5, 3), "NHWC"), ((6, 3), "NCHW"), ((3, 2, 2, 2, 2), "NCDHW")],
)
def test_statistics_of_the_batch(shape, layout):
    channel = len(shape) - 1 if layout == "NHWC" else 1
    inputs = given(*shape, channel=channel)
    x = np.moveaxis(inputs["X"].astype(float), channel, -1)
    flat = x.reshape(-1, x.shape[-1])
    mean, variance = flat.mean(0), flat.var(0)
    y = (x - mean) / np.sqrt(variance + 1e-3) * inputs["Scale"] + inputs["Bias"]
    outputs = {
        "Y": np.moveaxis(y, -1, channel),
        "MeanOut": inputs["Mean"] * 0.7 + mean * 0.3,
        "VarianceOut": inputs["Variance"] * 0.7 + variance * 0.3,
        "SavedMean": mean,
        "SavedVariance": 1 / np.sqrt(variance + 1e-3),
    }
    outputs = {slot: value.astype("float32") for slot, value in outputs.items()}
    attrs = {"data_layout": layout, "momentum": 0.7, "epsilon": 1e-3}
    check("batch_norm", inputs, attrs, outputs, grads=("X", "Scale", "Bias"), atol=1e-5)


@pytest.mark.parametrize("attrs", [{"use_global_stats": True}, {"is_test": True}])
def test_moving_statistics(attrs):
    inputs = given(4, 3, 2, 2, channel=1)
    mean, scale = inputs["Mean"], inputs["Scale"] / np.sqrt(inputs["Variance"] + 1e-5)
    wide = (1, 3, 1, 1)
    y = (inputs["X"] - mean.reshape(wide)) * scale.reshape(wide) + inputs["Bias"].reshape(wide)
    outputs = {"Y": y.astype("float32"), "MeanOut": mean, "VarianceOut": inputs["Variance"]}
    grads = ("X", "Scale", "Bias") if "use_global_stats" in attrs else ()
    check("batch_norm", inputs, attrs, outputs, grads=grads, atol=1e-5)


def test_momentum_may_be_a_tensor():
    inputs = given(4, 2, channel=1)
    mean = (inputs["Mean"] * 0.25 + inputs["X"].mean(0) * 0.75).astype("float32")
    inputs["MomentumTensor"] = np.array([0.25], "float32")
    check("batch_norm", inputs, {"momentum": 0.9}, {"MeanOut": mean})


def test_there_is_no_gradient_in_test_mode():
    inputs = given(4, 2, channel=1)
    names = {slot: [slot.lower()] for slot in inputs}
    meta = ArrayMeta({slot.lower(): value for slot, value in inputs.items()})
    view = OpView(find("batch_norm"), names, {"Y": ["y"]}, {"is_test": True}, meta)
    with pytest.raises(OperatorError, match="no gradient with is_test=True; .* use_global_stats=True"):
        find("batch_norm").grad(view)


def test_parameters_must_fit_the_channels():
    inputs = given(4, 2, channel=1)
    inputs["Scale"] = np.ones(3, "float32")
    with pytest.raises(OperatorError, match=r"Scale must have shape \[2\], one value a channel, got \[3\]"):
        infer("batch_norm", inputs)


@pytest.mark.parametrize("shape", [(1, 3), (1, 3, 1, 1)])
def test_a_single_element_of_each_channel_passes(shape):
    """As on real Paddle 1.8.5: neither scaled nor shifted, and the moving statistics stay."""
    inputs = given(*shape, channel=1)
    outputs = {"Y": inputs["X"], "MeanOut": inputs["Mean"], "VarianceOut": inputs["Variance"]}
    check("batch_norm", inputs, {}, outputs, grads=("X", "Scale", "Bias"))
