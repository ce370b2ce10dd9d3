"""fsp: how the channels of two layers go together (Yim et al. 2017, "A Gift from Knowledge Distillation")."""

from __future__ import annotations

from typing import Any

from ...backend.products import matmul
from ..grad_pairs import register_pair
from ..registry import OpView


def _flat(x: Any) -> Any:
    """[batch, channels, height * width]."""
    return x.reshape(*x.shape[:2], -1)


def _fsp(xp: Any, X: Any, Y: Any) -> Any:
    return matmul(xp, _flat(X), _flat(Y).swapaxes(1, 2)) / (X.shape[2] * X.shape[3])


def _fsp_grad(xp: Any, X: Any, Y: Any, Out_grad: Any) -> Any:
    scaled = Out_grad / (X.shape[2] * X.shape[3])
    return (
        matmul(xp, scaled, _flat(Y)).reshape(X.shape),
        matmul(xp, scaled.swapaxes(1, 2), _flat(X)).reshape(Y.shape),
    )


def _infer(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    misshapen = len(x) != 4 or len(y) != 4
    if misshapen or any(
        m != n and min(m, n) >= 0 for m, n in zip((x[0], *x[2:]), (y[0], *y[2:]), strict=True)
    ):
        raise op.fail(
            "X and Y must be [batch, channels, height, width] and differ in channels only, got "
            f"{list(x)} and {list(y)}"
        )
    op.set("Out", (x[0], x[1], y[1]), op.dtype("X"))


register_pair("fsp", ("X", "Y"), _fsp, _fsp_grad, _infer, "The mean product of each pair of channels.")
