"""Gradients that are added up over the turns of a block."""

from __future__ import annotations

from typing import Any

from ...base.selected_rows import SelectedRows, total


class Sums:
    """Values by name, each the sum of all that have been added under it; `xp`: NumPy or CuPy."""

    def __init__(self, xp: Any) -> None:
        self.values: dict[str, Any] = {}
        self._xp = xp
        self._own: set[str] = set()  # whose memory nobody else knows

    def add(self, name: str, part: Any) -> None:
        """Add an array, or SelectedRows; nothing is written into it."""
        known = self.values.get(name)
        if known is None:
            self.values[name] = part
        elif (
            name in self._own
            and type(part) is type(known) is not SelectedRows
            and part.dtype == known.dtype
            and part.shape == known.shape
        ):
            known += part
            self.values[name] = known
        else:
            self.values[name] = total(known, part, self._xp)
            self._own.add(name)
