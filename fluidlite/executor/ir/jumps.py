"""What stands around the operators of branches and loops in a plan: jumps, and copies to one place."""

from __future__ import annotations

import math
from typing import Any

from ...base.dtypes import VarType
from ...base.sizes import is_fixed
from ...ops.native import itemsize, numel
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import Call, Effects, OpDef, OpView, Sequences
from .errors import Unsupported


def _infer(op: OpView) -> None:
    shape = op.shape("Cond")
    if op.dtype("Cond") != VarType.BOOL or not is_fixed(shape) or math.prod(shape) != 1:
        raise Unsupported(f"the condition {op.name('Cond')!r} is not one bool")


def _infer_same(op: OpView) -> None:
    source, out = op.name("X"), op.name("Out")
    meta: Any = op.meta
    if meta.has(out) and meta.lod(out) != meta.lod(source):
        raise Unsupported(f"variable {out!r} gets other sequences in a branch")
    op.set("Out", op.shape("X"), op.dtype("X"))
    op.carry("Out", op.lod("X"))


def _infer_selected(op: OpView) -> None:
    shape = op.shape("Mask")
    if op.dtype("Mask") != VarType.INT32 or not is_fixed(shape) or math.prod(shape) != 1:
        raise Unsupported(f"the mask {op.name('Mask')!r} is not one int32")
    for k in range(op.count("X")):
        if op.lod("X", k) != op.lod("X"):
            raise Unsupported(f"variable {op.name('Out')!r} gets other sequences from another branch")
        op.set("Out", op.shape("X", k), op.dtype("X", k))
    op.carry("Out", op.lod("X"))


def _copied(op: OpView) -> Call:
    return Call("copy", [op.name("X"), op.name("Out")], [numel(op, "X") * itemsize(op, "X")])


def by_hand(xp: Any, **slots: Any) -> Any:
    """Stands for the reference kernel of what only plans have."""
    raise NotImplementedError("what stands in plans for blocks and arrays is the engine's")


def _mark(name: str, doc: str, *inputs: str) -> OpDef:
    infer = _infer if inputs else lambda op: None
    return OpDef(
        name, inputs=inputs, outputs=(), infer=infer, kernel=by_hand, effects=Effects(host=True), doc=doc
    )


BEGIN = _mark("branch", "Goes on behind `branch_end` unless Cond.", "Cond")
END = _mark("branch_end", "Where a branch ends.")
LOOP = _mark("loop", "Goes on behind `loop_end` unless Cond, in each turn.", "Cond")
BACK_EDGE = _mark("loop_end", "Goes back to `loop`.")
HOLD = OpDef(
    "hold",
    inputs=("X",),
    infer=_infer_same,
    native=_copied,
    sequences=Sequences(source=None),
    doc="A copy of X.",
)
MERGE = OpDef(
    "merge",
    inputs=("X",),
    infer=_infer_same,
    native=_copied,
    sequences=Sequences(source=None),
    doc="Puts X where Out is, which has a value already if the branch that this stands in may not run.",
)
UNDEFINED = "@UNSET"
"""Stands behind the name of what has a value only if a branch is taken: 0 then, and 1 before."""

ASSERT_DEFINED = OpDef(
    "is_there",
    inputs=("X",),
    outputs=(),
    infer=lambda op: None,
    kernel=by_hand,
    native=lambda op: Call("gather_nd.i64", [op.name("X")] * 3, [1, 8, 1]),  # X[X] is X, if there is one
    effects=Effects(host=True),
    sequences=Sequences(source=None),
    doc="Goes on only if X is 0: what a branch makes that has been taken.",
)
SELECT = OpDef(
    "select_input",
    inputs=("X*", "Mask"),
    infer=_infer_selected,
    native=lambda op: Call(
        "choose",
        [op.name("Out"), op.name("Mask"), *op.names("X")],
        [numel(op, "Out") * itemsize(op, "Out")],
    ),
    sequences=Sequences(source=None),
    doc="The one of X that Mask numbers; the others may hold anything.",
)


def _infer_settle(op: OpView) -> None:
    meta: Any = op.meta
    meta.declare_sizes([], [], [])


STAGE_BARRIER = OpDef(
    "settle",
    inputs=("X",),
    outputs=(),
    infer=_infer_settle,
    kernel=by_hand,
    native=lambda op: Call(RESOLVE_SIZES, [op.name("X")]),
    doc="Stands behind a loop whose turns find sizes: a stage begins here, also where no turn has begun one.",
)


def _infer_nonempty(op: OpView) -> None:
    for k in range(op.count("X")):
        if 0 in op.shape("X", k):
            raise Unsupported(
                f"no row takes this side of the IfElse: {op.name('X', k)!r} is empty", retryable=True
            )


NONEMPTY = OpDef(
    "assert_nonempty",
    inputs=("X*#",),
    outputs=(),
    infer=_infer_nonempty,
    kernel=by_hand,
    native=lambda op: [],
    effects=Effects(host=True),
    doc="Specialises the plan for inputs that have elements: then a block of an IfElse runs.",
)
BEGINS, ENDS = (BEGIN, LOOP), (END, BACK_EDGE)
JUMPS = (*BEGINS, *ENDS)
