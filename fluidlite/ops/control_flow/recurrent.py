"""`recurrent`, which runs a block once for each step of its inputs, and the operators of its memories."""

from __future__ import annotations

from typing import Any

from .. import batchable, identities
from ..infer import grads_like_inputs, same_as
from ..native import copy
from ..registry import (
    EMPTY,
    Control,
    Effects,
    OpDef,
    OpView,
    Planning,
    Sequences,
    grad_name,
    register,
    standard_grad,
)

DX, DOUT = grad_name("X"), grad_name("Out")


def _shaped_by_the_layer(op: OpView) -> None:
    """Infer nothing: the layer sets the shapes of outputs, those of the block with the time axis in front."""


def _infer_grad(op: OpView) -> None:
    for slot in ("inputs", "initial_states", "parameters"):
        for index, (name, gradient) in enumerate(zip(op.names(slot), op.names(grad_name(slot)), strict=True)):
            if gradient != EMPTY:
                op.set(grad_name(slot), op.meta.shape(name), op.meta.dtype(name), index)


_ATTRS: dict[str, Any] = {
    "has_states": False,
    "ex_states": [],
    "states": [],
    "sub_block": None,
    "reverse": False,
    "is_train": True,
    "skip_eager_deletion_vars": [],
}

register(
    OpDef(
        "recurrent",
        inputs=("inputs*", "initial_states*?", "parameters*?"),
        outputs=("outputs*?", "step_scopes?"),
        attrs=_ATTRS,
        infer=_shaped_by_the_layer,
        no_grad=("step_scopes",),
        sequences=Sequences(source=None),
        effects=Effects(control=Control("recurrent", scopes="step_scopes")),
        doc="Runs a block for each step of inputs, which are stacked along their first axis, and stacks what it makes.",
    )
)
register(
    OpDef(
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
        attrs=_ATTRS,
        infer=_infer_grad,
        sequences=Sequences(source=None),
        effects=Effects(control=Control("recurrent", True, scopes="step_scopes")),
        doc="The gradient of recurrent: runs a block for each step, the last one first.",
    )
)
register(
    OpDef(
        "rnn_memory_helper",
        inputs=("X",),
        attrs={"dtype": 5},
        infer=same_as("X"),
        kernel=lambda xp, X: X,
        grad=standard_grad(inputs=("X",), outputs=("Out",)),
        native=copy("X", "Out"),
        planning=Planning(view=("Out", "X"), batchable=batchable.all_batched, identity=identities.always()),
        doc="X under another name: what a step leaves to the next one, or as a result.",
    )
)
register(
    OpDef(
        "rnn_memory_helper_grad",
        inputs=("X", "Out", DOUT),
        outputs=(DX,),
        attrs={"dtype": 5},
        infer=grads_like_inputs,
        kernel=lambda xp, X, Out_grad: Out_grad,
        native=copy(DOUT, DX),
        planning=Planning(
            view=(DX, DOUT), batchable=batchable.all_batched, identity=identities.always(DX, DOUT)
        ),
        doc="The gradient of rnn_memory_helper.",
    )
)
