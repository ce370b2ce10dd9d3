"""proximal_gd, proximal_adagrad: descent with penalties that are applied exactly (Duchi and Singer 2009)."""

from __future__ import annotations

from typing import Any

from .updates import update


def _shrunk(xp: Any, moved: Any, rate: Any, l1: float, l2: float) -> Any:
    kind = moved.dtype.type
    if l1 > 0:
        moved = xp.sign(moved) * xp.maximum(xp.abs(moved) - rate * kind(l1), 0)
    return moved / (1 + rate * kind(l2))


def _gd(xp: Any, Param: Any, Grad: Any, LearningRate: Any, l1: float, l2: float) -> Any:
    rate = LearningRate.reshape(-1)[0]
    return _shrunk(xp, Param - rate * Grad, rate, l1, l2)


def _adagrad(xp: Any, Param: Any, Moment: Any, Grad: Any, LearningRate: Any, l1: float, l2: float) -> Any:
    rate, moment = LearningRate.reshape(-1)[0], Moment + Grad * Grad
    return _shrunk(xp, Param - rate * Grad / xp.sqrt(moment), rate, l1, l2), moment


_ATTRS = {"l1": 0.0, "l2": 0.0}

update(
    "proximal_gd",
    _gd,
    (),
    _ATTRS,
    "A step of gradient descent, then the step that the penalties l1 and l2 ask for.",
    inputs=("Param", "Grad", "LearningRate"),
)
update(
    "proximal_adagrad",
    _adagrad,
    ("Moment",),
    _ATTRS,
    "A step of Adagrad, then the step that the penalties l1 and l2 ask for.",
    inputs=("Param", "Moment", "Grad", "LearningRate"),
)
