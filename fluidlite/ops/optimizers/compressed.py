"""dgc_momentum, dgc_clip_by_norm: steps before and after gradients begin to be compressed."""

from __future__ import annotations

from typing import Any

from ..infer import same_as
from ..registry import OpDef, OpView, Sequences, find, register
from .updates import cast_like, fit_param


def _begun(xp: Any, current_step: Any, rampup_begin_step: float) -> Any:
    return xp.trunc(current_step.reshape(())) >= int(rampup_begin_step)


def _momentum(
    xp: Any,
    Param: Any,
    Grad: Any,
    Velocity: Any,
    LearningRate: Any,
    current_step: Any,
    nranks: Any,
    rampup_begin_step: float,
    mu: float,
    use_nesterov: bool,
) -> Any:
    """Momentum until compression begins, which has a momentum of its own; plain steps from then on."""
    grad = Grad / cast_like(nranks, Grad)
    step = find("momentum").kernel
    assert step is not None
    param, velocity = step(
        xp,
        Param=Param,
        Grad=grad,
        LearningRate=LearningRate,
        Velocity=Velocity,
        mu=mu,
        use_nesterov=use_nesterov,
    )
    begun = _begun(xp, current_step, rampup_begin_step)
    plain = Param - cast_like(LearningRate, Param) * grad
    return grad, xp.where(begun, plain, param), xp.where(begun, Velocity, velocity)


def _infer_momentum(op: OpView) -> None:
    fit_param(op)
    for slot in ("Param", "Velocity"):
        op.set(slot + "Out", op.shape(slot), op.dtype(slot))
    op.set("Grad_out", op.shape("Grad"), op.dtype("Grad"))


def _clip(xp: Any, X: Any, current_step: Any, max_norm: float, rampup_begin_step: float) -> Any:
    if rampup_begin_step < 0:
        return X.copy()
    shorten = find("clip_by_norm").kernel
    assert shorten is not None
    return xp.where(_begun(xp, current_step, rampup_begin_step), shorten(xp, X=X, max_norm=max_norm), X)


register(
    OpDef(
        "dgc_momentum",
        ("current_step", "nranks", "Param", "Grad", "Velocity", "LearningRate"),
        ("Grad_out", "ParamOut", "VelocityOut"),
        {"mu": 0.0, "use_nesterov": False, "rampup_begin_step": -1.0},
        infer=_infer_momentum,
        kernel=_momentum,
        no_grad=("Grad_out", "ParamOut", "VelocityOut"),
        sequences=Sequences(source=None),
        doc="momentum with the gradient divided by nranks; from rampup_begin_step on a step of gradient descent.",
    )
)
register(
    OpDef(
        "dgc_clip_by_norm",
        ("current_step", "X"),
        ("Out",),
        {"max_norm": 1.0, "rampup_begin_step": -1.0},
        infer=same_as("X"),
        kernel=_clip,
        no_grad=("Out",),
        sequences=Sequences(source="X"),
        doc="clip_by_norm from rampup_begin_step on; X before, and if that is negative.",
    )
)
