"""Reductions: sums, means, extremes, deviations, along axes or over all."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...eager import Tensor
from ..modes import as_dtype, axes_of, constant, reshaped, run

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "median",
    "min",
    "numel",
    "prod",
    "std",
    "sum",
    "var",
]

Axis = Any
"""A number, several, or None for all axes; negative ones count from the end."""


def _reduced(op_type: str, x: Any, axis: Axis, keepdim: bool, name: str | None = None) -> Any:
    axes = axes_of(axis)
    attrs = {"dim": axes or [0], "keep_dim": keepdim, "reduce_all": not axes}
    return run(op_type, {"X": x}, attrs=attrs, name=name)


def sum(x: Any, axis: Axis = None, dtype: Any = None, keepdim: bool = False, name: str | None = None) -> Any:  # noqa: A001
    """The sum along `axis` (`paddle.sum`).

    Args:
        x: a tensor. Bools and int32 are added up as int64.
        axis: a number, several, or None for all; negative ones count from the end.
        dtype: converts `x` first.
        keepdim: keep the axes with size 1. Without any axis left the result is of shape [1].
        name: the name of the result in a program.
    """
    if dtype is None and x.dtype in (VarType.BOOL, VarType.INT32):
        dtype = VarType.INT64
    return _reduced("reduce_sum", as_dtype(x, dtype), axis, keepdim, name)


def mean(x: Any, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Any:
    """The mean along `axis` (`paddle.mean`); arguments as in `sum`."""
    if axis is None and not keepdim:
        return run("mean", {"X": x}, name=name)
    return _reduced("reduce_mean", x, axis, keepdim, name)


def max(x: Any, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Any:  # noqa: A001
    """The largest along `axis` (`paddle.max`); arguments as in `sum`."""
    return _reduced("reduce_max", x, axis, keepdim, name)


def min(x: Any, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Any:  # noqa: A001
    """The smallest along `axis` (`paddle.min`); arguments as in `sum`."""
    return _reduced("reduce_min", x, axis, keepdim, name)


def prod(x: Any, axis: Axis = None, keepdim: bool = False, dtype: Any = None, name: str | None = None) -> Any:
    """The product along `axis` (`paddle.prod`); arguments as in `sum`."""
    return _reduced("reduce_prod", as_dtype(x, dtype), axis, keepdim, name)


def all(x: Any, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Any:  # noqa: A001
    """Whether all are true along `axis`, bool (`paddle.all`); arguments as in `sum`."""
    return _reduced("reduce_all", as_dtype(x, VarType.BOOL), axis, keepdim, name)


def any(x: Any, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Any:  # noqa: A001
    """Whether any is true along `axis`, bool (`paddle.any`); arguments as in `sum`."""
    return _reduced("reduce_any", as_dtype(x, VarType.BOOL), axis, keepdim, name)


def count_nonzero(x: Any, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Any:
    """How many are not zero along `axis`, int64 (`paddle.count_nonzero`); arguments as in `sum`."""
    return sum(x != 0, axis, VarType.INT64, keepdim, name)


def logsumexp(x: Any, axis: Axis = None, keepdim: bool = False, name: str | None = None) -> Any:
    """log(sum(exp(x))) along `axis`, also for large `x` (`paddle.logsumexp`); arguments as in `sum`."""
    top = max(x, axis, keepdim=True)
    top.stop_gradient = True
    total = run("log", {"X": sum(run("exp", {"X": x - top}), axis, keepdim=keepdim)}, name=name)
    return total + (top if keepdim else max(top, axis))


def var(
    x: Any, axis: Axis = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None
) -> Any:
    """The variance along `axis`: squares divided by n - 1, or by n unless `unbiased` (`paddle.var`)."""
    squares = mean(run("square", {"X": x - mean(x, axis, keepdim=True)}), axis, keepdim, name)
    if not unbiased:
        return squares
    axes = axes_of(axis)
    count = int(np.prod([x.shape[one] for one in axes] if axes else x.shape))
    if count < 0:
        raise ValueError(
            f"the unbiased variance needs to know how many elements there are, got shape {list(x.shape)}"
        )
    return squares * (count / (count - 1)) if count > 1 else squares * float("nan")


def std(
    x: Any, axis: Axis = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None
) -> Any:
    """The standard deviation along `axis`; arguments as in `var` (`paddle.std`)."""
    return run("sqrt", {"X": var(x, axis, unbiased, keepdim)}, name=name)


def median(x: Any, axis: int | None = None, keepdim: bool = False, name: str | None = None) -> Any:
    """The median along `axis`, of two in the middle their mean (`paddle.median`); arguments as in `sum`."""
    rank = len(x.shape)
    if axis is None:
        flat = reshaped("reshape2", x, {"shape": [-1]})
        found = median(flat, 0)
        return reshaped("reshape2", found, {"shape": [1] * rank}) if keepdim else found
    ordered = run("argsort", {"X": x}, ("Out", "Indices"), {"axis": axis})[0]
    size = x.shape[axis]
    attrs = {"axes": [axis % rank], "starts": [(size - 1) // 2], "ends": [size // 2 + 1]}
    return mean(run("slice", {"Input": ordered}, attrs=attrs), axis, keepdim, name)


def numel(x: Any, name: str | None = None) -> Any:
    """How many elements `x` has, int64 of shape [1] (`paddle.numel`)."""
    if isinstance(x, Tensor):
        return constant([x.array.size], x, "int64")
    return run("size", {"Input": x}, name=name, stop_gradient=("Out",))
