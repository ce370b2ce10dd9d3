"""Operators on sequences: rows grouped by the last level of detail (LoD) of their input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.dtypes import VarType
from .infer import grads_like_inputs, same_as
from .registry import LodArray, OpDef, OperatorError, OpSpec, OpView, grad_name, register, standard_grad

DX, DY, DOUT, DFILTER = (grad_name(slot) for slot in ("X", "Y", "Out", "Filter"))

Lods = dict[str, list[Any]]


def levels(op_type: str, lod: Lods, slot: str, index: int = 0) -> list[list[int]]:
    """The levels of detail of an input; raises OperatorError if it has none."""
    given = lod.get(slot) or []
    found = given[index] if index < len(given) else None
    if not found:
        raise OperatorError(
            f"operator {op_type}: {slot} has no LoD information: feed sequences made with "
            "fluid.create_lod_tensor"
        )
    return [list(level) for level in found]


def one_level(op_type: str, lod: Lods, slot: str) -> list[int]:
    """The offsets of an input whose rows are in sequences of one level; raises OperatorError if they are not."""
    deep = levels(op_type, lod, slot)
    if len(deep) != 1:
        raise OperatorError(f"operator {op_type}: {slot} must have one level of sequences, got {len(deep)}")
    return deep[0]


def offsets_of(lengths: np.ndarray) -> list[int]:
    """The offsets of sequences of these lengths."""
    return [0, *np.cumsum(lengths).tolist()]


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers of all ranges [start, start + length), one after the other."""
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(starts, lengths) + np.arange(int(lengths.sum())) - before


class Segments:
    """The sequences of one level: offsets, lengths, and the sequence of each row."""

    def __init__(self, offsets: Sequence[int]) -> None:
        self.starts = np.asarray(offsets[:-1], np.int64)
        self.ends = np.asarray(offsets[1:], np.int64)
        self.lengths = self.ends - self.starts
        self.of_row = np.repeat(np.arange(len(self.lengths)), self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)


def _divisors(kind: str, lengths: Any) -> Any:
    """What the sum of a sequence is divided by under pooling type `kind`."""
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
    xp.minimum.at(first, rows, xp.where(x == out[rows], place, len(x)))
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


def _pool_infer(op: OpView) -> None:
    kinds = ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST")
    if op.attr("pooltype") not in kinds:
        raise op.fail(f"pooltype must be one of {', '.join(kinds)}, got {op.attr('pooltype')!r}")
    shape = (-1, *op.shape("X")[1:])
    op.set("Out", shape, op.dtype("X"))
    if op.attr("pooltype") == "MAX":
        op.set("MaxIndex", shape, VarType.INT32)


def _pool_rule(op: OpView) -> Any:
    return standard_grad(inputs=("X",), outputs=("MaxIndex",) if op.attr("pooltype") == "MAX" else ())(op)


_POOL = {"is_test": False, "pooltype": "AVERAGE", "pad_value": 0.0}

register(
    OpDef(
        "sequence_pool",
        inputs=("X",),
        outputs=("Out", "MaxIndex?"),
        attrs=_POOL,
        infer=_pool_infer,
        kernel=_pool,
        grad=_pool_rule,
        lod=True,
        frozen=("MaxIndex",),
        doc="One row for each sequence: its sum, mean, sum / sqrt(length), maximum, first or last row.",
    )
)
register(
    OpDef(
        "sequence_pool_grad",
        inputs=("X", "MaxIndex?", DOUT),
        outputs=(DX,),
        attrs=_POOL,
        infer=grads_like_inputs,
        kernel=_pool_grad,
        lod=True,
        doc="The gradient of sequence_pool.",
    )
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
    op.set("Out", shape, op.dtype("X"))


register(
    OpDef(
        "sequence_softmax",
        inputs=("X",),
        attrs={"use_cudnn": False, "data_format": "AnyLayout"},
        infer=_softmax_infer,
        kernel=_softmax,
        grad=standard_grad(inputs=("X",), outputs=("Out",)),
        lod=True,
        doc="Softmax within each sequence of scores.",
    )
)
register(
    OpDef(
        "sequence_softmax_grad",
        inputs=("Out", "X", DOUT),
        outputs=(DX,),
        attrs={"use_cudnn": False, "data_format": "AnyLayout"},
        infer=grads_like_inputs,
        kernel=_softmax_grad,
        lod=True,
        doc="The gradient of sequence_softmax.",
    )
)


def _reverse(xp: Any, X: Any, lod: Lods) -> Any:
    deep = levels("sequence_reverse", lod, "X")
    segments = Segments(deep[-1])
    mirror = (segments.starts + segments.ends - 1)[segments.of_row] - np.arange(len(X))
    return LodArray(X[xp.asarray(mirror)], deep)


def _reverse_rule(op: OpView) -> list[OpSpec]:
    return [OpSpec(op.type, {"X": [grad_name(op.name("Y"))]}, {"Y": [grad_name(op.name("X"))]})]


register(
    OpDef(
        "sequence_reverse",
        inputs=("X",),
        outputs=("Y",),
        infer=same_as("X", "Y"),
        kernel=_reverse,
        grad=_reverse_rule,
        lod=True,
        doc="The rows of each sequence in reverse order; its gradient is itself.",
    )
)
