"""Losses of predicted probabilities and of yes/no questions: bce_loss, nll_loss, sigmoid_cross_entropy_with_logits,
modified_huber_loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import planning_rules
from ..grad_pairs import register_pair
from ..infer import same_shapes
from ..native import numel, typed_call
from ..registry import Attr, Call, Effects, OpView, Planning, Sequences, grad_name
from ..value_checks import forbid, require_in_range

_FLOOR = -100.0
"""The smallest logarithm that counts."""


def _bce(xp: Any, X: Any, Label: Any) -> Any:
    forbid(
        ~((X >= 0) & (X <= 1)),
        "operator bce_loss: X must hold probabilities in [0, 1]",
        lambda: f", got {float(xp.min(X))} to {float(xp.max(X))}",
    )
    with np.errstate(divide="ignore"):
        floor = X.dtype.type(_FLOOR)
        yes, no = xp.maximum(xp.log(X), floor), xp.maximum(xp.log1p(-X), floor)
    return -(Label * yes + (1 - Label) * no)


def _bce_grad(xp: Any, X: Any, Label: Any, Out_grad: Any) -> Any:
    return Out_grad * (X - Label) / xp.maximum((1 - X) * X, X.dtype.type(1e-12))


register_pair(
    "bce_loss",
    ("X", "Label"),
    _bce,
    _bce_grad,
    same_shapes("X", "Label"),
    "The negative log likelihood of yes/no labels under probabilities; no logarithm is below -100.",
    no_grad=("Label",),
)


def _nll_infer(op: OpView) -> None:
    x, label = op.shape("X"), op.shape("Label")
    if len(x) not in (2, 4):
        raise op.fail(f"X must be [N, C] or [N, C, H, W], got {list(x)}")
    rows = (x[0], *x[2:])
    if (label[:-1] if len(x) == 2 and len(label) == 2 and label[1] == 1 else label) != rows and -1 not in (
        *x,
        *label,
    ):
        raise op.fail(f"Label must be {list(rows)} for X {list(x)}, got {list(label)}")
    if op.has("Weight") and op.shape("Weight") != (x[1],) and x[1] >= 0:
        raise op.fail(f"Weight must be [{x[1]}], one for each class, got {list(op.shape('Weight'))}")
    reduction = op.attr("reduction")
    if reduction not in ("none", "mean", "sum"):
        raise op.fail(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    op.set("Out", rows if reduction == "none" else (1,), op.dtype("X"))
    op.set("Total_weight", (1,), op.dtype("X"))


def _labels_and_weights(xp: Any, X: Any, Label: Any, Weight: Any, ignore_index: int) -> tuple[Any, Any]:
    """The label and the weight of each row, shaped [N] or [N, H, W]; ignored rows have class 0 and weight 0."""
    label = Label.reshape(X.shape[0], *X.shape[2:])
    require_in_range(xp, "nll_loss", "Label", label, X.shape[1], "classes", ignore_index)
    counts = label != ignore_index
    label = xp.where(counts, label, 0)
    weight = X.dtype.type(1) if Weight is None else Weight[label]
    return label, xp.where(counts, weight, X.dtype.type(0))


def _nll(xp: Any, X: Any, Label: Any, Weight: Any, ignore_index: int, reduction: str) -> Any:
    label, weight = _labels_and_weights(xp, X, Label, Weight, ignore_index)
    losses = -weight * xp.take_along_axis(X, label[:, None], axis=1)[:, 0]
    total = weight.sum().reshape(1)
    if reduction == "none":
        return losses, xp.zeros_like(total)  # as in Fluid, which adds nothing up then
    loss = losses.sum().reshape(1)
    return (loss / xp.where(total == 0, 1, total) if reduction == "mean" else loss), total


def _nll_grad(
    xp: Any,
    X: Any,
    Label: Any,
    Weight: Any,
    Total_weight: Any,
    Out_grad: Any,
    ignore_index: int,
    reduction: str,
) -> Any:
    label, weight = _labels_and_weights(xp, X, Label, Weight, ignore_index)
    slope = -weight * Out_grad
    if reduction == "mean":
        slope = slope / xp.where(Total_weight == 0, 1, Total_weight)
    classes = xp.arange(X.shape[1]).reshape(-1, *[1] * (label.ndim - 1))
    return xp.where(label[:, None] == classes, slope[:, None], 0).astype(X.dtype)


_ATTRS = {"ignore_index": Attr(-100, "LONG"), "reduction": "mean"}

register_pair(
    "nll_loss",
    ("X", "Label", "Weight?"),
    _nll,
    _nll_grad,
    _nll_infer,
    "Minus the logarithm of the probability of the right class, taken from X; 'mean' divides by the weights.",
    outputs=("Out", "Total_weight"),
    attrs=_ATTRS,
    keep_out=("Total_weight",),
    no_grad=("Label", "Weight", "Total_weight"),
    sequences=Sequences(source=None),
)

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
    weights = _answers(xp, Label, ignore_index, normalize)
    return xp.where(weights == 0, weights, loss * weights)


def _sigmoid_cross_entropy_grad(
    xp: Any, X: Any, Label: Any, Out_grad: Any, normalize: bool, ignore_index: int
) -> Any:
    half = X.dtype.type(0.5)
    probability = half * (xp.tanh(half * X) + 1)
    return Out_grad * (probability - Label) * _answers(xp, Label, ignore_index, normalize)


def _sigmoid_native(grad: bool) -> Any:
    takes, out = (("X", "Label", DOUT), DX) if grad else (("X", "Label"), "Out")
    kernel = "sigmoid_cross_entropy_with_logits" + ("_grad" if grad else "")

    def select(op: OpView) -> Call | None:
        ints = [numel(op, "X"), op.attr("ignore_index"), int(op.attr("normalize"))]
        return typed_call(op, kernel, takes, (out,), ints)

    return select


_SIGMOID = {"normalize": False, "ignore_index": -100}


def _sigmoid_cross_entropy_double_grad(
    xp: Any, X: Any, Label: Any, DOut: Any, DDX: Any, normalize: bool, ignore_index: int
) -> Any:
    counted = _answers(xp, Label, ignore_index, normalize)
    probability = X.dtype.type(0.5) * (xp.tanh(X.dtype.type(0.5) * X) + 1)
    bend = probability * (1 - probability) * counted
    return DOut * DDX * bend, DDX * (probability - Label) * counted


register_pair(
    "sigmoid_cross_entropy_with_logits",
    ("X", "Label"),
    _sigmoid_cross_entropy,
    _sigmoid_cross_entropy_grad,
    same_shapes("X", "Label"),
    "The cross entropy of each sigmoid(X) and its Label in [0, 1], element by element.",
    attrs=_SIGMOID,
    no_grad=("Label",),
    effects=Effects(numbered=False),
    planning=Planning(batchable=planning_rules.unless_normalized, inplace=(("Out", "X"),)),
    planning_back=Planning(batchable=planning_rules.unless_normalized, inplace=((DX, DOUT),)),
    second=(_sigmoid_cross_entropy_double_grad, ("X",)),
    native=(_sigmoid_native(grad=False), _sigmoid_native(grad=True)),
    cuda=("losses.sigmoid_cross_entropy", "losses.sigmoid_cross_entropy_grad"),
)


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
