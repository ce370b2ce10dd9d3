"""Losses that compare numbers: of regression, of probabilities, of rankings, of distances to centres."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.dtypes import attribute
from ..grad_pairs import register_pair
from ..infer import grads_like, grads_like_inputs, same_as
from ..math.functions import sign_of
from ..nn.activation import softplus, tanh_sigmoid
from ..registry import FIRST, Effects, LodFrom, OpView, Sequences, grad_name, register, standard_grad
from ..value_checks import require_in_range


def _pair(first: str, second: str, *outputs: str) -> Callable[[OpView], None]:
    """`outputs` have the shape of `first`; `second` must have it too."""

    def infer(op: OpView) -> None:
        a, b = op.shape(first), op.shape(second)
        if len(a) != len(b) or any(m != n for m, n in zip(a, b, strict=True) if m >= 0 <= n):
            raise op.fail(f"{second} must have the shape of {first}, {list(a)}, got {list(b)}")
        for out in outputs:
            op.set(out, a, op.dtype(first))

    return infer


def _declare(
    op_type: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    attrs: dict[str, Any],
    infer: Callable[[OpView], None],
    kernels: tuple[Callable[..., Any], Callable[..., Any]],
    kept: tuple[tuple[str, ...], tuple[str, ...]],
    grads: tuple[str, ...],
    doc: str,
    source: LodFrom = FIRST,
    effects: Effects = Effects(),
) -> None:
    """Register a loss and its gradient: `kept` are the inputs and outputs the gradient needs, `grads` what it
    gives.

    The last of `outputs` is the loss, the others only serve the gradient. `source`: see `Sequences`.
    """
    loss = outputs[-1]
    optional = {text.rstrip("?"): text for text in inputs}
    register(
        op_type,
        inputs=inputs,
        outputs=outputs,
        attrs=attrs,
        infer=infer,
        kernel=kernels[0],
        grad=standard_grad(inputs=kept[0], outputs=kept[1]),
        no_grad=(*(name for name in optional if name not in grads), *outputs[:-1]),
        sequences=Sequences(source={loss: inputs[0]} if source == FIRST else source),
        effects=effects,
        doc=doc,
    )
    register(
        op_type + "_grad",
        inputs=(*(optional[slot] for slot in kept[0]), *kept[1], grad_name(loss)),
        outputs=tuple(grad_name(slot) + "?" for slot in grads),
        attrs=attrs,
        infer=grads_like(**dict.fromkeys(grads, kept[1][0])) if kept[1] else grads_like_inputs,
        kernel=kernels[1],
        doc=f"The gradient of {op_type} for {' and '.join(grads)}.",
    )


def _log_loss(xp: Any, Predicted: Any, Labels: Any, epsilon: float) -> Any:
    return -Labels * xp.log(Predicted + epsilon) - (1 - Labels) * xp.log(1 - Predicted + epsilon)


def _log_loss_grad(xp: Any, Predicted: Any, Labels: Any, Loss_grad: Any, epsilon: float) -> Any:
    return Loss_grad * ((1 - Labels) / (1 - Predicted + epsilon) - Labels / (Predicted + epsilon))


_declare(
    "log_loss",
    ("Predicted", "Labels"),
    ("Loss",),
    {"epsilon": 1e-4},
    _pair("Predicted", "Labels", "Loss"),
    (_log_loss, _log_loss_grad),
    (("Predicted", "Labels"), ()),
    ("Predicted",),
    "The negative log likelihood of yes/no labels under predicted probabilities.",
)


def _huber_loss(xp: Any, X: Any, Y: Any, delta: float) -> Any:
    residual = Y - X
    size = xp.abs(residual)
    half = X.dtype.type(0.5)
    return residual, xp.where(size <= delta, half * residual * residual, delta * (size - half * delta))


def _huber_loss_grad(xp: Any, Residual: Any, Out_grad: Any, delta: float) -> Any:
    slope = Out_grad * xp.clip(Residual, -delta, delta)
    return -slope, slope


_declare(
    "huber_loss",
    ("X", "Y"),
    ("Residual", "Out"),
    {"delta": 1.0},
    _pair("X", "Y", "Residual", "Out"),
    (_huber_loss, _huber_loss_grad),
    ((), ("Residual",)),
    ("X", "Y"),
    "Half the squared difference, linear beyond delta.",
    effects=Effects(numbered=False),
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
    _pair("X", "Y", "Diff")(op)
    if op.has("InsideWeight") and not op.has("OutsideWeight"):
        raise op.fail("InsideWeight needs an OutsideWeight")
    op.set("Out", (op.shape("X")[0], 1), op.dtype("X"))


_declare(
    "smooth_l1_loss",
    ("X", "Y", "InsideWeight?", "OutsideWeight?"),
    ("Diff", "Out"),
    {"sigma": 1.0},
    _smooth_l1_infer,
    (_smooth_l1, _smooth_l1_grad),
    (("InsideWeight", "OutsideWeight"), ("Diff",)),
    ("X", "Y"),
    "The huber-like loss of box regression, summed over each sample; OutsideWeight needs InsideWeight.",
    source=None,
    effects=Effects(numbered=False),
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
        _pair("X", "Target", "Loss")(op)
    else:
        _pair("X", "Target")(op)
        op.set("Loss", (1,), op.dtype("X"))


_declare(
    "kldiv_loss",
    ("X", "Target"),
    ("Loss",),
    {"reduction": "mean"},
    _kldiv_infer,
    (_kldiv, _kldiv_grad),
    (("X", "Target"), ()),
    ("X",),
    "The Kullback-Leibler divergence of Target from the log probabilities X.",
    source=None,
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


_declare(
    "bpr_loss",
    ("X", "Label"),
    ("Y",),
    {},
    _bpr_infer,
    (_bpr, _bpr_grad),
    (("X", "Label"), ()),
    ("X",),
    "Bayesian personalised ranking: how far the other classes come up to the label's.",
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


_declare(
    "rank_loss",
    ("Label", "Left", "Right"),
    ("Out",),
    {},
    _rank_infer,
    (_rank, _rank_grad),
    (("Label", "Left", "Right"), ()),
    ("Left", "Right"),
    "RankNet's pairwise loss: Label is 1 where Left should rank above Right.",
    source=None,
)


def _margin_rank(xp: Any, X1: Any, X2: Any, Label: Any, margin: float) -> Any:
    loss = xp.maximum(-Label * (X1 - X2) + margin, 0)
    return (loss > 0).astype(X1.dtype), loss


def _margin_rank_grad(xp: Any, Label: Any, Activated: Any, Out_grad: Any) -> Any:
    slope = Out_grad * Label * Activated
    return -slope, slope


_declare(
    "margin_rank_loss",
    ("X1", "X2", "Label"),
    ("Activated", "Out"),
    {"margin": 0.0},
    _pair("X1", "X2", "Activated", "Out"),
    (_margin_rank, _margin_rank_grad),
    (("Label",), ("Activated",)),
    ("X1", "X2"),
    "How far X1 fails to lie `margin` above X2 (Label 1) or below it (Label -1).",
    source=None,
)


def _hinge(xp: Any, Logits: Any, Labels: Any) -> Any:
    return xp.maximum(1 - Logits * (2 * Labels - 1), 0)


def _hinge_grad(xp: Any, Logits: Any, Labels: Any, Loss_grad: Any) -> Any:
    sign = 2 * Labels - 1
    return xp.where(1 - Logits * sign > 0, -sign * Loss_grad, xp.zeros((), Logits.dtype))


_declare(
    "hinge_loss",
    ("Logits", "Labels"),
    ("Loss",),
    {},
    _pair("Logits", "Labels", "Loss"),
    (_hinge, _hinge_grad),
    (("Logits", "Labels"), ()),
    ("Logits",),
    "How far Logits fail to lie 1 beyond zero on the side that Labels (0 or 1) say.",
)


def _label_smooth(xp: Any, X: Any, PriorDist: Any, epsilon: float) -> Any:
    prior = X.dtype.type(1.0 / X.shape[-1]) if PriorDist is None else PriorDist.reshape(-1)
    return X.dtype.type(attribute(1 - epsilon)) * X + X.dtype.type(epsilon) * prior


def _label_smooth_grad(xp: Any, Out_grad: Any, epsilon: float) -> Any:
    return Out_grad * Out_grad.dtype.type(attribute(1 - epsilon))


_declare(
    "label_smooth",
    ("X", "PriorDist?"),
    ("Out",),
    {"epsilon": 0.0},
    same_as("X"),
    (_label_smooth, _label_smooth_grad),
    ((), ()),
    ("X",),
    "Labels mixed with a prior distribution, uniform unless given.",
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


_declare(
    "teacher_student_sigmoid_loss",
    ("X", "Label"),
    ("Y",),
    {"soft_max_up_bound": 15.0, "soft_max_lower_bound": -15.0},
    _pair("X", "Label", "Y"),
    (_teacher_student, _teacher_student_grad),
    (("X", "Label"), ()),
    ("X",),
    "Click prediction with a teacher: Label is -2 or -1 (click) without a teacher's score, score or 1 + "
    "score with one.",
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
