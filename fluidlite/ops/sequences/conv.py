"""Convolution over the rows of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.products import matmul
from ..native import typed
from ..registry import Call, LodArray, OpDef, OpView, grad_name, register, standard_grad
from ..sequence import Lods, Segments, grads_keep_sequences, one_level, segments_of, set_rows, single

DX, DOUT, DFILTER = (grad_name(slot) for slot in ("X", "Out", "Filter"))


def _context(xp: Any, offsets: np.ndarray, start: int, length: int) -> tuple[Any, Any]:
    """For each row and each of the `length` places around it: the row there, and whether it is of the same
    sequence.
    """
    segments = Segments(offsets)
    at = np.arange(offsets[-1])[:, None] + np.arange(start, start + length)
    low, high = (bounds[segments.of_row][:, None] for bounds in (segments.starts, segments.ends))
    inside = (at >= low) & (at < high)
    return xp.asarray(np.where(inside, at, 0)), xp.asarray(inside)


def _gathered(xp: Any, x: Any, rows: Any, inside: Any) -> Any:
    """[rows, length * width]: the context of each row side by side, zeros outside of its sequence."""
    found = xp.where(inside[..., None], x[rows], xp.zeros((), x.dtype))
    return found.reshape(len(rows), rows.shape[1] * x.shape[1])


def _conv(xp: Any, X: Any, Filter: Any, contextStart: int, contextLength: int, lod: Lods) -> Any:
    offsets = one_level("sequence_conv", lod, "X")
    context = _gathered(xp, X, *_context(xp, offsets, contextStart, contextLength))
    return LodArray(matmul(xp, context, Filter), [offsets])


def _conv_grad(
    xp: Any, X: Any, Filter: Any, Out_grad: Any, contextStart: int, contextLength: int, lod: Lods
) -> Any:
    offsets = one_level("sequence_conv_grad", lod, "X")
    rows, inside = _context(xp, offsets, contextStart, contextLength)
    dfilter = matmul(xp, _gathered(xp, X, rows, inside).T, Out_grad)
    spread = matmul(xp, Out_grad, Filter.T).reshape(*rows.shape, X.shape[1])
    dx = xp.zeros_like(X)
    xp.add.at(dx, rows, xp.where(inside[..., None], spread, xp.zeros((), X.dtype)))
    return LodArray(dx, [offsets]), dfilter


def _conv_infer(op: OpView) -> None:
    shape, weights = op.shape("X"), op.shape("Filter")
    if op.attr("contextStride") != 1:
        raise op.fail(f"contextStride must be 1, got {op.attr('contextStride')}")
    if op.attr("paddingTrainable"):
        raise op.fail(
            "paddingTrainable must be False: what stands around a sequence is zeros here, as in Fluid's layers"
        )
    if len(shape) != 2 or len(weights) != 2:
        raise op.fail(f"X and Filter must have 2 dimensions, got {list(shape)} and {list(weights)}")
    if shape[1] >= 0 and weights[0] != shape[1] * op.attr("contextLength"):
        raise op.fail(
            f"Filter must have {shape[1] * op.attr('contextLength')} rows for this X, got {weights[0]}"
        )
    set_rows(op, "Out", (shape[0], weights[1]), op.dtype("X"), single(op, "X"))


def _call(op: OpView, kernel: str, operands: list[str | None]) -> Call | None:
    """A kernel on X, its offsets and Filter, then `operands`."""
    found = segments_of(op, "X")
    name = typed(op, kernel, ("X", "Filter"))
    if name is None or found is None:
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


def _native(op: OpView) -> Call | None:
    return _call(op, "sequence_conv", [op.name("Out")])


def _native_grad(op: OpView) -> Call | None:
    return _call(op, "sequence_conv_grad", [op.name(DOUT), op.name_or_none(DX), op.name_or_none(DFILTER)])


_CONV = {"paddingTrainable": False, "contextLength": 1, "contextStart": 0, "contextStride": 1}

register(
    OpDef(
        "sequence_conv",
        inputs=("X", "PaddingData?", "Filter"),
        attrs=_CONV,
        infer=_conv_infer,
        kernel=_conv,
        native=_native,
        grad=standard_grad(inputs=("X", "Filter")),
        lod=True,
        gradable=("X", "Filter"),
        doc="Each row with its neighbours of the same sequence (zeros beyond the ends), times a filter.",
    )
)
register(
    OpDef(
        "sequence_conv_grad",
        inputs=("X", "Filter", DOUT),
        outputs=(DX + "?", DFILTER + "?"),
        attrs=_CONV,
        infer=grads_keep_sequences,
        kernel=_conv_grad,
        native=_native_grad,
        lod=True,
        doc="The gradients of sequence_conv for rows and filter.",
    )
)
