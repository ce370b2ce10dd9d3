"""modified_huber_loss: a loss of two classes that grows linearly for answers far off (Zhang 2004)."""

from __future__ import annotations

from typing import Any

from ..grad_pairs import register_pair
from ..infer import same_shapes
from ..registry import OpView, Sequences


def _loss(xp: Any, X: Any, Y: Any) -> Any:
    margin = (2 * Y - 1) * X
    return margin, xp.where(margin < -1, -4 * margin, xp.maximum(1 - margin, 0) ** 2)


def _loss_grad(xp: Any, Y: Any, IntermediateVal: Any, Out_grad: Any) -> Any:
    slope = xp.where(IntermediateVal < -1, -4, -2 * xp.maximum(1 - IntermediateVal, 0))
    return (slope * (2 * Y - 1) * Out_grad).astype(Y.dtype)


def _infer(op: OpView) -> None:
    same_shapes("X", "Y")(op)
    op.set("IntermediateVal", op.shape("X"), op.dtype("X"))


register_pair(
    "modified_huber_loss",
    ("X", "Y"),
    _loss,
    _loss_grad,
    _infer,
    "The loss of scores X for classes Y, 0 or 1; IntermediateVal: how far on the right side they are.",
    outputs=("IntermediateVal", "Out"),
    keep=("Y",),
    keep_out=("IntermediateVal",),
    no_grad=("Y", "IntermediateVal"),
    sequences=Sequences(source=None),
)
