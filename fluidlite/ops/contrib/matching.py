"""match_matrix_tensor, sequence_topk_avg_pooling: how the words of two texts go together (Liu et al. 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..registry import Levels, LodArray, OperatorError, OpView, Sequences
from ..sequence import Lods, input_lod

Spans = list[tuple[int, int]]


def _spans(op_type: str, lod: Lods, slot: str) -> Spans:
    levels = input_lod(lod, slot)
    if not levels:
        raise OperatorError(f"operator {op_type}: {slot} has no sequences")
    offsets = np.asarray(levels[-1]).tolist()
    return list(zip(offsets, offsets[1:], strict=False))


def _texts(lod: Lods) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    left, right = (_spans("match_matrix_tensor", lod, slot) for slot in ("X", "Y"))
    if len(left) != len(right):
        raise OperatorError(
            f"operator match_matrix_tensor: X and Y must have as many sequences, got {len(left)} and {len(right)}"
        )
    return list(zip(left, right, strict=True))


@hosted
def _match(xp: Any, X: Any, Y: Any, W: Any, lod: Lods) -> Any:
    through = np.einsum("nh,htk->ntk", X, W)
    parts = [np.einsum("ltk,rk->tlr", through[a:b], Y[c:d]).ravel() for (a, b), (c, d) in _texts(lod)]
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    out = np.concatenate([*parts, np.zeros(0, X.dtype)]).reshape(-1, 1).astype(X.dtype, copy=False)
    return LodArray(out, [offsets]), through.reshape(-1, 1)


@hosted
def _match_grad(xp: Any, X: Any, Y: Any, W: Any, Tmp: Any, Out_grad: Any, lod: Lods) -> Any:
    count = W.shape[1]
    through = Tmp.reshape(len(X), count, -1)
    d_through, dy = np.zeros_like(through), np.zeros_like(Y)
    at = 0
    for (a, b), (c, d) in _texts(lod):
        size = count * (b - a) * (d - c)
        grad = Out_grad[at : at + size].reshape(count, b - a, d - c)
        at += size
        d_through[a:b] = np.einsum("tlr,rk->ltk", grad, Y[c:d])
        dy[c:d] = np.einsum("tlr,ltk->rk", grad, through[a:b])
    dx = np.einsum("ntk,htk->nh", d_through, W)
    dw = np.einsum("nh,ntk->htk", X, d_through)
    return LodArray(dx, input_lod(lod, "X")), LodArray(dy, input_lod(lod, "Y")), dw


def _infer_match(op: OpView) -> None:
    x, y, w = op.shape("X"), op.shape("Y"), op.shape("W")
    if len(x) != 2 or len(y) != 2 or w != (x[1], op.attr("dim_t"), y[1]):
        raise op.fail(
            f"X and Y must be [rows, width] and W [width of X, {op.attr('dim_t')}, width of Y], got "
            f"{list(x)}, {list(y)} and {list(w)}"
        )
    op.set("Out", (-1, 1), op.dtype("X"))
    op.set("Tmp", (-1, 1), op.dtype("X"))


register_pair(
    "match_matrix_tensor",
    ("X", "Y", "W"),
    _match,
    _match_grad,
    _infer_match,
    "x * W * y for each row x of a sequence of X and y of that of Y, `dim_t` matrices for each pair of sequences.",
    outputs=("Out", "Tmp"),
    attrs={"dim_t": 1},
    keep_out=("Tmp",),
    no_grad=("Tmp",),
    sequences=Sequences(levels=Levels("X", outs=("Out",)), takes_lod=True),
)


def pictures(name: str, X: Any, lod: Lods, channels: int) -> list[tuple[Any, tuple[int, int]]]:
    """For each sequence its elements, [channels, rows, columns], and its range of rows in ROW; `name`: the operator."""
    whole, rows, columns = (_spans(name, lod, slot) for slot in ("X", "ROW", "COLUMN"))
    result = []
    for (a, b), (c, d), (e, f) in zip(whole, rows, columns, strict=True):
        if b - a != channels * (d - c) * (f - e):
            raise OperatorError(
                f"operator {name}: a sequence of {b - a} numbers is no {channels} channels of {d - c} rows and {f - e} "
                "columns"
            )
        result.append((X.reshape(-1)[a:b].reshape(channels, d - c, f - e), (c, d)))
    return result


@hosted
def _topk(xp: Any, X: Any, ROW: Any, topks: list[int], channel_num: int, lod: Lods) -> Any:
    most = max(topks)
    out = np.zeros((len(ROW), channel_num, len(topks)), X.dtype)
    places = []
    for values, (c, d) in pictures("sequence_topk_avg_pooling", X, lod, channel_num):
        order = np.argsort(-values, axis=2, kind="stable")[:, :, :most]
        best = np.take_along_axis(values, order, axis=2)
        for index, k in enumerate(topks):
            out[c:d, :, index] = (best[:, :, :k].sum(axis=2) / k).T
        padded = np.full((*order.shape[:2], most), -1, "int32")
        padded[:, :, : order.shape[2]] = order
        places.append(padded.ravel())
    pos = np.concatenate([*places, np.zeros(0, "int32")])
    return LodArray(out.reshape(len(ROW), -1), input_lod(lod, "ROW")), pos


@hosted
def _topk_grad(
    xp: Any, X: Any, ROW: Any, pos: Any, Out_grad: Any, topks: list[int], channel_num: int, lod: Lods
) -> Any:
    most, at = max(topks), 0
    grads = Out_grad.reshape(len(ROW), channel_num, len(topks))
    parts = []
    for values, (c, d) in pictures("sequence_topk_avg_pooling", X, lod, channel_num):
        made = np.zeros_like(values)
        size = channel_num * (d - c) * most
        places = pos[at : at + size].reshape(channel_num, d - c, most)
        at += size
        channel, row = np.ogrid[:channel_num, : d - c]
        for index, k in enumerate(topks):
            for one in range(min(k, values.shape[2])):
                made[channel, row, places[:, :, one]] += grads[c:d, :, index].T / k
        parts.append(made.ravel())
    return LodArray(np.concatenate([*parts, np.zeros(0, X.dtype)]).reshape(X.shape), input_lod(lod, "X"))


def _infer_topk(op: OpView) -> None:
    topks = list(op.attr("topks"))
    if not topks or min(topks) < 1:
        raise op.fail(f"topks must be positive, got {topks}")
    if op.attr("channel_num") < 1:
        raise op.fail(f"channel_num must be positive, got {op.attr('channel_num')}")
    op.set("Out", (op.shape("ROW")[0], op.attr("channel_num") * len(topks)), op.dtype("X"))
    op.set("pos", (-1,), VarType.INT32)


register_pair(
    "sequence_topk_avg_pooling",
    ("X", "ROW", "COLUMN"),
    _topk,
    _topk_grad,
    _infer_topk,
    "The means of the k largest numbers of each row of the matrices that sequences are; less than k count as zeros.",
    outputs=("Out", "pos"),
    attrs={"topks": [], "channel_num": 1},
    keep=("X#", "ROW#", "COLUMN#"),
    keep_out=("pos",),
    no_grad=("ROW", "COLUMN", "pos"),
    sequences=Sequences(takes_lod=True),
)
