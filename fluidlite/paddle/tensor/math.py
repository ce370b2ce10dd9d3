"""Arithmetic, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import FLOATS, VarType, to_numpy
from ...fluid import layers
from ...fluid.op_functions import modern_unary
from ...framework import Variable
from ..modes import as_dtype, constant, operand, reshaped, run

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

abs = modern_unary("abs", api="paddle")  # noqa: A001 - Paddle's name
acos = modern_unary("acos", api="paddle")
asin = modern_unary("asin", api="paddle")
atan = modern_unary("atan", api="paddle")
ceil = modern_unary("ceil", api="paddle")
cos = modern_unary("cos", api="paddle")
cosh = modern_unary("cosh", api="paddle")
erf = modern_unary("erf", api="paddle")
exp = modern_unary("exp", api="paddle")
expm1 = modern_unary("expm1", api="paddle")
floor = modern_unary("floor", api="paddle")
log = modern_unary("log", api="paddle")
log10 = modern_unary("log10", api="paddle")
log1p = modern_unary("log1p", api="paddle")
log2 = modern_unary("log2", api="paddle")
reciprocal = modern_unary("reciprocal", api="paddle")
round = modern_unary("round", api="paddle")  # noqa: A001 - Paddle's name
rsqrt = modern_unary("rsqrt", api="paddle")
sigmoid = modern_unary("sigmoid", api="paddle")
sign = modern_unary("sign", api="paddle")
sin = modern_unary("sin", api="paddle")
sinh = modern_unary("sinh", api="paddle")
sqrt = modern_unary("sqrt", api="paddle")
square = modern_unary("square", api="paddle")
tan = modern_unary("tan", api="paddle")
tanh = modern_unary("tanh", api="paddle")


def neg(x: Any, name: str | None = None) -> Any:
    """-x (`paddle.neg`)."""
    return -x


def trunc(input: Any, name: str | None = None) -> Any:
    """Rounded towards zero (`paddle.trunc`)."""
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
    """`x` limited to the range from `min` to `max`; None: no limit
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
    """True where an element is NaN, bool (`paddle.isnan`)."""
    return x != x


def isfinite(x: Any, name: str | None = None) -> Any:
    """True where an element is neither infinite nor NaN, bool (`paddle.isfinite`)."""
    if x.dtype not in FLOATS:
        return x == x
    return abs(x) <= constant(_largest(x.dtype), x)


def isinf(x: Any, name: str | None = None) -> Any:
    """True where an element is infinite, bool (`paddle.isinf`)."""
    if x.dtype not in FLOATS:
        return x != x
    return abs(x) > constant(_largest(x.dtype), x)


def _largest(kind: VarType) -> float:
    return float(np.finfo(to_numpy(kind)).max)
