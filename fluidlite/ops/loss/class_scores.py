"""Scores of a few classes chosen for each row, which `nce` and `hierarchical_sigmoid` share."""

from __future__ import annotations

from typing import Any


def scores_of(x: Any, weight: Any, bias: Any, chosen: Any) -> Any:
    """[rows, k]: the products of each row of `x` [rows, width] with the rows of `weight` [classes, width] that `chosen`
    [rows, k] names, plus `bias` (of `classes` elements, or None).
    """
    scores = (x[:, None, :] * weight[chosen]).sum(axis=2)
    return scores if bias is None else scores + bias.reshape(-1)[chosen]


def scores_grad(xp: Any, x: Any, weight: Any, bias: Any, chosen: Any, dscores: Any) -> tuple[Any, Any, Any]:
    """The gradients of `scores_of` for `x`, `weight` and `bias` (None without one); `dscores` is [rows, k]."""
    dx = (dscores[:, :, None] * weight[chosen]).sum(axis=1)
    dweight = xp.zeros_like(weight)
    xp.add.at(dweight, chosen, dscores[:, :, None] * x[:, None, :])
    if bias is None:
        return dx, dweight, None
    dbias = xp.zeros(bias.size, bias.dtype)
    xp.add.at(dbias, chosen, dscores)
    return dx, dweight, dbias.reshape(bias.shape)
