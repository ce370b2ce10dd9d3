"""Sequences that are ranked by their lengths: what a plan knows of them, and what they are in a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._ext.engine import InOrder, Ranks
from ...base.dtypes import VarType
from .errors import Unsupported

RANKED = ("order", "back", "items", "places", "ranks", "bounds", "first", "count")
"""What a plan knows of sequences that are ranked, as `engine.Ranks` has it."""

ORDERED = ("offsets", "rows", "back", "bounds")
"""What it knows of others in their order, as `engine.InOrder` has it."""


def ranked(table: str, what: str) -> str:
    """The name of an array that belongs to a rank table."""
    return f"{table}.{what}"


class Other(NamedTuple):
    """Other sequences in the order of a rank table: the offsets that are fed, the table, and how many rows of them its
    steps have together.
    """

    level: str
    table: str
    total: Any


class Ranking:
    """Which sequences are ranked, which stand in the order of others, and which have to be the same.

    `tables`: rank table -> the fed offsets of the sequences that it is of; `in_order`: offsets of others in the order
    of a table -> these; `matched`: pairs of fed offsets.
    """

    def __init__(self, feeds: Mapping[str, np.ndarray]) -> None:
        self._feeds = feeds
        self.tables: dict[str, str] = {}
        self.in_order: dict[str, Other] = {}
        self.matched: list[tuple[str, str]] = []

    def rank(self, meta: Any, level: str, table: str, rows: int) -> None:
        """Have the sequences with the fed offsets `level` over so many rows be ranked, when they are fed."""
        if level not in self._feeds:
            raise Unsupported(f"the sequences {level!r}, which are ranked, are found by the step")
        lengths = np.diff(self._feeds[level])
        if not lengths.any():
            raise Unsupported("there is no step", retryable=True)
        running = meta.sizes.input_symbol(int(np.count_nonzero(lengths)), ranked(table, "first"))
        bounds = meta.sizes.input_symbol(int(lengths.max()) + 1, ranked(table, "bounds"))
        every = meta.shapes[level][0] - 1
        for what, size in zip(RANKED, (every, every, rows, rows, rows, bounds, running, 1), strict=True):
            meta.set(ranked(table, what), (size,), VarType.INT64)
        self.tables[table] = level

    def order(self, meta: Any, level: str, table: str, rows: int) -> str:
        """Have the sequences with the fed offsets `level` over so many rows be put in the order of a rank table; what
        their offsets are called there."""
        other = ranked(table, level)
        offsets = ranked(other, "offsets")
        if offsets in self.in_order:
            return offsets
        if level not in self._feeds or meta.shapes[level] != meta.shapes[self.tables[table]]:
            raise Unsupported(
                f"the sequences {level!r} are found by the step, or are not as many as are ranked"
            )
        found = InOrder(self._feeds[level], self.now(table))
        total = meta.sizes.input_symbol(int(found.bounds[-1]), ranked(other, "total"))
        shapes = (meta.shapes[level], (rows,), (rows,), meta.shapes[ranked(table, "bounds")])
        for what, shape in zip(ORDERED, shapes, strict=True):
            meta.set(ranked(other, what), shape, VarType.INT64)
        self.in_order[offsets] = Other(level, table, total)
        return offsets

    def match(self, level: str, other: str) -> None:
        """Have the fed offsets `level` be the same as `other` in each step."""
        if level == other or (level, other) in self.matched:
            return
        if level not in self._feeds or other not in self._feeds:
            raise Unsupported(f"the sequences {level!r} are found by the step")
        if not np.array_equal(self._feeds[level], self._feeds[other]):
            raise Unsupported(f"the sequences {level!r} are others than {other!r}", retryable=True)
        self.matched.append((level, other))

    def now(self, table: str) -> Ranks:
        """A rank table, as the feeds at hand make it."""
        return Ranks(self._feeds[self.tables[table]])

    def ordered_now(self, offsets: str) -> InOrder:
        """Sequences in the order of a rank table, as the feeds at hand make them."""
        other = self.in_order[offsets]
        return InOrder(self._feeds[other.level], self.now(other.table))

    def forget_feeds(self) -> None:
        self._feeds = {}


class RankedFeeds:
    """What feeds make of all that a plan has ranked.

    `names`: the arrays, of which `measured` gives the values; `sizes`: how large the plan has them, as `measured` gives
    how large they are.
    """

    def __init__(self, ranking: Ranking, feed_names: Sequence[str], meta: Any) -> None:
        place = feed_names.index
        self._matched = [(place(one), place(other)) for one, other in ranking.matched]
        self._tables = {table: place(level) for table, level in ranking.tables.items()}
        self._others = [(place(other.level), other.table) for other in ranking.in_order.values()]
        self.names = [ranked(table, what) for table in ranking.tables for what in RANKED]
        self.names += [
            offsets.removesuffix(ORDERED[0]) + what for offsets in ranking.in_order for what in ORDERED
        ]
        self.sizes = [
            meta.shapes[ranked(table, what)][0] for table in ranking.tables for what in ("bounds", "first")
        ]
        self.sizes += [other.total for other in ranking.in_order.values()]

    def measured(self, arrays: Sequence[np.ndarray]) -> tuple[list[int], list[np.ndarray]] | None:
        """How large what is ranked is, and what it is; None if these feeds cannot be ranked as the plan has them."""
        if not all(np.array_equal(arrays[one], arrays[other]) for one, other in self._matched):
            return None
        if not all(
            _are_offsets(arrays[at]) for at in (*self._tables.values(), *(at for at, _ in self._others))
        ):
            return None
        ranks = {table: Ranks(arrays[at]) for table, at in self._tables.items()}
        sizes = [len(values) for each in ranks.values() for values in (each.bounds, each.first)]
        found = [getattr(each, what) for each in ranks.values() for what in RANKED]
        for at, table in self._others:
            if len(arrays[at]) != len(ranks[table].order) + 1:
                return None
            ordered = InOrder(arrays[at], ranks[table])
            sizes.append(int(ordered.bounds[-1]))
            found += [getattr(ordered, what) for what in ORDERED]
        return sizes, found


def _are_offsets(array: np.ndarray) -> bool:
    """Whether a feed is what sequences can be ranked by."""
    return isinstance(array, np.ndarray) and array.dtype == np.int64 and array.flags.c_contiguous
