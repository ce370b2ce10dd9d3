"""Rank tables, sequences sorted by length: their symbolic sizes in a plan, and their values in a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._ext.engine import InOrder, Ranks
from ...base.dtypes import VarType
from ..failures import Unsupported

RANKED = ("order", "back", "items", "places", "ranks", "bounds", "first", "count")
"""The arrays of a rank table: attributes of `engine.Ranks`."""

ORDERED = ("offsets", "rows", "back", "bounds")
"""The arrays of other sequences in the order of a rank table: attributes of `engine.InOrder`."""


def ranked(table: str, what: str) -> str:
    """The name of an array that belongs to a rank table."""
    return f"{table}.{what}"


class Other(NamedTuple):
    """Other sequences in the order of a rank table: their fed offsets, the table, and their rows in all its steps."""

    level: str
    table: str
    total: Any


class Ranking:
    """The rank tables of a plan.

    `tables`: rank table -> fed offsets of its sequences; `in_order`: offsets of other sequences in the order of a table
    -> these sequences; `matched`: pairs of fed offsets that have to be equal.
    """

    def __init__(self, feeds: Mapping[str, np.ndarray]) -> None:
        self._feeds = feeds
        self.tables: dict[str, str] = {}
        self.in_order: dict[str, Other] = {}
        self.matched: list[tuple[str, str]] = []

    def rank(self, meta: Any, level: str, table: str, rows: int) -> None:
        """Declare a rank table of the sequences with the fed offsets `level` over `rows` rows."""
        if level not in self._feeds:
            raise Unsupported(f"the ranked sequences {level!r} are not fed but computed")
        lengths = np.diff(self._feeds[level])
        if not lengths.any():
            raise Unsupported("all ranked sequences are empty", retryable=True)
        running = meta.sizes.input_symbol(int(np.count_nonzero(lengths)), ranked(table, "first"))
        bounds = meta.sizes.input_symbol(int(lengths.max()) + 1, ranked(table, "bounds"))
        every = meta.shapes[level][0] - 1
        for what, size in zip(RANKED, (every, every, rows, rows, rows, bounds, running, 1), strict=True):
            meta.set(ranked(table, what), (size,), VarType.INT64)
        self.tables[table] = level

    def order(self, meta: Any, level: str, table: str, rows: int) -> str:
        """Declare the sequences with the fed offsets `level` over `rows` rows in the order of a rank table; return the
        name of their offsets in that order."""
        other = ranked(table, level)
        offsets = ranked(other, "offsets")
        if offsets in self.in_order:
            return offsets
        if level not in self._feeds or meta.shapes[level] != meta.shapes[self.tables[table]]:
            raise Unsupported(
                f"the sequences {level!r} are not fed, or not as many as those of the rank table"
            )
        found = InOrder(self._feeds[level], self.now(table))
        total = meta.sizes.input_symbol(int(found.bounds[-1]), ranked(other, "total"))
        shapes = (meta.shapes[level], (rows,), (rows,), meta.shapes[ranked(table, "bounds")])
        for what, shape in zip(ORDERED, shapes, strict=True):
            meta.set(ranked(other, what), shape, VarType.INT64)
        self.in_order[offsets] = Other(level, table, total)
        return offsets

    def match(self, level: str, other: str) -> None:
        """Require the fed offsets `level` to equal `other` in each step."""
        if level == other or (level, other) in self.matched:
            return
        if level not in self._feeds or other not in self._feeds:
            raise Unsupported(f"the sequences {level!r} are not fed but computed")
        if not np.array_equal(self._feeds[level], self._feeds[other]):
            raise Unsupported(f"the sequences {level!r} differ from {other!r}", retryable=True)
        self.matched.append((level, other))

    def now(self, table: str) -> Ranks:
        """The rank table for the current feeds."""
        return Ranks(self._feeds[self.tables[table]])

    def ordered_now(self, offsets: str) -> InOrder:
        """The sequences in the order of a rank table, for the current feeds."""
        other = self.in_order[offsets]
        return InOrder(self._feeds[other.level], self.now(other.table))

    def forget_feeds(self) -> None:
        self._feeds = {}


class RankedFeeds:
    """Computes the arrays of a plan's rank tables from the feeds.

    `names`: the arrays; `sizes`: their sizes in the plan; `measured` returns the values of both.
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
        """The values of `sizes` and of the arrays; None if the plan does not admit the sequences of these feeds."""
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
    """True if a feed can be the offsets of ranked sequences."""
    return isinstance(array, np.ndarray) and array.dtype == np.int64 and array.flags.c_contiguous
