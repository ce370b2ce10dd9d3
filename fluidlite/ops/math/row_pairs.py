"""squared_l2_distance, conv_shift: functions of the pairs of rows of two matrices."""

from __future__ import annotations

from typing import Any

from ..grad_pairs import register_pair
from ..registry import OpView, Sequences


def _flat(x: Any) -> Any:
    return x.reshape(len(x), -1)


def _distance(xp: Any, X: Any, Y: Any) -> Any:
    difference = _flat(X) - _flat(Y)
    return difference, (difference * difference).sum(axis=1, keepdims=True)


def _distance_grad(xp: Any, X: Any, Y: Any, sub_result: Any, Out_grad: Any) -> Any:
    dx = 2 * Out_grad * sub_result
    dy = -dx if len(X) == len(Y) else -dx.sum(axis=0, keepdims=True)
    return dx.reshape(X.shape), dy.reshape(Y.shape)


def _infer_distance(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) < 2 or x[1:] != y[1:] or (y[0] not in (1, x[0]) and min(x[0], y[0]) >= 0):
        raise op.fail(f"Y must have the shape of X, or its first dimension be 1, got {list(x)} and {list(y)}")
    width = 1
    for n in x[1:]:
        width = width * n
    op.set("sub_result", (x[0], width), op.dtype("X"))
    op.set("Out", (x[0], 1), op.dtype("X"))


register_pair(
    "squared_l2_distance",
    ("X", "Y"),
    _distance,
    _distance_grad,
    _infer_distance,
    "The squared distance of each row of X from that of Y, or from its only row.",
    outputs=("sub_result", "Out"),
    keep=("X#", "Y#"),
    keep_out=("sub_result",),
    no_grad=("sub_result",),
    sequences=Sequences(source={"Out": "X"}),
)


def _windows(xp: Any, width: int, window: int) -> Any:
    """[width, window]: which columns the window around each column sees; beyond the ends it begins anew."""
    return (xp.arange(width)[:, None] + xp.arange(window) - (window - 1) // 2) % width


def _shift(xp: Any, X: Any, Y: Any) -> Any:
    return (X[:, _windows(xp, X.shape[1], Y.shape[1])] * Y[:, None, :]).sum(axis=2)


def _shift_grad(xp: Any, X: Any, Y: Any, Out_grad: Any) -> Any:
    windows = _windows(xp, X.shape[1], Y.shape[1])
    dy = (X[:, windows] * Out_grad[:, :, None]).sum(axis=1)
    dx = xp.zeros_like(X)
    for k in range(Y.shape[1]):
        dx[:, windows[:, k]] += Out_grad * Y[:, k : k + 1]
    return dx, dy


def _infer_shift(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) != 2 or len(y) != 2 or (x[0] != y[0] and min(x[0], y[0]) >= 0):
        raise op.fail(f"X and Y must be matrices with as many rows, got {list(x)} and {list(y)}")
    if y[1] >= 0 and (y[1] % 2 == 0 or 0 <= x[1] < y[1]):
        raise op.fail(f"the width of Y must be odd and at most that of X, got {y[1]} and {x[1]}")
    op.set("Out", x, op.dtype("X"))


register_pair(
    "conv_shift",
    ("X", "Y"),
    _shift,
    _shift_grad,
    _infer_shift,
    "The circular convolution of each row of X with that of Y (Graves et al. 2014).",
)
