"""rank_attention: features of an advertisement's neighbours on a page, weighed by the ranks of both."""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType
from ..grad_pairs import register_pair
from ..registry import OpView
from ..scatter import add_at


def _blocks(xp: Any, RankOffset: Any, MaxRank: int) -> tuple[Any, Any, Any]:
    """For each row and rank: the row of X, the block of RankParam, and whether there is a neighbour."""
    own = RankOffset[:, :1] - 1
    others, index = RankOffset[:, 1::2] - 1, RankOffset[:, 2::2]
    there = (own >= 0) & (others >= 0)
    zero = xp.zeros((), RankOffset.dtype)
    return xp.where(there, index, zero), xp.where(there, own * MaxRank + others, zero), there


def _gathered(xp: Any, X: Any, RankOffset: Any, MaxRank: int) -> tuple[Any, Any]:
    rows, blocks, there = _blocks(xp, RankOffset, MaxRank)
    return X[rows] * there[..., None].astype(X.dtype), blocks


def _attention(xp: Any, X: Any, RankOffset: Any, RankParam: Any, MaxRank: int) -> Any:
    seen, blocks = _gathered(xp, X, RankOffset, MaxRank)
    table = RankParam.reshape(MaxRank * MaxRank, X.shape[1], -1)
    return (seen[..., None] * table[blocks]).sum(axis=(1, 2))


def _attention_grad(xp: Any, X: Any, RankOffset: Any, RankParam: Any, Out_grad: Any, MaxRank: int) -> Any:
    seen, blocks = _gathered(xp, X, RankOffset, MaxRank)
    made = xp.zeros((MaxRank * MaxRank, X.shape[1], Out_grad.shape[1]), RankParam.dtype)
    parts = seen[..., None] * Out_grad[:, None, None, :]
    add_at(xp, made, blocks.reshape(-1), parts.reshape(-1, *made.shape[1:]))
    return made.reshape(RankParam.shape)


def _infer(op: OpView) -> None:
    x, offsets, table, ranks = (
        op.shape("X"),
        op.shape("RankOffset"),
        op.shape("RankParam"),
        op.attr("MaxRank"),
    )
    if op.dtype("RankOffset") != VarType.INT32:
        raise op.fail(f"RankOffset must be int32, got {op.dtype('RankOffset')}")
    if len(x) != 2 or len(offsets) != 2 or offsets[1] != 2 * ranks + 1 or offsets[0] != x[0]:
        raise op.fail(
            f"X must be [rows, width] and RankOffset [rows, {2 * ranks + 1}], got {list(x)} and {list(offsets)}"
        )
    if len(table) != 2 or table[0] != ranks * ranks * x[1]:
        raise op.fail(f"RankParam must have {ranks * ranks} * {x[1]} rows, got shape {list(table)}")
    op.set("Out", (x[0], table[1]), op.dtype("X"))


register_pair(
    "rank_attention",
    ("X", "RankOffset", "RankParam"),
    _attention,
    _attention_grad,
    _infer,
    "The sum of products of neighbours, rows of X, with the blocks of RankParam for both ranks.",
    attrs={"MaxRank": 3},
    no_grad=("X", "RankOffset"),
)
