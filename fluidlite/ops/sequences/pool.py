"""Pooling, one row for each sequence of the last level of detail, and softmax within sequences."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..grad_pairs import register_pair
from ..infer import product
from ..native import typed
from ..registry import Call, Levels, LodArray, OpView, Planning, Sequences, grad_name, standard_grad
from ..sequence import Lods, Segments, deep, grads_keep_sequences, levels, segments_of, set_rows

DX, DOUT = grad_name("X"), grad_name("Out")


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


def _infer(op: OpView) -> None:
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
    _infer,
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
