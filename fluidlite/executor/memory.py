"""Which temporaries of a plan may share memory: liveness, then places in one arena."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

ALIGN = 64
_FITTED = 1024


@dataclass
class Storage:
    """Memory that one or several variables (views of each other) live in."""

    bytes: int
    names: list[str] = field(default_factory=list)
    first: int = -1
    last: int = -1
    offset: int = -1

    def touch(self, step: int) -> None:
        if self.first < 0:
            self.first = step
        self.last = max(self.last, step)


_MOST = 1 << 60
"""Bytes of which sums still fit 64 bits."""


def place(storages: Iterable[Storage]) -> int:
    """Give each storage an offset such that no two that live at the same time overlap; returns the bytes needed.

    The largest `_FITTED` are packed tightest, which takes the square of their number; what is left, and small by
    comparison, comes behind them. Raises MemoryError if all together are more than could be counted.
    """
    ordered = sorted(storages, key=lambda s: (-s.bytes, s.first))
    if sum(storage.bytes for storage in ordered) > _MOST:
        raise MemoryError("no machine has as much memory")
    begin = _fit(ordered[:_FITTED])
    return begin + _stack(ordered[_FITTED:], begin)


def _fit(storages: Sequence[Storage]) -> int:
    """Place each storage, largest first, at the lowest offset that is free for its whole life."""
    # One row a storage that has been placed, by offset: its life, and where its memory begins and ends.
    placed = np.empty((4, len(storages)), np.int64)
    total = 0
    for count, storage in enumerate(storages):
        first, last, begin, end = placed[:, :count]
        busy = (first <= storage.last) & (last >= storage.first)
        # The free gaps: each from the highest end so far to the next begin.
        gaps = np.zeros(np.count_nonzero(busy) + 1, np.int64)
        np.maximum.accumulate(end[busy], out=gaps[1:])
        size = _rounded(storage.bytes)
        wide = begin[busy] - gaps[:-1] >= size
        at = int(wide.argmax()) if wide.any() else -1
        storage.offset = int(gaps[at])
        row = int(begin.searchsorted(storage.offset))
        placed[:, row + 1 : count + 1] = placed[:, row:count]
        placed[:, row] = storage.first, storage.last, storage.offset, storage.offset + size
        total = max(total, storage.offset + size)
    return total


def _stack(storages: Iterable[Storage], origin: int) -> int:
    """Place storages in the order of time at offsets from `origin`, each in the smallest gap that is free by then."""
    total = 0
    gaps: list[tuple[int, int]] = []  # free memory below `total`: size, begin
    begins: dict[int, int] = {}  # where a gap begins: where it ends
    ends: dict[int, int] = {}
    busy: list[tuple[int, int, int]] = []  # last step, begin, end

    def take(begin: int, end: int) -> None:
        del gaps[bisect_left(gaps, (end - begin, begin))], begins[begin], ends[end]

    def free(begin: int, end: int) -> None:
        if begin == end:
            return
        insort(gaps, (end - begin, begin))
        begins[begin], ends[end] = end, begin

    for storage in sorted(storages, key=lambda s: s.first):
        while busy and busy[0][0] < storage.first:
            _, begin, end = heappop(busy)
            if end in begins:
                after = begins[end]
                take(end, after)
                end = after
            if begin in ends:
                before = ends[begin]
                take(before, begin)
                begin = before
            free(begin, end)
        size = _rounded(storage.bytes)
        found = bisect_left(gaps, (size, 0))
        # Without a gap that is wide enough the memory grows, from the gap at its end if there is one.
        begin = gaps[found][1] if found < len(gaps) else ends.get(total, total)
        if begin in begins:
            end = begins[begin]
            take(begin, end)
            free(min(begin + size, end), end)
        total = max(total, begin + size)
        storage.offset = origin + begin
        heappush(busy, (storage.last, begin, begin + size))
    return total


def part(block: np.ndarray, storage: Storage, size: int) -> np.ndarray:
    """The bytes of an arena that a variable of `size` bytes has in its storage."""
    return block[storage.offset : storage.offset + size]


def _rounded(size: int) -> int:
    return -(-max(size, 1) // ALIGN) * ALIGN


def arena(size: int) -> np.ndarray:
    """`size` bytes of uninitialised memory that begin at a multiple of ALIGN."""
    raw = np.empty(size + ALIGN, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + size]
