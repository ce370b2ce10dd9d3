"""Activations with arguments of their own, logarithms, `prelu`, `maxout`, limits of values and norms, `sign`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....base import callsite
from ....base.errors import ArgumentAssertion
from ....eager import as_numbers
from ....framework import Variable
from ...initializer import Constant
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer, unary
from ..checks import check_choice, check_dtype
from ..tensor.variables import assign

__all__ = [
    "brelu",
    "clip",
    "clip_by_norm",
    "elu",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "log",
    "log1p",
    "maxout",
    "mish",
    "pow",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sign",
    "soft_relu",
    "stanh",
    "swish",
]

relu = unary("relu")


def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """min(max(x, 0), threshold) (`fluid.layers.relu6`)."""
    return run_layer("relu6", locals())


def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """x where it is positive, alpha * x elsewhere (`fluid.layers.leaky_relu`)."""
    return run_layer("leaky_relu", locals())


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere (`fluid.layers.elu`)."""
    return run_layer("elu", locals())


def selu(
    x: Variable, scale: float | None = None, alpha: float | None = None, name: str | None = None
) -> Variable:
    """scale * x where it is positive, scale * alpha * (exp(x) - 1) elsewhere (`fluid.layers.selu`).

    The defaults, 1.0507 and 1.6733, keep mean 0 and variance 1 (Klambauer et al. 2017).
    """
    return run_layer("selu", locals())


def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None) -> Variable:
    """x cut to the range from t_min to t_max (`fluid.layers.brelu`)."""
    return run_layer("brelu", locals())


def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """log(1 + exp(x)) of x cut to the range from -threshold to threshold (`fluid.layers.soft_relu`)."""
    return run_layer("soft_relu", locals())


def stanh(x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Variable:
    """scale_b * tanh(scale_a * x) (`fluid.layers.stanh`)."""
    return run_layer("stanh", locals())


def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Variable:
    """slope * x + offset, cut to the range from 0 to 1 (`fluid.layers.hard_sigmoid`)."""
    return run_layer("hard_sigmoid", locals())


def hard_swish(
    x: Variable, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0, name: str | None = None
) -> Variable:
    """x * min(max(x + offset, 0), threshold) / scale (`fluid.layers.hard_swish`)."""
    return run_layer("hard_swish", locals())


def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """x * sigmoid(x) (`fluid.layers.swish`).

    As in Fluid 1.8, whose models rely on it, `beta` has no effect; a UserWarning says so if it is not 1.
    """
    if beta != 1.0:
        callsite.warn(f"swish computes with beta 1 as Fluid 1.8 does, not with {beta}")
    return run_layer("swish", locals(), without=("beta",))


def mish(x: Variable, threshold: float = 20.0, name: str | None = None) -> Variable:
    """x * tanh(softplus(x)) (`fluid.layers.mish`); `threshold` has no effect on the value."""
    return run_layer("mish", locals())


log = unary("log")


def log1p(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """The natural logarithm of 1 + x, exact for small x, into `out` if given (`fluid.layers.log1p`)."""
    return run_layer("log1p", locals())


def pow(x: Variable, factor: float | Variable = 1.0, name: str | None = None) -> Variable:
    """x to the power of `factor`, a number or a Variable of one element (`fluid.layers.pow`)."""
    if isinstance(factor, Variable):
        factor.stop_gradient = True
    return run_layer("pow", locals(), FactorTensor="factor")


def prelu(x: Variable, mode: str, param_attr: Any = None, name: str | None = None) -> Variable:
    """x where it is positive, alpha * x elsewhere, with a trained alpha (`fluid.layers.prelu`).

    Args:
        x: a float tensor [N, ...]; its sizes but the first are known where alpha depends on them.
        mode: `all`: one alpha; `channel`: one for each entry of dimension 1; `element`: one for each element
            of a sample.
        param_attr: the ParamAttr of alpha, which begins at 0.25 unless this says otherwise.
        name: the prefix of the variables' names.

    Raises:
        ValueError: `mode` is something else.
        AssertionError: `x` has one dimension, and `mode` is `channel`.
        TypeError: `x` is not a float Variable.
    """
    check_choice(mode, "mode", ("all", "channel", "element"), "prelu")
    check_dtype(x, "x", "prelu")
    helper = LayerHelper("prelu", name=name, param_attr=param_attr)
    shape = [1]
    if mode == "channel":
        if len(x.shape) < 2:
            raise ArgumentAssertion(f"'x' of prelu has no channels, as its shape is {list(x.shape)}")
        shape = [1, x.shape[1], 1, 1]
    elif mode == "element":
        shape = [1, *x.shape[1:]]
    alpha = helper.create_parameter(helper.param_attr, shape, "float32", default_initializer=Constant(0.25))
    return helper.run("prelu", {"X": x, "Alpha": alpha}, attrs={"mode": mode})


def maxout(x: Variable, groups: int, name: str | None = None, axis: int = 1) -> Variable:
    """The largest of each `groups` neighbouring channels (`fluid.layers.maxout`).

    Args:
        x: images [N, C, H, W], or [N, H, W, C] with axis 3 or -1; `groups` divides C.
        groups: how many channels make one.
        name: the name of the result.
        axis: the dimension of the channels: 1, 3 or -1.

    Raises:
        ValueError: `axis` is another.
    """
    check_choice(axis, "axis", (1, -1, 3), "maxout")
    axis = 3 if axis == -1 else axis
    return run_layer("maxout", locals())


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """`x`, raised to `min` and lowered to `max` where it is beyond them (`fluid.layers.clip`).

    `name` becomes the name of the result.
    """
    return _clip("clip", x, {"min": float(as_numbers(min)), "max": float(as_numbers(max))}, name)


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """`x`, shortened to the Euclidean norm `max_norm` if it is longer (`fluid.layers.clip_by_norm`).

    `name` becomes the name of the result.
    """
    return _clip("clip_by_norm", x, {"max_norm": float(as_numbers(max_norm))}, name)


def _clip(op_type: str, x: Variable, attrs: dict[str, Any], name: str | None) -> Variable:
    check_variable(x, "x", op_type)
    helper = LayerHelper(op_type, name=name)
    out = None if name is None else helper.create_variable(name=name, dtype=x.dtype, like=x)
    return helper.run(op_type, {"X": x}, attrs=attrs, into={"Out": out})


def sign(x: Variable | np.ndarray) -> Variable:
    """-1, 0 or 1, as the element of `x` is negative, zero or positive (`fluid.layers.sign`)."""
    if isinstance(x, np.ndarray):
        x = assign(x)
    return run_layer("sign", locals())
