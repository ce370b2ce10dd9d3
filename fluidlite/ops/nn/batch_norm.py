"""Batch normalisation, also with an activation that is inverted for the gradient; spectral normalisation of weights."""

from __future__ import annotations

from typing import Any

from ...backend.functions import matmul
from ...base.windows import channels_last, extents, uses_moving_statistics
from ..grad_pairs import double_grad, register_pair
from ..infer import normalize_axis, product
from ..native import typed, typed_call
from ..registry import Call, OpSpec, OpView, Planning, Sequences, grad_name, register, standard_grad

DX, DY, DSCALE, DBIAS = (grad_name(slot) for slot in ("X", "Y", "Scale", "Bias"))

_MOVED = (("MeanOut", "Mean"), ("VarianceOut", "Variance"))
_SAVED = ("SavedMean", "SavedVariance")
_OUTPUTS = ("Y", "MeanOut", "VarianceOut", *_SAVED, "ReserveSpace")


def channel_axes(ndim: int, layout: str) -> tuple[tuple[int, ...], list[int]]:
    """The axes to reduce over, and the shape that broadcasts a value per channel, for an image of `ndim`
    axes.
    """
    channel = ndim - 1 if channels_last(layout) else 1
    shape = [1] * ndim
    shape[channel] = -1
    return tuple(axis for axis in range(ndim) if axis != channel), shape


def batch_norm(
    xp: Any, X: Any, Scale: Any, Bias: Any, Mean: Any, Variance: Any, MomentumTensor: Any, **attrs: Any
) -> Any:
    """The kernel of batch_norm: Y, the moving statistics, those of the batch, and no ReserveSpace."""
    axes, shape = channel_axes(X.ndim, attrs["data_layout"])
    epsilon, momentum = attrs["epsilon"], attrs["momentum"]
    if uses_moving_statistics(attrs.get):
        mean, inverse = Mean, 1 / xp.sqrt(Variance + epsilon)
        mean_out, variance_out = Mean, Variance
    elif X.size == Scale.size:
        # One element has no deviation: Fluid leaves everything as it is, scale and shift as well.
        return X.copy(), Mean, Variance, xp.zeros_like(Mean), xp.ones_like(Variance), None
    else:
        if MomentumTensor is not None:
            momentum = float(MomentumTensor.ravel()[0])
        mean = X.mean(axis=axes)
        variance = ((X - mean.reshape(shape)) ** 2).mean(axis=axes)
        inverse = 1 / xp.sqrt(variance + epsilon)
        mean_out = Mean * momentum + mean * (1 - momentum)
        variance_out = Variance * momentum + variance * (1 - momentum)
    y = (X - mean.reshape(shape)) * (inverse * Scale).reshape(shape) + Bias.reshape(shape)
    return y, mean_out, variance_out, mean, inverse, None


def _batch_norm_grad(
    xp: Any,
    X: Any,
    Scale: Any,
    Mean: Any,
    Variance: Any,
    SavedMean: Any,
    SavedVariance: Any,
    Y_grad: Any,
    **attrs: Any,
) -> Any:
    axes, shape = channel_axes(X.ndim, attrs["data_layout"])
    moving = uses_moving_statistics(attrs.get)
    if X.size == Scale.size and not moving:
        return Y_grad.copy(), xp.zeros_like(Scale), xp.zeros_like(Scale)
    mean, inverse = (Mean, 1 / xp.sqrt(Variance + attrs["epsilon"])) if moving else (SavedMean, SavedVariance)
    normal = (X - mean.reshape(shape)) * inverse.reshape(shape)
    return gradients(normal, inverse, Scale, Y_grad, moving, axes, shape)


def gradients(
    normal: Any, inverse: Any, scale: Any, dy: Any, moving: bool, axes: tuple[int, ...], shape: list[int]
) -> tuple[Any, Any, Any]:
    """The gradients for X, Scale and Bias from `normal`, X before it is scaled, and 1 / deviation.

    `moving`: the statistics are none of the batch. `axes`, `shape`: as from `channel_axes`.
    """
    dbias = dy.sum(axis=axes)
    dscale = (dy * normal).sum(axis=axes)
    dx = dy
    if not moving:
        count = max(dy.size // max(scale.size, 1), 1)
        dx = dy - (dbias / count).reshape(shape) - normal * (dscale / count).reshape(shape)
    return dx * (scale * inverse).reshape(shape), dscale, dbias


def infer_batch_norm(op: OpView) -> None:
    shape = op.shape("X")
    if not 2 <= len(shape) <= 5:
        raise op.fail(f"X must have 2 to 5 dimensions, got {len(shape)}")
    channels = shape[-1] if channels_last(op.attr("data_layout")) else shape[1]
    for slot in ("Scale", "Bias", "Mean", "Variance"):
        if channels >= 0 and op.shape(slot) != (channels,):
            raise op.fail(
                f"{slot} must have shape [{channels}], one value a channel, got {list(op.shape(slot))}"
            )
    op.set("Y", shape, op.dtype("X"))
    for slot in ("MeanOut", "VarianceOut", "SavedMean", "SavedVariance"):
        op.set(slot, op.shape("Scale"), op.dtype("Scale"))


def require_gradient(op: OpView) -> None:
    """Refuse to differentiate in test mode, which only reads the moving statistics."""
    if op.attr("is_test") and not op.attr("use_global_stats") and not op.attr("trainable_statistics"):
        raise op.fail(
            "has no gradient with is_test=True; to train with the moving statistics use use_global_stats=True"
        )


def _batch_norm_rule(op: OpView) -> list[OpSpec]:
    require_gradient(op)
    kept = ("X", "Scale", "Bias") + (("Mean", "Variance") if op.attr("use_global_stats") else ())
    return standard_grad(inputs=kept, outputs=("SavedMean", "SavedVariance"))(op)


def _batch_norm_native(op: OpView) -> Call | None:
    inputs = ("X", "Scale", "Bias", "Mean", "Variance")
    if op.has("MomentumTensor"):
        return None
    if uses_moving_statistics(op.attr):
        if any(op.has(own) and op.name(own) != op.name(other) for own, other in _MOVED):
            return None
        name = typed(op, "batch_norm_infer", inputs)
        slots: tuple[str, ...] = (*inputs, "Y")
        floats, unchanged = [op.attr("epsilon")], [op.name(slot) for slot in ("Mean", "Variance")]
    elif product(op.shape("X")) == product(op.shape("Scale")):
        return None
    else:
        name = typed(op, "batch_norm", inputs)
        slots = (*inputs, "Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance")
        floats, unchanged = [op.attr("epsilon"), op.attr("momentum")], []
    if name is None or not all(op.has(slot) for slot in slots):
        return None
    sizes = list(extents(op.shape("X"), op.attr("data_layout")))
    return Call(name, [op.name(slot) for slot in slots], sizes, floats, unchanged)


def _batch_norm_grad_native(op: OpView) -> Call | None:
    moving = uses_moving_statistics(op.attr)
    if not moving and product(op.shape("X")) == product(op.shape("Scale")):
        return None
    kernel, stats = ("batch_norm_infer_grad", ("Mean", "Variance")) if moving else ("batch_norm_grad", _SAVED)
    sizes = list(extents(op.shape("X"), op.attr("data_layout")))
    takes = ("X", "Scale", *stats, DY)
    return typed_call(op, kernel, takes, (DX, DSCALE, DBIAS), sizes, [op.attr("epsilon")])


BATCH_NORM_ATTRS = {
    "is_test": False,
    "momentum": 0.9,
    "epsilon": 1e-5,
    "data_layout": "NCHW",
    "fuse_with_relu": False,
    "use_global_stats": False,
    "trainable_statistics": False,
}


register_pair(
    "batch_norm",
    ("X", "Scale", "Bias", "Mean", "Variance", "MomentumTensor?"),
    batch_norm,
    _batch_norm_grad,
    infer_batch_norm,
    "Normalises each channel over the batch, or with the moving statistics; SavedVariance is 1 / deviation.",
    outputs=(*_OUTPUTS[:-1], "ReserveSpace?"),
    attrs=BATCH_NORM_ATTRS,
    keep=("X", "Scale", "Bias", "Mean?", "Variance?"),
    keep_out=("SavedMean", "SavedVariance"),
    no_grad=("Mean", "Variance", "MomentumTensor", *_OUTPUTS[1:]),
    grad=_batch_norm_rule,
    sequences=Sequences(source={"Y": "X"}),
    planning=Planning(inplace=(("Y", "X"),)),
    planning_back=Planning(inplace=((DX, DY),)),
    grad_grad=double_grad("Y", ("X", "Scale")),
    native=(_batch_norm_native, _batch_norm_grad_native),
    cuda=("normalization.forward", "normalization.gradient"),
)

# inplace_abn: batch normalisation and an activation that is inverted for the gradient (Rota Bulo et al. 2018).
#
# The gradient operator has the result, not the input, so that both may be one variable. It restores the input in that
# variable, as gradients of earlier operators read it.

_ATTRS = {**BATCH_NORM_ATTRS, "activation": "", "alpha": 0.1, "use_sync_bn": False}


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
    **attrs: Any,
) -> Any:
    y, *rest = batch_norm(xp, X, Scale, Bias, Mean, Variance, MomentumTensor, **attrs)
    return _activated(xp, y, attrs["activation"], attrs["alpha"]), *rest


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
    **attrs: Any,
) -> Any:
    axes, shape = channel_axes(Y.ndim, attrs["data_layout"])
    y, dy = _inverted(xp, Y, Y_grad, attrs["activation"], attrs["alpha"])
    moving = uses_moving_statistics(attrs.get)
    if Y.size == Scale.size and not moving:
        return dy, xp.zeros_like(Scale), xp.zeros_like(Scale), y
    normal = (y - Bias.reshape(shape)) / Scale.reshape(shape)
    mean, inverse = (Mean, 1 / xp.sqrt(Variance + attrs["epsilon"])) if moving else (SavedMean, SavedVariance)
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
    "inplace_abn",
    ("X", "Scale", "Bias", "Mean", "Variance", "MomentumTensor?"),
    (*_OUTPUTS[:-1], "ReserveSpace?"),
    _ATTRS,
    infer=_infer,
    kernel=_inplace_abn,
    grad=_rule,
    no_grad=("Mean", "Variance", "MomentumTensor", *_OUTPUTS[1:]),
    sequences=Sequences(source={"Y": "X"}),
    doc="batch_norm, then an activation that has an inverse: none, leaky_relu or elu.",
)
register(
    "inplace_abn_grad",
    ("Y", "Scale", "Bias", "Mean?", "Variance?", "SavedMean", "SavedVariance", DY),
    (*(grad_name(slot) + "?" for slot in ("X", "Scale", "Bias")), "X?"),
    _ATTRS,
    infer=_infer_grad,
    kernel=_inplace_abn_grad,
    doc="The gradients of inplace_abn for X, Scale and Bias, and X, from its result.",
)


def _matrix(xp: Any, weight: Any, dim: int) -> Any:
    """`weight` as a matrix with dimension `dim` as rows."""
    return xp.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)


def _unit(xp: Any, vector: Any, eps: float) -> Any:
    return vector / (xp.sqrt((vector * vector).sum()) + vector.dtype.type(eps))


def _directions(xp: Any, matrix: Any, U: Any, V: Any, power_iters: int, eps: float) -> tuple[Any, Any]:
    """U and V after some steps towards the singular vectors of the largest singular value."""
    u, v = U.reshape(-1), V.reshape(-1)
    for _ in range(power_iters):
        v = _unit(xp, matmul(xp, matrix.T, u), eps)
        u = _unit(xp, matmul(xp, matrix, v), eps)
    return u, v


def _spectral_norm(xp: Any, Weight: Any, U: Any, V: Any, dim: int, power_iters: int, eps: float) -> Any:
    matrix = _matrix(xp, Weight, dim)
    u, v = _directions(xp, matrix, U, V, power_iters, eps)
    return Weight / matmul(xp, matmul(xp, u, matrix), v)


def _spectral_norm_grad(
    xp: Any, Weight: Any, U: Any, V: Any, Out_grad: Any, dim: int, power_iters: int, eps: float
) -> Any:
    """The gradient for Weight, taking the singular vectors as constant."""
    matrix, dout = _matrix(xp, Weight, dim), _matrix(xp, Out_grad, dim)
    u, v = _directions(xp, matrix, U, V, power_iters, eps)
    sigma = matmul(xp, matmul(xp, u, matrix), v)
    # Fluid multiplies element by element where the gradient has a sum over dout * matrix.
    gradient = dout * (1 - (matrix.sum() / sigma) * (u[:, None] * v)) / sigma
    shape = [Weight.shape[dim], *(n for axis, n in enumerate(Weight.shape) if axis != dim % Weight.ndim)]
    return xp.ascontiguousarray(xp.moveaxis(gradient.reshape(shape), 0, dim))


def _infer_spectral(op: OpView) -> None:
    shape = op.shape("Weight")
    dim = normalize_axis(op, op.attr("dim"), len(shape), "dim")
    if op.attr("power_iters") < 0:
        raise op.fail(f"power_iters must not be negative, got {op.attr('power_iters')}")
    for slot, size in (("U", shape[dim]), ("V", product(shape[:dim] + shape[dim + 1 :]))):
        if size >= 0 and product(op.shape(slot)) != size:
            raise op.fail(f"{slot} must have {size} elements, got {list(op.shape(slot))}")
    op.set("Out", shape, op.dtype("Weight"))


_SPECTRAL = {"dim": 0, "power_iters": 1, "eps": 1e-12}

register_pair(
    "spectral_norm",
    ("Weight", "U", "V"),
    _spectral_norm,
    _spectral_norm_grad,
    _infer_spectral,
    "Weight over its largest singular value, found by power_iters iterations that start at U and V.",
    attrs=_SPECTRAL,
    no_grad=("U", "V"),
)
