"""Operators that look for extremes and sort, and for different elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy, to_vartype
from .. import native, planning_rules
from ..grad_pairs import register_pair
from ..infer import normalize_axis
from ..registry import Attr, Call, Dispatch, Effects, OpView, Planning, Sequences, register


def _arg_infer(op: OpView) -> None:
    shape = op.shape("X")
    axis = normalize_axis(op, op.attr("axis"), len(shape))
    if shape[axis] == 0 and 0 not in (*shape[:axis], *shape[axis + 1 :]):
        raise op.fail(f"there is nothing to compare along dimension {axis} of shape {list(shape)}")
    kept = [*shape[:axis], *([1] if op.attr("keepdims") else []), *shape[axis + 1 :]]
    wanted = op.attr("dtype")
    op.set("Out", kept or [1], VarType.INT64 if wanted < 0 else to_vartype(wanted))


def _arg_kernel(find: str) -> Any:
    def kernel(xp: Any, X: Any, axis: int, keepdims: bool, dtype: int) -> Any:
        if X.dtype.kind == "f":  # NaN is never the best
            X = xp.where(xp.isnan(X), -xp.inf if find == "argmax" else xp.inf, X)
        found = getattr(xp, find)(X, axis=axis)
        if keepdims:
            found = xp.expand_dims(found, axis)
        return found.reshape(found.shape or (1,)).astype(to_numpy(VarType.INT64 if dtype < 0 else dtype))

    return kernel


def _arg_native(kernel: str) -> Any:
    def select(op: OpView) -> Call | None:
        if op.dtype("Out") != VarType.INT64:
            return None
        shape = op.shape("X")
        sizes = native.split_at(shape, op.attr("axis") % len(shape))
        return native.typed_call(op, kernel, ("X",), ("Out",), sizes)

    return select


for _type, _find in (("arg_max", "argmax"), ("arg_min", "argmin")):
    register(
        _type,
        inputs=("X",),
        attrs={"axis": Attr(0, "LONG"), "keepdims": False, "dtype": -1},
        infer=_arg_infer,
        kernel=_arg_kernel(_find),
        no_grad=("Out",),
        native=_arg_native(_type),
        sequences=Sequences(source=None),
        effects=Effects(numbered=False),
        planning=Planning(batchable=planning_rules.along_other_axis),
        doc=f"Where along an axis the {_find[3:]}imum stands; the first place if there are several.",
    )


def _argsort_infer(op: OpView) -> None:
    normalize_axis(op, op.attr("axis"), len(op.shape("X")))
    op.set("Out", op.shape("X"), op.dtype("X"))
    op.set("Indices", op.shape("X"), VarType.INT64)


def _argsort(xp: Any, X: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    if descending:
        # Sorting the reversed tensor, and reversing the result, keeps the order of equal elements.
        last = X.shape[axis] - 1
        order = last - xp.flip(xp.argsort(xp.flip(X, axis), axis=axis, kind="stable"), axis)
    else:
        order = xp.argsort(X, axis=axis, kind="stable")
    return xp.take_along_axis(X, order, axis), order.astype("int64")


def _argsort_grad(xp: Any, X: Any, Indices: Any, Out_grad: Any, axis: int) -> Any:
    return xp.take_along_axis(Out_grad, xp.argsort(Indices, axis=axis), axis)


register_pair(
    "argsort",
    ("X",),
    _argsort,
    _argsort_grad,
    _argsort_infer,
    "X sorted along an axis, and where each element stood; equal elements keep their order.",
    outputs=("Out", "Indices"),
    attrs={"axis": -1, "descending": False},
    keep_out=("Indices",),
    no_grad=("Indices",),
    effects=Effects(numbered=False),
)


def _different(xp: Any, X: Any, dtype: int) -> tuple[Any, Any, Any]:
    """The different elements in the order of their first places, which of them each element is, how often each is."""
    values, first, inverse, counts = xp.unique(
        X.reshape(-1), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = xp.argsort(first)
    rank = xp.argsort(order)
    kind = to_numpy(dtype)
    return values[order], rank[inverse.reshape(-1)].astype(kind), counts[order].astype(kind)


def _different_here(xp: Any, X: np.ndarray, dtype: int) -> tuple[Any, Any, Any]:
    """`_different` by a native kernel."""
    x = np.ascontiguousarray(X).reshape(-1)
    if x.dtype.kind == "f":
        if x.itemsize not in (4, 8) or np.isnan(x).any():  # each NaN is different from all others
            return _different(xp, X, dtype)
        keys = (x + x.dtype.type(0)).view(f"i{x.itemsize}")  # one zero only
    elif x.dtype.kind == "i" and x.itemsize in (4, 8):
        keys = x
    else:
        return _different(xp, X, dtype)
    from ..._ext import kernels  # brings SciPy

    first, index, counts, found = (np.empty(n, np.int64) for n in (x.size, x.size, x.size, 1))
    kernels.call(f"first_places.i{8 * x.itemsize}", [keys, first, index, counts, found], [x.size])
    n, kind = int(found[0]), to_numpy(dtype)
    return x[first[:n]], index.astype(kind, copy=False), counts[:n].astype(kind)


def _infer_unique(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 1:
        raise op.fail(f"X must be a vector, got shape {list(shape)}")
    kind = to_vartype(op.attr("dtype"))
    op.set("Out", (-1,), op.dtype("X"))
    op.set("Index", shape, kind)
    op.set("Count", (-1,), kind)


for _type, _outputs in (("unique", ("Out", "Index")), ("unique_with_counts", ("Out", "Index", "Count"))):

    def _unique(xp: Any, X: Any, dtype: int, *, _count: int = len(_outputs)) -> Any:
        return _different(xp, X, dtype)[:_count]

    def _unique_here(xp: Any, X: Any, dtype: int, *, _count: int = len(_outputs)) -> Any:
        return _different_here(xp, X, dtype)[:_count]

    register(
        _type,
        inputs=("X",),
        outputs=_outputs,
        attrs={"dtype": int(VarType.INT32)},
        infer=_infer_unique,
        kernel=_unique,
        no_grad=_outputs,
        dispatch=Dispatch(numpy=_unique_here),
        sequences=Sequences(source=None),
        doc="The different elements of a vector by first appearance, which one each element is, their counts.",
    )


def _infer_shard(op: OpView) -> None:
    shards, shard = op.attr("nshards"), op.attr("shard_id")
    if op.attr("index_num") < 1 or shards < 1 or not 0 <= shard < shards:
        raise op.fail(
            f"index_num and nshards must be positive and shard_id in [0, nshards), got {op.attr('index_num')}, "
            f"{shards} and {shard}"
        )
    op.set("Out", op.shape("X"), op.dtype("X"))


def _shard_index(xp: Any, X: Any, index_num: int, nshards: int, shard_id: int, ignore_value: int) -> Any:
    size = -(-index_num // nshards)
    return xp.where(X // size == shard_id, X % size, X.dtype.type(ignore_value))


register(
    "shard_index",
    inputs=("X",),
    attrs={"index_num": 0, "nshards": 1, "shard_id": 0, "ignore_value": -1},
    infer=_infer_shard,
    kernel=_shard_index,
    no_grad=("Out",),
    doc="Indices counted from the start of shard shard_id; ignore_value for those of other shards.",
)
register(
    "allclose",
    inputs=("Input", "Other"),
    attrs={"rtol": 1e-5, "atol": 1e-8, "equal_nan": False},
    infer=lambda op: op.set("Out", (1,), VarType.BOOL),
    kernel=lambda xp, Input, Other, rtol, atol, equal_nan: (
        xp.isclose(Input, Other, rtol=rtol, atol=atol, equal_nan=equal_nan).all().reshape(1)
    ),
    no_grad=("Out",),
    sequences=Sequences(source=None),
    doc="Whether no element of Input is farther from that of Other than atol + rtol * |Other|; of shape [1].",
)
