"""Alignment of two operands: Fluid's `axis`, and NumPy's broadcasting."""

from __future__ import annotations

from typing import Any

from ..base.sizes.shapes import aligned, same_shape
from ..base.sizes.shapes import middle as middle
from .registry import OpView, Shape


def broadcast_shape(op: OpView, axis: int) -> Shape:
    """The shape of X and Y broadcast together; raises the operator's error if they do not fit."""
    x, y = op.shape("X"), op.shape("Y")
    if same_shape(x, y):
        return x  # whatever the axis
    rank = max(len(x), len(y))
    if not -1 <= axis < max(rank, 1) and len(x) != len(y):
        raise op.fail(f"axis must be in [-1, {rank}), got {axis}")
    left, right = aligned(x, y, axis)
    if len(left) != len(right):
        raise op.fail(f"X of shape {list(x)} and Y of shape {list(y)} cannot be lined up at axis {axis}")
    dims = []
    for m, n in zip(left, right, strict=True):
        if m != n and min(m, n) > 1:
            raise op.fail(
                f"cannot broadcast X of shape {list(x)} with Y of shape {list(y)} at axis {axis}: "
                f"{m} is not {n}"
            )
        # An unknown size with 1 or another unknown one is unknown; with any other it is that one.
        known = 0 if 0 in (m, n) else max(m, n)
        dims.append(known if min(m, n) >= 0 or known > 1 else -1)
    return tuple(dims)


def operands(X: Any, Y: Any, axis: int) -> tuple[Any, Any]:
    """X and Y reshaped so that NumPy's broadcasting aligns them at `axis`."""
    if X.shape == Y.shape:
        return X, Y
    left, right = aligned(X.shape, Y.shape, axis)
    return X.reshape(left), Y.reshape(right)


def reduced(xp: Any, gradient: Any, shape: Shape, other: Shape, axis: int) -> Any:
    """`gradient` of the broadcast result summed down to `shape`, that of the operand it is for."""
    if gradient.shape == tuple(shape):
        return gradient
    mine, _ = aligned(shape, other, axis)
    axes = tuple(k for k, (n, m) in enumerate(zip(mine, gradient.shape, strict=True)) if n == 1 != m)
    return gradient.sum(axis=axes, dtype=gradient.dtype).reshape(shape)
