"""Sequences sorted by length: the table of their ranks, and conversion between sequences and arrays of their steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.lod import Lod, freeze
from ...base.rank_table import RankTable
from ...base.tensor_array import TensorArray
from ..grad_pairs import gradient_by, register_pair
from ..infer import same_as
from ..native import bytes_of_row
from ..registry import (
    Call,
    Effects,
    Levels,
    LodArray,
    OperatorError,
    OpView,
    Planning,
    Sequences,
    grad_name,
    register,
)
from ..sequence import Lods, grads_keep_sequences, input_lod, offsets_of, ranges

DX, DOUT = grad_name("X"), grad_name("Out")

_RANKED = {"X": DOUT, "RankTable": "RankTable"}
"""The inputs of gradients of operators on sequences and a rank table."""


def _makes_a_table(op: OpView) -> None:
    """A table has neither shape nor element type."""


def _rank(xp: Any, X: Any, level: int, lod: Lods) -> RankTable:
    deep = input_lod(lod, "X")
    if not 0 <= level < len(deep):
        raise OperatorError(
            f"operator lod_rank_table: cannot rank level {level} of X, which has {len(deep)} levels of sequences: "
            "feed sequences made with fluid.create_lod_tensor"
        )
    return RankTable(deep, level)


register(
    "lod_rank_table",
    inputs=("X",),
    attrs={"level": 0},
    infer=_makes_a_table,
    kernel=_rank,
    no_grad=("Out",),
    sequences=Sequences(takes_lod=True),
    doc="The sequences of one level, sorted by length: the longest first, and of equal ones the first.",
)


def _longest(op: OpView) -> None:
    op.set("Out", (1,), VarType.INT64)


register(
    "max_sequence_len",
    inputs=("RankTable",),
    infer=_longest,
    kernel=lambda xp, RankTable: xp.array([RankTable.longest], "int64"),
    no_grad=("Out",),
    sequences=Sequences(source=None),
    doc="The length of the longest sequence of a rank table: int64 [1].",
)


def _in_order(op_type: str, xp: Any, x: Any, order: np.ndarray, deep: Lod) -> Any:
    """Rows, or sequences of the outermost level, put in this order."""
    count = len(deep[0]) - 1 if deep else len(x)
    if count != len(order):
        raise OperatorError(
            f"operator {op_type}: X has {count} {'sequences' if deep else 'rows'}, but RankTable ranks {len(order)}"
        )
    made = []
    items = order
    for offsets in deep:
        lengths = (offsets[1:] - offsets[:-1])[items]
        made.append(offsets_of(lengths))
        items = ranges(offsets[:-1][items], lengths)
    return LodArray(x.take(xp.asarray(items), axis=0), made)


def _reorder(xp: Any, X: Any, RankTable: RankTable, lod: Lods) -> Any:
    return _in_order("reorder_lod_tensor_by_rank", xp, X, RankTable.order, input_lod(lod, "X"))


def _reorder_grad(xp: Any, X: Any, RankTable: RankTable, lod: Lods) -> Any:
    back = np.empty_like(RankTable.order)
    back[RankTable.order] = np.arange(len(back))
    return _in_order("reorder_lod_tensor_by_rank_grad", xp, X, back, input_lod(lod, "X"))


register(
    "reorder_lod_tensor_by_rank",
    inputs=("X", "RankTable"),
    infer=same_as("X"),
    kernel=_reorder,
    grad=gradient_by("reorder_lod_tensor_by_rank_grad", _RANKED),
    no_grad=("RankTable",),
    sequences=Sequences(takes_lod=True, levels=Levels("X")),
    doc="Rows, or the sequences of X, in the order of a rank table.",
)
register(
    "reorder_lod_tensor_by_rank_grad",
    inputs=("X", "RankTable"),
    infer=same_as("X"),
    kernel=_reorder_grad,
    grad=gradient_by("reorder_lod_tensor_by_rank", _RANKED),
    no_grad=("RankTable",),
    sequences=Sequences(takes_lod=True),
    doc="Rows, or the sequences of X, that are in the order of a rank table, in the order that was ranked.",
)


def _any_rows(op: OpView) -> None:
    op.set("Out", (-1, *op.shape("X")[1:]), op.dtype("X"))


def _split(xp: Any, X: Any, RankTable: RankTable, Out: Any, accumulate: bool, lod: Lods) -> TensorArray:
    order, bounds, lods = _ordered_rows(RankTable, input_lod(lod, "X"))
    rows = X.take(xp.asarray(order), axis=0)
    if not accumulate or Out is None or not len(Out):
        return TensorArray.cut(rows, bounds, lods)
    array: TensorArray = Out
    for step, (first, last) in enumerate(zip(bounds, bounds[1:], strict=False)):
        value = rows[first:last]
        if step < len(array) and array.arrays[step] is not None:
            value = array.arrays[step] + value
        array.write(step, value, lods[step])
    return array


def _ordered_rows(table: RankTable, deep: Lod) -> tuple[np.ndarray, list[int], list[Lod]]:
    """The rows of sequences in the order of steps, where each step begins and the last one ends, and its sequences."""
    level = table.level
    if len(deep) <= level:
        raise OperatorError(
            f"operator lod_tensor_to_array: X has {len(deep)} levels of sequences, but RankTable ranks level {level}: "
            "feed sequences made with fluid.create_lod_tensor"
        )
    items = _items(table, deep[level])
    bounds = table.bounds
    lods: list[Lod] = [()] * table.longest
    for offsets in deep[level + 1 :]:
        lengths = (offsets[1:] - offsets[:-1])[items]
        ends = offsets_of(lengths)
        for step, (first, last) in enumerate(zip(bounds, bounds[1:], strict=False)):
            lods[step] = (*lods[step], freeze(ends[first : last + 1] - ends[first]))
        items = ranges(offsets[:-1][items], lengths)
        bounds = ends[bounds].tolist()
    return items, bounds, lods


def _items(table: RankTable, offsets: np.ndarray) -> np.ndarray:
    """The items of sequences in the order of steps; OperatorError unless they match `table`."""
    if np.array_equal(offsets, table.offsets):
        return table.by_step()
    if len(offsets) != len(table.offsets):
        raise OperatorError(
            f"operator lod_tensor_to_array: X has {len(offsets) - 1} sequences, but RankTable ranks {len(table)}"
        )
    lengths = offsets[1:] - offsets[:-1]
    short = np.flatnonzero(lengths[table.order] < table.lengths)
    if len(short):
        sequence = table.order[short[0]]
        raise OperatorError(
            f"operator lod_tensor_to_array: sequence {sequence} of X has {lengths[sequence]} steps, but "
            f"RankTable has {table.lengths[short[0]]} for it"
        )
    return table.items_of(offsets)


register(
    "lod_tensor_to_array",
    inputs=("X", "RankTable"),
    attrs={"accumulate": False},
    infer=_any_rows,
    kernel=_split,
    grad=gradient_by("array_to_lod_tensor", {**_RANKED, "X_W": "X"}),
    no_grad=("RankTable",),
    sequences=Sequences(takes_lod=True, levels=Levels("X", more=-1)),
    effects=Effects(updates=("Out",)),
    doc="The first step of all ranked sequences, longest first, the second one of those that have two, and so on. "
    "With `accumulate`, as gradients are written, added to what there is.",
)


def _join(xp: Any, X: TensorArray, RankTable: RankTable, X_W: Any, lod: Lods) -> Any:
    if X_W is not None:
        return _join_gradient(xp, X, RankTable, X_W, input_lod(lod, "X_W"))
    if len(X) != RankTable.longest:
        raise OperatorError(
            f"operator array_to_lod_tensor: X has {len(X)} steps, but RankTable has {RankTable.longest}"
        )
    if X.whole is not None and not any(X.lods) and X.bounds == RankTable.bounds and X.lods:
        rows = X.whole.take(xp.asarray(RankTable.places()), axis=0)
        return LodArray(rows, [*RankTable.outer, RankTable.offsets])
    for step, (running, (rows, deep)) in enumerate(zip(RankTable.running, X, strict=True)):
        count = -1 if rows is None else len(deep[0]) - 1 if deep else len(rows)
        if count != running:
            found = "was never written" if rows is None else f"has {count} {'sequences' if deep else 'rows'}"
            raise OperatorError(
                f"operator array_to_lod_tensor: element {step} of X {found}, but {running} sequences have such a step"
            )
    made = [*RankTable.outer, RankTable.offsets]
    items = RankTable.by_step()
    for level in range(len(X.lods[0]) if X.lods else 0):
        lengths = np.concatenate([np.diff(deep[level]) for deep in X.lods])
        ordered = np.empty_like(lengths)
        ordered[items] = lengths
        offsets = offsets_of(ordered)
        made.append(offsets)
        items = ranges(offsets[:-1][items], lengths)
    if not X.arrays:
        return LodArray(_nothing(xp, X), made)
    rows = xp.concatenate(X.arrays)
    out = xp.empty_like(rows)
    out[xp.asarray(items)] = rows
    return LodArray(out, made)


def _nothing(xp: Any, array: TensorArray) -> Any:
    """No rows, in the shape that the elements of `array` would have."""
    shape, dtype = array.like or ((-1,), "float32")
    return xp.zeros((0, *(max(size, 0) for size in shape[1:])), dtype)


def _join_gradient(xp: Any, X: TensorArray, table: RankTable, source: Any, deep: Lod) -> LodArray:
    """The gradient of `source`, which was split into steps; zero for steps without a gradient."""
    order, bounds, _ = _ordered_rows(table, deep)
    if X.whole is not None and order is table.by_step() and len(order) == len(source) and X.bounds == bounds:
        return LodArray(X.whole.take(xp.asarray(table.places()), axis=0), deep)
    out = xp.zeros_like(source)
    if X.arrays and len(X) == table.longest and not any(rows is None for rows in X.arrays):
        out[xp.asarray(order)] = xp.concatenate(X.arrays)
        return LodArray(out, deep)
    for rows, first, last in zip(X.arrays, bounds, bounds[1:], strict=False):
        if rows is not None:
            out[xp.asarray(order[first:last])] = rows
    return LodArray(out, deep)


register(
    "array_to_lod_tensor",
    inputs=("X", "RankTable", "X_W?"),
    infer=same_as("X"),
    kernel=_join,
    grad=gradient_by("lod_tensor_to_array", _RANKED, attrs=lambda op: {"accumulate": True}),
    no_grad=("RankTable", "X_W"),
    sequences=Sequences(takes_lod=True, levels=Levels("X", more=1)),
    doc="The sequences whose steps an array has, in the order that was ranked. With X_W, as gradients are read, as "
    "many rows as there, zero where the array has nothing.",
)


def _shrink(xp: Any, X: Any, RankTable: RankTable, I: Any, lod: Lods) -> Any:  # noqa: E741, N803 - the slot
    running = RankTable.running_at(int(I.reshape(-1)[0]))
    deep = input_lod(lod, "X")
    count = len(deep[0]) - 1 if deep else len(X)
    if count < running:
        raise OperatorError(
            f"operator shrink_rnn_memory: X has {count} {'sequences' if deep else 'rows'}, but {running} sequences "
            "have such a step; was it updated in the step before?"
        )
    rows = running
    made = []
    for level in deep:
        made.append(level[: rows + 1])
        rows = int(level[rows])
    return LodArray(X[:rows], made)


def _shrink_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    if len(Out_grad) == len(X):
        return LodArray(Out_grad, input_lod(lod, "X"))
    dx = xp.empty(X.shape, X.dtype)
    dx[: len(Out_grad)] = Out_grad
    dx[len(Out_grad) :] = 0
    return LodArray(dx, input_lod(lod, "X"))


def _shrink_grad_native(op: OpView) -> Call:
    (rows, *_), (running, *_), row = op.shape("X"), op.shape(DOUT), bytes_of_row(op, "X")
    return Call("slice_grad", [op.name(DOUT), op.name(DX)], [1, 2, rows, row, 0, 0, running, row])


register_pair(
    "shrink_rnn_memory",
    ("X", "RankTable", "I"),
    _shrink,
    _shrink_grad,
    _any_rows,
    "The first rows (or sequences) of X: those of the sequences that have a step number I.",
    keep=("X#",),
    no_grad=("RankTable", "I"),
    sequences=Sequences(takes_lod=True, levels=Levels("X")),
    planning=Planning(pattern="shorten"),
    infer_back=grads_keep_sequences,
    native=(None, _shrink_grad_native),
)
