"""Lengths, distances and angles: dist, p_norm, frobenius_norm, l1_norm, cos_sim."""

from __future__ import annotations

import math
from typing import Any

from ..grad_pairs import register_pair
from ..infer import broadcast_shape, may_equal, normalize_axis, reduced, require_same_dtype, same_as
from ..registry import Effects, OpView, Sequences
from .functions import sign_of
from .reduce import axes_of, unless_rows


def _length(xp: Any, x: Any, p: float, axes: Any) -> Any:
    """The p-norm over `axes`, which are kept with size 1; p 0 counts nonzero elements."""
    size = xp.abs(x)
    if p == 0:
        return (x != 0).sum(axis=axes, keepdims=True).astype(x.dtype)
    if math.isinf(p):
        return (size.max if p > 0 else size.min)(axis=axes, keepdims=True)
    return (size ** x.dtype.type(p)).sum(axis=axes, keepdims=True, dtype=x.dtype) ** x.dtype.type(1 / p)


def _slope(xp: Any, x: Any, length: Any, p: float) -> Any:
    """The derivative of `_length` for each element."""
    size = xp.abs(x)
    if p == 0:
        return xp.zeros_like(x)
    if math.isinf(p):
        return xp.sign(x) * (size == length)
    if p == 1:
        return xp.sign(x)
    ratio = size / xp.where(length == 0, 1, length)
    steep = xp.where(ratio == 0, 0, xp.where(ratio == 0, 1, ratio) ** x.dtype.type(p - 1))
    return xp.sign(x) * steep


def _dist_grad(xp: Any, X: Any, Y: Any, Out: Any, Out_grad: Any, p: float) -> Any:
    difference = X - Y
    slope = _slope(xp, difference, Out.reshape((1,) * difference.ndim), p) * Out_grad.reshape(
        (1,) * difference.ndim
    )
    return reduced(xp, slope, X.shape, Y.shape, -1), reduced(xp, -slope, Y.shape, X.shape, -1)


def _infer_dist(op: OpView) -> None:
    broadcast_shape(op, -1)
    op.set("Out", (1,), require_same_dtype(op, "X", "Y"))


register_pair(
    "dist",
    ("X", "Y"),
    lambda xp, X, Y, p: _length(xp, X - Y, p, None).reshape(1),
    _dist_grad,
    _infer_dist,
    "The p-norm of X - Y, of shape [1].",
    attrs={"p": 2.0},
    keep_out=("Out",),
    sequences=Sequences(source=None),
)


def _p_norm(xp: Any, X: Any, porder: float, axis: int, keepdim: bool) -> Any:
    out = _length(xp, X, porder, axis)
    if keepdim:
        return out
    return out.squeeze(axis) if X.ndim > 1 else out.reshape(1)


def _p_norm_grad(xp: Any, X: Any, Out: Any, Out_grad: Any, porder: float, axis: int, keepdim: bool) -> Any:
    shape = list(X.shape)
    shape[axis] = 1
    return _slope(xp, X, Out.reshape(shape), porder) * Out_grad.reshape(shape)


def _infer_p_norm(op: OpView) -> None:
    shape = list(op.shape("X"))
    axis = normalize_axis(op, op.attr("axis"), len(shape))
    shape[axis : axis + 1] = [1] if op.attr("keepdim") else []
    op.set("Out", shape or [1], op.dtype("X"))


register_pair(
    "p_norm",
    ("X",),
    _p_norm,
    _p_norm_grad,
    _infer_p_norm,
    "The p-norm along `axis`, for p = porder.",
    attrs={"porder": 2.0, "axis": -1, "epsilon": 1e-12, "keepdim": False},
    keep_out=("Out",),
    sequences=Sequences(source=None),
)


def _frobenius_shape(X: Any, dim: Any, reduce_all: bool) -> tuple[int, ...]:
    axes = axes_of(len(X), dim, reduce_all)
    return tuple(1 if axis in axes else n for axis, n in enumerate(X))


def _frobenius(xp: Any, X: Any, dim: Any, keep_dim: bool, reduce_all: bool) -> Any:
    axes = axes_of(X.ndim, dim, reduce_all)
    out = _length(xp, X, 2.0, axes)
    if keep_dim:
        return out
    left = tuple(n for axis, n in enumerate(X.shape) if axis not in axes)
    return out.reshape(left or (1,))


def _frobenius_grad(xp: Any, X: Any, Out: Any, Out_grad: Any, dim: Any, reduce_all: bool) -> Any:
    shape = _frobenius_shape(X.shape, dim, reduce_all)
    return _slope(xp, X, Out.reshape(shape), 2.0) * Out_grad.reshape(shape)


def _infer_frobenius(op: OpView) -> None:
    x, dim = op.shape("X"), op.attr("dim")
    if not op.attr("reduce_all"):
        for axis in dim:
            normalize_axis(op, axis, len(x), "dim")
    axes = axes_of(len(x), dim, op.attr("reduce_all"))
    left = tuple(n for axis, n in enumerate(x) if axis not in axes) or (1,)
    op.set(
        "Out", _frobenius_shape(x, dim, op.attr("reduce_all")) if op.attr("keep_dim") else left, op.dtype("X")
    )


register_pair(
    "frobenius_norm",
    ("X",),
    _frobenius,
    _frobenius_grad,
    _infer_frobenius,
    "The root of the sum of squares over the dimensions `dim`.",
    attrs={"dim": [0], "keep_dim": False, "reduce_all": False, "in_dtype": -1, "out_dtype": -1},
    keep_out=("Out",),
    sequences=Sequences(source=unless_rows),
)
register_pair(
    "l1_norm",
    ("X",),
    lambda xp, X: _length(xp, X, 1.0, None).reshape(1),
    lambda xp, X, Out_grad: sign_of(xp, X) * Out_grad.reshape((1,) * X.ndim),
    lambda op: op.set("Out", (1,), op.dtype("X")),
    "The sum of the absolute values, of shape [1].",
    sequences=Sequences(source=None),
)


def _rows(x: Any) -> Any:
    return x.reshape(x.shape[0], -1)


def _cos_sim(xp: Any, X: Any, Y: Any) -> Any:
    x, y = _rows(X), _rows(Y)
    # Fluid takes rows shorter than 1e-4 for that long.
    long_x, long_y = (xp.sqrt(xp.maximum((v * v).sum(axis=1, keepdims=True), 1e-8)) for v in (x, y))
    return (x * y).sum(axis=1, keepdims=True) / long_x / long_y, long_x, long_y


def _cos_sim_grad(xp: Any, X: Any, Y: Any, Out: Any, XNorm: Any, YNorm: Any, Out_grad: Any) -> Any:
    x, y = _rows(X), _rows(Y)
    unit_x, unit_y = x / XNorm, y / YNorm
    dx = Out_grad * (unit_y - Out * unit_x) / XNorm
    dy = Out_grad * (unit_x - Out * unit_y) / YNorm
    if len(y) == 1:
        dy = dy.sum(axis=0, keepdims=True)
    return dx.reshape(X.shape), dy.reshape(Y.shape)


def _infer_cos_sim(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) < 2 or len(x) != len(y) or y[0] not in (1, -1, x[0]) and x[0] >= 0:
        raise op.fail(f"X and Y must have as many rows (or Y one), got shapes {list(x)} and {list(y)}")
    if not may_equal(x[1:], y[1:]):
        raise op.fail(f"the rows of X and Y must be equally long, got shapes {list(x)} and {list(y)}")
    dtype = require_same_dtype(op, "X", "Y")
    for slot, rows in (("Out", x[0]), ("XNorm", x[0]), ("YNorm", y[0])):
        op.set(slot, (rows, 1), dtype)


register_pair(
    "cos_sim",
    ("X", "Y"),
    _cos_sim,
    _cos_sim_grad,
    _infer_cos_sim,
    "The cosine of the angle between each row of X and that of Y, or the only one of Y.",
    outputs=("Out", "XNorm", "YNorm"),
    keep_out=("Out", "XNorm", "YNorm"),
    no_grad=("XNorm", "YNorm"),
    sequences=Sequences(source={"Out": "X"}),
    effects=Effects(numbered=False),
)
register_pair(
    "minus",
    ("X", "Y"),
    lambda xp, X, Y: X - Y,
    lambda xp, Out_grad: (Out_grad, -Out_grad),
    same_as("X"),
    "X - Y, both of one shape.",
    keep=(),
)
