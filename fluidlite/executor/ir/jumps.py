"""Control-flow operators of plans: jumps around inlined blocks, phi copies, and checks."""

from __future__ import annotations

import math
from typing import Any

from ...base.dtypes import VarType
from ...base.sizes import is_fixed
from ...ops.native import itemsize, numel
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import Call, Effects, OpDef, OpView, Sequences
from ..failures import Unsupported


def _infer(op: OpView) -> None:
    shape = op.shape("Cond")
    if op.dtype("Cond") != VarType.BOOL or not is_fixed(shape) or math.prod(shape) != 1:
        raise Unsupported(f"the condition {op.name('Cond')!r} is not one bool")


def _infer_same(op: OpView) -> None:
    source, out = op.name("X"), op.name("Out")
    meta: Any = op.meta
    if meta.has(out) and meta.lod(out) != meta.lod(source):
        raise Unsupported(f"variable {out!r} has different sequences in a branch and before it")
    op.set("Out", op.shape("X"), op.dtype("X"))
    op.carry("Out", op.lod("X"))


def _infer_selected(op: OpView) -> None:
    shape = op.shape("Mask")
    if op.dtype("Mask") != VarType.INT32 or not is_fixed(shape) or math.prod(shape) != 1:
        raise Unsupported(f"the mask {op.name('Mask')!r} is not one int32")
    for k in range(op.count("X")):
        if op.lod("X", k) != op.lod("X"):
            raise Unsupported(f"variable {op.name('Out')!r} has different sequences in different branches")
        op.set("Out", op.shape("X", k), op.dtype("X", k))
    op.carry("Out", op.lod("X"))


def _copied(op: OpView) -> Call:
    return Call("copy", [op.name("X"), op.name("Out")], [numel(op, "X") * itemsize(op, "X")])


def no_reference(xp: Any, **slots: Any) -> Any:
    """In the place of the reference kernel of operators that only the engine runs."""
    raise NotImplementedError("control-flow and array operators of plans have no reference kernel")


def _jump(name: str, doc: str, *inputs: str) -> OpDef:
    infer = _infer if inputs else lambda op: None
    return OpDef(
        name, inputs=inputs, outputs=(), infer=infer, kernel=no_reference, effects=Effects(host=True), doc=doc
    )


def _phi_copy(name: str, doc: str) -> OpDef:
    return OpDef(
        name, inputs=("X",), infer=_infer_same, native=_copied, sequences=Sequences(source=None), doc=doc
    )


BEGIN = _jump("branch", "Jumps past `branch_end` unless Cond.", "Cond")
END = _jump("branch_end", "The end of a branch.")
LOOP = _jump("loop", "Jumps past `loop_end` unless Cond, before each iteration.", "Cond")
BACK_EDGE = _jump("loop_end", "Jumps back to `loop`.")
COPY_IN = _phi_copy("copy_in", "Phi copy before a block: Out is the memory that the block updates.")
COPY_OUT = _phi_copy(
    "copy_out", "Phi copy at the end of a block: Out keeps its earlier value if the block does not run."
)
UNDEFINED = "@UNDEF"
"""Suffix of the undefined flag of a variable that only a branch defines: 1 until the branch is taken, then 0."""

ASSERT_DEFINED = OpDef(
    "assert_defined",
    inputs=("X",),
    outputs=(),
    infer=lambda op: None,
    kernel=no_reference,
    native=lambda op: Call(
        "gather_nd.i64", [op.name("X")] * 3, [1, 8, 1]
    ),  # X[X] is out of range unless X is 0
    effects=Effects(host=True),
    sequences=Sequences(source=None),
    doc="Fails unless X, an undefined flag, is 0.",
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
    doc="The one of X that Mask selects; the others may be undefined.",
)


def _infer_barrier(op: OpView) -> None:
    meta: Any = op.meta
    meta.declare_sizes([], [], [])


STAGE_BARRIER = OpDef(
    "stage_barrier",
    inputs=("X",),
    outputs=(),
    infer=_infer_barrier,
    kernel=no_reference,
    native=lambda op: Call(RESOLVE_SIZES, [op.name("X")]),
    doc="Starts a shape stage after a loop with data-dependent sizes, even if it ran zero times.",
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
    kernel=no_reference,
    native=lambda op: [],
    effects=Effects(host=True),
    doc="Specialises the plan for non-empty inputs, for which a block of an IfElse runs.",
)
BEGINS, ENDS = (BEGIN, LOOP), (END, BACK_EDGE)
JUMPS = (*BEGINS, *ENDS)
