"""Operators that make new sequences of the rows of given ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .infer import grads_like_inputs
from .pairs import register_pair
from .registry import LodArray, OpDef, OperatorError, OpView, grad_name, register, standard_grad
from .sequence import Lods, given, levels, offsets_of, one_level, ranges

DX, DOUT = grad_name("X"), grad_name("Out")


def _expansion(op_type: str, rows: int, lod: Lods, ref_level: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Which row of X each row of the output is, and the LoD of the output."""
    reference = levels(op_type, lod, "Y")
    if not -1 <= ref_level < len(reference):
        raise OperatorError(
            f"operator {op_type}: ref_level must be in [-1, {len(reference)}), got {ref_level}"
        )
    times = np.diff(reference[ref_level])
    own = given(lod, "X")
    offsets = np.asarray(own[0] if own else range(rows + 1))
    starts, lengths = offsets[:-1], np.diff(offsets)
    if len(times) != len(lengths):
        raise OperatorError(
            f"operator {op_type}: X has {len(lengths)} {'sequences' if own else 'rows'} but level "
            f"{ref_level} of Y has "
            f"{len(times)}"
        )
    pieces = np.repeat(lengths, times)
    return ranges(np.repeat(starts, times), pieces), [offsets_of(pieces)] if own else []


def _expand(xp: Any, X: Any, ref_level: int, lod: Lods) -> Any:
    rows, made = _expansion("sequence_expand", len(X), lod, ref_level)
    return LodArray(X[xp.asarray(rows)], made)


def _expand_grad(xp: Any, X: Any, Out_grad: Any, ref_level: int, lod: Lods) -> Any:
    rows, _ = _expansion("sequence_expand_grad", len(X), lod, ref_level)
    dx = xp.zeros_like(X)
    xp.add.at(dx, xp.asarray(rows), Out_grad)
    return LodArray(dx, given(lod, "X"))


def _rows_unknown(op: OpView) -> None:
    op.set("Out", (-1, *op.shape("X")[1:]), op.dtype("X"))


register(
    OpDef(
        "sequence_expand",
        inputs=("X", "Y#"),
        attrs={"ref_level": -1},
        infer=_rows_unknown,
        kernel=_expand,
        grad=standard_grad(inputs=("X", "Y")),
        lod=True,
        gradable=("X",),
        doc="Repeats each row (or sequence) of X as often as the sequence of Y in its place has parts.",
    )
)
register(
    OpDef(
        "sequence_expand_grad",
        inputs=("X", "Y#", DOUT),
        outputs=(DX,),
        attrs={"ref_level": -1},
        infer=grads_like_inputs,
        kernel=_expand_grad,
        lod=True,
        doc="The gradient of sequence_expand: the sum over the copies.",
    )
)


def _repeats(op_type: str, X: Any, lod: Lods) -> tuple[np.ndarray, np.ndarray]:
    """Which row of X each row of the output is, and the sequences of Y."""
    offsets = one_level(op_type, lod, "Y")
    if len(X) != len(offsets) - 1:
        raise OperatorError(f"operator {op_type}: X has {len(X)} rows but Y has {len(offsets) - 1} sequences")
    return np.repeat(np.arange(len(X)), np.diff(offsets)), offsets


def _expand_as(xp: Any, X: Any, lod: Lods) -> Any:
    rows, offsets = _repeats("sequence_expand_as", X, lod)
    return LodArray(X[xp.asarray(rows)], [offsets])


def _expand_as_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    rows, _ = _repeats("sequence_expand_as_grad", X, lod)
    dx = xp.zeros_like(X)
    xp.add.at(dx, xp.asarray(rows), Out_grad)
    return LodArray(dx, given(lod, "X"))


register_pair(
    "sequence_expand_as",
    ("X", "Y"),
    _expand_as,
    _expand_as_grad,
    _rows_unknown,
    "Repeats each row of X as often as the sequence of Y in its place has rows.",
    gradable=("X",),
    lod=True,
)
