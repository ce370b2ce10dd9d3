"""Layers that give rows other sequences (`fluid.layers.lod_reset`, `lod_append`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentError, StaticModeError
from ...framework import Variable, mode
from ...layer_helper import LayerHelper
from ...op_functions import run_layer

__all__ = ["lod_append", "lod_reset"]


def lod_reset(x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None) -> Variable:
    """The rows of `x` in other sequences (`fluid.layers.lod_reset`).

    Args:
        x: any rows.
        y: a variable whose sequences are taken; or, if it has none, integers that are the offsets.
        target_lod: the offsets, from 0 to the number of rows, if there is no `y`.

    Raises:
        ValueError: neither is given.
        EnforceNotMet: when it runs, offsets that do not fit the rows.
    """
    if y is None and target_lod is None:
        raise ArgumentError("lod_reset needs y or target_lod")
    out = _reset("lod_reset", x, y, target_lod or [], False)
    out.lod_level = 1 if y is None else max(y.lod_level, 1)
    return out


def lod_append(x: Variable, level: Sequence[int] | Variable) -> Variable:
    """The rows of `x` with one more level, below those it has (`fluid.layers.lod_append`).

    `level`: offsets, from 0 to the number of rows; or a Variable, whose sequences then replace those of `x`.
    """
    if not isinstance(level, (list, tuple, Variable)):
        raise ArgumentError(f"'level' of lod_append must be a list, tuple or Variable, got {level!r}")
    y, offsets = (level, []) if isinstance(level, Variable) else (None, list(level))
    out = _reset("lod_append", x, y, offsets, True)
    out.lod_level = x.lod_level + 1
    return out


def _reset(layer: str, x: Variable, y: Variable | None, target_lod: Sequence[int], append: bool) -> Any:
    if mode.in_dygraph_mode():
        raise StaticModeError(f"{layer} is a layer of programs only: eager tensors have no sequences")
    given = {"x": x, "y": y, "target_lod": [int(offset) for offset in target_lod], "append": append}
    return run_layer("lod_reset", given, helper=LayerHelper(layer))
