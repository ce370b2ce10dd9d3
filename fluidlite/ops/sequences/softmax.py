"""Softmax within sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..native import typed
from ..registry import (
    Call,
    Levels,
    LodArray,
    OpDef,
    OpView,
    Planning,
    Sequences,
    grad_name,
    register,
    standard_grad,
)
from ..sequence import Lods, Segments, deep, grads_keep_sequences, levels, segments_of, set_rows

DX, DOUT = grad_name("X"), grad_name("Out")


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


def _native(op: OpView) -> Call | None:
    name, found = typed(op, "sequence_softmax", ("X",)), segments_of(op, "X")
    return (
        None
        if name is None or found is None
        else Call(name, [op.name("X"), found[0], op.name("Out")], found[1:])
    )


def _native_grad(op: OpView) -> Call | None:
    name, found = typed(op, "sequence_softmax_grad", ("Out", DOUT)), segments_of(op, "X")
    if name is None or found is None:
        return None
    return Call(name, [found[0], op.name("Out"), op.name(DOUT), op.name(DX)], found[1:])


register(
    OpDef(
        "sequence_softmax",
        inputs=("X",),
        attrs={"use_cudnn": False, "data_format": "AnyLayout"},
        infer=_softmax_infer,
        kernel=_softmax,
        grad=standard_grad(inputs=("X",), outputs=("Out",)),
        native=_native,
        sequences=Sequences(takes_lod=True, levels=Levels("X", least=1)),
        planning=Planning(inplace=(("Out", "X"),)),
        doc="Softmax within each sequence of scores.",
    )
)
register(
    OpDef(
        "sequence_softmax_grad",
        inputs=("Out", "X", DOUT),
        outputs=(DX,),
        attrs={"use_cudnn": False, "data_format": "AnyLayout"},
        infer=grads_keep_sequences,
        kernel=_softmax_grad,
        native=_native_grad,
        sequences=Sequences(takes_lod=True),
        planning=Planning(inplace=((DX, DOUT),)),
        doc="The gradient of sequence_softmax.",
    )
)
