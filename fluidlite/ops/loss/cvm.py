"""cvm: rows whose first two elements are the numbers of shows and clicks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grad_pairs import register_pair
from ..registry import Levels, LodArray, OperatorError, OpView, Sequences
from ..sequence import Lods, grads_keep_sequences, input_lod


def _cvm(xp: Any, X: Any, use_cvm: bool, lod: Lods) -> Any:
    made = X[:, 2:]
    if use_cvm:
        shown = xp.log(X[:, :1] + 1)
        made = xp.concatenate([shown, xp.log(X[:, 1:2] + 1) - shown, made], axis=1)
    return LodArray(made, input_lod(lod, "X"))


def _cvm_grad(xp: Any, X: Any, CVM: Any, Y_grad: Any, use_cvm: bool, lod: Lods) -> Any:
    """The gradient of X; that of both counts is CVM of the row or its sequence, as in Fluid."""
    levels = input_lod(lod, "X")
    if levels:
        counts = CVM[xp.asarray(np.repeat(np.arange(len(levels[-1]) - 1), np.diff(levels[-1])))]
    else:
        counts = CVM
    if len(counts) != len(X):
        raise OperatorError(f"operator cvm_grad: CVM has rows for {len(counts)} of the {len(X)} rows of X")
    rest = Y_grad[:, 2:] if use_cvm else Y_grad
    gradient = xp.concatenate([counts.astype(X.dtype), rest], axis=1)
    return LodArray(gradient, levels) if levels else gradient


def _infer(op: OpView) -> None:
    x, counts = op.shape("X"), op.shape("CVM")
    if len(x) != 2 or (x[1] < 2 and x[1] >= 0):
        raise op.fail(f"X must be [rows, width] with a width of at least 2, got {list(x)}")
    if len(counts) != 2 or counts[1] not in (2, -1):
        raise op.fail(f"CVM must be [rows, 2], got {list(counts)}")
    op.set("Y", (x[0], x[1] if op.attr("use_cvm") or x[1] < 0 else x[1] - 2), op.dtype("X"))
    op.carry("Y", op.lod("X"))


register_pair(
    "cvm",
    ("X", "CVM"),
    _cvm,
    _cvm_grad,
    _infer,
    "Rows with their counts of showing and clicking on a logarithmic scale, or without these.",
    outputs=("Y",),
    attrs={"use_cvm": True},
    no_grad=("CVM",),
    sequences=Sequences(levels=Levels("X"), takes_lod=True, inferred=True),
    infer_back=grads_keep_sequences,
)
