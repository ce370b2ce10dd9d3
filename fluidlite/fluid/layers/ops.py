"""Functions of one Variable, element by element, that need no arguments (or hardly any), and `cumsum`."""

from __future__ import annotations

from typing import Any

from ...framework import Variable
from ..op_functions import run_layer, unary
from .layer_function_generator import generate_layer_fn

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
    return run_layer("softshrink", locals(), **{"lambda": "alpha"})  # type: ignore[arg-type]


def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """x, but 0 where |x| <= `threshold` (0.5) (`fluid.layers.hard_shrink`)."""
    return run_layer("hard_shrink", locals())


def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """x where it is greater than `threshold` (1.0), 0 elsewhere (`fluid.layers.thresholded_relu`)."""
    return run_layer("thresholded_relu", locals())


def gelu(x: Variable, approximate: bool = False) -> Variable:
    """x times the normal distribution function of x, or its approximation by tanh (`fluid.layers.gelu`)."""
    return run_layer("gelu", locals())


def erf(x: Variable) -> Variable:
    """The error function (`fluid.layers.erf`)."""
    return run_layer("erf", locals())


def cumsum(
    x: Variable, axis: int | None = None, exclusive: bool | None = None, reverse: bool | None = None
) -> Variable:
    """The sums along `axis` (the last) up to each element (`fluid.layers.cumsum`).

    `exclusive` leaves out the element itself, `reverse` sums from the end.
    """
    return run_layer("cumsum", locals())


def _scale(*args: Any, **kwargs: Any) -> Variable:
    """The operator `scale` of a Variable, with its attributes."""
    made: Variable = generate_layer_fn("scale")(*args, **kwargs)
    return made
