"""`RankTable`: sequences sorted by length, longest first, so that those still running in a step are the first ones."""

from __future__ import annotations

import numpy as np

from .lod import Lod


class RankTable:
    """The sequences of one level of detail, sorted by length.

    `lod[level]` are the offsets of the sequences; their elements, rows or sequences of the next level, are *items*.
    `order`: int64 [n], the index of the k-th longest sequence (a stable sort); `lengths`: int64 [n], longest first;
    `outer`: the levels above. Follows Fluid's LoDRankTable.
    """

    __slots__ = ("_items", "_places", "bounds", "lengths", "offsets", "order", "outer", "running")

    def __init__(self, lod: Lod, level: int = 0) -> None:
        self.outer = lod[:level]
        self.offsets = lod[level]
        lengths = self.offsets[1:] - self.offsets[:-1]
        self.order = np.argsort(-lengths, kind="stable")
        self.lengths = lengths[self.order]
        ends = np.bincount(lengths, minlength=1)
        counts = len(lengths) - np.cumsum(ends)[:-1]
        self.running: list[int] = counts.tolist()
        """The number of sequences with a step k, for each step."""
        self.bounds: list[int] = [0, *np.cumsum(counts).tolist()]
        """The offsets of steps in the order of steps."""
        self._items: np.ndarray | None = None
        self._places: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.order)

    @property
    def level(self) -> int:
        """The level that is ranked, 0 being the outermost one."""
        return len(self.outer)

    @property
    def longest(self) -> int:
        """The length of the longest sequence; 0 if there is none."""
        return len(self.running)

    def running_at(self, step: int) -> int:
        """The number of sequences with step `step`, counted from 0."""
        return self.running[step] if 0 <= step < len(self.running) else 0

    @classmethod
    def empty(cls) -> RankTable:
        """A table of no sequences."""
        return cls((np.zeros(1, "int64"),))

    def items(self) -> list[tuple[int, int]]:
        """The index and the length of each sequence, longest first (`core.LodRankTable.items`)."""
        return list(zip(self.order.tolist(), self.lengths.tolist(), strict=True))

    def by_step(self) -> np.ndarray:
        """The indices of all items in the order of steps: int64 [items], within a step the longest sequence's first."""
        if self._items is None:
            self._items = self.items_of(self.offsets)
        return self._items

    def places(self) -> np.ndarray:
        """The position of each item in the order of steps: int64 [items], the inverse of `by_step`."""
        if self._places is None:
            items = self.by_step()
            self._places = np.empty_like(items)
            self._places[items] = np.arange(len(items))
        return self._places

    def items_of(self, offsets: np.ndarray) -> np.ndarray:
        """`by_step` for other offsets, of sequences at least as long; their further steps are left out."""
        starts = offsets[:-1][self.order]
        counts = np.array(self.running, np.int64)
        steps = np.repeat(np.arange(len(counts)), counts)
        ranks = np.arange(len(steps)) - np.repeat(np.array(self.bounds[:-1], np.int64), counts)
        result: np.ndarray = starts[ranks] + steps
        return result

    def __repr__(self) -> str:
        return f"RankTable({dict(self.items())})"
