"""The layers of `fluid.dygraph.nn`: results and gradients are those of real Paddle 1.8.5."""

import json
from pathlib import Path

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph as nn
from fluidlite.contrib.layers import BasicGRUUnit
from fluidlite.dygraph import to_variable

pytestmark = pytest.mark.usefixtures("eager")


def seq(*shape, lo=-1.0, hi=1.0):
    """Evenly spaced floats that want a gradient."""
    made = to_variable(np.linspace(lo, hi, int(np.prod(shape))).reshape(shape).astype("float32"))
    made.stop_gradient = False
    return made


def ids(*shape, n):
    return to_variable(np.arange(int(np.prod(shape))).reshape(shape) % n)


def bits(*shape):
    return to_variable((np.arange(int(np.prod(shape))).reshape(shape) % 2).astype("float32"))


def fill(layer):
    for k, p in enumerate(layer.parameters()):
        if not p.stop_gradient:
            p.set_value(np.cos(np.arange(np.prod(p.shape)) + k).reshape(p.shape).astype("float32"))
    return layer


def digest(array):
    """Sum, sum of squares, last element."""
    array = array.astype("float64").ravel()
    return [array.sum(), (array**2).sum(), array[-1]]


GIVEN = fluid.ParamAttr()
CASES = {
    "linear": lambda: (nn.Linear(3, 2, act="tanh"), seq(2, 4, 3)),
    "bilinear": lambda: (nn.BilinearTensorProduct(3, 4, 2, act="sigmoid"), seq(2, 3), seq(2, 4)),
    "conv2d": lambda: (nn.Conv2D(4, 6, 3, stride=2, padding=1, groups=2, act="relu"), seq(2, 4, 5, 5)),
    "conv2d_dil": lambda: (nn.Conv2D(2, 3, (3, 1), padding=(2, 0), dilation=(2, 1), bias_attr=False),
        seq(1, 2, 5, 4)),
    "depthwise": lambda: (nn.Conv2D(3, 6, 3, groups=3, use_cudnn=False), seq(1, 3, 4, 4)),
    "conv3d": lambda: (nn.Conv3D(2, 3, 2, stride=(1, 2, 1)), seq(1, 2, 3, 4, 3)),
    "conv2dt": lambda: (nn.Conv2DTranspose(4, 6, 3, stride=2, padding=1, groups=2, output_size=[10, 9]),
        seq(1, 4, 5, 5)),
    "conv3dt": lambda: (nn.Conv3DTranspose(2, 3, 2, stride=2, bias_attr=GIVEN), seq(1, 2, 2, 2, 3)),
    "pool_max": lambda: (nn.Pool2D(2, "max", 2, ceil_mode=True), seq(1, 2, 5, 5)),
    "pool_avg": lambda: (nn.Pool2D((3, 2), "avg", (2, 1), (1, 0), exclusive=False), seq(1, 2, 5, 5)),
    "pool_glob": lambda: (nn.Pool2D(pool_type="avg", global_pooling=True), seq(2, 2, 3, 3)),
    "bn": lambda: (nn.BatchNorm(3, act="relu", momentum=0.7, epsilon=1e-3), seq(2, 3, 2, 2)),
    "bn_nhwc": lambda: (nn.BatchNorm(3, data_layout="NHWC"), seq(2, 2, 2, 3)),
    "bn_global": lambda: (nn.BatchNorm(3, use_global_stats=True, param_attr=GIVEN, bias_attr=GIVEN),
        seq(2, 3, 2, 2)),
    "layer_norm": lambda: (nn.LayerNorm([3, 2], act="sigmoid"), seq(4, 3, 2)),
    "layer_norm_plain": lambda: (nn.LayerNorm(4, scale=False, shift=False, epsilon=1e-4), seq(2, 3, 4)),
    "group_norm": lambda: (nn.GroupNorm(4, 2, param_attr=True, bias_attr=True, act="tanh"),
        seq(2, 4, 2, 2)),
    "instance_norm": lambda: (nn.InstanceNorm(3), seq(2, 3, 2, 3)),
    "embedding": lambda: (nn.Embedding([5, 3], padding_idx=-2), ids(2, 4, n=5)),
    "prelu_all": lambda: (nn.PRelu("all"), seq(2, 3, 2, 2)),
    "prelu_channel": lambda: (nn.PRelu("channel", channel=3), seq(2, 3, 2, 2)),
    "prelu_element": lambda: (nn.PRelu("element", input_shape=[2, 3, 2, 2]), seq(2, 3, 2, 2)),
    "gru": lambda: (nn.GRUUnit(6), seq(2, 6), seq(2, 2)),
    "gru_relu": lambda: (nn.GRUUnit(6, activation="relu", gate_activation="identity", bias_attr=False),
        seq(2, 6), seq(2, 2)),
    "nce": lambda: (nn.NCE(6, 3, num_neg_samples=2, seed=7), seq(2, 3), ids(2, 1, n=6)),
    "mse": lambda: (nn.MSELoss(), seq(2, 3), seq(2, 3, hi=2.0)),
    "mse_none": lambda: (nn.MSELoss("none"), seq(2, 3), seq(2, 3, hi=2.0)),
    "l1": lambda: (nn.L1Loss("sum"), seq(2, 3), seq(2, 3, hi=2.0)),
    "bce": lambda: (nn.BCELoss(), seq(2, 3, lo=0.1, hi=0.9), bits(2, 3)),
    "bce_w": lambda: (nn.BCELoss(weight=seq(3, lo=0.5, hi=2.0), reduction="sum"), seq(2, 3, lo=0.1, hi=0.9),
        bits(2, 3)),
    "nll": lambda: (nn.NLLLoss(), seq(4, 3), ids(4, n=3)),
    "nll_w": lambda: (nn.NLLLoss(weight=seq(3, lo=0.5, hi=2.0), ignore_index=1), seq(4, 3), ids(4, n=3)),
    "nll_4": lambda: (nn.NLLLoss(reduction="none"), seq(2, 3, 2, 2), ids(2, 2, 2, n=3)),
    "nll_3": lambda: (nn.NLLLoss(reduction="none"), seq(2, 3, 4), ids(2, 4, n=3)),
    "nll_5": lambda: (nn.NLLLoss(reduction="sum"), seq(2, 3, 2, 2, 2), ids(2, 2, 2, 2, n=3)),
}  # fmt: skip

# name: shape and digest of the result; digests of the gradients of the parameters and of the inputs (None: no gradient)
REAL = json.loads(Path(__file__).with_suffix(".json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients(name):
    layer, *inputs = CASES[name]()
    fill(layer)
    out = layer(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    fluid.layers.reduce_sum(fluid.layers.sin(out)).backward()
    shape, result, of_parameters, of_inputs = REAL[name]
    assert out.shape == shape
    np.testing.assert_allclose(digest(out.numpy()), result, rtol=1e-4, atol=1e-4)
    for tensors, wanted in ((layer.parameters(), of_parameters), (inputs, of_inputs)):
        assert len(tensors) == len(wanted)
        for tensor, want in zip(tensors, wanted, strict=True):
            if want is None:
                assert tensor.gradient() is None
            else:
                np.testing.assert_allclose(digest(tensor.gradient()), want, rtol=1e-4, atol=1e-4)


SETTINGS = {
    "Conv2D": (
        lambda: nn.Conv2D(2, 4, 3, padding=1, param_attr="settings.w", bias_attr=False),
        {
            "_stride": [1, 1],
            "_padding": [1, 1],
            "_param_attr": "settings.w",
            "_bias_attr": False,
            "_groups": None,
        },
        {"_stride": [2, 2], "_padding": [0, 0]},
        [1, 4, 3, 3],
    ),
    "Conv2DTranspose": (
        lambda: nn.Conv2DTranspose(2, 4, 3, stride=2),
        {"_output_size": [], "_filter_size": [3, 3], "_op_type": "conv2d_transpose", "_groups": 1},
        {"_output_size": [16, 16]},
        [1, 4, 16, 16],
    ),
    "Pool2D": (
        lambda: nn.Pool2D(2, "avg", 2, ceil_mode=True),
        {
            "_pool_type": "avg",
            "_pool_size": [2, 2],
            "_pool_stride": [2, 2],
            "_ceil_mode": True,
            "_exclusive": True,
        },
        {"_pool_size": [3, 3], "_pool_stride": [1, 1]},
        [1, 2, 5, 5],
    ),
    "Embedding": (
        lambda: nn.Embedding([200, 3], is_sparse=True, padding_idx=-1),
        {"_padding_idx": 199, "_is_sparse": True, "_remote_prefetch": True, "_is_distributed": False},
        {},
        None,
    ),
    "SpectralNorm": (
        lambda: nn.SpectralNorm([4, 3]),
        {"_dim": 0, "_power_iters": 1, "_eps": 1e-12},
        {},
        None,
    ),
    "BilinearTensorProduct": (
        lambda: nn.BilinearTensorProduct(3, 4, 5),
        {"_input1_dim": 3, "_input2_dim": 4, "_output_dim": 5, "_param_attr": None},
        {},
        None,
    ),
    "BasicGRUUnit": (lambda: BasicGRUUnit("unit", 4), {"_hiden_size": 4, "_name": "unit"}, {}, None),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_subclasses_read_and_set_has_fluids_names(name):
    make, held, changed, shape = SETTINGS[name]
    layer = make()
    assert {key: getattr(layer, key) for key in held} == held
    for key, value in changed.items():
        setattr(layer, key, value)
    if changed:
        assert layer(seq(1, 2, 7, 7)).shape == shape
