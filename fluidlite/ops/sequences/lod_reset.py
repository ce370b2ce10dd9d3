"""Other sequences over the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import VarType
from ...base.lod import frozen_offsets
from ..grad_pairs import register_pair
from ..native import copy, itemsize, numel, typed
from ..registry import Call, LodArray, OperatorError, OpView, Sequences, grad_name
from ..sequence import Lods, grads_keep_sequences, has_lod, input_lod, set_rows

DX, DOUT = grad_name("X"), grad_name("Out")


def _wrong(offsets: np.ndarray, rows: int) -> str | None:
    """The message if the offsets of one level do not cover `rows` rows; else None."""
    if (
        len(offsets)
        and offsets[0] == 0
        and int(offsets[-1]) == rows
        and not (offsets[1:] < offsets[:-1]).any()
    ):
        return None
    return f"the offsets must go up from 0 to the {rows} rows of X, got {offsets.tolist()}"


def _reset(xp: Any, X: Any, Y: Any, target_lod: list[int], append: bool, lod: Lods) -> Any:
    theirs = input_lod(lod, "Y")
    wanted = theirs[-1] if theirs else frozen_offsets(target_lod if Y is None else to_host(Y).reshape(-1))
    wrong = _wrong(wanted, len(X))
    if wrong is not None:
        raise OperatorError(f"operator lod_reset: {wrong}")
    return LodArray(X, theirs or (*(input_lod(lod, "X") if append else ()), wanted))


def _reset_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    return LodArray(Out_grad, input_lod(lod, "X"))


def _infer(op: OpView) -> None:
    set_rows(op, "Out", op.shape("X"), op.dtype("X"), _levels(op) if has_lod(op) else None)


def _levels(op: OpView) -> tuple[str, ...]:
    """The arrays of offsets of Out, in a run."""
    rows, theirs = op.shape("X")[0], op.lod("Y")
    if theirs:
        if op.shape("Y")[0] != rows:
            raise op.fail(f"the sequences of Y have {op.shape('Y')[0]} rows, but X has {rows}")
        return theirs
    if op.has("Y"):
        if op.dtype("Y") not in (VarType.INT32, VarType.INT64) or numel(op, "Y") < 1:
            raise op.fail(
                "Y must have sequences, or be int32 or int64 offsets from 0 to the number of rows of X"
            )
        sequences = numel(op, "Y") - 1
    else:
        wrong = _wrong(frozen_offsets(op.attr("target_lod")), rows)
        if wrong is not None:
            raise op.fail(wrong)
        sequences = len(op.attr("target_lod")) - 1
    outer = op.lod("X") if op.attr("append") else ()
    return (*outer, op.offsets("Out", sequences, len(outer)))


def _native(op: OpView) -> list[Call] | None:
    if not has_lod(op):
        return None
    rows = Call("copy", [op.name("X"), op.name("Out")], [numel(op, "X") * itemsize(op, "X")])
    if op.lod("Y"):
        return [rows]
    made = op.lod("Out")[-1]
    if op.has("Y"):
        name = typed(op, "lod_reset", ("Y",), ("i32", "i64"))
        assert name is not None, "Y holds integers"
        return [Call(name, [op.name("Y"), made], [numel(op, "Y") - 1, op.shape("X")[0]]), rows]
    offsets = list(op.attr("target_lod"))
    return [Call("set_offsets", [made], [len(offsets) - 1, *offsets]), rows]


register_pair(
    "lod_reset",
    ("X", "Y?"),
    _reset,
    _reset_grad,
    _infer,
    "The rows of X in the sequences of Y, or at the offsets that are Y or target_lod.",
    attrs={"target_lod": [], "append": False},
    keep=("X#",),
    no_grad=("Y",),
    sequences=Sequences(takes_lod=True),
    infer_back=grads_keep_sequences,
    native=(_native, copy(DOUT, DX)),
)
