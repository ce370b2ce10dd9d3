"""Lookahead convolution over the rows of sequences or over the time of padded batches."""

from __future__ import annotations

from typing import Any

from ...base.lod import Lod
from ..grad_pairs import register_pair
from ..native import typed
from ..registry import Call, Levels, LodArray, OpView, Sequences, grad_name
from ..sequence import Lods, deep, grads_keep_sequences, levels, segments_of, set_rows

DX, DFILTER, DOUT = (grad_name(slot) for slot in ("X", "Filter", "Out"))


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


def _call(op: OpView, kernel: str, operands: list[str | None]) -> Call | None:
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
        lambda op: _call(op, "row_conv", [op.name("Out")]),
        lambda op: _call(op, "row_conv_grad", [op.name(DOUT), *map(op.name_or_none, (DX, DFILTER))]),
    ),
)
