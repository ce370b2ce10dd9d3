"""Other sequences over the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend import to_host
from .infer import same_as
from .pairs import register_pair
from .registry import LodArray, OperatorError
from .sequence import Lods


def _checked(offsets: list[int], rows: int) -> list[int]:
    if not offsets or offsets[0] != 0 or offsets[-1] != rows or any(np.diff(offsets) < 0):
        raise OperatorError(
            f"operator lod_reset: the offsets must go up from 0 to the {rows} rows of X, got {offsets}"
        )
    return offsets


def _reset(xp: Any, X: Any, Y: Any, target_lod: list[int], append: bool, lod: Lods) -> Any:
    given = (lod.get("Y") or [[]])[0]
    if given:
        _checked(list(given[-1]), len(X))
        return LodArray(X, given)
    wanted = target_lod if Y is None else to_host(Y).reshape(-1)
    level = _checked([int(offset) for offset in wanted], len(X))
    outer = (lod.get("X") or [[]])[0] if append else []
    return LodArray(X, [*outer, level])


def _reset_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    return LodArray(Out_grad, (lod.get("X") or [[]])[0])


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
