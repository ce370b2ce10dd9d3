"""Softmax within sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .infer import grads_like_inputs
from .registry import LodArray, OpDef, OpView, grad_name, register, standard_grad
from .sequence import Lods, Segments, levels

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
