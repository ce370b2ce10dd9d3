"""Pooling: one row for each sequence of the last level of detail."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..infer import product
from ..native import typed
from ..registry import Call, Levels, LodArray, OpDef, OpView, Sequences, grad_name, register, standard_grad
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


def _native(op: OpView) -> Call | None:
    kind, found = op.attr("pooltype"), segments_of(op, "X")
    stem = "sum" if kind in _SCALING else "max" if kind == "MAX" else "end"
    name = typed(op, f"sequence_pool_{stem}", ("X",))
    if name is None or found is None:
        return None
    offsets, count, rows = found
    operands, ints = [op.name("X"), offsets, op.name("Out")], [count, rows, product(op.shape("X")[1:])]
    if stem == "max":
        operands.append(op.name("MaxIndex"))
    else:
        ints.append(_SCALING.get(kind, int(kind == "LAST")))
    return Call(name, operands, ints, [op.attr("pad_value")])


def _native_grad(op: OpView) -> Call | None:
    kind, found = op.attr("pooltype"), segments_of(op, "X")
    stem = "sum" if kind in _SCALING else "max" if kind == "MAX" else "end"
    name = typed(op, f"sequence_pool_{stem}_grad", ("X", DOUT))
    if name is None or found is None:
        return None
    offsets, count, rows = found
    operands, ints = [offsets, op.name(DOUT), op.name(DX)], [count, rows, product(op.shape("X")[1:])]
    if stem == "max":
        operands.insert(1, op.name("MaxIndex"))
    else:
        ints.append(_SCALING.get(kind, int(kind == "LAST")))
    return Call(name, operands, ints)


def _pool_rule(op: OpView) -> Any:
    return standard_grad(inputs=("X",), outputs=("MaxIndex",) if op.attr("pooltype") == "MAX" else ())(op)


_POOL = {"is_test": False, "pooltype": "AVERAGE", "pad_value": 0.0}

register(
    OpDef(
        "sequence_pool",
        inputs=("X",),
        outputs=("Out", "MaxIndex?"),
        attrs=_POOL,
        infer=_infer,
        kernel=_pool,
        grad=_pool_rule,
        no_grad=("MaxIndex",),
        native=_native,
        sequences=Sequences(takes_lod=True, levels=Levels("X", more=-1, outs=("Out",))),
        doc="One row for each sequence: its sum, mean, sum / sqrt(length), maximum, first or last row.",
    )
)
register(
    OpDef(
        "sequence_pool_grad",
        inputs=("X", "MaxIndex?", DOUT),
        outputs=(DX,),
        attrs=_POOL,
        infer=grads_keep_sequences,
        kernel=_pool_grad,
        native=_native_grad,
        sequences=Sequences(takes_lod=True),
        doc="The gradient of sequence_pool.",
    )
)
