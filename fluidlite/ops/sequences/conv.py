"""Convolution over the rows of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.products import matmul
from ..native import typed
from ..registry import Call, Levels, LodArray, OpDef, OpView, Sequences, grad_name, register, standard_grad
from ..sequence import Lods, Segments, grads_keep_sequences, one_level, segments_of, set_rows, single

DX, DOUT, DPADDING, DFILTER = (grad_name(slot) for slot in ("X", "Out", "PaddingData", "Filter"))


def _context(xp: Any, offsets: np.ndarray, start: int, length: int, padded: bool) -> tuple[Any, Any]:
    """For each row and each of the `length` positions of its window: the row there, and whether there is one. Rows of
    PaddingData, if sequences are `padded` with it, follow those of X: first the left padding, then the right.
    """
    segments = Segments(offsets)
    at = np.arange(offsets[-1])[:, None] + np.arange(start, start + length)
    low, high = (bounds[segments.of_row][:, None] for bounds in (segments.starts, segments.ends))
    before, after = at < low, at >= high
    if padded:
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


def _conv(
    xp: Any,
    X: Any,
    PaddingData: Any,
    Filter: Any,
    paddingTrainable: bool,
    contextStart: int,
    contextLength: int,
    lod: Lods,
) -> Any:
    offsets = one_level("sequence_conv", lod, "X")
    rows, inside = _context(xp, offsets, contextStart, contextLength, paddingTrainable)
    context = _gathered(xp, _padded(xp, X, PaddingData, paddingTrainable), rows, inside)
    return LodArray(matmul(xp, context, Filter), [offsets])


def _conv_grad(
    xp: Any,
    X: Any,
    PaddingData: Any,
    Filter: Any,
    Out_grad: Any,
    paddingTrainable: bool,
    contextStart: int,
    contextLength: int,
    lod: Lods,
) -> Any:
    offsets = one_level("sequence_conv_grad", lod, "X")
    rows, inside = _context(xp, offsets, contextStart, contextLength, paddingTrainable)
    x = _padded(xp, X, PaddingData, paddingTrainable)
    dfilter = matmul(xp, _gathered(xp, x, rows, inside).T, Out_grad)
    spread = matmul(xp, Out_grad, Filter.T).reshape(*rows.shape, X.shape[1])
    dx = xp.zeros_like(x)
    xp.add.at(dx, rows, xp.where(inside[..., None], spread, xp.zeros((), X.dtype)))
    dpadding = dx[len(X) :] if paddingTrainable else None
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

register(
    OpDef(
        "sequence_conv",
        inputs=("X", "PaddingData?", "Filter"),
        attrs=_CONV,
        infer=_conv_infer,
        kernel=_conv,
        grad=standard_grad(inputs=("X", "PaddingData", "Filter")),
        native=lambda op: _call(op, "sequence_conv", [op.name("Out")]),
        sequences=Sequences(takes_lod=True, levels=Levels("X", least=1)),
        doc="Each row with its neighbours of the same sequence (beyond its ends zeros or PaddingData), times a filter.",
    )
)
register(
    OpDef(
        "sequence_conv_grad",
        inputs=("X", "PaddingData?", "Filter", DOUT),
        outputs=(DX + "?", DPADDING + "?", DFILTER + "?"),
        attrs=_CONV,
        infer=grads_keep_sequences,
        kernel=_conv_grad,
        native=lambda op: _call(
            op, "sequence_conv_grad", [op.name(DOUT), *map(op.name_or_none, (DX, DFILTER))]
        ),
        sequences=Sequences(takes_lod=True),
        doc="The gradients of sequence_conv for rows, padding and filter.",
    )
)
