"""Matching of two texts: match_matrix_tensor, sequence_topk_avg_pooling, and var_conv_2d over images of different
sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
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

Windows = list[tuple[int, int, slice, slice, slice, slice]]


def _windows(height: int, width: int, kernel: tuple[int, int], stride: tuple[int, int]) -> Windows:
    """For each element of the kernel the slices of outputs that it contributes to, and of pixels that it multiplies.

    The kernel's centre is on every stride-th pixel; the border is padded with zeros.
    """
    result = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            spans = []
            for n, k, s, at in ((height, kernel[0], stride[0], i), (width, kernel[1], stride[1], j)):
                shift = at - k // 2
                first = max(0, -(shift // s))
                last = min((n - 1) // s, (n - 1 - shift) // s)
                spans.append(
                    (slice(first, last + 1), slice(first * s + shift, last * s + shift + 1, s), last >= first)
                )
            (out_rows, rows, some), (out_columns, columns, more) = spans
            if some and more:
                result.append((i, j, out_rows, out_columns, rows, columns))
    return result


def _each(X: Any, lod: Lods, attrs: dict[str, Any]) -> Iterator[tuple[Any, tuple[int, int], Windows]]:
    """Each picture, the size of its result, and `_windows`."""
    kernel, stride = ((attrs[f"{what}H"], attrs[f"{what}W"]) for what in ("Kernel", "Stride"))
    for picture, _ in pictures("var_conv_2d", X, lod, attrs["InputChannel"]):
        height, width = picture.shape[1:]
        if height and width:
            size = (height - 1) // stride[0] + 1, (width - 1) // stride[1] + 1
            yield picture, size, _windows(height, width, kernel, stride)
        else:
            yield picture, (0, 0), []


def _weights(W: Any, attrs: dict[str, Any]) -> Any:
    """The filters as [outputs, inputs, height, width]."""
    return W.reshape([attrs[name] for name in ("OutputChannel", "InputChannel", "KernelH", "KernelW")])


@hosted
def _conv(xp: Any, X: Any, W: Any, lod: Lods, **attrs: Any) -> Any:
    weights = _weights(W, attrs)
    parts, patches = [], []
    for picture, size, windows in _each(X, lod, attrs):
        made = np.zeros((len(weights), *size), X.dtype)
        seen = np.zeros((*weights.shape[1:], *size), X.dtype)
        for i, j, out_rows, out_columns, rows, columns in windows:
            pixels = seen[:, i, j, out_rows, out_columns] = picture[:, rows, columns]
            made[:, out_rows, out_columns] += np.tensordot(weights[:, :, i, j], pixels, 1)
        parts.append(made)
        patches.append(seen)
    return _sequences(parts, X.dtype), _sequences(patches, X.dtype)


def _sequences(parts: list[np.ndarray], dtype: Any) -> LodArray:
    """The elements of each part as a sequence of rows of one."""
    rows = np.concatenate([*(part.ravel() for part in parts), np.zeros(0, dtype)]).reshape(-1, 1)
    return LodArray(rows, [np.cumsum([0, *(part.size for part in parts)])])


@hosted
def _conv_grad(xp: Any, X: Any, W: Any, Out_grad: Any, lod: Lods, **attrs: Any) -> Any:
    weights = _weights(W, attrs)
    dw, parts, at = np.zeros_like(weights), [], 0
    for picture, size, windows in _each(X, lod, attrs):
        count = len(weights) * size[0] * size[1]
        grad = Out_grad.reshape(-1)[at : at + count].reshape(len(weights), *size)
        at += count
        made = np.zeros_like(picture)
        for i, j, out_rows, out_columns, rows, columns in windows:
            part = grad[:, out_rows, out_columns]
            made[:, rows, columns] += np.tensordot(weights[:, :, i, j].T, part, 1)
            dw[:, :, i, j] += np.tensordot(part, picture[:, rows, columns], ((1, 2), (1, 2)))
        parts.append(made.ravel())
    dx = np.concatenate([*parts, np.zeros(0, X.dtype)]).reshape(X.shape)
    return LodArray(dx, input_lod(lod, "X")), dw.reshape(W.shape)


def _infer(op: OpView) -> None:
    for name in ("InputChannel", "OutputChannel", "StrideH", "StrideW", "KernelH", "KernelW"):
        if op.attr(name) < 1:
            raise op.fail(f"{name} must be positive, got {op.attr(name)}")
    wanted = op.attr("OutputChannel"), op.attr("InputChannel") * op.attr("KernelH") * op.attr("KernelW")
    if op.shape("W") != wanted:
        raise op.fail(f"W must be {list(wanted)}, got {list(op.shape('W'))}")
    for slot in ("Out", "Col"):
        op.set(slot, (-1, 1), op.dtype("X"))


register_pair(
    "var_conv_2d",
    ("X", "ROW", "COLUMN", "W"),
    _conv,
    _conv_grad,
    _infer,
    "The convolution of each sequence of X, a picture with as many rows and columns as those of ROW and COLUMN.",
    outputs=("Out", "Col?"),
    attrs={"InputChannel": 1, "OutputChannel": 1, "StrideH": 1, "StrideW": 1, "KernelH": 1, "KernelW": 1},
    keep=("X", "ROW#", "COLUMN#", "W"),
    keep_out=("Out#", "Col#"),
    no_grad=("ROW", "COLUMN", "Col"),
    sequences=Sequences(levels=Levels("X", outs=("Out",)), takes_lod=True),
)
