"""Functions of one Variable, element by element, that need no arguments (or hardly any), and `cumsum`."""

from __future__ import annotations

from ..base import missing
from ..framework import Variable
from ..layer_helper import check_variable, run_op

__all__ = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cumsum",
    "erf",
    "exp",
    "floor",
    "gelu",
    "hard_shrink",
    "logsigmoid",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "softplus",
    "softshrink",
    "softsign",
    "sqrt",
    "square",
    "tanh",
    "tanh_shrink",
    "thresholded_relu",
]


def _applied(op_type: str, x: Variable, name: str | None = None, **attrs: float | bool | None) -> Variable:
    """`op_type` of `x`; attributes that are None keep their defaults."""
    check_variable(x, "x", op_type)
    given = {key: value for key, value in attrs.items() if value is not None}
    return run_op(op_type, {"X": x}, attrs=given, name=name)


def sigmoid(x: Variable, name: str | None = None) -> Variable:
    """1 / (1 + exp(-x)) (`fluid.layers.sigmoid`)."""
    return _applied("sigmoid", x, name)


def logsigmoid(x: Variable, name: str | None = None) -> Variable:
    """log(1 / (1 + exp(-x))) (`fluid.layers.logsigmoid`)."""
    return _applied("logsigmoid", x, name)


def exp(x: Variable, name: str | None = None) -> Variable:
    """e to the power of x (`fluid.layers.exp`)."""
    return _applied("exp", x, name)


def tanh(x: Variable, name: str | None = None) -> Variable:
    """The hyperbolic tangent (`fluid.layers.tanh`)."""
    return _applied("tanh", x, name)


def atan(x: Variable, name: str | None = None) -> Variable:
    """The angle in radians, between -pi/2 and pi/2, whose tangent is x (`fluid.layers.atan`)."""
    return _applied("atan", x, name)


def tanh_shrink(x: Variable, name: str | None = None) -> Variable:
    """x - tanh(x) (`fluid.layers.tanh_shrink`)."""
    return _applied("tanh_shrink", x, name)


def sqrt(x: Variable, name: str | None = None) -> Variable:
    """The square root (`fluid.layers.sqrt`)."""
    return _applied("sqrt", x, name)


def rsqrt(x: Variable, name: str | None = None) -> Variable:
    """1 / sqrt(x) (`fluid.layers.rsqrt`)."""
    return _applied("rsqrt", x, name)


def abs(x: Variable, name: str | None = None) -> Variable:
    """|x| (`fluid.layers.abs`)."""
    return _applied("abs", x, name)


def ceil(x: Variable, name: str | None = None) -> Variable:
    """The smallest integer not below x, in x's type (`fluid.layers.ceil`)."""
    return _applied("ceil", x, name)


def floor(x: Variable, name: str | None = None) -> Variable:
    """The largest integer not above x, in x's type (`fluid.layers.floor`)."""
    return _applied("floor", x, name)


def cos(x: Variable, name: str | None = None) -> Variable:
    """The cosine of x radians (`fluid.layers.cos`)."""
    return _applied("cos", x, name)


def acos(x: Variable, name: str | None = None) -> Variable:
    """The angle in radians, between 0 and pi, whose cosine is x (`fluid.layers.acos`)."""
    return _applied("acos", x, name)


def asin(x: Variable, name: str | None = None) -> Variable:
    """The angle in radians, between -pi/2 and pi/2, whose sine is x (`fluid.layers.asin`)."""
    return _applied("asin", x, name)


def sin(x: Variable, name: str | None = None) -> Variable:
    """The sine of x radians (`fluid.layers.sin`)."""
    return _applied("sin", x, name)


def round(x: Variable, name: str | None = None) -> Variable:
    """The nearest integer in x's type; halves go away from 0 (`fluid.layers.round`)."""
    return _applied("round", x, name)


def reciprocal(x: Variable, name: str | None = None) -> Variable:
    """1 / x (`fluid.layers.reciprocal`)."""
    return _applied("reciprocal", x, name)


def square(x: Variable, name: str | None = None) -> Variable:
    """x * x (`fluid.layers.square`)."""
    return _applied("square", x, name)


def softplus(x: Variable, name: str | None = None) -> Variable:
    """log(1 + exp(x)) (`fluid.layers.softplus`)."""
    return _applied("softplus", x, name)


def softsign(x: Variable, name: str | None = None) -> Variable:
    """x / (1 + |x|) (`fluid.layers.softsign`)."""
    return _applied("softsign", x, name)


def softshrink(x: Variable, alpha: float | None = None) -> Variable:
    """x moved towards 0 by `alpha` (0.5), 0 within `alpha` of it (`fluid.layers.softshrink`)."""
    attrs = {} if alpha is None else {"lambda": alpha}
    return _applied("softshrink", x, None, **attrs)


def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """x, but 0 where |x| <= `threshold` (0.5) (`fluid.layers.hard_shrink`)."""
    return _applied("hard_shrink", x, threshold=threshold)


def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """x where it is greater than `threshold` (1.0), 0 elsewhere (`fluid.layers.thresholded_relu`)."""
    return _applied("thresholded_relu", x, threshold=threshold)


def gelu(x: Variable, approximate: bool = False) -> Variable:
    """x times the normal distribution function of x, or its approximation by tanh (`fluid.layers.gelu`)."""
    return _applied("gelu", x, approximate=approximate)


def erf(x: Variable) -> Variable:
    """The error function (`fluid.layers.erf`)."""
    return _applied("erf", x)


def cumsum(
    x: Variable, axis: int | None = None, exclusive: bool | None = None, reverse: bool | None = None
) -> Variable:
    """The sums along `axis` (the last) up to each element (`fluid.layers.cumsum`).

    `exclusive` leaves out the element itself, `reverse` sums from the end.
    """
    return _applied("cumsum", x, axis=axis, exclusive=exclusive, reverse=reverse)


__getattr__ = missing.reporter(__name__)
