"""Cross entropy of independent yes/no questions."""

from __future__ import annotations

from typing import Any

from .. import batchable
from ..grad_pairs import double_grad, register_double_grad
from ..infer import grads_like_inputs, same_shapes
from ..native import numel, typed
from ..registry import Call, Dispatch, Effects, OpDef, OpView, Planning, grad_name, register, standard_grad

DX, DOUT = grad_name("X"), grad_name("Out")


def _answers(xp: Any, label: Any, ignore: int, normalize: bool) -> Any:
    """The weight of each element: 0 if the integer part of its label is `ignore`, else 1.

    With `normalize`, divided by the number of labels other than `ignore`, compared, as in Fluid, with their fractions.
    """
    counts = (xp.trunc(label) != ignore).astype(label.dtype)
    return (
        counts / xp.maximum((label != ignore).sum().astype(label.dtype), label.dtype.type(1e-5))
        if normalize
        else counts
    )


def _sigmoid_cross_entropy(xp: Any, X: Any, Label: Any, normalize: bool, ignore_index: int) -> Any:
    loss = xp.maximum(X, 0) - X * Label + xp.log1p(xp.exp(-xp.abs(X)))
    return loss * _answers(xp, Label, ignore_index, normalize)


def _sigmoid_cross_entropy_grad(
    xp: Any, X: Any, Label: Any, Out_grad: Any, normalize: bool, ignore_index: int
) -> Any:
    half = X.dtype.type(0.5)
    probability = half * (xp.tanh(half * X) + 1)
    return Out_grad * (probability - Label) * _answers(xp, Label, ignore_index, normalize)


def _sigmoid_native(grad: bool) -> Any:
    slots = ("X", "Label", DOUT, DX) if grad else ("X", "Label", "Out")
    kernel = "sigmoid_cross_entropy_with_logits" + ("_grad" if grad else "")

    def select(op: OpView) -> Call | None:
        name = typed(op, kernel, slots[:-1])
        ints = [numel(op, "X"), op.attr("ignore_index"), int(op.attr("normalize"))]
        return None if name is None else Call(name, [op.name(slot) for slot in slots], ints)

    return select


_SIGMOID = {"normalize": False, "ignore_index": -100}

register(
    OpDef(
        "sigmoid_cross_entropy_with_logits",
        inputs=("X", "Label"),
        attrs=_SIGMOID,
        infer=same_shapes("X", "Label"),
        kernel=_sigmoid_cross_entropy,
        grad=standard_grad(inputs=("X", "Label")),
        no_grad=("Label",),
        native=_sigmoid_native(grad=False),
        dispatch=Dispatch(cuda="losses.sigmoid_cross_entropy"),
        effects=Effects(numbered=False),
        planning=Planning(batchable=batchable.unless_normalized, inplace=(("Out", "X"),)),
        doc="The cross entropy of each sigmoid(X) and its Label in [0, 1], element by element.",
    )
)
register(
    OpDef(
        "sigmoid_cross_entropy_with_logits_grad",
        inputs=("X", "Label", DOUT),
        outputs=(DX,),
        attrs=_SIGMOID,
        infer=grads_like_inputs,
        kernel=_sigmoid_cross_entropy_grad,
        grad=double_grad("Out", ("X",)),
        native=_sigmoid_native(grad=True),
        dispatch=Dispatch(cuda="losses.sigmoid_cross_entropy_grad"),
        planning=Planning(batchable=batchable.unless_normalized, inplace=((DX, DOUT),)),
        doc="The gradient of sigmoid_cross_entropy_with_logits for the logits.",
    )
)


def _sigmoid_cross_entropy_double_grad(
    xp: Any, X: Any, Label: Any, DOut: Any, DDX: Any, normalize: bool, ignore_index: int
) -> Any:
    counted = _answers(xp, Label, ignore_index, normalize)
    probability = X.dtype.type(0.5) * (xp.tanh(X.dtype.type(0.5) * X) + 1)
    bend = probability * (1 - probability) * counted
    return DOut * DDX * bend, DDX * (probability - Label) * counted


register_double_grad(
    "sigmoid_cross_entropy_with_logits",
    ("X", "Label"),
    "Out",
    ("X",),
    _sigmoid_cross_entropy_double_grad,
    _SIGMOID,
)
