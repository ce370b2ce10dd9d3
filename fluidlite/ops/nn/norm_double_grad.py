"""Second derivatives of normalisations.

All of them make rows, take away the mean of each, and divide by its deviation. With `normal` the result of that, `g`
the gradient for it and `v` that for the first gradient, both are seen through the same projection: what is left of a
row without its mean and without its part along `normal`.
"""

from __future__ import annotations

from typing import Any

from ...base.windows import uses_moving_statistics
from ..grad_pairs import or_zeros, register_double_grad
from ..infer import product
from .batch_norm import channel_axes
from .norm import group_rows, ungrouped


def _projected(row: Any, normal: Any) -> Any:
    along = (row * normal).mean(axis=1, keepdims=True)
    return row - row.mean(axis=1, keepdims=True) - normal * along


def _second(normal: Any, deviation: Any, g: Any, v: Any, for_normal: Any) -> tuple[Any, Any]:
    """The gradients for `g` and for the rows.

    `for_normal` is the gradient of `normal` by other paths (that of the scale).
    """
    v_along, g_along = ((row * normal).mean(axis=1, keepdims=True) for row in (v, g))
    mean_v, mean_g = (row.mean(axis=1, keepdims=True) for row in (v, g))
    value = (v * g).mean(axis=1, keepdims=True) - mean_v * mean_g - v_along * g_along
    through = for_normal - (v * g_along + g * v_along) / deviation
    rows = (_projected(through, normal) - normal * value / deviation) / deviation
    return _projected(v, normal) / deviation, rows


def _normal(xp: Any, rows: Any, mean: Any, variance: Any, epsilon: float) -> tuple[Any, Any]:
    deviation = xp.sqrt(variance.reshape(-1, 1) + epsilon)
    return (rows - mean.reshape(-1, 1)) / deviation, deviation


def _layer_norm(
    xp: Any,
    X: Any,
    Scale: Any,
    Bias: Any,
    Mean: Any,
    Variance: Any,
    DY: Any,
    DDX: Any,
    DDScale: Any,
    DDBias: Any,
    epsilon: float,
    begin_norm_axis: int,
) -> Any:
    rows = X.reshape(product(X.shape[:begin_norm_axis]), -1)
    normal, deviation = _normal(xp, rows, Mean, Variance, epsilon)
    dy, v = DY.reshape(rows.shape), or_zeros(xp, DDX, X).reshape(rows.shape)
    scale = xp.ones(rows.shape[1], X.dtype) if Scale is None else Scale
    for_scale = 0 if DDScale is None else DDScale
    for_g, dx = _second(normal, deviation, dy * scale, v, for_scale * dy)
    ddy = for_g * scale + for_scale * normal + (0 if DDBias is None else DDBias)
    dscale = None if Scale is None else (dy * for_g).sum(axis=0).reshape(Scale.shape)
    return dx.reshape(X.shape), dscale, ddy.reshape(X.shape)


register_double_grad(
    "layer_norm",
    ("X", "Scale?", "Bias?", "Mean", "Variance"),
    "Y",
    ("X", "Scale"),
    _layer_norm,
    {"epsilon": 1e-5, "begin_norm_axis": 1},
    ("X", "Scale", "Bias"),
)


def _group_norm(
    xp: Any,
    X: Any,
    Scale: Any,
    Mean: Any,
    Variance: Any,
    DY: Any,
    DDX: Any,
    DDScale: Any,
    DDBias: Any,
    epsilon: float,
    groups: int,
    data_layout: str,
) -> Any:
    axes, shape = channel_axes(X.ndim, data_layout)

    def rows(image: Any) -> Any:
        return group_rows(xp, image, groups, data_layout)

    def image(flat: Any) -> Any:
        return ungrouped(xp, flat, X, data_layout)

    normal, deviation = _normal(xp, rows(X), Mean, Variance, epsilon)
    scale = 1 if Scale is None else Scale.reshape(shape)
    for_scale = 0 if DDScale is None else DDScale.reshape(shape)
    for_bias = 0 if DDBias is None else DDBias.reshape(shape)
    v = rows(or_zeros(xp, DDX, X))
    for_g, dx = _second(normal, deviation, rows(DY * scale), v, rows(DY * for_scale))
    ddy = image(for_g) * scale + for_scale * image(normal) + for_bias
    dscale = None if Scale is None else (DY * image(for_g)).sum(axis=axes)
    return image(dx), dscale, ddy


register_double_grad(
    "group_norm",
    ("X", "Scale?", "Bias?", "Mean", "Variance"),
    "Y",
    ("X", "Scale"),
    _group_norm,
    {"epsilon": 1e-5, "groups": 1, "data_layout": "NCHW"},
    ("X", "Scale", "Bias"),
)


def _instance_norm(
    xp: Any,
    X: Any,
    Scale: Any,
    SavedMean: Any,
    SavedVariance: Any,
    DY: Any,
    DDX: Any,
    DDScale: Any,
    DDBias: Any,
    epsilon: float,
) -> Any:
    variance = SavedVariance**-2 - epsilon
    how = (DY, DDX, DDScale, DDBias, epsilon, X.shape[1], "NCHW")
    return _group_norm(xp, X, Scale, SavedMean, variance, *how)


register_double_grad(
    "instance_norm",
    ("X", "Scale", "SavedMean", "SavedVariance"),
    "Y",
    ("X", "Scale"),
    _instance_norm,
    {"epsilon": 1e-5},
    ("X", "Scale", "Bias"),
)


def _batch_norm(
    xp: Any,
    X: Any,
    Scale: Any,
    Mean: Any,
    Variance: Any,
    SavedMean: Any,
    SavedVariance: Any,
    DY: Any,
    DDX: Any,
    DDScale: Any,
    DDBias: Any,
    **attrs: Any,
) -> Any:
    axes, shape = channel_axes(X.ndim, attrs["data_layout"])
    epsilon = attrs["epsilon"]
    channel = shape.index(-1)
    for_scale = 0 if DDScale is None else DDScale.reshape(shape)
    for_bias = 0 if DDBias is None else DDBias.reshape(shape)
    scale, v = Scale.reshape(shape), or_zeros(xp, DDX, X)
    if uses_moving_statistics(attrs.get):
        inverse = 1 / xp.sqrt(Variance + epsilon).reshape(shape)
        normal = (X - Mean.reshape(shape)) * inverse
        return (
            DY * for_scale * inverse,
            (v * DY * inverse).sum(axis=axes),
            v * scale * inverse + (for_scale * normal + for_bias),
        )

    def rows(image: Any) -> Any:
        return xp.moveaxis(image, channel, 0).reshape(X.shape[channel], -1)

    def image(flat: Any) -> Any:
        moved = flat.reshape(X.shape[channel], *(n for axis, n in enumerate(X.shape) if axis != channel))
        return xp.ascontiguousarray(xp.moveaxis(moved, 0, channel))

    normal, deviation = _normal(xp, rows(X), SavedMean, SavedVariance**-2 - epsilon, epsilon)
    for_g, dx = _second(normal, deviation, rows(DY * scale), rows(v), rows(DY * for_scale))
    ddy = image(for_g) * scale + for_scale * image(normal) + for_bias
    return image(dx), (DY * image(for_g)).sum(axis=axes), ddy


register_double_grad(
    "batch_norm",
    ("X", "Scale", "Bias", "Mean?", "Variance?", "SavedMean", "SavedVariance"),
    "Y",
    ("X", "Scale"),
    _batch_norm,
    {
        "is_test": False,
        "epsilon": 1e-5,
        "data_layout": "NCHW",
        "use_global_stats": False,
        "trainable_statistics": False,
    },
    ("X", "Scale", "Bias"),
)


def _norm(xp: Any, X: Any, Norm: Any, DOut: Any, DDX: Any, axis: int) -> Any:
    unit, v = X / Norm, or_zeros(xp, DDX, X)

    def along(row: Any) -> Any:
        return (row * unit).sum(axis=axis, keepdims=True)

    def projected(row: Any) -> Any:
        return row - unit * along(row)

    value = ((v * DOut).sum(axis=axis, keepdims=True) - along(v) * along(DOut)) / Norm
    through = -(v * along(DOut) + DOut * along(v)) / Norm
    return projected(through) / Norm - unit * value / Norm, projected(v) / Norm


register_double_grad("norm", ("X", "Norm"), "Out", ("X",), _norm, {"axis": -1, "epsilon": 1e-10})
