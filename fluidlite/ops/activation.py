"""Activations and other functions of one array, element by element, with their gradients.

As in Fluid the gradient operator keeps the output where that is enough and the input otherwise: the gradient
kernel's parameters say which. `square`, `tanh` and the like can be differentiated twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..backend.special import erf
from .infer import grads_like_inputs, same_as
from .native import unary, unary_grad
from .registry import OpDef, OpSpec, OpView, grad_name, register, standard_grad

DOUT, DX = grad_name("Out"), grad_name("X")
Kernel = Callable[..., Any]


def _same_again(op: OpView) -> list[OpSpec]:
    """Second derivative of a piecewise linear function: the gradient operator again."""
    takes = {slot: list(names) for slot, names in op.inputs.items() if slot != DOUT}
    takes[DOUT] = [grad_name(op.name(DX))]
    return [OpSpec(op.type, takes, {DX: [grad_name(op.name(DOUT))]}, dict(op.attrs))]


def _twice(kept: str) -> Callable[[OpView], list[OpSpec]]:
    """The rule that makes `<type>_grad_grad` from a gradient operator that keeps slot `kept`."""

    def rule(op: OpView) -> list[OpSpec]:
        takes = {kept: [op.name(kept)], "DOut": [op.name(DOUT)], "DDX": [grad_name(op.name(DX))]}
        gives = {"D" + kept: [grad_name(op.name(kept))], "DDOut": [grad_name(op.name(DOUT))]}
        return [OpSpec(op.type + "_grad", takes, gives, dict(op.attrs))]

    return rule


def _register_twice(op_type: str, kept: str, grad: Kernel, second: Kernel) -> None:
    """`<type>_grad_grad`: the gradients of `<type>_grad` with respect to what it keeps and to Out@GRAD.

    `second(xp, kept, DOut, DDX)` gives the first; the second is the gradient operator applied to DDX.
    """

    if kept == "X":

        def kernel(xp: Any, X: Any, DOut: Any, DDX: Any) -> Any:
            return second(xp, X, DOut, DDX), grad(xp, X=X, Out_grad=DDX)
    else:

        def kernel(xp: Any, Out: Any, DOut: Any, DDX: Any) -> Any:  # type: ignore[misc]
            return second(xp, Out, DOut, DDX), grad(xp, Out=Out, Out_grad=DDX)

    def infer(op: OpView) -> None:
        op.set("D" + kept, op.shape(kept), op.dtype(kept))
        op.set("DDOut", op.shape("DDX"), op.dtype("DDX"))

    register(
        OpDef(
            op_type + "_grad_grad",
            inputs=(kept, "DOut", "DDX"),
            outputs=("D" + kept, "DDOut"),
            infer=infer,
            kernel=kernel,
            doc=f"Gradients of {op_type}_grad with respect to {kept} and Out@GRAD.",
        )
    )


def _register(
    op_type: str,
    kernel: Kernel,
    grad: Kernel,
    doc: str,
    attrs: dict[str, Any] | None = None,
    native: bool = True,
    linear: bool = False,
    second: Kernel | None = None,
) -> None:
    """Declare `op_type` and `<op_type>_grad`.

    `native`: there are C kernels that take the attributes in this order. `linear`: piecewise linear;
    `second`: the second derivative, see `_register_twice`.
    """
    attrs = attrs or {}
    named = grad.__code__.co_varnames[: grad.__code__.co_argcount]
    kept = next((slot for slot in ("Out", "X") if slot in named), None)
    floats = tuple(attrs)
    register(
        OpDef(
            op_type,
            inputs=("X",),
            attrs=attrs,
            infer=same_as("X"),
            kernel=kernel,
            grad=standard_grad(
                inputs=("X",) if kept == "X" else (), outputs=("Out",) if kept == "Out" else ()
            ),
            native=unary(op_type, floats) if native else None,
            inplace=(("Out", "X"),),
            doc=doc,
        )
    )
    again = _same_again if linear else _twice(kept) if second is not None and kept else None
    register(
        OpDef(
            op_type + "_grad",
            inputs=(kept, DOUT) if kept else (DOUT,),
            outputs=(DX,),
            attrs=attrs,
            infer=grads_like_inputs,
            kernel=grad,
            grad=again,
            native=unary_grad(op_type, floats, out_as_x=op_type == "leaky_relu") if native else None,
            inplace=((DX, DOUT),),
            doc=f"Gradient of {op_type}.",
        )
    )
    if second is not None and kept:
        _register_twice(op_type, kept, grad, second)


def _sigmoid(xp: Any, x: Any) -> Any:
    small = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _softplus(xp: Any, x: Any) -> Any:
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


def _round(xp: Any, x: Any) -> Any:
    """To the nearest integer, halves away from zero."""
    whole = xp.trunc(x)
    return whole + xp.sign(x) * (xp.abs(x - whole) >= 0.5)


def _zero_grad(xp: Any, Out_grad: Any) -> Any:
    return xp.zeros_like(Out_grad)


_register(
    "relu",
    lambda xp, X: xp.maximum(X, 0),
    lambda xp, Out, Out_grad: xp.where(Out > 0, Out_grad, 0),
    "max(x, 0).",
    linear=True,
)
_register(
    "relu6",
    lambda xp, X, threshold: xp.minimum(xp.maximum(X, 0), threshold),
    lambda xp, Out, Out_grad, threshold: xp.where((Out > 0) & (Out < threshold), Out_grad, 0),
    "x cut to the range from 0 to threshold.",
    {"threshold": 6.0},
    linear=True,
)
_register(
    "leaky_relu",
    lambda xp, X, alpha: xp.where(X > 0, X, X * alpha),
    lambda xp, Out, Out_grad, alpha: xp.where(Out > 0, Out_grad, Out_grad * alpha),
    "x where positive, alpha x elsewhere.",
    {"alpha": 0.02},
    linear=True,
)
_register(
    "brelu",
    lambda xp, X, t_min, t_max: xp.minimum(xp.maximum(X, t_min), t_max),
    lambda xp, X, Out_grad, t_min, t_max: xp.where((X > t_min) & (X < t_max), Out_grad, 0),
    "x cut to the range from t_min to t_max.",
    {"t_min": 0.0, "t_max": 24.0},
    native=False,
    linear=True,
)
_register(
    "hard_sigmoid",
    lambda xp, X, slope, offset: xp.minimum(xp.maximum(X * slope + offset, 0), 1),
    lambda xp, Out, Out_grad, slope: xp.where((Out > 0) & (Out < 1), Out_grad * slope, 0),
    "slope x + offset, cut to the range from 0 to 1.",
    {"slope": 0.2, "offset": 0.5},
    linear=True,
)
# `lambda` is what Fluid calls the attribute.
_register(
    "softshrink",
    lambda xp, X, lambda_: xp.where(X > lambda_, X - lambda_, xp.where(X < -lambda_, X + lambda_, 0)),
    lambda xp, X, Out_grad, lambda_: xp.where(xp.abs(X) > lambda_, Out_grad, 0),
    "x moved towards 0 by lambda, 0 within lambda of it.",
    {"lambda": 0.5},
    native=False,
    linear=True,
)
_register(
    "hard_shrink",
    lambda xp, X, threshold: X * (xp.abs(X) > threshold),
    lambda xp, X, Out_grad, threshold: xp.where(xp.abs(X) > threshold, Out_grad, 0),
    "x, but 0 within threshold of 0.",
    {"threshold": 0.5},
    native=False,
    linear=True,
)
_register(
    "thresholded_relu",
    lambda xp, X, threshold: X * (X > threshold),
    lambda xp, X, Out_grad, threshold: xp.where(X > threshold, Out_grad, 0),
    "x where greater than threshold, 0 elsewhere.",
    {"threshold": 1.0},
    native=False,
    linear=True,
)
_register(
    "abs",
    lambda xp, X: xp.abs(X),
    lambda xp, X, Out_grad: Out_grad * xp.sign(X),
    "The absolute value.",
    linear=True,
)
_register("ceil", lambda xp, X: xp.ceil(X), _zero_grad, "The smallest integer not below x.")
_register("floor", lambda xp, X: xp.floor(X), _zero_grad, "The largest integer not above x.")
_register("round", lambda xp, X: _round(xp, X), _zero_grad, "The nearest integer; halves go away from zero.")

_register(
    "sigmoid",
    lambda xp, X: _sigmoid(xp, X),
    lambda xp, Out, Out_grad: Out_grad * Out * (1 - Out),
    "1 / (1 + exp(-x)).",
    second=lambda xp, Out, DOut, DDX: DOut * DDX * (1 - 2 * Out),
)
_register(
    "tanh",
    lambda xp, X: xp.tanh(X),
    lambda xp, Out, Out_grad: Out_grad * (1 - Out * Out),
    "The hyperbolic tangent.",
    second=lambda xp, Out, DOut, DDX: -2 * Out * DOut * DDX,
)
_register(
    "exp",
    lambda xp, X: xp.exp(X),
    lambda xp, Out, Out_grad: Out_grad * Out,
    "e to the power of x.",
    second=lambda xp, Out, DOut, DDX: DOut * DDX,
)
_register(
    "sqrt",
    lambda xp, X: xp.sqrt(X),
    lambda xp, Out, Out_grad: Out_grad * 0.5 / Out,
    "The square root.",
    second=lambda xp, Out, DOut, DDX: -0.5 * DOut * DDX / (Out * Out),
)
_register(
    "square",
    lambda xp, X: X * X,
    lambda xp, X, Out_grad: Out_grad * X * 2,
    "x times x.",
    second=lambda xp, X, DOut, DDX: DOut * DDX * 2,
)
_register(
    "elu",
    lambda xp, X, alpha: xp.where(X > 0, X, alpha * xp.expm1(xp.minimum(X, 0))),
    lambda xp, X, Out_grad, alpha: xp.where(X > 0, Out_grad, Out_grad * alpha * xp.exp(xp.minimum(X, 0))),
    "x where positive, alpha (exp(x) - 1) elsewhere.",
    {"alpha": 1.0},
)
_register(
    "selu",
    lambda xp, X, scale, alpha: scale * xp.where(X > 0, X, alpha * xp.expm1(xp.minimum(X, 0))),
    lambda xp, Out, Out_grad, scale, alpha: Out_grad * xp.where(Out > 0, scale, Out + scale * alpha),
    "scale times x where positive, scale alpha (exp(x) - 1) elsewhere.",
    {"scale": 1.0507009873554805, "alpha": 1.6732632423543772},
    native=False,
)
_register(
    "rsqrt",
    lambda xp, X: 1 / xp.sqrt(X),
    lambda xp, Out, Out_grad: Out_grad * Out * Out * Out * -0.5,
    "1 over the square root.",
)
_register("reciprocal", lambda xp, X: 1 / X, lambda xp, Out, Out_grad: -Out_grad * Out * Out, "1 / x.")
_register("log", lambda xp, X: xp.log(X), lambda xp, X, Out_grad: Out_grad / X, "The natural logarithm.")
_register(
    "log1p",
    lambda xp, X: xp.log1p(X),
    lambda xp, X, Out_grad: Out_grad / (1 + X),
    "The natural logarithm of 1 + x.",
    native=False,
)
_register("sin", lambda xp, X: xp.sin(X), lambda xp, X, Out_grad: Out_grad * xp.cos(X), "The sine.")
_register("cos", lambda xp, X: xp.cos(X), lambda xp, X, Out_grad: -Out_grad * xp.sin(X), "The cosine.")
_register(
    "asin",
    lambda xp, X: xp.arcsin(X),
    lambda xp, X, Out_grad: Out_grad / xp.sqrt(1 - X * X),
    "The inverse of the sine.",
    native=False,
)
_register(
    "acos",
    lambda xp, X: xp.arccos(X),
    lambda xp, X, Out_grad: -Out_grad / xp.sqrt(1 - X * X),
    "The inverse of the cosine.",
    native=False,
)
_register(
    "atan",
    lambda xp, X: xp.arctan(X),
    lambda xp, X, Out_grad: Out_grad / (1 + X * X),
    "The inverse of the tangent.",
    native=False,
)
_register(
    "erf",
    lambda xp, X: erf(xp, X),
    lambda xp, X, Out_grad: Out_grad * xp.exp(-X * X) * (2 / math.sqrt(math.pi)),
    "The error function.",
    native=False,
)
_register(
    "softsign",
    lambda xp, X: X / (1 + xp.abs(X)),
    lambda xp, X, Out_grad: Out_grad / (1 + xp.abs(X)) ** 2,
    "x / (1 + |x|).",
)
_register(
    "softplus",
    lambda xp, X: _softplus(xp, X),
    lambda xp, X, Out_grad: Out_grad * _sigmoid(xp, X),
    "log(1 + exp(x)).",
)
_register(
    "logsigmoid",
    lambda xp, X: -_softplus(xp, -X),
    lambda xp, X, Out_grad: Out_grad * _sigmoid(xp, -X),
    "The logarithm of the sigmoid.",
)


def _soft_relu_grad(xp: Any, Out: Any, Out_grad: Any, threshold: float) -> Any:
    low, high = _softplus(xp, xp.asarray([-threshold, threshold], dtype=Out.dtype))
    return xp.where((Out > low) & (Out < high), Out_grad * -xp.expm1(-Out), 0)


_register(
    "soft_relu",
    lambda xp, X, threshold: _softplus(xp, xp.clip(X, -threshold, threshold)),
    _soft_relu_grad,
    "log(1 + exp(x)) of x cut to the range from -threshold to threshold.",
    {"threshold": 40.0},
    native=False,
)
_register(
    "tanh_shrink",
    lambda xp, X: X - xp.tanh(X),
    lambda xp, X, Out_grad: Out_grad * xp.tanh(X) ** 2,
    "x - tanh(x).",
)
_register(
    "stanh",
    lambda xp, X, scale_a, scale_b: scale_b * xp.tanh(scale_a * X),
    lambda xp, X, Out_grad, scale_a, scale_b: Out_grad * scale_a * scale_b * (1 - xp.tanh(scale_a * X) ** 2),
    "scale_b tanh(scale_a x).",
    {"scale_a": 0.67, "scale_b": 1.7159},
)


def _swish_grad(xp: Any, X: Any, Out_grad: Any, beta: float) -> Any:
    gate = _sigmoid(xp, beta * X)
    return Out_grad * (gate + beta * X * gate * (1 - gate))


_register(
    "swish", lambda xp, X, beta: X * _sigmoid(xp, beta * X), _swish_grad, "x sigmoid(beta x).", {"beta": 1.0}
)


def _hard_swish_grad(xp: Any, X: Any, Out_grad: Any, threshold: float, scale: float, offset: float) -> Any:
    moved = X + offset
    slope = xp.where(moved < threshold, 2 * X + offset, threshold)
    return xp.where(moved > 0, Out_grad * slope / scale, 0)


_register(
    "hard_swish",
    lambda xp, X, threshold, scale, offset: X * xp.minimum(xp.maximum(X + offset, 0), threshold) / scale,
    _hard_swish_grad,
    "x times (x + offset cut to the range from 0 to threshold) / scale.",
    {"threshold": 6.0, "scale": 6.0, "offset": 3.0},
    native=False,
)


def _mish_grad(xp: Any, X: Any, Out_grad: Any) -> Any:
    inner = xp.tanh(_softplus(xp, X))
    return Out_grad * (inner + X * _sigmoid(xp, X) * (1 - inner * inner))


_register(
    "mish",
    lambda xp, X: X * xp.tanh(_softplus(xp, X)),
    _mish_grad,
    "x tanh(softplus(x)).",
    {"threshold": 20.0},
    native=False,
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


_register(
    "gelu",
    _gelu,
    _gelu_grad,
    "x times the normal distribution function of x, or its approximation by tanh.",
    {"approximate": False},
)
