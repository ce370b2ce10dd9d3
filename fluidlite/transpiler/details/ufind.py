"""Disjoint sets (`fluid.transpiler.details.ufind`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from ...base import missing


class UnionFind:
    """A union-find structure (`fluid.transpiler.details.UnionFind`).

    Args:
        elementes: the initial elements, each in a set of its own.
    """

    def __init__(self, elementes: Iterable[Hashable] | None = None) -> None:
        self._index: dict[Hashable, int] = {}
        for element in elementes or ():
            self._index.setdefault(element, len(self._index))
        self._parents = list(range(len(self._index)))

    def find(self, x: Hashable) -> int:
        """The index of the set of `x`; -1 for an unknown element."""
        at = self._index.get(x)
        if at is None:
            return -1
        while self._parents[at] != at:
            self._parents[at] = self._parents[self._parents[at]]
            at = self._parents[at]
        return at

    def union(self, x: Hashable, y: Hashable) -> None:
        """Merge the sets of `x` and `y`."""
        one, other = self.find(x), self.find(y)
        if one != other:
            self._parents[one] = other

    def is_connected(self, x: Hashable, y: Hashable) -> bool:
        """True if `x` and `y` are in the same set."""
        return self.find(x) == self.find(y)


__getattr__ = missing.reporter(__name__)
