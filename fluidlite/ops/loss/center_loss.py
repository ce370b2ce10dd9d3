"""Center loss (Wen et al. 2016): how far rows are from the moving centre of their class."""

from __future__ import annotations

from typing import Any

from ..grad_pairs import register_pair
from ..registry import OpView, Sequences
from ..value_checks import require_in_range


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
