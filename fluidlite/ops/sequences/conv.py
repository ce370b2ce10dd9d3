"""Convolution and lookahead convolution over the rows of sequences or over the time of padded batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.functions import matmul
from ...base.lod import Lod
from ..grad_pairs import register_pair
from ..native import typed
from ..registry import Call, Levels, LodArray, OpView, Sequences, grad_name
from ..sequence import (
    Lods,
    Segments,
    deep,
    grads_keep_sequences,
    levels,
    one_level,
    segments_of,
    set_rows,
    single,
)

DX, DOUT, DFILTER = (grad_name(slot) for slot in ("X", "Out", "Filter"))


def _context(xp: Any, offsets: np.ndarray, attrs: dict[str, Any]) -> tuple[Any, Any]:
    """For each row and each of the `contextLength` positions of its window: the row there, and whether there is one.

    Rows of PaddingData, if it is trained, follow those of X: first the left padding, then the right.
    """
    start, length = attrs["contextStart"], attrs["contextLength"]
    segments = Segments(offsets)
    at = np.arange(offsets[-1])[:, None] + np.arange(start, start + length)
    low, high = (bounds[segments.of_row][:, None] for bounds in (segments.starts, segments.ends))
    before, after = at < low, at >= high
    if attrs["paddingTrainable"]:
        padding = np.where(before, max(0, -start) + at - low, max(0, -start) + at - high)
        return xp.asarray(np.where(before | after, offsets[-1] + padding, at)), xp.ones(at.shape, bool)
    return xp.asarray(np.where(before | after, 0, at)), xp.asarray(~(before | after))


def _padded(xp: Any, x: Any, padding: Any, trained: bool) -> Any:
    """The rows of contexts: those of X, and of PaddingData if it is `trained`."""
    return xp.concatenate([x, padding]) if trained else x


def _gathered(xp: Any, x: Any, rows: Any, inside: Any) -> Any:
    """[rows, length * width]: the context of each row side by side, zeros outside of its sequence."""
    found = xp.where(inside[..., None], x[rows], xp.zeros((), x.dtype))
    return found.reshape(len(rows), rows.shape[1] * x.shape[1])


def _conv(xp: Any, X: Any, PaddingData: Any, Filter: Any, lod: Lods, **attrs: Any) -> Any:
    offsets = one_level("sequence_conv", lod, "X")
    rows, inside = _context(xp, offsets, attrs)
    context = _gathered(xp, _padded(xp, X, PaddingData, attrs["paddingTrainable"]), rows, inside)
    return LodArray(matmul(xp, context, Filter), [offsets])


def _conv_grad(xp: Any, X: Any, PaddingData: Any, Filter: Any, Out_grad: Any, lod: Lods, **attrs: Any) -> Any:
    offsets = one_level("sequence_conv_grad", lod, "X")
    rows, inside = _context(xp, offsets, attrs)
    x = _padded(xp, X, PaddingData, attrs["paddingTrainable"])
    dfilter = matmul(xp, _gathered(xp, x, rows, inside).T, Out_grad)
    spread = matmul(xp, Out_grad, Filter.T).reshape(*rows.shape, X.shape[1])
    dx = xp.zeros_like(x)
    xp.add.at(dx, rows, xp.where(inside[..., None], spread, xp.zeros((), X.dtype)))
    dpadding = dx[len(X) :] if attrs["paddingTrainable"] else None
    return LodArray(dx[: len(X)], [offsets]), dpadding, dfilter


def _conv_infer(op: OpView) -> None:
    shape, weights = op.shape("X"), op.shape("Filter")
    if op.attr("contextStride") != 1:
        raise op.fail(f"contextStride must be 1, got {op.attr('contextStride')}")
    if len(shape) != 2 or len(weights) != 2:
        raise op.fail(f"X and Filter must have 2 dimensions, got {list(shape)} and {list(weights)}")
    if op.attr("paddingTrainable"):
        start, length = op.attr("contextStart"), op.attr("contextLength")
        padding = [max(0, -start) + max(0, start + length - 1), shape[1]]
        if not op.has("PaddingData") or list(op.shape("PaddingData")) != padding:
            got = list(op.shape("PaddingData")) if op.has("PaddingData") else "none"
            raise op.fail(f"with paddingTrainable, PaddingData must have shape {padding}, got {got}")
    if shape[1] >= 0 and weights[0] != shape[1] * op.attr("contextLength"):
        raise op.fail(
            f"Filter must have {shape[1] * op.attr('contextLength')} rows for this X, got {weights[0]}"
        )
    set_rows(op, "Out", (shape[0], weights[1]), op.dtype("X"), single(op, "X"))


def _call(op: OpView, kernel: str, operands: list[str | None]) -> Call | None:
    """A kernel on X, its offsets and Filter, then `operands`."""
    found = segments_of(op, "X")
    name = typed(op, kernel, ("X", "Filter"))
    if name is None or found is None or op.attr("paddingTrainable"):
        return None
    offsets, count, rows = found
    ints = [
        count,
        rows,
        op.shape("X")[1],
        op.shape("Filter")[1],
        op.attr("contextStart"),
        op.attr("contextLength"),
    ]
    return Call(name, [op.name("X"), offsets, op.name("Filter"), *operands], ints)


_CONV = {"paddingTrainable": False, "contextLength": 1, "contextStart": 0, "contextStride": 1}


register_pair(
    "sequence_conv",
    ("X", "PaddingData?", "Filter"),
    _conv,
    _conv_grad,
    _conv_infer,
    "Each row with its neighbours of the same sequence (beyond its ends zeros or PaddingData), times a filter.",
    attrs=_CONV,
    sequences=Sequences(takes_lod=True, levels=Levels("X", least=1)),
    infer_back=grads_keep_sequences,
    native=(
        lambda op: _call(op, "sequence_conv", [op.name("Out")]),
        lambda op: _call(op, "sequence_conv_grad", [op.name(DOUT), *map(op.name_or_none, (DX, DFILTER))]),
    ),
)


def _levels(X: Any, lod: Lods) -> Lod:
    """The LoD of X; none for a padded batch."""
    return levels("row_conv", lod, "X") if X.ndim == 2 else ()


def _spans(X: Any, lod: Lod) -> list[tuple[Any, int]]:
    """The index and the length of each sequence of X; a padded batch is one index over its time axis."""
    if X.ndim == 3:
        return [((slice(None), slice(None)), X.shape[1])]
    offsets = lod[-1].tolist()
    return [((slice(a, b),), b - a) for a, b in zip(offsets, offsets[1:], strict=False)]


def _pairs(steps: int, length: int) -> list[tuple[int, Any, Any]]:
    """For each filter row that reaches into a sequence of `length`: its number, the output rows and the input rows."""
    return [
        (k, (Ellipsis, slice(0, length - k), slice(None)), (Ellipsis, slice(k, length), slice(None)))
        for k in range(min(steps, length))
    ]


def _row_conv(xp: Any, X: Any, Filter: Any, lod: Lods) -> Any:
    own = _levels(X, lod)
    out = xp.zeros_like(X)
    for where, length in _spans(X, own):
        for k, to, of in _pairs(len(Filter), length):
            out[where][to] += Filter[k] * X[where][of]
    return LodArray(out, own) if own else out


def _row_conv_grad(xp: Any, X: Any, Filter: Any, Out_grad: Any, lod: Lods) -> Any:
    own = _levels(X, lod)
    dx, dfilter = xp.zeros_like(X), xp.zeros_like(Filter)
    for where, length in _spans(X, own):
        for k, to, of in _pairs(len(Filter), length):
            dx[where][of] += Filter[k] * Out_grad[where][to]
            dfilter[k] += (X[where][of] * Out_grad[where][to]).reshape(-1, X.shape[-1]).sum(axis=0)
    return (LodArray(dx, own) if own else dx), dfilter


def _infer(op: OpView) -> None:
    shape, weights = op.shape("X"), op.shape("Filter")
    if len(shape) not in (2, 3) or len(weights) != 2 or (shape[-1] != weights[1] and shape[-1] >= 0):
        raise op.fail(
            "X must be [rows, width] or [batch, time, width] and Filter [steps, width], "
            f"got {list(shape)} and {list(weights)}"
        )
    if len(shape) == 3:
        op.set("Out", shape, op.dtype("X"))
        op.carry("Out", ())
    else:
        set_rows(op, "Out", shape, op.dtype("X"), deep(op, "X"))


def _row_conv_call(op: OpView, kernel: str, operands: list[str | None]) -> Call | None:
    """A kernel on X, its offsets (none for a padded batch) and Filter, then `operands`."""
    name, shape = typed(op, kernel, ("X", "Filter")), op.shape("X")
    offsets: str | None = None
    if len(shape) == 3:
        count, rows = shape[0], shape[0] * shape[1]
    else:
        found = segments_of(op, "X")
        if found is None:
            return None
        offsets, count, rows = found
    if name is None:
        return None
    ints = [count, rows, shape[-1], op.shape("Filter")[0]]
    return Call(name, [op.name("X"), offsets, op.name("Filter"), *operands], ints)


register_pair(
    "row_conv",
    ("X", "Filter"),
    _row_conv,
    _row_conv_grad,
    _infer,
    "The sum of each row and those that follow it in its sequence, each times a row of Filter.",
    sequences=Sequences(levels=Levels("X"), takes_lod=True),
    infer_back=grads_keep_sequences,
    native=(
        lambda op: _row_conv_call(op, "row_conv", [op.name("Out")]),
        lambda op: _row_conv_call(op, "row_conv_grad", [op.name(DOUT), *map(op.name_or_none, (DX, DFILTER))]),
    ),
)
