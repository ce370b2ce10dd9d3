"""Activations, element by element, with their gradients and second derivatives."""

from __future__ import annotations

import math
from typing import Any

from ...backend.functions import erf
from ..math.functions import register_function
from ..registry import Effects


def stable_sigmoid(xp: Any, x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    small = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + small), small / (1 + small))


def tanh_sigmoid(xp: Any, x: Any) -> Any:
    """The sigmoid by way of tanh, which rounds differently."""
    half = x.dtype.type(0.5)
    return half * (xp.tanh(half * x) + 1)


def softplus(xp: Any, x: Any) -> Any:
    """log(1 + exp(x)) without overflow."""
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


register_function(
    "relu",
    lambda xp, X: xp.maximum(X, 0),
    lambda xp, Out, Out_grad: xp.where(Out > 0, Out_grad, 0),
    "max(x, 0).",
    linear=True,
    pattern="activation",
)
register_function(
    "relu6",
    lambda xp, X, threshold: xp.minimum(xp.maximum(X, 0), threshold),
    lambda xp, Out, Out_grad, threshold: xp.where((Out > 0) & (Out < threshold), Out_grad, 0),
    "x cut to the range from 0 to threshold.",
    {"threshold": 6.0},
    linear=True,
)
register_function(
    "leaky_relu",
    lambda xp, X, alpha: xp.where(X * alpha > X, X * alpha, X),
    lambda xp, Out, Out_grad, alpha: xp.where(Out > 0, Out_grad, Out_grad * alpha),
    "The larger of x and alpha x.",
    {"alpha": 0.02},
    linear=True,
)
register_function(
    "brelu",
    lambda xp, X, t_min, t_max: xp.minimum(xp.maximum(X, t_min), t_max),
    lambda xp, X, Out_grad, t_min, t_max: xp.where((X > t_min) & (X < t_max), Out_grad, 0),
    "x cut to the range from t_min to t_max.",
    {"t_min": 0.0, "t_max": 24.0},
    linear=True,
)
register_function(
    "hard_sigmoid",
    lambda xp, X, slope, offset: xp.minimum(xp.maximum(X * slope + offset, 0), 1),
    lambda xp, Out, Out_grad, slope: xp.where((Out > 0) & (Out < 1), Out_grad * slope, 0),
    "slope x + offset, cut to the range from 0 to 1.",
    {"slope": 0.2, "offset": 0.5},
    linear=True,
    effects=Effects(numbered=False),
)
# Fluid's attribute is called `lambda`, a keyword.
register_function(
    "softshrink",
    lambda xp, X, lambda_: xp.where(X > lambda_, X - lambda_, xp.where(X < -lambda_, X + lambda_, 0 * X)),
    lambda xp, X, Out_grad, lambda_: xp.where(xp.abs(X) > lambda_, Out_grad, 0),
    "x moved towards 0 by lambda, 0 within lambda of it.",
    {"lambda": 0.5},
    linear=True,
)
register_function(
    "hard_shrink",
    lambda xp, X, threshold: X * (xp.abs(X) > threshold),
    lambda xp, X, Out_grad, threshold: xp.where(xp.abs(X) > threshold, Out_grad, 0),
    "x, but 0 within threshold of 0.",
    {"threshold": 0.5},
    linear=True,
)
register_function(
    "thresholded_relu",
    lambda xp, X, threshold: X * (X > threshold),
    lambda xp, X, Out_grad, threshold: xp.where(X > threshold, Out_grad, 0),
    "x where greater than threshold, 0 elsewhere.",
    {"threshold": 1.0},
    linear=True,
)
register_function(
    "sigmoid",
    lambda xp, X: stable_sigmoid(xp, X),
    lambda xp, Out, Out_grad: Out_grad * Out * (1 - Out),
    "1 / (1 + exp(-x)).",
    second=lambda xp, Out, DOut, DDX: (DOut * DDX * (1 - 2 * Out), DDX * Out * (1 - Out)),
    pattern="activation",
)
register_function(
    "tanh",
    lambda xp, X: xp.tanh(X),
    lambda xp, Out, Out_grad: Out_grad * (1 - Out * Out),
    "The hyperbolic tangent.",
    second=lambda xp, Out, DOut, DDX: (-2 * Out * DOut * DDX, DDX * (1 - Out * Out)),
    pattern="activation",
)


def _elu_double_grad(xp: Any, X: Any, DOut: Any, DDX: Any, alpha: float) -> Any:
    steep = alpha * xp.exp(xp.minimum(X, 0))
    return xp.where(X > 0, 0, DOut * DDX * steep), xp.where(X > 0, DDX, DDX * steep)


register_function(
    "elu",
    lambda xp, X, alpha: xp.where(X > 0, X, alpha * xp.expm1(xp.minimum(X, 0))),
    lambda xp, X, Out_grad, alpha: xp.where(X > 0, Out_grad, Out_grad * alpha * xp.exp(xp.minimum(X, 0))),
    "x where positive, alpha (exp(x) - 1) elsewhere.",
    {"alpha": 1.0},
    second=_elu_double_grad,
    effects=Effects(numbered=False),
)
register_function(
    "selu",
    lambda xp, X, scale, alpha: scale * xp.where(X > 0, X, alpha * xp.expm1(xp.minimum(X, 0))),
    lambda xp, Out, Out_grad, scale, alpha: Out_grad * xp.where(Out > 0, scale, Out + scale * alpha),
    "scale times x where positive, scale alpha (exp(x) - 1) elsewhere.",
    {"scale": 1.0507009873554805, "alpha": 1.6732632423543772},
    second=lambda xp, Out, DOut, DDX, scale, alpha: (
        xp.where(Out > 0, 0, DOut * DDX),
        DDX * xp.where(Out > 0, scale, Out + scale * alpha),
    ),
)
register_function(
    "softsign",
    lambda xp, X: X / (1 + xp.abs(X)),
    lambda xp, X, Out_grad: Out_grad / (1 + xp.abs(X)) ** 2,
    "x / (1 + |x|).",
    second=lambda xp, X, DOut, DDX: (
        -2 * xp.sign(X) * DOut * DDX / (1 + xp.abs(X)) ** 3,
        DDX / (1 + xp.abs(X)) ** 2,
    ),
)
register_function(
    "softplus",
    lambda xp, X: softplus(xp, X),
    lambda xp, X, Out_grad: Out_grad * stable_sigmoid(xp, X),
    "log(1 + exp(x)).",
    second=lambda xp, X, DOut, DDX: (
        DOut * DDX * stable_sigmoid(xp, X) * stable_sigmoid(xp, -X),
        DDX * stable_sigmoid(xp, X),
    ),
)
register_function(
    "logsigmoid",
    lambda xp, X: -softplus(xp, -X),
    lambda xp, X, Out_grad: Out_grad * stable_sigmoid(xp, -X),
    "The logarithm of the sigmoid.",
    second=lambda xp, X, DOut, DDX: (
        -DOut * DDX * stable_sigmoid(xp, X) * stable_sigmoid(xp, -X),
        DDX * stable_sigmoid(xp, -X),
    ),
)


def _soft_relu_bends(Out: Any, threshold: float) -> Any:
    """The mask of nonzero gradients: Fluid compares the output, not the input, with the threshold."""
    return (Out > -threshold) & (Out < threshold)


def _soft_relu_grad(xp: Any, Out: Any, Out_grad: Any, threshold: float) -> Any:
    return xp.where(_soft_relu_bends(Out, threshold), Out_grad * -xp.expm1(-Out), 0)


def _soft_relu_double_grad(xp: Any, Out: Any, DOut: Any, DDX: Any, threshold: float) -> Any:
    return xp.where(_soft_relu_bends(Out, threshold), DOut * DDX * xp.exp(-Out), 0), _soft_relu_grad(
        xp, Out, DDX, threshold
    )


register_function(
    "soft_relu",
    lambda xp, X, threshold: softplus(xp, xp.clip(X, -threshold, threshold)),
    _soft_relu_grad,
    "log(1 + exp(x)) of x cut to the range from -threshold to threshold.",
    {"threshold": 40.0},
    native=False,
    second=_soft_relu_double_grad,
)
register_function(
    "tanh_shrink",
    lambda xp, X: X - xp.tanh(X),
    lambda xp, X, Out_grad: Out_grad * xp.tanh(X) ** 2,
    "x - tanh(x).",
    second=lambda xp, X, DOut, DDX: (
        DOut * DDX * 2 * xp.tanh(X) * (1 - xp.tanh(X) ** 2),
        DDX * xp.tanh(X) ** 2,
    ),
)


def _stanh_double_grad(xp: Any, X: Any, DOut: Any, DDX: Any, scale_a: float, scale_b: float) -> Any:
    inner = xp.tanh(scale_a * X)
    slope = scale_a * scale_b * (1 - inner * inner)
    return DOut * DDX * -2 * scale_a * inner * slope, DDX * slope


register_function(
    "stanh",
    lambda xp, X, scale_a, scale_b: scale_b * xp.tanh(scale_a * X),
    lambda xp, X, Out_grad, scale_a, scale_b: Out_grad * scale_a * scale_b * (1 - xp.tanh(scale_a * X) ** 2),
    "scale_b tanh(scale_a x).",
    {"scale_a": 0.67, "scale_b": 1.7159},
    second=_stanh_double_grad,
)


def _swish_grad(xp: Any, X: Any, Out_grad: Any, beta: float) -> Any:
    gate = stable_sigmoid(xp, beta * X)
    return Out_grad * (gate + beta * X * gate * (1 - gate))


def _swish_double_grad(xp: Any, X: Any, DOut: Any, DDX: Any, beta: float) -> Any:
    gate = stable_sigmoid(xp, beta * X)
    bend = beta * gate * (1 - gate) * (2 + beta * X * (1 - 2 * gate))
    return DOut * DDX * bend, _swish_grad(xp, X, DDX, beta)


register_function(
    "swish",
    lambda xp, X, beta: X * stable_sigmoid(xp, beta * X),
    _swish_grad,
    "x sigmoid(beta x).",
    {"beta": 1.0},
    second=_swish_double_grad,
    effects=Effects(numbered=False),
)
register_function(
    "silu",
    lambda xp, X: X * stable_sigmoid(xp, X),
    lambda xp, X, Out_grad: _swish_grad(xp, X, Out_grad, 1.0),
    "x sigmoid(x).",
    second=lambda xp, X, DOut, DDX: _swish_double_grad(xp, X, DOut, DDX, 1.0),
)


def _hard_swish_grad(xp: Any, X: Any, Out_grad: Any, threshold: float, scale: float, offset: float) -> Any:
    moved = X + offset
    # Fluid takes the slope beyond the threshold for 1, which threshold / scale need not be.
    slope = xp.where(moved >= threshold, 1, (2 * X + offset) / scale)
    return xp.where(moved <= 0, 0, Out_grad * slope)


def _hard_swish_double_grad(
    xp: Any, X: Any, DOut: Any, DDX: Any, threshold: float, scale: float, offset: float
) -> Any:
    moved = X + offset
    bend = ((moved > 0) & (moved < threshold)) * (2 / scale)
    return DOut * DDX * bend, _hard_swish_grad(xp, X, DDX, threshold, scale, offset)


register_function(
    "hard_swish",
    lambda xp, X, threshold, scale, offset: X * xp.minimum(xp.maximum(X + offset, 0), threshold) / scale,
    _hard_swish_grad,
    "x times (x + offset cut to the range from 0 to threshold) / scale.",
    {"threshold": 6.0, "scale": 6.0, "offset": 3.0},
    second=_hard_swish_double_grad,
)


def _cut_softplus(xp: Any, X: Any, threshold: float) -> Any:
    """log(1 + exp(x)), taken for x above the threshold and for exp(x) below its negative."""
    small = xp.exp(xp.minimum(X, 0))
    return xp.where(X > threshold, X, xp.where(X < -threshold, small, softplus(xp, X)))


def _mish_grad(xp: Any, X: Any, Out_grad: Any, threshold: float) -> Any:
    inner = xp.tanh(_cut_softplus(xp, X, threshold))
    return Out_grad * (inner + X * _mish_gate(xp, X, threshold) * (1 - inner * inner))


def _mish_gate(xp: Any, X: Any, threshold: float) -> Any:
    return -xp.expm1(-_cut_softplus(xp, X, threshold))


def _mish_double_grad(xp: Any, X: Any, DOut: Any, DDX: Any, threshold: float) -> Any:
    inner, gate = xp.tanh(_cut_softplus(xp, X, threshold)), _mish_gate(xp, X, threshold)
    open_ = 1 - inner * inner
    bend = open_ * (2 * gate + X * (gate * (1 - gate) - 2 * inner * gate * gate))
    return DOut * DDX * bend, _mish_grad(xp, X, DDX, threshold)


register_function(
    "mish",
    lambda xp, X, threshold: X * xp.tanh(_cut_softplus(xp, X, threshold)),
    _mish_grad,
    "x tanh(softplus(x)).",
    {"threshold": 20.0},
    second=_mish_double_grad,
)

_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBE = 0.044715


def _gelu(xp: Any, X: Any, approximate: bool) -> Any:
    if approximate:
        return 0.5 * X * (1 + xp.tanh(_TANH_SCALE * (X + _TANH_CUBE * X**3)))
    return 0.5 * X * (1 + erf(xp, X * math.sqrt(0.5)))


def _gelu_grad(xp: Any, X: Any, Out_grad: Any, approximate: bool) -> Any:
    if approximate:
        inner = xp.tanh(_TANH_SCALE * (X + _TANH_CUBE * X**3))
        slope = _TANH_SCALE * (1 + 3 * _TANH_CUBE * X * X) * (1 - inner * inner)
        return Out_grad * 0.5 * (1 + inner + X * slope)
    density = xp.exp(-0.5 * X * X) / math.sqrt(2 * math.pi)
    return Out_grad * (0.5 * (1 + erf(xp, X * math.sqrt(0.5))) + X * density)


def _gelu_double_grad(xp: Any, X: Any, DOut: Any, DDX: Any, approximate: bool) -> Any:
    if approximate:
        inner = xp.tanh(_TANH_SCALE * (X + _TANH_CUBE * X**3))
        steep = _TANH_SCALE * (1 + 3 * _TANH_CUBE * X * X)
        slope = (1 - inner * inner) * steep
        curve = (1 - inner * inner) * 6 * _TANH_SCALE * _TANH_CUBE * X - 2 * inner * slope * steep
        bend = slope + 0.5 * X * curve
    else:
        bend = xp.exp(-0.5 * X * X) / math.sqrt(2 * math.pi) * (2 - X * X)
    return DOut * DDX * bend, _gelu_grad(xp, X, DDX, approximate)


register_function(
    "gelu",
    _gelu,
    _gelu_grad,
    "x times the normal distribution function of x, or its approximation by tanh.",
    {"approximate": False},
    second=_gelu_double_grad,
)
