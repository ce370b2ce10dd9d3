"""Searching and sorting: indices of extremes, orders, true elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...framework import Variable
from ..modes import constant, reshaped, run
from .manipulation import gather_nd, reshape

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "index_sample",
    "index_select",
    "masked_select",
    "nonzero",
    "sort",
    "topk",
    "where",
]


def _arg(op_type: str, x: Any, axis: int | None, keepdim: bool, dtype: Any, name: str | None) -> Any:
    rank = len(x.shape)
    if axis is None:
        x, axis = reshape(x, [-1]), 0
        found = run(op_type, {"X": x}, attrs={"axis": 0}, name=name, stop_gradient=("Out",))
        found = reshape(found, [1] * rank) if keepdim else found
    else:
        found = run(op_type, {"X": x}, attrs={"axis": axis}, name=name, stop_gradient=("Out",))
        if keepdim and rank > 1:
            found = reshaped("unsqueeze2", found, {"axes": [axis % rank]})
    return found if dtype in ("int64", VarType.INT64) else found.astype(dtype)


def argmax(
    x: Any, axis: int | None = None, keepdim: bool = False, dtype: Any = "int64", name: str | None = None
) -> Any:
    """The index of the first maximum along `axis`; None: of the flattened `x` (`paddle.argmax`)."""
    return _arg("arg_max", x, axis, keepdim, dtype, name)


def argmin(
    x: Any, axis: int | None = None, keepdim: bool = False, dtype: Any = "int64", name: str | None = None
) -> Any:
    """The index of the first minimum along `axis`; None: of the flattened `x` (`paddle.argmin`)."""
    return _arg("arg_min", x, axis, keepdim, dtype, name)


def _ordered(x: Any, axis: int, descending: bool, name: str | None) -> Any:
    attrs = {"axis": axis, "descending": descending}
    return run("argsort", {"X": x}, ("Out", "Indices"), attrs, name, stop_gradient=("Indices",))


def argsort(x: Any, axis: int = -1, descending: bool = False, name: str | None = None) -> Any:
    """The indices that sort along `axis`, int64 (`paddle.argsort`)."""
    return _ordered(x, axis, descending, name)[1]


def sort(x: Any, axis: int = -1, descending: bool = False, name: str | None = None) -> Any:
    """The elements sorted along `axis` (`paddle.sort`)."""
    return _ordered(x, axis, descending, name)[0]


def topk(
    x: Any,
    k: Any,
    axis: int | None = None,
    largest: bool = True,
    sorted: bool = True,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The `k` largest (or smallest) along `axis`, the last by default, in order, and their indices (`paddle.topk`)."""
    rank = len(x.shape)
    axis = rank - 1 if axis is None else axis % rank
    if largest and axis == rank - 1 and not isinstance(k, Variable):
        return run("top_k", {"X": x}, ("Out", "Indices"), {"k": int(k)}, name, stop_gradient=("Indices",))
    values, numbers = _ordered(x, axis, largest, name)
    attrs = {"axes": [axis], "starts": [0], "ends": [int(k)]}
    return run("slice", {"Input": values}, attrs=attrs), run(
        "slice", {"Input": numbers}, attrs=attrs, stop_gradient=("Out",)
    )


def nonzero(x: Any, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero, int64 [count, rank]; `as_tuple`: one [count, 1] for each axis
    (`paddle.nonzero`)."""
    places = run(
        "where_index", {"Condition": x if x.dtype == VarType.BOOL else x != 0}, stop_gradient=("Out",)
    )
    if not as_tuple:
        return places
    return tuple(
        run("slice", {"Input": places}, attrs={"axes": [1], "starts": [axis], "ends": [axis + 1]})
        for axis in range(len(x.shape))
    )


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Elements of `x` where the bool `condition` is true, of `y` elsewhere; without both the places, as `nonzero`
    with `as_tuple` (`paddle.where`)."""
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    if x is None or y is None:
        raise ValueError("paddle.where takes both x and y, or neither")
    known = x if isinstance(x, Variable) else y
    if not isinstance(known, Variable):
        known = constant(np.asarray(x, "float32"), condition, VarType.FP32)
    x, y = (value if isinstance(value, Variable) else constant(value, known) for value in (x, y))
    if list(x.shape) != list(condition.shape) or list(y.shape) != list(condition.shape):
        nothing = constant(0, known)
        whole = x * nothing + y * nothing + condition.astype(known.dtype) * nothing
        x, y, condition = x + whole, y + whole, (condition.astype(known.dtype) + whole).astype(VarType.BOOL)
    return run("where", {"Condition": condition, "X": x, "Y": y}, name=name)


def index_select(x: Any, index: Any, axis: int = 0, name: str | None = None) -> Any:
    """The slices of `x` along `axis` whose numbers are in the vector `index` (`paddle.index_select`)."""
    return run("index_select", {"X": x, "Index": index}, attrs={"dim": axis}, name=name)


def index_sample(x: Any, index: Any) -> Any:
    """From row i of `x` [n, m] the elements whose numbers are in row i of `index` [n, k] (`paddle.index_sample`)."""
    return run("index_sample", {"X": x, "Index": index})


def masked_select(x: Any, mask: Any, name: str | None = None) -> Any:
    """The elements of `x` where the bool `mask` is true, as a vector (`paddle.masked_select`)."""
    return gather_nd(x, nonzero(mask), name)
