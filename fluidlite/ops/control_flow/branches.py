"""Declarations of `conditional_block`, and of operators that select the result of a branch."""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType
from ..infer import same_as
from ..registry import EMPTY, GRAD, Control, Effects, OpDef, OpSpec, OpView, Sequences, grad_name, register

_BLOCK: dict[str, Any] = {"sub_block": None, "is_scalar_condition": False, "skip_eager_deletion_vars": []}


def _infer_block(op: OpView) -> None:
    if op.attr("is_scalar_condition") and op.dtype("Cond") != VarType.BOOL:
        op.refuse(f"its condition {op.name('Cond')!r} must be bool, got {op.dtype('Cond')}")


def _infer_block_grad(op: OpView) -> None:
    """Gradients computed by `minimize` inside of a branch have no outer variables."""
    declares = getattr(op.meta, "declares", lambda name: True)
    for index, (name, gradient) in enumerate(zip(op.names("Input"), op.names("Input@GRAD"), strict=True)):
        if gradient != EMPTY and declares(gradient):
            op.set("Input@GRAD", op.meta.shape(name), op.meta.dtype(name), index)


def _check_mask(op: OpView) -> None:
    if op.dtype("Mask") != VarType.INT32:
        raise op.fail(f"Mask must be int32, got {op.dtype('Mask')}")


def _infer_select(op: OpView) -> None:
    _check_mask(op)
    op.set("Out", op.shape("X"), op.dtype("X"))


def _infer_output(op: OpView) -> None:
    """A gradient has the shape of its variable: the inputs of `select_input` may differ."""
    _check_mask(op)
    for index, name in enumerate(op.names("Out")):
        if GRAD in name:
            source = name.replace("grad/", "").split(GRAD)[0]
            op.set("Out", op.meta.shape(source), op.meta.dtype(source), index)
        else:
            op.set("Out", op.shape("X"), op.dtype("X"), index)


def _select_grad(op: OpView) -> list[OpSpec]:
    inputs = {"X": [grad_name(op.name("Out"))], "Mask": [op.name("Mask")]}
    return [OpSpec("select_output", inputs, {"Out": [grad_name(name) for name in op.names("X")]})]


def _output_grad(op: OpView) -> list[OpSpec]:
    inputs = {"X": [grad_name(name) for name in op.names("Out")], "Mask": [op.name("Mask")]}
    return [OpSpec("select_input", inputs, {"Out": [grad_name(op.name("X"))]})]


for _type in ("conditional_block", "conditional_block_infer"):
    register(
        OpDef(
            _type,
            inputs=("Cond*", "Input*?"),
            outputs=("Out*?", "Scope"),
            attrs=dict(_BLOCK),
            infer=_infer_block,
            no_grad=("Out", "Scope") if _type.endswith("_infer") else (),
            sequences=Sequences(source=None),
            effects=Effects(control=Control("branch", predicate="Cond", reads="Input", scopes="Scope")),
            doc="Runs sub_block if Cond is true; without is_scalar_condition if no Input is empty. Input: what the "
            "block reads from outside; Out: what it writes there.",
        )
    )
register(
    OpDef(
        "conditional_block_grad",
        inputs=("Cond*", "Input*?", "Out*?", "Out@GRAD*?", "Scope"),
        outputs=("Input@GRAD*?",),
        attrs={"sub_block": None, "is_scalar_condition": False},
        infer=_infer_block_grad,
        sequences=Sequences(source=None),
        effects=Effects(control=Control("branch", True, predicate="Cond", reads="Input", scopes="Scope")),
        doc="Gradient of conditional_block: runs sub_block where its block has run, and gives zeros where it has not.",
    )
)
register(
    OpDef(
        "select_input",
        inputs=("X*", "Mask"),
        infer=_infer_select,
        grad=_select_grad,
        no_grad=("Mask",),
        effects=Effects(control=Control()),
        doc="The one of X that Mask numbers; the others need no value.",
    )
)
register(
    OpDef(
        "select_output",
        inputs=("X", "Mask"),
        outputs=("Out*",),
        infer=_infer_output,
        grad=_output_grad,
        no_grad=("Mask",),
        effects=Effects(control=Control()),
        doc="X as the one of Out that Mask numbers; the others get no value.",
    )
)
register(
    OpDef(
        "keep_value",
        inputs=("X",),
        infer=same_as("X"),
        no_grad=("Out",),
        effects=Effects(control=Control()),
        doc="A copy of X for a gradient, none if X has no value yet: what it would be for has not run then.",
    )
)
