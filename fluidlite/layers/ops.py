"""Functions of one Variable, element by element, that need no arguments (or hardly any), and `cumsum`."""

from __future__ import annotations

from ..base import missing
from ..framework import Variable
from ..layer_helper import check_variable, run_op
from ..op_functions import unary

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


sigmoid = unary("sigmoid")
logsigmoid = unary("logsigmoid")
exp = unary("exp")
tanh = unary("tanh")
atan = unary("atan")
tanh_shrink = unary("tanh_shrink")
sqrt = unary("sqrt")
rsqrt = unary("rsqrt")
abs = unary("abs")  # noqa: A001 - Fluid's name
ceil = unary("ceil")
floor = unary("floor")
cos = unary("cos")
acos = unary("acos")
asin = unary("asin")
sin = unary("sin")
round = unary("round")  # noqa: A001 - Fluid's name
reciprocal = unary("reciprocal")
square = unary("square")
softplus = unary("softplus")
softsign = unary("softsign")


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
