"""The inputs that the body of a scan is made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import SymInt, always_equal, current

FIRST = "@FIRST"
"""Suffix of the name that a prefix of offsets has in an iteration."""


class Feeds:
    """The inputs of a body: `arrays` of the right shapes, labels of their `sizes` ("" if fixed, "n+1" for one more than
    n), and the names of their offsets (`levels`).

    `moving`: the sizes that vary between iterations: "n", rows of a step; "m", rows of the step before; by the name of
    offsets, rows of a prefix of these sequences. `outer`: label of another size -> that size outside of the scan.
    """

    def __init__(self, moving: Mapping[str, int], rows: int | None = None) -> None:
        self.moving = moving
        self.rows = rows  # rows of each step, if the program declares them
        self.arrays: dict[str, np.ndarray] = {}
        self.sizes: dict[str, list[str]] = {}
        self.levels: dict[str, tuple[str, ...]] = {}
        self.outer: dict[str, Any] = {}

    def add(self, name: str, shape: Sequence[Any], dtype: VarType, levels: tuple[str, ...] = ()) -> None:
        """Add an input. `shape`: with labels for the sizes that vary."""
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
        """The label of a size from outside: that of one that is always equal, or else `new`."""
        known = next((label for label, other in self.outer.items() if always_equal(other, size)), new)
        self.outer.setdefault(known, size)
        return known
