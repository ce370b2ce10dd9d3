"""Losses that compare numbers: of regression, of probabilities, of rankings, of distances to centres."""

from __future__ import annotations

from typing import Any

from ...base.dtypes import attribute
from ..grad_pairs import register_pair
from ..infer import grads_like, same_as, same_shapes
from ..math.functions import sign_of
from ..nn.activation import softplus, tanh_sigmoid
from ..registry import Effects, OpView, Sequences
from ..value_checks import require_in_range


def _log_loss(xp: Any, Predicted: Any, Labels: Any, epsilon: float) -> Any:
    return -Labels * xp.log(Predicted + epsilon) - (1 - Labels) * xp.log(1 - Predicted + epsilon)


def _log_loss_grad(xp: Any, Predicted: Any, Labels: Any, Loss_grad: Any, epsilon: float) -> Any:
    return Loss_grad * ((1 - Labels) / (1 - Predicted + epsilon) - Labels / (Predicted + epsilon))


register_pair(
    "log_loss",
    ("Predicted", "Labels"),
    _log_loss,
    _log_loss_grad,
    same_shapes("Predicted", "Labels", outs=("Loss",)),
    "The negative log likelihood of yes/no labels under predicted probabilities.",
    outputs=("Loss",),
    attrs={"epsilon": 1e-4},
    no_grad=("Labels",),
    sequences=Sequences(source={"Loss": "Predicted"}),
)


def _huber_loss(xp: Any, X: Any, Y: Any, delta: float) -> Any:
    residual = Y - X
    size = xp.abs(residual)
    half = X.dtype.type(0.5)
    return residual, xp.where(size <= delta, half * residual * residual, delta * (size - half * delta))


def _huber_loss_grad(xp: Any, Residual: Any, Out_grad: Any, delta: float) -> Any:
    slope = Out_grad * xp.clip(Residual, -delta, delta)
    return -slope, slope


register_pair(
    "huber_loss",
    ("X", "Y"),
    _huber_loss,
    _huber_loss_grad,
    same_shapes("X", "Y", outs=("Residual", "Out")),
    "Half the squared difference, linear beyond delta.",
    outputs=("Residual", "Out"),
    attrs={"delta": 1.0},
    keep=(),
    keep_out=("Residual",),
    no_grad=("Residual",),
    sequences=Sequences(source={"Out": "X"}),
    effects=Effects(numbered=False),
    infer_back=grads_like(X="Residual", Y="Residual"),
)


def _smooth_l1(xp: Any, X: Any, Y: Any, InsideWeight: Any, OutsideWeight: Any, sigma: float) -> Any:
    diff = X - Y if InsideWeight is None else (X - Y) * InsideWeight
    square = X.dtype.type(sigma * sigma)
    size = xp.abs(diff)
    half = X.dtype.type(0.5)
    loss = xp.where(size < 1 / square, half * square * diff * diff, size - half / square)
    if InsideWeight is not None:
        loss = loss * OutsideWeight
    return diff, loss.reshape(len(X), -1).sum(axis=1, keepdims=True)


def _smooth_l1_grad(
    xp: Any, InsideWeight: Any, OutsideWeight: Any, Diff: Any, Out_grad: Any, sigma: float
) -> Any:
    square = Diff.dtype.type(sigma * sigma)
    slope = xp.where(xp.abs(Diff) < 1 / square, square * Diff, sign_of(xp, Diff))
    slope = slope * Out_grad.reshape(-1, *[1] * (Diff.ndim - 1))
    if InsideWeight is not None:
        slope = slope * InsideWeight * OutsideWeight
    return slope, -slope


def _smooth_l1_infer(op: OpView) -> None:
    same_shapes("X", "Y", outs=("Diff",))(op)
    if op.has("InsideWeight") and not op.has("OutsideWeight"):
        raise op.fail("InsideWeight needs an OutsideWeight")
    op.set("Out", (op.shape("X")[0], 1), op.dtype("X"))


register_pair(
    "smooth_l1_loss",
    ("X", "Y", "InsideWeight?", "OutsideWeight?"),
    _smooth_l1,
    _smooth_l1_grad,
    _smooth_l1_infer,
    "The huber-like loss of box regression, summed over each sample; OutsideWeight needs InsideWeight.",
    outputs=("Diff", "Out"),
    attrs={"sigma": 1.0},
    keep=("InsideWeight", "OutsideWeight"),
    keep_out=("Diff",),
    no_grad=("InsideWeight", "OutsideWeight", "Diff"),
    sequences=Sequences(source=None),
    effects=Effects(numbered=False),
    infer_back=grads_like(X="Diff", Y="Diff"),
)


def _kldiv(xp: Any, X: Any, Target: Any, reduction: str) -> Any:
    safe = xp.where(Target > 0, Target, xp.ones((), Target.dtype))
    loss = xp.where(Target > 0, Target * (xp.log(safe) - X), xp.zeros((), X.dtype))
    if reduction == "none":
        return loss
    return loss.sum().reshape(1) / X.dtype.type(_kldiv_divisor(X, reduction))


def _kldiv_divisor(x: Any, reduction: str) -> int:
    return {"mean": x.size, "batchmean": len(x), "sum": 1, "none": 1}[reduction] or 1


def _kldiv_grad(xp: Any, X: Any, Target: Any, Loss_grad: Any, reduction: str) -> Any:
    share = xp.where(Target > 0, -Target, xp.zeros((), Target.dtype)) / X.dtype.type(
        _kldiv_divisor(X, reduction)
    )
    return share * Loss_grad


def _kldiv_infer(op: OpView) -> None:
    reduction = op.attr("reduction")
    if reduction not in ("none", "mean", "sum", "batchmean"):
        raise op.fail(f"reduction must be 'none', 'mean', 'sum' or 'batchmean', got {reduction!r}")
    if reduction == "none":
        same_shapes("X", "Target", outs=("Loss",))(op)
    else:
        same_shapes("X", "Target", outs=())(op)
        op.set("Loss", (1,), op.dtype("X"))


register_pair(
    "kldiv_loss",
    ("X", "Target"),
    _kldiv,
    _kldiv_grad,
    _kldiv_infer,
    "The Kullback-Leibler divergence of Target from the log probabilities X.",
    outputs=("Loss",),
    attrs={"reduction": "mean"},
    no_grad=("Target",),
    sequences=Sequences(source=None),
    effects=Effects(numbered=False),
)


def _margins(xp: Any, x: Any, label: Any) -> tuple[Any, Any]:
    """The score of each class less that of the row's label, and a mask without the labels themselves."""
    require_in_range(xp, "bpr_loss", "Label", label, x.shape[-1], "classes")
    label = label.reshape(*x.shape[:-1], 1).astype("int64")
    others = (xp.arange(x.shape[-1]) != label).astype(x.dtype)
    return x - xp.take_along_axis(x, label, axis=-1), others


def _bpr(xp: Any, X: Any, Label: Any) -> Any:
    above, others = _margins(xp, X, Label)
    return (softplus(xp, above) * others).sum(axis=-1, keepdims=True) / X.dtype.type(X.shape[-1] - 1)


def _bpr_grad(xp: Any, X: Any, Label: Any, Y_grad: Any) -> Any:
    above, others = _margins(xp, X, Label)
    slope = Y_grad * tanh_sigmoid(xp, above) * others / X.dtype.type(X.shape[-1] - 1)
    return slope - (1 - others) * slope.sum(axis=-1, keepdims=True)


def _bpr_infer(op: OpView) -> None:
    op.set("Y", (*op.shape("X")[:-1], 1), op.dtype("X"))


register_pair(
    "bpr_loss",
    ("X", "Label"),
    _bpr,
    _bpr_grad,
    _bpr_infer,
    "Bayesian personalised ranking: how far the other classes come up to the label's.",
    outputs=("Y",),
    no_grad=("Label",),
    sequences=Sequences(source={"Y": "X"}),
)


def _rank_infer(op: OpView) -> None:
    """Each of the three is [n] or [n, 1]; the loss is like the label."""
    label = op.shape("Label")
    for slot in ("Left", "Right"):
        given = op.shape(slot)
        if label[:1] != given[:1] and min(*label[:1], *given[:1]) >= 0 or {*label[1:], *given[1:]} - {1, -1}:
            raise op.fail(f"{slot} and Label must be [n] or [n, 1], got {list(given)} and {list(label)}")
    op.set("Out", label, op.dtype("Left"))


def _rank(xp: Any, Label: Any, Left: Any, Right: Any) -> Any:
    more = (Left.reshape(-1) - Right.reshape(-1)).reshape(Label.shape)
    return softplus(xp, more) - Label * more


def _rank_grad(xp: Any, Label: Any, Left: Any, Right: Any, Out_grad: Any) -> Any:
    more = Left.reshape(-1) - Right.reshape(-1)
    slope = Out_grad.reshape(-1) * (tanh_sigmoid(xp, more) - Label.reshape(-1))
    return slope.reshape(Left.shape), -slope.reshape(Right.shape)


register_pair(
    "rank_loss",
    ("Label", "Left", "Right"),
    _rank,
    _rank_grad,
    _rank_infer,
    "RankNet's pairwise loss: Label is 1 where Left should rank above Right.",
    no_grad=("Label",),
    sequences=Sequences(source=None),
)


def _margin_rank(xp: Any, X1: Any, X2: Any, Label: Any, margin: float) -> Any:
    loss = xp.maximum(-Label * (X1 - X2) + margin, 0)
    return (loss > 0).astype(X1.dtype), loss


def _margin_rank_grad(xp: Any, Label: Any, Activated: Any, Out_grad: Any) -> Any:
    slope = Out_grad * Label * Activated
    return -slope, slope


register_pair(
    "margin_rank_loss",
    ("X1", "X2", "Label"),
    _margin_rank,
    _margin_rank_grad,
    same_shapes("X1", "X2", outs=("Activated", "Out")),
    "How far X1 fails to lie `margin` above X2 (Label 1) or below it (Label -1).",
    outputs=("Activated", "Out"),
    attrs={"margin": 0.0},
    keep=("Label",),
    keep_out=("Activated",),
    no_grad=("Label", "Activated"),
    sequences=Sequences(source=None),
    infer_back=grads_like(X1="Activated", X2="Activated"),
)


def _hinge(xp: Any, Logits: Any, Labels: Any) -> Any:
    return xp.maximum(1 - Logits * (2 * Labels - 1), 0)


def _hinge_grad(xp: Any, Logits: Any, Labels: Any, Loss_grad: Any) -> Any:
    sign = 2 * Labels - 1
    return xp.where(1 - Logits * sign > 0, -sign * Loss_grad, xp.zeros((), Logits.dtype))


register_pair(
    "hinge_loss",
    ("Logits", "Labels"),
    _hinge,
    _hinge_grad,
    same_shapes("Logits", "Labels", outs=("Loss",)),
    "How far Logits fail to lie 1 beyond zero on the side that Labels (0 or 1) say.",
    outputs=("Loss",),
    no_grad=("Labels",),
    sequences=Sequences(source={"Loss": "Logits"}),
)


def _label_smooth(xp: Any, X: Any, PriorDist: Any, epsilon: float) -> Any:
    prior = X.dtype.type(1.0 / X.shape[-1]) if PriorDist is None else PriorDist.reshape(-1)
    return X.dtype.type(attribute(1 - epsilon)) * X + X.dtype.type(epsilon) * prior


def _label_smooth_grad(xp: Any, Out_grad: Any, epsilon: float) -> Any:
    return Out_grad * Out_grad.dtype.type(attribute(1 - epsilon))


register_pair(
    "label_smooth",
    ("X", "PriorDist?"),
    _label_smooth,
    _label_smooth_grad,
    same_as("X"),
    "Labels mixed with a prior distribution, uniform unless given.",
    attrs={"epsilon": 0.0},
    keep=(),
    no_grad=("PriorDist",),
    sequences=Sequences(source={"Out": "X"}),
)


def _teacher_student(xp: Any, X: Any, Label: Any) -> Any:
    base = softplus(xp, X)
    clicked = (Label >= -1) & (Label < 0) | (Label >= 1)
    teacher = xp.where(Label < 0, xp.zeros((), X.dtype), base - X * (Label - (Label >= 1).astype(X.dtype)))
    return base - xp.where(clicked, X, xp.zeros((), X.dtype)) + teacher


def _teacher_student_grad(
    xp: Any, X: Any, Label: Any, Y_grad: Any, soft_max_up_bound: float, soft_max_lower_bound: float
) -> Any:
    total = xp.clip(X, soft_max_lower_bound, soft_max_up_bound)
    probability = tanh_sigmoid(xp, total)
    clicked = ((Label >= -1) & (Label < 0) | (Label >= 1)).astype(X.dtype)
    teacher = xp.where(Label < 0, xp.zeros((), X.dtype), probability - (Label - (Label >= 1).astype(X.dtype)))
    outside = (X < soft_max_lower_bound) | (X > soft_max_up_bound)  # NaN is neither inside nor outside
    return Y_grad * xp.where(outside, xp.zeros((), X.dtype), probability - clicked + teacher)


register_pair(
    "teacher_student_sigmoid_loss",
    ("X", "Label"),
    _teacher_student,
    _teacher_student_grad,
    same_shapes("X", "Label", outs=("Y",)),
    "Click prediction with a teacher: Label is -2 or -1 (click) without a teacher's score, score or 1 + "
    "score with one.",
    outputs=("Y",),
    attrs={"soft_max_up_bound": 15.0, "soft_max_lower_bound": -15.0},
    no_grad=("Label",),
    sequences=Sequences(source={"Y": "X"}),
)


def _center_loss(
    xp: Any, X: Any, Label: Any, Centers: Any, CenterUpdateRate: Any, cluster_num: int, need_update: bool
) -> Any:
    label = Label.reshape(-1)
    require_in_range(xp, "center_loss", "Label", label, cluster_num, "classes")
    difference = X - Centers[label]
    loss = (difference * difference).sum(axis=1, keepdims=True) / 2
    if not need_update:
        return difference, loss, Centers
    moves, counts = xp.zeros_like(Centers), xp.ones((len(Centers), 1), Centers.dtype)
    xp.add.at(moves, label, difference)
    xp.add.at(counts, label, xp.ones((len(label), 1), Centers.dtype))
    return difference, loss, Centers + CenterUpdateRate.reshape(-1)[0] * moves / counts


def _center_loss_grad(xp: Any, SampleCenterDiff: Any, Loss_grad: Any) -> Any:
    return SampleCenterDiff * Loss_grad.reshape(-1, 1)


def _infer(op: OpView) -> None:
    x, centers, clusters = op.shape("X"), op.shape("Centers"), op.attr("cluster_num")
    if len(x) != 2 or centers != (clusters, x[1]):
        raise op.fail(
            f"X must be [rows, width] and Centers [{clusters}, width], got {list(x)} and {list(centers)}"
        )
    op.set("SampleCenterDiff", x, op.dtype("X"))
    op.set("Loss", (x[0], 1), op.dtype("X"))
    op.set("CentersOut", centers, op.dtype("Centers"))


register_pair(
    "center_loss",
    ("X", "Label", "Centers", "CenterUpdateRate"),
    _center_loss,
    _center_loss_grad,
    _infer,
    "Half the squared distance of each row from the centre of its class; the centres follow the rows.",
    outputs=("SampleCenterDiff", "Loss", "CentersOut"),
    attrs={"cluster_num": 1, "need_update": True},
    keep=("X#",),
    keep_out=("SampleCenterDiff",),
    no_grad=("Label", "Centers", "CenterUpdateRate", "SampleCenterDiff", "CentersOut"),
    sequences=Sequences(source={"Loss": "X"}),
)
