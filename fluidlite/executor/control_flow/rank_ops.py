"""Operators of plans on rank tables, on the rows of ranked sequences, and on the rows of all steps."""

from __future__ import annotations

from collections.abc import Callable

from ...ops.native import REAL, bytes_of_row, copy, element, numel
from ...ops.registry import Call, Effects, OpDef, OpView, Planning, Sequences
from ..failures import Unsupported


def _infer_rank(op: OpView) -> None:
    levels, meta = op.lod("X"), op.meta
    if len(levels) != 1 or op.attr("level") != 0:
        raise Unsupported("a rank table is not made of sequences of one level")
    meta.ranking.rank(meta, levels[0], op.attr("table"), op.shape("X")[0])


def _infer_in_steps(op: OpView) -> None:
    levels, rows = op.lod("X"), op.shape("Index")[0]
    if len(levels) == 1:
        op.meta.ranking.match(levels[0], op.meta.ranking.tables[op.attr("table")])
    elif levels or not op.attr("gradient"):  # those of gradients are those of their variables
        raise Unsupported(f"variable {op.name('X')!r} has other sequences than the rank table")
    if op.shape("X")[0] != rows:
        raise Unsupported(f"variable {op.name('X')!r} has another row count than the ranked sequences")
    op.set("Out", (rows, *op.shape("X")[1:]), op.dtype("X"))


def _infer_rows(op: OpView) -> None:
    if (
        op.lod("X")
        or op.name("X") in op.meta.iteration_types
        and op.meta.iteration_types[op.name("X")].shape[0] != "n"
    ):
        raise Unsupported(f"variable {op.name('X')!r} has sequences")
    op.set("Out", (op.shape("Index")[0], *op.shape("X")[1:]), op.dtype("X"))


def _infer_in_order(op: OpView) -> None:
    levels, meta, rows = op.lod("X"), op.meta, op.shape("X")[0]
    if len(levels) == 1:
        level = levels[0]
        if not op.attr("gradient"):
            op.carry("Out", (meta.ranking.order(meta, level, op.attr("table"), rows),))
        elif level in meta.ranking.in_order and meta.ranking.in_order[level].table == op.attr("table"):
            op.carry("Out", (meta.ranking.in_order[level].level,))
        else:
            raise Unsupported(f"variable {op.name('X')!r} has sequences in another order")
        op.set("Out", op.shape("X"), op.dtype("X"))
        return
    if levels or rows != op.shape("Index")[0]:
        raise Unsupported(
            f"variable {op.name('X')!r} has several levels, or another length than its rank table"
        )
    _infer_rows(op)


def _infer_sequences(op: OpView) -> None:
    _infer_rows(op)
    op.carry("Out", op.lod("Like") or (op.meta.ranking.tables[op.attr("table")],))


def _gather(op: OpView) -> Call:
    points = op.shape("Index")[0]
    row = bytes_of_row(op, "X")
    return Call(
        "gather_nd.i64", [op.name("X"), op.name("Index"), op.name("Out")], [points, row, op.shape("X")[0]]
    )


def _gather_in_order(op: OpView) -> Call:
    call = _gather(op)
    if not op.lod("X"):
        return call
    offsets = (op.lod("X") if op.attr("gradient") else op.lod("Out"))[0]
    index = offsets.removesuffix("offsets") + ("back" if op.attr("gradient") else "rows")
    rows, row = op.shape("X")[0], bytes_of_row(op, "X")
    return Call(call.kernel, [op.name("X"), index, op.name("Out")], [rows, row, rows])


def _rows(
    name: str, infer: Callable[[OpView], None], doc: str, native: Callable[[OpView], Call] = _gather
) -> OpDef:
    """An operator whose result is the rows of X at Index."""
    return OpDef(
        name,
        inputs=("X", "Index", "Like?#"),
        attrs={"table": "", "gradient": False},
        infer=infer,
        kernel=lambda xp, X, Index: X[Index],
        native=native,
        sequences=Sequences(source=None),
        doc=doc,
    )


RANK = OpDef(
    "rank",
    inputs=("X#",),
    outputs=(),
    attrs={"level": 0, "table": ""},
    infer=_infer_rank,
    kernel=lambda xp, X: None,
    native=lambda op: [],
    effects=Effects(host=True),
    doc="Computes the rank table of X: arrays whose names begin with `table`.",
)
IN_STEPS = _rows("in_steps", _infer_in_steps, "The rows of ranked sequences, step by step.")
SEQUENCES = _rows(
    "sequences", _infer_sequences, "The inverse of `in_steps`: rows, step by step, as sequences."
)
IN_ORDER = _rows(
    "in_order",
    _infer_in_order,
    "Rows or sequences in the order of a rank table, or, for a gradient, back in their own.",
    _gather_in_order,
)
ROWS = _rows("rows_of", _infer_rows, "The rows of X at Index.")


def _infer_zeros(op: OpView) -> None:
    op.set("Out", (op.shape("Index")[op.attr("axis")], *op.shape("X")[1:]), op.dtype("X"))


def _zeros(op: OpView) -> Call:
    suffix = element(op, "Out")
    if suffix not in REAL:
        raise Unsupported(f"the loop-carried gradient {op.name('Out')!r} is not of floats")
    return Call(f"fill.{suffix}", [op.name("Out")], [numel(op, "Out")], [0.0])


ZEROS = OpDef(
    "zeros_of_first",
    inputs=("X#", "Index#"),
    attrs={"axis": 0},
    infer=_infer_zeros,
    kernel=lambda xp, X, Index: xp.zeros((len(Index), *X.shape[1:]), X.dtype),
    native=_zeros,
    sequences=Sequences(source=None),
    doc="Zeros like X, as many rows as Index has along an axis.",
)


def _infer_flat(op: OpView) -> None:
    if len(op.shape("X")) < 2 or op.lod("X") or op.shape("X")[0] == 0:
        raise Unsupported(f"variable {op.name('X')!r} has sequences, or no steps", retryable=True)
    if any(n != wanted for n, wanted in zip(op.shape("X"), op.shape("Like")[:2], strict=False)):
        raise Unsupported(
            f"variable {op.name('X')!r} has not the steps and rows of {op.name('Like')!r}", retryable=True
        )
    steps, rows, *tail = op.shape("X")
    op.set("Out", (steps * rows, *tail), op.dtype("X"))


def _infer_steps(op: OpView) -> None:
    op.set("Out", (*op.shape("Like")[:2], *op.shape("X")[1:]), op.dtype("X"))


FLAT = OpDef(
    "flat",
    inputs=("X", "Like#"),
    infer=_infer_flat,
    kernel=lambda xp, X, Like: X.reshape(-1, *X.shape[2:]),
    native=copy("X", "Out"),
    planning=Planning(view=("Out", "X")),
    doc="The rows of all steps: the first two axes of X as one.",
)
STEPS = OpDef(
    "steps",
    inputs=("X", "Like#"),
    infer=_infer_steps,
    kernel=lambda xp, X, Like: X.reshape(*Like.shape[:2], *X.shape[1:]),
    native=copy("X", "Out"),
    planning=Planning(view=("Out", "X")),
    doc="The inverse of `flat`: the first axis of X as the first two of Like.",
)
