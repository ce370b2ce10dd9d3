"""Operators on `SelectedRows`, and helpers for the row rules of other operators.

While a plan runs, SelectedRows `g` are two arrays: `g@ROWS`, int64 [n], and `g@VALUES`, [n, width]. Their number of
rows is static; a merge fills the rows that it does not need with -1 and values of 0, and every kernel skips them.
"""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType, to_numpy
from ...base.selected_rows import SelectedRows
from .. import native
from ..infer import product, same_as
from ..registry import Call, Dispatch, OperatorError, OpView, Planning, RowRule, register
from ..value_checks import forbid

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
