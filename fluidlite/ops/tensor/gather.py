"""Operators that read or write rows by index, and operators on `SelectedRows` with helpers for row rules of others.

An index out of range is an error that names the value and the number of rows. While a plan runs, SelectedRows `g`
are two arrays: `g@ROWS`, int64 [n], and `g@VALUES`, [n, width]. Their number of rows is static; a merge fills the
rows that it does not need with -1 and values of 0, and every kernel skips them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...backend.functions import add_at
from ...base.dtypes import VarType, to_numpy
from ...base.selected_rows import SelectedRows
from ...base.sizes import Shape, product
from .. import native
from ..grad_pairs import linear_double_grad, register_pair
from ..infer import may_equal, require_same_dtype, same_as
from ..native import NUMERIC, Selector, itemsize, typed
from ..registry import (
    Call,
    Dispatch,
    Effects,
    OperatorError,
    OpView,
    Planning,
    RowRule,
    Sequences,
    grad_name,
    register,
)
from ..value_checks import forbid, require_in_range

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


ROWS, VALUES = "@ROWS", "@VALUES"


def parts(name: str) -> tuple[str, str]:
    """The arrays that the SelectedRows `name` are in a plan: row numbers, values."""
    return name + ROWS, name + VALUES


def extent(op: OpView, slot: str) -> tuple[int, int, int]:
    """The number of rows, the height and the width of SelectedRows with exact shapes."""
    count, (height, *rest) = op.rows(slot), op.shape(slot)
    assert count is not None
    return count, height, product(tuple(rest))


def copy_call(source: str, target: str, elements: int, dtype: VarType) -> Call:
    """Copy `elements` elements between two arrays of a plan."""
    return Call("copy", [source, target], [elements * to_numpy(dtype).itemsize])


def same_rows(op: OpView, slot: str, out: str) -> Call:
    """`out` is about the rows that `slot` is about."""
    source, target = parts(op.name(slot))[0], parts(op.name(out))[0]
    return copy_call(source, target, extent(op, slot)[0], VarType.INT64)


def merge_call(op: OpView, slot: str, out: str) -> Call | None:
    """Sum the values of equal rows in `slot` into `out`."""
    kernel = native.typed(op, "merge_rows", (slot,))
    if kernel is None:
        return None
    return Call(kernel, [*parts(op.name(slot)), *parts(op.name(out))], list(extent(op, slot)))


def _merge_native(op: OpView) -> list[Call] | None:
    call = merge_call(op, "X", "Out")
    return None if call is None else [call]


register(
    "merge_selected_rows",
    inputs=("X",),
    infer=same_as("X"),
    kernel=lambda xp, X: X,
    dispatch=Dispatch(
        rows=RowRule(lambda xp, X: X.merged(xp), slots=("X",), out="Out", native=_merge_native)
    ),
    doc="SelectedRows with each row once, its values added up; a dense X stays as it is.",
)


def _tensor_shape(op: OpView) -> None:
    count, shape = op.rows("X"), op.shape("X")
    op.set("Out", shape if count is None or count < 0 else (count, *shape[1:]), op.dtype("X"))


def _tensor_native(op: OpView) -> list[Call]:
    count, _, width = extent(op, "X")
    return [copy_call(parts(op.name("X"))[1], op.name("Out"), count * width, op.dtype("X"))]


register(
    "get_tensor_from_selected_rows",
    inputs=("X",),
    infer=_tensor_shape,
    kernel=lambda xp, X: X,
    dispatch=Dispatch(rows=RowRule(lambda xp, X: X.values, slots=("X",), native=_tensor_native)),
    planning=Planning(padding_rows="left"),
    doc="The values of SelectedRows as a tensor, one row for each row held; a dense X stays as it is.",
)


def _dense_native(op: OpView) -> list[Call] | None:
    kernel = native.typed(op, "rows_to_dense", ("X",))
    if kernel is None:
        return None
    return [Call(kernel, [*parts(op.name("X")), op.name("Out")], list(extent(op, "X")))]


register(
    "dense_from_selected_rows",
    inputs=("X",),
    infer=same_as("X"),
    kernel=lambda xp, X: X,
    dispatch=Dispatch(rows=RowRule(lambda xp, X: X.dense(xp), slots=("X",), native=_dense_native)),
    doc="The whole table that SelectedRows stand for. Only plans contain it, before operators that need it.",
)


def _lookup_shape(op: OpView) -> None:
    op.set("Out", (op.shape("Ids")[0], *op.shape("W")[1:]), op.dtype("W"))


def _no_rows(xp: Any, W: Any, Ids: Any, **attrs: Any) -> Any:
    raise OperatorError("operator lookup_sparse_table: the type of W must be SelectedRows, got a tensor")


def places_of(xp: Any, table: SelectedRows, numbers: Any) -> tuple[Any, Any]:
    """The positions of rows in `table`, and a mask of those that it has."""
    if not len(table.rows):
        return xp.zeros(numbers.shape, "int64"), xp.zeros(numbers.shape, bool)
    order = xp.argsort(table.rows, kind="stable")
    places = order[xp.clip(xp.searchsorted(table.rows[order], numbers), 0, len(order) - 1)]
    return places, table.rows[places] == numbers


def _lookup_in_rows(xp: Any, W: SelectedRows, Ids: Any, is_test: bool, auto_grown_table: bool) -> Any:
    ids, count = Ids.reshape(-1), len(W.rows)
    places, found = places_of(xp, W, ids)
    out = xp.zeros((len(ids), *W.values.shape[1:]), W.values.dtype)
    if count:
        out = xp.where(found.reshape(-1, *[1] * (out.ndim - 1)), W.values[places], out)
    if not is_test:
        message = f"operator lookup_sparse_table: selected rows is full: W holds {count}, and has no room for others"
        forbid(~found, message, lambda: f", such as {int(ids[xp.argmin(found)])}")
    return out


register(
    "lookup_sparse_table",
    inputs=("W", "Ids"),
    attrs={"padding_idx": -1, "auto_grown_table": False, "is_test": False},
    infer=_lookup_shape,
    kernel=_no_rows,
    no_grad=("Out",),
    dispatch=Dispatch(rows=RowRule(_lookup_in_rows, slots=("W",))),
    doc="The rows of SelectedRows W that Ids name. One that is not there is zeros if is_test, an error otherwise.",
)


def updated(xp: Any, table: Any, rows: Any, values: Any) -> Any:
    """A copy of `table` with `values` in `rows`, which are all different."""
    out = xp.array(table)
    out[rows] = values
    return out
