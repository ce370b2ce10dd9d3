"""Activations."""

from __future__ import annotations

from typing import Any

from ....fluid.op_functions import modern_unary
from ...modes import as_dtype, run
from ...tensor import stat
from ...tensor.manipulation import split
from ...tensor.math import clip, sigmoid, tanh

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "maxout",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softshrink",
    "softsign",
    "swish",
    "tanh",
    "tanhshrink",
    "thresholded_relu",
]


relu = modern_unary("relu")
relu6 = modern_unary("relu6")
log_sigmoid = modern_unary("logsigmoid", "log_sigmoid")
mish = modern_unary("mish")
silu = modern_unary("swish", "silu")
softsign = modern_unary("softsign")
swish = modern_unary("swish")
tanhshrink = modern_unary("tanh_shrink", "tanhshrink")
hardswish = modern_unary("hard_swish", "hardswish")


def elu(x: Any, alpha: float = 1.0, name: str | None = None) -> Any:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere (`paddle.nn.functional.elu`)."""
    return run("elu", {"X": x}, attrs={"alpha": float(alpha)}, name=name)


def celu(x: Any, alpha: float = 1.0, name: str | None = None) -> Any:
    """x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere (`paddle.nn.functional.celu`)."""
    if alpha == 0:
        raise ValueError("alpha of celu must not be 0")
    return elu(x * (1.0 / alpha)) * float(alpha)


def selu(
    x: Any, scale: float = 1.0507009873554804934193349852946, alpha: float = 1.6732632423543772848170429916717,
    name: str | None = None,
) -> Any:  # fmt: skip
    """scale * elu(x, alpha) (`paddle.nn.functional.selu`)."""
    return run("selu", {"X": x}, attrs={"scale": float(scale), "alpha": float(alpha)}, name=name)


def gelu(x: Any, approximate: bool = False, name: str | None = None) -> Any:
    """x times the normal distribution's share below x, by a tanh if `approximate` (`paddle.nn.functional.gelu`)."""
    return run("gelu", {"X": x}, attrs={"approximate": approximate}, name=name)


def hardshrink(x: Any, threshold: float = 0.5, name: str | None = None) -> Any:
    """x, or 0 where |x| <= threshold (`paddle.nn.functional.hardshrink`)."""
    return run("hard_shrink", {"X": x}, attrs={"threshold": float(threshold)}, name=name)


def softshrink(x: Any, threshold: float = 0.5, name: str | None = None) -> Any:
    """x moved towards 0 by `threshold` (`paddle.nn.functional.softshrink`)."""
    if threshold < 0:
        raise ValueError(f"threshold of softshrink must not be negative, got {threshold}")
    return run("softshrink", {"X": x}, attrs={"lambda": float(threshold)}, name=name)


def hardsigmoid(x: Any, slope: float = 1 / 6, offset: float = 0.5, name: str | None = None) -> Any:
    """slope * x + offset, within [0, 1] (`paddle.nn.functional.hardsigmoid`)."""
    return run("hard_sigmoid", {"X": x}, attrs={"slope": float(slope), "offset": float(offset)}, name=name)


def hardtanh(x: Any, min: float = -1.0, max: float = 1.0, name: str | None = None) -> Any:
    """x within [min, max] (`paddle.nn.functional.hardtanh`)."""
    return clip(x, min, max, name)


def leaky_relu(x: Any, negative_slope: float = 0.01, name: str | None = None) -> Any:
    """x where it is positive, negative_slope * x elsewhere (`paddle.nn.functional.leaky_relu`)."""
    return run("leaky_relu", {"X": x}, attrs={"alpha": float(negative_slope)}, name=name)


def thresholded_relu(x: Any, threshold: float = 1.0, name: str | None = None) -> Any:
    """x where it is above `threshold`, 0 elsewhere (`paddle.nn.functional.thresholded_relu`)."""
    return run("thresholded_relu", {"X": x}, attrs={"threshold": float(threshold)}, name=name)


def softplus(x: Any, beta: float = 1, threshold: float = 20, name: str | None = None) -> Any:
    """log(1 + exp(beta * x)) / beta (`paddle.nn.functional.softplus`).

    `threshold`: from there on Paddle takes x itself, which is the same number; it is accepted.
    """
    if beta == 1:
        return run("softplus", {"X": x}, name=name)
    return run("softplus", {"X": x * float(beta)}, name=name) * (1.0 / beta)


def maxout(x: Any, groups: int, axis: int = 1, name: str | None = None) -> Any:
    """The largest of each `groups` channels in a row (`paddle.nn.functional.maxout`)."""
    return run("maxout", {"X": x}, attrs={"groups": groups, "axis": axis % len(x.shape)}, name=name)


def prelu(x: Any, weight: Any, data_format: str = "NCHW", name: str | None = None) -> Any:
    """x where it is positive, weight * x elsewhere (`paddle.nn.functional.prelu`).

    `weight` has one element, or one for each channel of `x`.
    """
    one = list(weight.shape) == [1]
    return run("prelu", {"X": x, "Alpha": weight}, attrs={"mode": "all" if one else "channel"}, name=name)


def glu(x: Any, axis: int = -1, name: str | None = None) -> Any:
    """One half of `x` along `axis` times the sigmoid of the other (`paddle.nn.functional.glu`)."""
    value, gate = split(x, 2, axis)
    return value * sigmoid(gate)


def softmax(x: Any, axis: int = -1, dtype: Any = None, name: str | None = None) -> Any:
    """exp(x) divided by its sum along `axis` (`paddle.nn.functional.softmax`). `dtype`: converts `x` first."""
    return run("softmax", {"X": as_dtype(x, dtype)}, attrs={"axis": axis}, name=name)


def log_softmax(x: Any, axis: int = -1, dtype: Any = None, name: str | None = None) -> Any:
    """The logarithm of `softmax`, also for large `x` (`paddle.nn.functional.log_softmax`)."""
    x = as_dtype(x, dtype)
    return x - stat.logsumexp(x, axis, keepdim=True)
