"""Convolution and lookahead over the rows of sequences or over time; pooling and softmax within sequences."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...backend.functions import matmul
from ...base.dtypes import VarType
from ...base.lod import Lod
from ..grad_pairs import register_pair
from ..infer import product
from ..native import typed
from ..registry import Call, Levels, LodArray, OpView, Planning, Sequences, grad_name, standard_grad
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


def _divisors(kind: str, lengths: Any) -> Any:
    """The divisor of each sequence's sum under pooling type `kind`."""
    return {"SUM": np.ones_like(lengths), "AVERAGE": lengths, "SQRT": np.sqrt(lengths)}[kind]


def _pool(xp: Any, X: Any, pooltype: str, pad_value: float, lod: Lods) -> Any:
    deep = levels("sequence_pool", lod, "X")
    segments = Segments(deep[-1])
    shape = (len(segments), *X.shape[1:])
    wide = (-1,) + (1,) * (X.ndim - 1)
    rows = xp.asarray(segments.of_row)
    index = None
    if pooltype == "MAX":
        out, index = _maxima(xp, X, segments, shape)
    elif pooltype in ("FIRST", "LAST"):
        at = segments.starts if pooltype == "FIRST" else segments.ends - 1
        out = X[xp.asarray(np.clip(at, 0, max(len(X) - 1, 0)))] if len(X) else xp.zeros(shape, X.dtype)
    else:
        out = xp.zeros(shape, X.dtype)
        xp.add.at(out, rows, X)
        divisors = np.maximum(_divisors(pooltype, segments.lengths), 1)
        out = out / xp.asarray(divisors.astype(X.dtype)).reshape(wide)
    empty = xp.asarray(segments.lengths == 0).reshape(wide)
    out = xp.where(empty, X.dtype.type(pad_value), out)
    return LodArray(out, deep[:-1]), index


def _maxima(xp: Any, x: Any, segments: Segments, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The largest element of each column of each sequence, and its first row (-1 for an empty sequence)."""
    rows = xp.asarray(segments.of_row)
    out = xp.full(shape, -np.inf, x.dtype)
    xp.maximum.at(out, rows, x)
    place = xp.arange(len(x), dtype="int32").reshape(-1, *[1] * (x.ndim - 1))
    first = xp.full(shape, len(x), "int32")
    best = out[rows]
    xp.minimum.at(first, rows, xp.where((x == best) | (xp.isnan(x) & xp.isnan(best)), place, len(x)))
    return out, xp.where(first == len(x), -1, first)


def _pool_grad(xp: Any, X: Any, MaxIndex: Any, Out_grad: Any, pooltype: str, lod: Lods) -> Any:
    deep = levels("sequence_pool_grad", lod, "X")
    segments = Segments(deep[-1])
    rows = xp.asarray(segments.of_row)
    place = xp.arange(len(X)).reshape(-1, *[1] * (X.ndim - 1))
    zero = xp.zeros((), X.dtype)
    if pooltype == "MAX":
        dx = xp.where(MaxIndex[rows] == place, Out_grad[rows], zero)
    elif pooltype in ("FIRST", "LAST"):
        at = segments.starts if pooltype == "FIRST" else segments.ends - 1
        dx = xp.where(xp.asarray(at)[rows].reshape(place.shape) == place, Out_grad[rows], zero)
    else:
        divisors = xp.asarray(np.maximum(_divisors(pooltype, segments.lengths), 1).astype(X.dtype))
        dx = (Out_grad / divisors.reshape(-1, *[1] * (X.ndim - 1)))[rows]
    return LodArray(dx, deep)


def _infer_pool(op: OpView) -> None:
    kinds = ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST")
    if op.attr("pooltype") not in kinds:
        raise op.fail(f"pooltype must be one of {', '.join(kinds)}, got {op.attr('pooltype')!r}")
    found = deep(op, "X")
    shape = (op.sequences("X"), *op.shape("X")[1:])
    set_rows(op, "Out", shape, op.dtype("X"), found and found[:-1])
    if op.attr("pooltype") == "MAX":
        kind = op.dtype("X") if op.building else VarType.INT32
        set_rows(op, "MaxIndex", shape, kind, found and ())


_SCALING = {"SUM": 0, "AVERAGE": 1, "SQRT": 2}


def _pool_call(op: OpView, back: bool) -> Call | None:
    """The call of the pooling kernel, or of its gradient."""
    kind, found = op.attr("pooltype"), segments_of(op, "X")
    stem = "sum" if kind in _SCALING else "max" if kind == "MAX" else "end"
    name = typed(op, f"sequence_pool_{stem}{'_grad' * back}", ("X", DOUT) if back else ("X",))
    if name is None or found is None:
        return None
    (offsets, *sizes), index = found, [op.name("MaxIndex")] if stem == "max" else []
    ints = [*sizes, product(op.shape("X")[1:]), *([] if index else [_SCALING.get(kind, int(kind == "LAST"))])]
    if back:
        return Call(name, [offsets, *index, op.name(DOUT), op.name(DX)], ints)
    return Call(name, [op.name("X"), offsets, op.name("Out"), *index], ints, [op.attr("pad_value")])


def _pool_rule(op: OpView) -> Any:
    return standard_grad(inputs=("X",), outputs=("MaxIndex",) if op.attr("pooltype") == "MAX" else ())(op)


_POOL = {"is_test": False, "pooltype": "AVERAGE", "pad_value": 0.0}


register_pair(
    "sequence_pool",
    ("X",),
    _pool,
    _pool_grad,
    _infer_pool,
    "One row for each sequence: its sum, mean, sum / sqrt(length), maximum, first or last row.",
    outputs=("Out", "MaxIndex?"),
    attrs=_POOL,
    keep_out=("MaxIndex",),
    no_grad=("MaxIndex",),
    grad=_pool_rule,
    sequences=Sequences(takes_lod=True, levels=Levels("X", more=-1, outs=("Out",))),
    infer_back=grads_keep_sequences,
    native=(partial(_pool_call, back=False), partial(_pool_call, back=True)),
)


def _softmax(xp: Any, X: Any, lod: Lods) -> Any:
    deep = levels("sequence_softmax", lod, "X")
    segments = Segments(deep[-1])
    rows = xp.asarray(segments.of_row)
    flat = X.reshape(-1)
    top = xp.full(len(segments), -np.inf, X.dtype)
    xp.maximum.at(top, rows, flat)
    powers = xp.exp(flat - top[rows])
    total = xp.zeros(len(segments), X.dtype)
    xp.add.at(total, rows, powers)
    return LodArray((powers / total[rows]).reshape(X.shape), deep)


def _softmax_grad(xp: Any, Out: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    deep = levels("sequence_softmax_grad", lod, "X")
    segments = Segments(deep[-1])
    rows = xp.asarray(segments.of_row)
    weighted = (Out * Out_grad).reshape(-1)
    total = xp.zeros(len(segments), Out.dtype)
    xp.add.at(total, rows, weighted)
    return LodArray(Out * (Out_grad - total[rows].reshape(Out.shape)), deep)


def _softmax_infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[1] not in (1, -1)):
        raise op.fail(f"X must have shape [rows, 1] or [rows], got {list(shape)}")
    set_rows(op, "Out", shape, op.dtype("X"), deep(op, "X"))


def _softmax_native(op: OpView) -> Call | None:
    name, found = typed(op, "sequence_softmax", ("X",)), segments_of(op, "X")
    if name is None or found is None:
        return None
    return Call(name, [op.name("X"), found[0], op.name("Out")], found[1:])


def _softmax_native_grad(op: OpView) -> Call | None:
    name, found = typed(op, "sequence_softmax_grad", ("Out", DOUT)), segments_of(op, "X")
    if name is None or found is None:
        return None
    return Call(name, [found[0], op.name("Out"), op.name(DOUT), op.name(DX)], found[1:])


register_pair(
    "sequence_softmax",
    ("X",),
    _softmax,
    _softmax_grad,
    _softmax_infer,
    "Softmax within each sequence of scores.",
    attrs={"use_cudnn": False, "data_format": "AnyLayout"},
    keep_out=("Out",),
    sequences=Sequences(takes_lod=True, levels=Levels("X", least=1)),
    planning=Planning(inplace=(("Out", "X"),)),
    planning_back=Planning(inplace=((DX, DOUT),)),
    infer_back=grads_keep_sequences,
    native=(_softmax_native, _softmax_native_grad),
)
