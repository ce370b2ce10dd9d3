"""Normalisation of each sample: over its features, (groups of) channels, neighbouring channels, to length one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...base.windows import channels_last
from .. import planning_rules
from ..grad_pairs import double_grad, register_pair
from ..infer import grads_like, normalize_axis, product
from ..native import Selector, typed_call
from ..registry import Call, Effects, OpView, Planning, Sequences, Shape, grad_name, register, standard_grad
from .batch_norm import channel_axes

DX, DY, DSCALE, DBIAS = (grad_name(slot) for slot in ("X", "Y", "Scale", "Bias"))

_SAVED = ("SavedMean", "SavedVariance")


def _normalize(xp: Any, rows: Any, epsilon: float) -> tuple[Any, Any, Any]:
    """Each row of [R, L] with its mean taken away and divided by its deviation; mean and variance of each."""
    mean = rows.mean(axis=1, keepdims=True)
    variance = ((rows - mean) ** 2).mean(axis=1, keepdims=True)
    return (rows - mean) / xp.sqrt(variance + epsilon), mean, variance


def _normalize_grad(
    xp: Any, normal: Any, variance: Any, d_normal: Any, epsilon: float, through_mean: bool = True
) -> Any:
    """The gradient of `_normalize` for its rows; the means are constant unless `through_mean`."""
    centred = d_normal - d_normal.mean(axis=1, keepdims=True) if through_mean else d_normal
    return (centred - normal * (d_normal * normal).mean(axis=1, keepdims=True)) / xp.sqrt(variance + epsilon)


Rows = Callable[[OpView], list[int] | None]


def _native(rows: Rows, *saved: str, inverted: bool = False) -> Selector:
    """The kernel of a forward operator.

    `rows` cuts X into rows for it (docs/kernels.md; None if it can't); `inverted`: what is saved is 1 / deviation.
    """
    outputs = ("Y", *saved)

    def select(op: OpView) -> Call | None:
        cut = rows(op)
        if cut is None or not all(op.has(slot) for slot in outputs):
            return None
        ints = [*cut, int(inverted)]
        return typed_call(op, "layer_norm", ("X", "Scale", "Bias"), outputs, ints, [op.attr("epsilon")])

    return select


def _native_grad(
    rows: Rows, *saved: str, inverted: bool = False, whole: Callable[[OpView], bool] = lambda op: True
) -> Selector:
    """The kernel of a gradient operator; `whole` as `through_mean` of `_normalize_grad`, the others as above."""

    def select(op: OpView) -> Call | None:
        cut = rows(op) if op.has("X") else None
        if cut is None:
            return None
        takes, ints = ("X", "Scale", *saved, DY), [*cut, int(inverted), int(whole(op))]
        return typed_call(op, "layer_norm_grad", takes, (DX, DSCALE, DBIAS), ints, [op.attr("epsilon")])

    return select


def _sample_rows(op: OpView) -> list[int]:
    shape, begin = op.shape("X"), op.attr("begin_norm_axis")
    return [product(shape[:begin]), product(shape[begin:]), 1, 1]


def _grouped_rows(shape: Shape, groups: int) -> list[int] | None:
    channels = shape[1] // groups
    return [shape[0] * groups, channels, product(shape[2:]), groups] if channels > 0 else None


def _layer_norm(xp: Any, X: Any, Scale: Any, Bias: Any, epsilon: float, begin_norm_axis: int) -> Any:
    rows = X.reshape(product(X.shape[:begin_norm_axis]), product(X.shape[begin_norm_axis:]))
    y, mean, variance = _normalize(xp, rows, epsilon)
    if Scale is not None:
        y = y * Scale
    if Bias is not None:
        y = y + Bias
    return y.reshape(X.shape), mean[:, 0], variance[:, 0]


def _layer_norm_grad(
    xp: Any,
    X: Any,
    Scale: Any,
    Bias: Any,
    Mean: Any,
    Variance: Any,
    Y_grad: Any,
    epsilon: float,
    begin_norm_axis: int,
) -> Any:
    rows = X.reshape(product(X.shape[:begin_norm_axis]), product(X.shape[begin_norm_axis:]))
    dy = Y_grad.reshape(rows.shape)
    variance = Variance[:, None]
    normal = (rows - Mean[:, None]) / xp.sqrt(variance + epsilon)
    dx = _normalize_grad(xp, normal, variance, dy if Scale is None else dy * Scale, epsilon)
    dscale = None if Scale is None else (dy * normal).sum(axis=0)
    return dx.reshape(X.shape), dscale, None if Bias is None else dy.sum(axis=0)


def _one_each(op: OpView, width: int) -> None:
    """Refuses a scale or bias that does not have one number for each of the `width` features or channels."""
    for slot in ("Scale", "Bias"):
        if op.has(slot) and width >= 0 and product(op.shape(slot)) != width:
            raise op.fail(f"{slot} must have {width} elements, got {product(op.shape(slot))}")


def _grads_infer(width: Callable[[OpView], int]) -> Callable[[OpView], None]:
    """The gradients' shapes; `width`: the number of features or channels."""
    shapes = grads_like(Bias="Scale")

    def infer(op: OpView) -> None:
        _one_each(op, width(op))
        shapes(op)

    return infer


def _layer_norm_infer(op: OpView) -> None:
    shape, begin = op.shape("X"), op.attr("begin_norm_axis")
    if not 1 <= begin < len(shape):
        raise op.fail(f"begin_norm_axis must be in [1, {len(shape)}), got {begin}")
    _one_each(op, product(shape[begin:]))
    op.set("Y", shape, op.dtype("X"))
    count = math.prod if op.building else product  # Fluid declares -4 for 4 times an open size
    for slot in ("Mean", "Variance"):
        op.set(slot, (count(shape[:begin]),), op.dtype("X"))


_LAYER_NORM = {"epsilon": 1e-5, "begin_norm_axis": 1}


register_pair(
    "layer_norm",
    ("X", "Scale?", "Bias?"),
    _layer_norm,
    _layer_norm_grad,
    _layer_norm_infer,
    "Normalises each sample over all its axes from begin_norm_axis on, then scales and shifts.",
    outputs=("Y", "Mean", "Variance"),
    attrs=_LAYER_NORM,
    keep_out=("Mean", "Variance"),
    no_grad=("Mean", "Variance"),
    sequences=Sequences(source={"Y": "X"}),
    planning=Planning(batchable=planning_rules.layer_norm, inplace=(("Y", "X"),)),
    planning_back=Planning(batchable=planning_rules.layer_norm, inplace=((DX, DY),)),
    infer_back=_grads_infer(lambda op: product(op.shape("X")[op.attr("begin_norm_axis") :])),
    grad_grad=double_grad("Y", ("X", "Scale")),
    native=(_native(_sample_rows, "Mean", "Variance"), _native_grad(_sample_rows, "Mean", "Variance")),
    cuda=("normalization.layer_norm", "normalization.layer_norm_grad"),
)


def group_rows(xp: Any, x: Any, groups: int, layout: str) -> Any:
    """[N, C, ...] (or channels last) to [N * groups, C / groups * pixels]."""
    if channels_last(layout):
        x = xp.moveaxis(x, -1, 1)
    return x.reshape(x.shape[0] * groups, product(x.shape[1:]) // groups)


def ungrouped(xp: Any, rows: Any, x: Any, layout: str) -> Any:
    """The inverse of `group_rows` for an array of the shape of `x`."""
    if not channels_last(layout):
        return rows.reshape(x.shape)
    first = rows.reshape(x.shape[0], x.shape[-1], *x.shape[1:-1])
    return xp.ascontiguousarray(xp.moveaxis(first, 1, -1))


def _group_norm(xp: Any, X: Any, Scale: Any, Bias: Any, epsilon: float, groups: int, data_layout: str) -> Any:
    normal, mean, variance = _normalize(xp, group_rows(xp, X, groups, data_layout), epsilon)
    y = ungrouped(xp, normal, X, data_layout)
    _, shape = channel_axes(X.ndim, data_layout)
    if Scale is not None:
        y = y * Scale.reshape(shape)
    if Bias is not None:
        y = y + Bias.reshape(shape)
    return y, mean.reshape(X.shape[0], groups), variance.reshape(X.shape[0], groups)


def _group_norm_grad(
    xp: Any,
    X: Any,
    Scale: Any,
    Bias: Any,
    Mean: Any,
    Variance: Any,
    Y_grad: Any,
    epsilon: float,
    groups: int,
    data_layout: str,
    Y: Any = None,
) -> Any:
    axes, shape = channel_axes(Y_grad.ndim, data_layout)
    variance = Variance.reshape(-1, 1)
    if X is None:
        # Programs of Paddle have the result in its place.
        X = Y if Bias is None else Y - Bias.reshape(shape)
        X = X if Scale is None else X / Scale.reshape(shape)
        normal = group_rows(xp, X, groups, data_layout)
    else:
        rows = group_rows(xp, X, groups, data_layout)
        normal = (rows - Mean.reshape(-1, 1)) / xp.sqrt(variance + epsilon)
    d_normal = Y_grad if Scale is None else Y_grad * Scale.reshape(shape)
    whole = Scale is not None  # as in `_forgets_no_mean`
    dx = _normalize_grad(xp, normal, variance, group_rows(xp, d_normal, groups, data_layout), epsilon, whole)
    dscale = None
    if Scale is not None:
        dscale = (Y_grad * ungrouped(xp, normal, X, data_layout)).sum(axis=axes)
    dbias = None if Bias is None else Y_grad.sum(axis=axes)
    return ungrouped(xp, dx, X, data_layout), dscale, dbias


def _channels(op: OpView) -> int:
    return op.shape("X" if op.has("X") else DY)[-1 if channels_last(op.attr("data_layout")) else 1]


def _group_norm_infer(op: OpView) -> None:
    shape, groups, channels = op.shape("X"), op.attr("groups"), _channels(op)
    if groups < 1 or (channels >= 0 and channels % groups):
        raise op.fail(f"groups must divide the {channels} channels of X, got {groups}")
    _one_each(op, channels)
    op.set("Y", shape, op.dtype("X"))
    for slot in ("Mean", "Variance"):
        op.set(slot, (shape[0], groups), op.dtype("X"))


def _group_rows(op: OpView) -> list[int] | None:
    return None if channels_last(op.attr("data_layout")) else _grouped_rows(op.shape("X"), op.attr("groups"))


def _forgets_no_mean(op: OpView) -> bool:
    """Whether the gradient passes through the mean: in Fluid only if there is a scale."""
    return op.has("Scale")


_GROUP_NORM = {"epsilon": 1e-5, "groups": 1, "data_layout": "NCHW"}

register(
    "group_norm",
    inputs=("X", "Scale?", "Bias?"),
    outputs=("Y", "Mean", "Variance"),
    attrs=_GROUP_NORM,
    infer=_group_norm_infer,
    kernel=_group_norm,
    grad=standard_grad(inputs=("X", "Scale", "Bias"), outputs=("Mean", "Variance")),
    no_grad=("Mean", "Variance"),
    native=_native(_group_rows, "Mean", "Variance"),
    sequences=Sequences(source={"Y": "X"}),
    planning=Planning(inplace=(("Y", "X"),)),
    doc="Normalises each group of channels of each sample, then scales and shifts each channel.",
)
register(
    "group_norm_grad",
    inputs=("X?", "Y?", "Scale?", "Bias?", "Mean?", "Variance", DY),
    outputs=(DX + "?", DSCALE + "?", DBIAS + "?"),
    attrs=_GROUP_NORM,
    infer=_grads_infer(_channels),
    kernel=_group_norm_grad,
    grad=double_grad("Y", ("X", "Scale")),
    native=_native_grad(_group_rows, "Mean", "Variance", whole=_forgets_no_mean),
    planning=Planning(inplace=((DX, DY),)),
    doc="The gradients of group_norm for X, Scale and Bias.",
)


def _instance_norm(xp: Any, X: Any, Scale: Any, Bias: Any, epsilon: float) -> Any:
    y, mean, variance = _group_norm(xp, X, Scale, Bias, epsilon, X.shape[1], "NCHW")
    return y, mean.ravel(), (1 / xp.sqrt(variance + epsilon)).ravel()


def _instance_norm_grad(
    xp: Any, X: Any, Scale: Any, SavedMean: Any, SavedVariance: Any, Y_grad: Any, epsilon: float
) -> Any:
    variance = SavedVariance**-2 - epsilon
    return _group_norm_grad(xp, X, Scale, Scale, SavedMean, variance, Y_grad, epsilon, X.shape[1], "NCHW")


def _channel_rows(op: OpView) -> list[int] | None:
    shape = op.shape("X")
    return _grouped_rows(shape, shape[1]) if shape[1] > 0 else None


def _instance_norm_infer(op: OpView) -> None:
    shape = op.shape("X")
    if not 2 <= len(shape) <= 5:
        raise op.fail(f"X must have 2 to 5 dimensions, got {len(shape)}")
    _one_each(op, shape[1])
    op.set("Y", shape, op.dtype("X"))
    for slot in ("SavedMean", "SavedVariance"):
        op.set(slot, (product(shape[:2]),), op.dtype("X"))


register_pair(
    "instance_norm",
    ("X", "Scale", "Bias"),
    _instance_norm,
    _instance_norm_grad,
    _instance_norm_infer,
    "Normalises each channel of each sample on its own, then scales and shifts it.",
    outputs=("Y", "SavedMean", "SavedVariance"),
    attrs={"epsilon": 1e-5},
    keep=("X", "Scale"),
    keep_out=("SavedMean", "SavedVariance"),
    no_grad=_SAVED,
    sequences=Sequences(source={"Y": "X"}),
    planning=Planning(inplace=(("Y", "X"),)),
    planning_back=Planning(inplace=((DX, DY),)),
    infer_back=_grads_infer(lambda op: op.shape("X")[1]),
    grad_grad=double_grad("Y", ("X", "Scale")),
    native=(
        _native(_channel_rows, *_SAVED, inverted=True),
        _native_grad(_channel_rows, *_SAVED, inverted=True),
    ),
)


def _norm(xp: Any, X: Any, axis: int, epsilon: float) -> Any:
    length = xp.sqrt((X * X).sum(axis=axis, keepdims=True) + epsilon)
    return length, X / length


def _norm_grad(xp: Any, X: Any, Norm: Any, Out_grad: Any, axis: int) -> Any:
    unit = X / Norm
    return (Out_grad - unit * (Out_grad * unit).sum(axis=axis, keepdims=True)) / Norm


def _norm_infer(op: OpView) -> None:
    shape = op.shape("X")
    axis = normalize_axis(op, op.attr("axis"), len(shape))
    op.set("Out", shape, op.dtype("X"))
    op.set("Norm", (*shape[:axis], 1, *shape[axis + 1 :]), op.dtype("X"))


register_pair(
    "norm",
    ("X",),
    _norm,
    _norm_grad,
    _norm_infer,
    "X divided by its Euclidean length along an axis: sqrt(sum of squares + epsilon).",
    outputs=("Norm", "Out"),
    attrs={"axis": -1, "epsilon": 1e-10},
    keep_out=("Norm",),
    no_grad=("Norm",),
    sequences=Sequences(source=None),
    effects=Effects(numbered=False),
    grad_grad=double_grad("Out", ("X",)),
)


def _window(xp: Any, x: Any, n: int, axis: int) -> Any:
    """The sum of the `n` neighbours around each element along `axis`."""
    half = (n - 1) // 2
    widths = [(half, n - 1 - half) if k == axis else (0, 0) for k in range(x.ndim)]
    padded = xp.pad(x, widths)
    before = (slice(None),) * axis
    size = x.shape[axis]
    total = xp.zeros_like(x)
    for step in range(n):
        total += padded[before + (slice(step, step + size),)]
    return total


def _channel_axis(data_format: str) -> int:
    return 3 if channels_last(data_format) else 1


def _lrn(xp: Any, X: Any, n: int, k: float, alpha: float, beta: float, data_format: str) -> Any:
    middle = k + alpha * _window(xp, X * X, n, _channel_axis(data_format))
    return X * middle ** X.dtype.type(-beta), middle


def _lrn_grad(
    xp: Any, X: Any, Out: Any, MidOut: Any, Out_grad: Any, n: int, alpha: float, beta: float, data_format: str
) -> Any:
    spread = _window(xp, Out_grad * Out / MidOut, n, _channel_axis(data_format))
    return Out_grad * MidOut ** X.dtype.type(-beta) - 2 * alpha * beta * X * spread


def _infer(op: OpView) -> None:
    shape, n = op.shape("X"), op.attr("n")
    if len(shape) != 4:
        raise op.fail(f"X must have 4 dimensions, got shape {list(shape)}")
    if n < 1 or n % 2 == 0:
        raise op.fail(f"n must be positive and odd, got {n}")
    op.set("Out", shape, op.dtype("X"))
    op.set("MidOut", shape, op.dtype("X"))


_ATTRS: dict[str, Any] = {
    "n": 5,
    "k": 2.0,
    "alpha": 1e-4,
    "beta": 0.75,
    "data_format": "AnyLayout",
    "is_test": False,
}

register_pair(
    "lrn",
    ("X",),
    _lrn,
    _lrn_grad,
    _infer,
    "X over (k + alpha times the sum of squares of n neighbouring channels) to the power of beta.",
    outputs=("Out", "MidOut"),
    attrs=_ATTRS,
    keep_out=("Out", "MidOut"),
    no_grad=("MidOut",),
    sequences=Sequences(source={"Out": "X"}),
    effects=Effects(numbered=False),
)
