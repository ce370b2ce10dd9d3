"""inplace_abn: batch normalisation and an activation that is inverted for the gradient (Rota Bulo et al. 2018).

The gradient operator has the result, not the input, so that both may be one variable. It restores the input in that
variable, as gradients of earlier operators read it.
"""

from __future__ import annotations

from typing import Any

from ...base.batch_norm import uses_moving_statistics
from ..registry import OpDef, OpSpec, OpView, Sequences, grad_name, register, standard_grad
from .batch_norm import (
    BATCH_NORM_ATTRS,
    batch_norm,
    channel_axes,
    gradients,
    infer_batch_norm,
    require_gradient,
)

_ATTRS = {**BATCH_NORM_ATTRS, "activation": "", "alpha": 0.1, "use_sync_bn": False}
DY = grad_name("Y")


def _activated(xp: Any, y: Any, activation: str, alpha: float) -> Any:
    if activation == "leaky_relu":
        return xp.where(y < 0, y * y.dtype.type(alpha), y)
    if activation == "elu":
        return xp.where(y < 0, y.dtype.type(alpha) * xp.expm1(y), y)
    return y


def _inverted(xp: Any, y: Any, dy: Any, activation: str, alpha: float) -> tuple[Any, Any]:
    """The activation's input, recomputed from its result, and the gradient of that input."""
    rate = y.dtype.type(alpha)
    if activation == "leaky_relu":
        return xp.where(y < 0, y / rate, y), xp.where(y < 0, dy * rate, dy)
    if activation == "elu":
        return xp.where(y < 0, xp.log1p(y / rate), y), xp.where(y < 0, dy * (y + rate), dy)
    return y, dy


def _inplace_abn(
    xp: Any,
    X: Any,
    Scale: Any,
    Bias: Any,
    Mean: Any,
    Variance: Any,
    MomentumTensor: Any,
    is_test: bool,
    momentum: float,
    epsilon: float,
    data_layout: str,
    use_global_stats: bool,
    trainable_statistics: bool,
    activation: str,
    alpha: float,
) -> Any:
    inputs = X, Scale, Bias, Mean, Variance, MomentumTensor
    which = is_test, momentum, epsilon, data_layout, use_global_stats, trainable_statistics
    y, *rest = batch_norm(xp, *inputs, *which)
    return _activated(xp, y, activation, alpha), *rest


def _inplace_abn_grad(
    xp: Any,
    Y: Any,
    Scale: Any,
    Bias: Any,
    Mean: Any,
    Variance: Any,
    SavedMean: Any,
    SavedVariance: Any,
    Y_grad: Any,
    is_test: bool,
    epsilon: float,
    data_layout: str,
    use_global_stats: bool,
    trainable_statistics: bool,
    activation: str,
    alpha: float,
) -> Any:
    axes, shape = channel_axes(Y.ndim, data_layout)
    y, dy = _inverted(xp, Y, Y_grad, activation, alpha)
    moving = uses_moving_statistics(is_test, use_global_stats, trainable_statistics)
    if Y.size == Scale.size and not moving:
        return dy, xp.zeros_like(Scale), xp.zeros_like(Scale), y
    normal = (y - Bias.reshape(shape)) / Scale.reshape(shape)
    mean, inverse = (Mean, 1 / xp.sqrt(Variance + epsilon)) if moving else (SavedMean, SavedVariance)
    x = normal / inverse.reshape(shape) + mean.reshape(shape)
    return *gradients(normal, inverse, Scale, dy, moving, axes, shape), x


def _infer(op: OpView) -> None:
    if op.attr("activation") not in ("", "identity", "leaky_relu", "elu"):
        raise op.fail(f"activation must be identity, leaky_relu or elu, got {op.attr('activation')!r}")
    infer_batch_norm(op)


def _infer_grad(op: OpView) -> None:
    for slot, source in (("X", "Y"), ("Scale", "Scale"), ("Bias", "Bias")):
        op.set(grad_name(slot), op.shape(source), op.dtype(source))
    op.set("X", op.shape("Y"), op.dtype("Y"))


def _rule(op: OpView) -> list[OpSpec]:
    require_gradient(op)
    kept = ("Scale", "Bias") + (("Mean", "Variance") if op.attr("use_global_stats") else ())
    (spec,) = standard_grad(inputs=kept, outputs=("Y", "SavedMean", "SavedVariance"))(op)
    if op.names("X") == op.names("Y"):
        spec.outputs["X"] = list(op.names("X"))
    return [spec]


register(
    OpDef(
        "inplace_abn",
        ("X", "Scale", "Bias", "Mean", "Variance", "MomentumTensor?"),
        ("Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance", "ReserveSpace?"),
        _ATTRS,
        infer=_infer,
        kernel=_inplace_abn,
        grad=_rule,
        no_grad=(
            "Mean",
            "Variance",
            "MomentumTensor",
            "MeanOut",
            "VarianceOut",
            "SavedMean",
            "SavedVariance",
            "ReserveSpace",
        ),
        sequences=Sequences(source={"Y": "X"}),
        doc="batch_norm, then an activation that has an inverse: none, leaky_relu or elu.",
    )
)
register(
    OpDef(
        "inplace_abn_grad",
        ("Y", "Scale", "Bias", "Mean?", "Variance?", "SavedMean", "SavedVariance", DY),
        (*(grad_name(slot) + "?" for slot in ("X", "Scale", "Bias")), "X?"),
        _ATTRS,
        infer=_infer_grad,
        kernel=_inplace_abn_grad,
        doc="The gradients of inplace_abn for X, Scale and Bias, and X, from its result.",
    )
)
