"""similarity_focus: a mask of the largest elements, one for each row and column at most."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..host_fallback import hosted
from ..registry import OpDef, OpView, register


def _focus(scores: Any) -> Any:
    """The mask [batch, height, width] of a greedy choice: each time the largest element in an unused row and column."""
    count, height, width = scores.shape
    mask, free = np.zeros(scores.shape, bool), np.ones(scores.shape, bool)
    batch = np.arange(count)
    for _ in range(min(height, width)):
        best = np.where(free, scores, -np.inf).reshape(count, -1).argmax(axis=1)
        row, column = best // width, best % width
        mask[batch, row, column] = True
        free[batch, row] = False
        free[batch, :, column] = False
    return mask


@hosted
def _similarity_focus(xp: Any, X: Any, axis: int, indexes: list[int]) -> Any:
    masks = [_focus(X.take(index, axis=axis)) for index in indexes]
    whole = np.expand_dims(np.logical_or.reduce(masks), axis)
    return xp.asarray(np.broadcast_to(whole, X.shape), dtype=X.dtype)


def _infer(op: OpView) -> None:
    shape, axis = op.shape("X"), op.attr("axis")
    if len(shape) != 4 or axis not in (1, 2, 3):
        raise op.fail(f"X must have four dimensions and axis be 1, 2 or 3, got {list(shape)} and {axis}")
    for index in op.attr("indexes"):
        if index < 0 or (index >= shape[axis] and shape[axis] >= 0):
            raise op.fail(f"indexes must be in [0, {shape[axis]}), got {index}")
    op.set("Out", shape, op.dtype("X"))


register(
    OpDef(
        "similarity_focus",
        inputs=("X",),
        attrs={"axis": 1, "indexes": []},
        infer=_infer,
        kernel=_similarity_focus,
        no_grad=("Out",),
        doc="Ones at the largest elements of some slices along axis, one for each row and column, zeros elsewhere.",
    )
)
