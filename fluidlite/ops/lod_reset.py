"""Other sequences over the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend import to_host
from ..base.lod import frozen_offsets
from .infer import same_as
from .pairs import register_pair
from .registry import LodArray, OperatorError
from .sequence import Lods, given


def _checked(wanted: Any, rows: int) -> np.ndarray:
    offsets = frozen_offsets(wanted)
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != rows or (offsets[1:] < offsets[:-1]).any():
        raise OperatorError(
            f"operator lod_reset: the offsets must go up from 0 to the {rows} rows of X, got {offsets.tolist()}"
        )
    return offsets


def _reset(xp: Any, X: Any, Y: Any, target_lod: list[int], append: bool, lod: Lods) -> Any:
    theirs = given(lod, "Y")
    if theirs:
        _checked(theirs[-1], len(X))
        return LodArray(X, theirs)
    level = _checked(target_lod if Y is None else to_host(Y).reshape(-1), len(X))
    outer = given(lod, "X") if append else ()
    return LodArray(X, [*outer, level])


def _reset_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    return LodArray(Out_grad, given(lod, "X"))


register_pair(
    "lod_reset",
    ("X", "Y?"),
    _reset,
    _reset_grad,
    same_as("X"),
    "The rows of X in the sequences of Y, or at the offsets that are Y or target_lod.",
    attrs={"target_lod": [], "append": False},
    keep=("X",),
    gradable=("X",),
    lod=True,
)
