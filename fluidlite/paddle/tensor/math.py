"""Arithmetic, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import layers
from ...base.dtypes import FLOATS, VarType, to_numpy
from ...framework import Variable
from ..run_mode import as_dtype, constant, operand, reshaped, run

__all__ = [
    "abs",
    "acos",
    "add",
    "add_n",
    "asin",
    "atan",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "cumsum",
    "divide",
    "erf",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "floor_mod",
    "increment",
    "isfinite",
    "isinf",
    "isnan",
    "lerp",
    "log",
    "log10",
    "log1p",
    "log2",
    "maximum",
    "minimum",
    "mod",
    "multiplex",
    "multiply",
    "neg",
    "pow",
    "reciprocal",
    "remainder",
    "round",
    "rsqrt",
    "scale",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "stanh",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]

Unary = Callable[..., Any]


def _unary(name: str, what: str) -> Unary:
    """The function `name` of one tensor, which is the operator of that name."""

    def function(x: Any, name: str | None = None) -> Any:
        return run(op_type, {"X": x}, name=name)

    op_type = name
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what}, element by element, shaped as `x` (`paddle.{name}`)."
    return function


abs = _unary("abs", "The magnitude")  # noqa: A001 - Paddle's name
acos = _unary("acos", "The arc cosine")
asin = _unary("asin", "The arc sine")
atan = _unary("atan", "The arc tangent")
ceil = _unary("ceil", "The next whole number from below")
cos = _unary("cos", "The cosine")
cosh = _unary("cosh", "The hyperbolic cosine")
erf = _unary("erf", "The error function")
exp = _unary("exp", "e to the power of x")
expm1 = _unary("expm1", "e to the power of x, minus 1")
floor = _unary("floor", "The next whole number from above")
log = _unary("log", "The natural logarithm")
log10 = _unary("log10", "The logarithm to base 10")
log1p = _unary("log1p", "The natural logarithm of 1 + x")
log2 = _unary("log2", "The logarithm to base 2")
reciprocal = _unary("reciprocal", "1 / x")
round = _unary("round", "The nearest whole number")  # noqa: A001 - Paddle's name
rsqrt = _unary("rsqrt", "1 / sqrt(x)")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x))")
sign = _unary("sign", "-1, 0 or 1")
sin = _unary("sin", "The sine")
sinh = _unary("sinh", "The hyperbolic sine")
sqrt = _unary("sqrt", "The square root")
square = _unary("square", "x * x")
tan = _unary("tan", "The tangent")
tanh = _unary("tanh", "The hyperbolic tangent")


def neg(x: Any, name: str | None = None) -> Any:
    """-x (`paddle.neg`)."""
    return -x


def trunc(input: Any, name: str | None = None) -> Any:
    """Whole numbers: what is behind the point is dropped (`paddle.trunc`)."""
    return sign(input) * floor(abs(input))


def stanh(x: Any, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Any:
    """scale_b * tanh(scale_a * x) (`paddle.stanh`)."""
    return run("stanh", {"X": x}, attrs={"scale_a": float(scale_a), "scale_b": float(scale_b)}, name=name)


def add(x: Any, y: Any, name: str | None = None) -> Any:
    """x + y (`paddle.add`). Shapes are aligned at their ends, and axes of size 1 repeated, as in NumPy."""
    return x + y


def subtract(x: Any, y: Any, name: str | None = None) -> Any:
    """x - y; shapes as in `add` (`paddle.subtract`)."""
    return x - y


def multiply(x: Any, y: Any, name: str | None = None) -> Any:
    """x * y; shapes as in `add` (`paddle.multiply`)."""
    return x * y


def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """x / y; shapes as in `add` (`paddle.divide`)."""
    return x / y


def floor_divide(x: Any, y: Any, name: str | None = None) -> Any:
    """x // y for integers; shapes as in `add` (`paddle.floor_divide`)."""
    return x // y


def remainder(x: Any, y: Any, name: str | None = None) -> Any:
    """x % y; shapes as in `add` (`paddle.remainder`)."""
    return x % y


mod = floor_mod = remainder


def pow(x: Any, y: Any, name: str | None = None) -> Any:  # noqa: A001 - Paddle's name
    """x to the power of y, a number or tensor; shapes as in `add` (`paddle.pow`)."""
    if isinstance(y, Variable):
        return x**y
    return run("pow", {"X": x}, attrs={"factor": float(y)}, name=name)


def maximum(x: Any, y: Any, name: str | None = None) -> Any:
    """The larger of x and y; shapes as in `add` (`paddle.maximum`)."""
    return run("elementwise_max", {"X": x, "Y": operand(y, x)}, attrs={"axis": -1}, name=name)


def minimum(x: Any, y: Any, name: str | None = None) -> Any:
    """The smaller of x and y; shapes as in `add` (`paddle.minimum`)."""
    return run("elementwise_min", {"X": x, "Y": operand(y, x)}, attrs={"axis": -1}, name=name)


def lerp(x: Any, y: Any, weight: Any, name: str | None = None) -> Any:
    """x + weight * (y - x) (`paddle.lerp`)."""
    return x + (y - x) * weight


def add_n(inputs: Any, name: str | None = None) -> Any:
    """The sum of tensors of one shape (`paddle.add_n`)."""
    return run("sum", {"X": list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]}, name=name)


def scale(
    x: Any,
    scale: Any = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Any:
    """scale * x + bias, or scale * (x + bias) without `bias_after_scale`, then `act` (`paddle.scale`)."""
    return layers.scale(x, scale, bias, bias_after_scale, act, name)


def clip(x: Any, min: Any = None, max: Any = None, name: str | None = None) -> Any:
    """`x` with what is below `min` replaced by that, and what is above `max` by that; None: no limit
    (`paddle.clip`)."""
    limits = np.finfo(np.float32) if x.dtype in FLOATS else np.iinfo(np.int32)
    attrs: dict[str, Any] = {"min": float(limits.min), "max": float(limits.max)}
    inputs = {"X": x}
    for slot, value in (("Min", min), ("Max", max)):
        if isinstance(value, Variable):
            inputs[slot] = value
        elif value is not None:
            attrs[slot.lower()] = float(value)
    return run("clip", inputs, attrs=attrs, name=name)


def increment(x: Any, value: float = 1.0, name: str | None = None) -> Any:
    """Add `value` to the only element of `x`, in place; returns `x` (`paddle.increment`)."""
    return layers.increment(x, value, in_place=True)


def cumsum(x: Any, axis: int | None = None, dtype: Any = None, name: str | None = None) -> Any:
    """Sums of the elements up to each, along `axis`; over the flattened `x` for None (`paddle.cumsum`)."""
    x = as_dtype(x, dtype)
    if axis is None:
        x, axis = reshaped("reshape2", x, {"shape": [-1]}), -1
    return run("cumsum", {"X": x}, attrs={"axis": axis}, name=name)


def multiplex(inputs: Sequence[Any], index: Any, name: str | None = None) -> Any:
    """Row i of the result is row i of `inputs[index[i]]`; `index` is [rows, 1] (`paddle.multiplex`)."""
    return run("multiplex", {"X": list(inputs), "Ids": index}, name=name)


def isnan(x: Any, name: str | None = None) -> Any:
    """Which elements are not a number, bool (`paddle.isnan`)."""
    return x != x


def isfinite(x: Any, name: str | None = None) -> Any:
    """Which elements are neither infinite nor not a number, bool (`paddle.isfinite`)."""
    if x.dtype not in FLOATS:
        return x == x
    return abs(x) <= constant(_largest(x.dtype), x)


def isinf(x: Any, name: str | None = None) -> Any:
    """Which elements are infinite, bool (`paddle.isinf`)."""
    if x.dtype not in FLOATS:
        return x != x
    return abs(x) > constant(_largest(x.dtype), x)


def _largest(kind: VarType) -> float:
    return float(np.finfo(to_numpy(kind)).max)
