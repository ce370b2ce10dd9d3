"""Operators that read or write rows by index, with their gradients.

An index out of range is an error that names the value and the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...backend.functions import add_at
from ...base.dtypes import VarType
from ...base.sizes import Shape, product
from ..grad_pairs import linear_double_grad, register_pair
from ..infer import may_equal, require_same_dtype
from ..native import NUMERIC, Selector, itemsize, typed
from ..registry import Call, Effects, OpView, Planning, Sequences, grad_name
from ..value_checks import require_in_range

DOUT, DX, DUPDATES = grad_name("Out"), grad_name("X"), grad_name("Updates")


def _rows(xp: Any, op_type: str, slot: str, index: Any, size: int) -> Any:
    """`index` as a vector of row numbers; raises OperatorError unless all are in [0, size)."""
    flat = index.reshape(-1)
    require_in_range(xp, op_type, slot, flat, size, "rows")
    return flat


# How `scatter_nd` brings updates to their places.
_OVERWRITES, _ADDS, _REPLACES = 0, 1, 2


def _gather_call(op: OpView, source: str, index: str, target: str, depth: int) -> Call | None:
    """The call that gathers `source` at the points of `index`, of `depth` numbers each, into `target`."""
    name = typed(op, "gather_nd", (index,), ("i32", "i64"))
    if name is None or not depth:
        return None
    x = op.shape(source)
    points = product(op.shape(index)) // depth
    ints = [points, product(x[depth:]) * itemsize(op, source), *x[:depth]]
    return Call(name, [op.name(source), op.name(index), op.name(target)], ints)


def _brought(
    op: OpView, base: str | None, index: str, updates: str, target: str, mode: int, depth: int
) -> Call | None:
    """The call that makes `target` of `base`, or of zeros, by bringing `updates` to the points of `index`."""
    name = typed(op, "scatter_nd", (updates, target) if base is None else (base, updates), NUMERIC)
    if name is None or typed(op, "", (index,), ("i32", "i64")) is None or not depth:
        return None
    shape = op.shape(target)
    points = product(op.shape(index)) // depth
    operands = [None if base is None else op.name(base), op.name(index), op.name(updates), op.name(target)]
    return Call(name, operands, [points, product(shape[depth:]), itemsize(op, index), mode, *shape[:depth]])


def _index(op: OpView) -> Shape:
    """The shape of Index; its element type is checked in a run."""
    if op.exact and op.dtype("Index") not in (VarType.INT32, VarType.INT64):
        raise op.fail(f"Index must be int32 or int64, got {op.dtype('Index')}")
    return op.shape("Index")


def _infer_gather(op: OpView) -> None:
    index, x = _index(op), op.shape("X")
    if len(index) not in (1, 2) or (len(index) == 2 and index[1] != 1):
        raise op.fail(f"Index must be of shape [n] or [n, 1], got {list(index)}")
    if not x:
        raise op.fail("X must have at least one dimension")
    op.set("Out", (index[0], *x[1:]), op.dtype("X"))


def _gather_grad(xp: Any, X: Any, Index: Any, Out_grad: Any, overwrite: bool) -> Any:
    rows = _rows(xp, "gather", "Index", Index, X.shape[0])
    dx = xp.zeros_like(X)
    if overwrite:
        dx[rows] = Out_grad
    else:
        add_at(xp, dx, rows, Out_grad)
    return dx


register_pair(
    "gather",
    ("X", "Index"),
    lambda xp, X, Index: X[_rows(xp, "gather", "Index", Index, X.shape[0])],
    _gather_grad,
    _infer_gather,
    "The rows of X that Index names.",
    attrs={"overwrite": True},
    keep=("X#", "Index"),
    no_grad=("Index",),
    sequences=Sequences(source=None),
    grad_grad=linear_double_grad("gather"),
    native=(
        lambda op: _gather_call(op, "X", "Index", "Out", 1),
        lambda op: _brought(op, None, "Index", DOUT, DX, _OVERWRITES if op.attr("overwrite") else _ADDS, 1),
    ),
)


def _points(xp: Any, op_type: str, Index: Any, shape: Any) -> tuple[Any, ...]:
    """The columns of the last dimension of Index, one for each indexed dimension of an array of `shape`."""
    depth = Index.shape[-1]
    return tuple(
        _rows(xp, op_type, f"Index[..., {k}]", Index[..., k], shape[k]).reshape(Index.shape[:-1])
        for k in range(depth)
    )


def _depth(op: OpView, index: Shape, x: Shape) -> int:
    """How many dimensions of `x` points of an Index of shape `index` name: its last size, 1 while that is unknown."""
    if not index or not -1 <= index[-1] <= len(x):
        raise op.fail(
            f"the last dimension of Index must be between 0 and the {len(x)} of X, got {list(index)}"
        )
    return index[-1] if index[-1] >= 0 else 1


def _infer_gather_nd(op: OpView) -> None:
    index, x = _index(op), op.shape("X")
    depth = _depth(op, index, x)
    op.set("Out", (*index[:-1], *x[depth:]) or (1,), op.dtype("X"))


def _whole(xp: Any, X: Any, Index: Any) -> tuple[Any, Any]:
    """X and Index; for points without numbers, which are all of X, an X of one slice and that slice's number."""
    return (X, Index) if Index.shape[-1] else (X[None], xp.zeros((*Index.shape[:-1], 1), Index.dtype))


def _gather_nd(xp: Any, X: Any, Index: Any) -> Any:
    X, Index = _whole(xp, X, Index)
    out = xp.asarray(X[_points(xp, "gather_nd", Index, X.shape)])
    return out if out.ndim else out.reshape(1)


def _gather_nd_grad(xp: Any, X: Any, Index: Any, Out_grad: Any) -> Any:
    dx = xp.zeros_like(X)
    slices, Index = _whole(xp, dx, Index)
    points = _points(xp, "gather_nd", Index, slices.shape)
    add_at(xp, slices, points, Out_grad.reshape((*Index.shape[:-1], *slices.shape[Index.shape[-1] :])))
    return dx


register_pair(
    "gather_nd",
    ("X", "Index"),
    _gather_nd,
    _gather_nd_grad,
    _infer_gather_nd,
    "The elements or slices of X at the points that the last dimension of Index holds.",
    keep=("X#", "Index"),
    no_grad=("Index",),
    effects=Effects(numbered=False),
    grad_grad=linear_double_grad("gather_nd"),
    native=(
        lambda op: _gather_call(op, "X", "Index", "Out", op.shape("Index")[-1]),
        lambda op: _brought(op, None, "Index", DOUT, DX, _ADDS, op.shape("Index")[-1]),
    ),
)


def _infer_scatter(op: OpView) -> None:
    ids, updates, x = op.shape("Ids"), op.shape("Updates"), op.shape("X")
    if len(ids) not in (1, 2) or (len(ids) == 2 and ids[1] != 1):
        raise op.fail(f"Ids must be of shape [n] or [n, 1], got {list(ids)}")
    if len(updates) != len(x) or (updates[0] != ids[0] and min(updates[0], ids[0]) >= 0):
        raise op.fail(
            f"Updates must have one row for each of the {ids[0]} Ids and X's other sizes, got {list(updates)}"
        )
    require_same_dtype(op, "X", "Updates")
    op.set("Out", x, op.dtype("X"))


def _scatter(xp: Any, X: Any, Ids: Any, Updates: Any, overwrite: bool) -> Any:
    rows = _rows(xp, "scatter", "Ids", Ids, X.shape[0])
    out = X.copy()
    if overwrite:
        out[rows] = Updates
    else:
        out[rows] = 0
        add_at(xp, out, rows, Updates)
    return out


def _scatter_grad(xp: Any, Ids: Any, Out_grad: Any) -> Any:
    return Out_grad, Out_grad[_rows(xp, "scatter", "Ids", Ids, Out_grad.shape[0])]


def _scatter_grad_native(index: str, depth: Callable[[OpView], int]) -> Selector:
    """The gradients of an operator that brings updates to the points of `index`, of `depth` numbers each."""

    def select(op: OpView) -> list[Call] | None:
        taken = _gather_call(op, DOUT, index, DUPDATES, depth(op)) if op.has(DUPDATES) else None
        if op.has(DUPDATES) and taken is None:
            return None
        calls = [taken] if taken else []
        if op.has(DX):
            bytes_ = product(op.shape(DOUT)) * itemsize(op, DOUT)
            calls.append(Call("copy", [op.name(DOUT), op.name(DX)], [bytes_]))
        return calls

    return select


register_pair(
    "scatter",
    ("X", "Ids", "Updates"),
    _scatter,
    _scatter_grad,
    _infer_scatter,
    "X with the rows Ids replaced by Updates, or by the sum of theirs without `overwrite`.",
    attrs={"overwrite": True},
    keep=("Ids", "Updates#"),
    no_grad=("Ids",),
    sequences=Sequences(source=None),
    planning=Planning(inplace=(("Out", "X"),)),
    native=(
        lambda op: _brought(
            op, "X", "Ids", "Updates", "Out", _OVERWRITES if op.attr("overwrite") else _REPLACES, 1
        ),
        _scatter_grad_native("Ids", lambda op: 1),
    ),
)


def _infer_scatter_nd_add(op: OpView) -> None:
    index, updates, x = op.shape("Index"), op.shape("Updates"), op.shape("X")
    depth = _depth(op, index, x)
    wanted = (*index[:-1], *x[depth:])
    if index[-1] >= 0 and not may_equal(updates, wanted):
        raise op.fail(f"Updates must be of shape {list(wanted)}, got {list(updates)}")
    require_same_dtype(op, "X", "Updates")
    op.set("Out", x, op.dtype("X"))


def _scatter_nd_add(xp: Any, X: Any, Index: Any, Updates: Any) -> Any:
    if not Index.shape[-1]:  # each point is all of X
        return X + Updates.sum(axis=tuple(range(Index.ndim - 1)))
    out = X.copy()
    add_at(xp, out, _points(xp, "scatter_nd_add", Index, X.shape), Updates)
    return out


def _scatter_nd_add_grad(xp: Any, Index: Any, Out_grad: Any) -> Any:
    if not Index.shape[-1]:
        return Out_grad, xp.broadcast_to(Out_grad, (*Index.shape[:-1], *Out_grad.shape)).copy()
    return Out_grad, Out_grad[_points(xp, "scatter_nd_add", Index, Out_grad.shape)]


register_pair(
    "scatter_nd_add",
    ("X", "Index", "Updates"),
    _scatter_nd_add,
    _scatter_nd_add_grad,
    _infer_scatter_nd_add,
    "X with Updates added at the points that the last dimension of Index holds.",
    keep=("Index", "Updates#"),
    no_grad=("Index",),
    planning=Planning(inplace=(("Out", "X"),)),
    native=(
        lambda op: _brought(op, "X", "Index", "Updates", "Out", _ADDS, op.shape("Index")[-1]),
        _scatter_grad_native("Index", lambda op: op.shape("Index")[-1]),
    ),
)
