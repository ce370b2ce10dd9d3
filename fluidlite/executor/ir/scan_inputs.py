"""What the turns of a loop, which are plans of their own, are made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import SymInt, always_equal, current

FIRST = "@FIRST"
"""Stands behind the name of offsets of which a turn has the first ones."""


class Feeds:
    """What a body is fed: arrays of the shapes that it finds, what the `sizes` in them are called ("" for those that
    stay, "n+1" for one more than n), and whose offsets they have (`levels`).

    `moving`: sizes that are others in each turn: "n", rows of a place; "m", rows of the place before; by the name of
    offsets, rows of the first sequences. `outer`: what the others are outside.
    """

    def __init__(self, moving: Mapping[str, int], rows: int | None = None) -> None:
        self.moving = moving
        self.rows = rows  # how many there are in each turn, if the program says so
        self.arrays: dict[str, np.ndarray] = {}
        self.sizes: dict[str, list[str]] = {}
        self.levels: dict[str, tuple[str, ...]] = {}
        self.outer: dict[str, Any] = {}

    def add(self, name: str, shape: Sequence[Any], dtype: VarType, levels: tuple[str, ...] = ()) -> None:
        """`shape`: with the names of those sizes that move."""
        labels, sizes = [], []
        for axis, size in enumerate(shape):
            if isinstance(size, str):
                labels.append("" if size == "n" and self.rows is not None else size)
                sizes.append(self.moving[size.removesuffix("+1")] + size.endswith("+1"))
                continue
            labels.append(self._label(size, f"{name}.{axis}") if isinstance(size, SymInt) else "")
            sizes.append(current(size))
        self.arrays[name] = np.empty(sizes, to_numpy(dtype))
        self.sizes[name] = labels
        if levels:
            self.levels[name] = levels

    def _label(self, size: SymInt, new: str) -> str:
        """What a size from outside is called: as one that is always equal, or else `new`."""
        known = next((label for label, other in self.outer.items() if always_equal(other, size)), new)
        self.outer.setdefault(known, size)
        return known
