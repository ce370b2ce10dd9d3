"""Declarations of the operators that run blocks - `conditional_block`, `while`, `recurrent` - and of those that select
between branches.
"""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType
from .. import planning_rules
from ..grad_pairs import gradient_by, register_pair
from ..infer import same_as
from ..native import copy
from ..registry import EMPTY, GRAD, Control, Effects, OpView, Planning, Sequences, grad_name, register

DX, DOUT = grad_name("X"), grad_name("Out")

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


for _type in ("conditional_block", "conditional_block_infer"):
    register(
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
register(
    "conditional_block_grad",
    inputs=("Cond*", "Input*?", "Out*?", "Out@GRAD*?", "Scope"),
    outputs=("Input@GRAD*?",),
    attrs={"sub_block": None, "is_scalar_condition": False},
    infer=_infer_block_grad,
    sequences=Sequences(source=None),
    effects=Effects(control=Control("branch", True, predicate="Cond", reads="Input", scopes="Scope")),
    doc="Gradient of conditional_block: runs sub_block where its block has run, and gives zeros where it has not.",
)
register(
    "select_input",
    inputs=("X*", "Mask"),
    infer=_infer_select,
    grad=gradient_by("select_output", {"X": DOUT, "Mask": "Mask"}),
    no_grad=("Mask",),
    effects=Effects(control=Control()),
    doc="The one of X that Mask numbers; the others need no value.",
)
register(
    "select_output",
    inputs=("X", "Mask"),
    outputs=("Out*",),
    infer=_infer_output,
    grad=gradient_by("select_input", {"X": DOUT, "Mask": "Mask"}),
    no_grad=("Mask",),
    effects=Effects(control=Control()),
    doc="X as the one of Out that Mask numbers; the others get no value.",
)
register(
    "keep_value",
    inputs=("X",),
    infer=same_as("X"),
    no_grad=("Out",),
    effects=Effects(control=Control()),
    doc="A copy of X for a gradient, none if X has no value yet: what it would be for has not run then.",
)

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
register(
    "while_grad",
    inputs=("X*?", "Out*?", "Out@GRAD*?", "StepScopes"),
    outputs=("X@GRAD*?",),
    attrs=dict(_ATTRS),
    infer=_infer_grad,
    sequences=Sequences(source=None),
    effects=Effects(control=Control("loop", True, reads="X", scopes="StepScopes")),
    doc="Runs `sub_block`, the gradient of a loop's block, for each of its iterations, the last one first.",
)


def _shaped_by_the_layer(op: OpView) -> None:
    """Infer nothing: the layer sets the shapes of outputs, those of the block with the time axis in front."""


def _recurrent_infer_grad(op: OpView) -> None:
    for slot in ("inputs", "initial_states", "parameters"):
        for index, (name, gradient) in enumerate(zip(op.names(slot), op.names(grad_name(slot)), strict=True)):
            if gradient != EMPTY:
                op.set(grad_name(slot), op.meta.shape(name), op.meta.dtype(name), index)


_RECURRENT_ATTRS: dict[str, Any] = {
    "has_states": False,
    "ex_states": [],
    "states": [],
    "sub_block": None,
    "reverse": False,
    "is_train": True,
    "skip_eager_deletion_vars": [],
}

register(
    "recurrent",
    inputs=("inputs*", "initial_states*?", "parameters*?"),
    outputs=("outputs*?", "step_scopes?"),
    attrs=_RECURRENT_ATTRS,
    infer=_shaped_by_the_layer,
    no_grad=("step_scopes",),
    sequences=Sequences(source=None),
    effects=Effects(control=Control("recurrent", scopes="step_scopes")),
    doc="Runs a block for each step of inputs, which are stacked along their first axis, and stacks what it makes.",
)
register(
    "recurrent_grad",
    inputs=(
        "inputs*",
        "initial_states*?",
        "parameters*?",
        "outputs*?",
        "step_scopes",
        "outputs@GRAD*?",
        "step_scopes@GRAD?",
    ),
    outputs=("inputs@GRAD*?", "initial_states@GRAD*?", "parameters@GRAD*?"),
    attrs=_RECURRENT_ATTRS,
    infer=_recurrent_infer_grad,
    sequences=Sequences(source=None),
    effects=Effects(control=Control("recurrent", True, scopes="step_scopes")),
    doc="The gradient of recurrent: runs a block for each step, the last one first.",
)

register_pair(
    "rnn_memory_helper",
    ("X",),
    lambda xp, X: X,
    lambda xp, X, Out_grad: Out_grad,
    same_as("X"),
    "X under another name: what a step leaves to the next one, or as a result.",
    attrs={"dtype": 5},
    keep_out=("Out",),
    planning=Planning(
        view=("Out", "X"), batchable=planning_rules.all_batched, identity=planning_rules.always()
    ),
    planning_back=Planning(
        view=(DX, DOUT), batchable=planning_rules.all_batched, identity=planning_rules.always(DX, DOUT)
    ),
    native=(copy("X", "Out"), copy(DOUT, DX)),
)
