"""Operators that put the rows of sequences in another order: joined, reversed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .infer import grads_like_inputs, same_as
from .registry import LodArray, OpDef, OperatorError, OpSpec, OpView, grad_name, register, standard_grad
from .sequence import Lods, Segments, levels, offsets_of, ranges

DX, DOUT = grad_name("X"), grad_name("Out")


def _rows_unknown(op: OpView) -> None:
    op.set("Out", (-1, *op.shape("X")[1:]), op.dtype("X"))


def _interleaved(op_type: str, lod: Lods, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    """For each input where its rows go in the output, and the output's offsets."""
    offsets = [np.asarray(levels(op_type, lod, "X", k)[-1]) for k in range(count)]
    if len({len(o) for o in offsets}) != 1:
        raise OperatorError(f"operator {op_type}: the inputs have {[len(o) - 1 for o in offsets]} sequences")
    lengths = np.stack([np.diff(o) for o in offsets], axis=1)
    starts = (np.cumsum(lengths.reshape(-1)) - lengths.reshape(-1)).reshape(lengths.shape)
    places = [ranges(starts[:, k], lengths[:, k]) for k in range(count)]
    return places, offsets_of(lengths.sum(axis=1))


def _concat(xp: Any, X: Any, lod: Lods) -> Any:
    places, offsets = _interleaved("sequence_concat", lod, len(X))
    order = np.argsort(np.concatenate(places), kind="stable")
    return LodArray(xp.concatenate(X, axis=0)[xp.asarray(order)], [offsets])


def _concat_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    places, _ = _interleaved("sequence_concat_grad", lod, len(X))
    return [
        LodArray(Out_grad[xp.asarray(rows)], levels("sequence_concat_grad", lod, "X", k))
        for k, rows in enumerate(places)
    ]


register(
    OpDef(
        "sequence_concat",
        inputs=("X*",),
        infer=_rows_unknown,
        kernel=_concat,
        grad=standard_grad(inputs=("X",)),
        lod=True,
        doc="Joins the first sequences of all inputs, then the second ones, and so on.",
    )
)
register(
    OpDef(
        "sequence_concat_grad",
        inputs=("X*", DOUT),
        outputs=(DX + "*",),
        infer=grads_like_inputs,
        kernel=_concat_grad,
        lod=True,
        doc="The gradient of sequence_concat: each input's rows of it.",
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
