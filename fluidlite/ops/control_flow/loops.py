"""`while`: a block that runs as long as a condition holds. `executor/interpreter/control.py` runs it."""

from __future__ import annotations

from ...base.dtypes import VarType
from ..registry import EMPTY, Control, Effects, OpDef, OpView, Sequences, register

_ATTRS = {"is_test": False, "skip_eager_deletion_vars": []}


def _infer(op: OpView) -> None:
    """Infer nothing: the variables that a block writes are outer ones, with shapes of their own."""
    if op.dtype("Condition") != VarType.BOOL:
        raise op.fail(f"Condition must be bool, got {op.dtype('Condition')}")


def _infer_grad(op: OpView) -> None:
    for index, (name, gradient) in enumerate(zip(op.names("X"), op.names("X@GRAD"), strict=True)):
        if gradient != EMPTY:
            op.set("X@GRAD", op.meta.shape(name), op.meta.dtype(name), index)


register(
    OpDef(
        "while",
        inputs=("X*?", "Condition"),
        outputs=("Out*?", "StepScopes?"),
        attrs=dict(_ATTRS),
        infer=_infer,
        sequences=Sequences(source=None),
        effects=Effects(control=Control("loop", predicate="Condition", reads="X", scopes="StepScopes")),
        doc="Runs `sub_block` while Condition, which the block writes, is true. X: the outer variables that it reads; "
        "Out: those that it writes; StepScopes: values of its iterations stashed for the gradient.",
    )
)
register(
    OpDef(
        "while_grad",
        inputs=("X*?", "Out*?", "Out@GRAD*?", "StepScopes"),
        outputs=("X@GRAD*?",),
        attrs=dict(_ATTRS),
        infer=_infer_grad,
        sequences=Sequences(source=None),
        effects=Effects(control=Control("loop", True, reads="X", scopes="StepScopes")),
        doc="Runs `sub_block`, the gradient of a loop's block, for each of its iterations, the last one first.",
    )
)
