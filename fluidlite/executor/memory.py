"""Which temporaries of a plan may share memory: liveness, then places in one arena."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

ALIGN = 64


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


def place(storages: Iterable[Storage]) -> int:
    """Give each storage an offset such that no two that live at the same time overlap; returns the bytes needed.

    Largest first, each at the lowest offset that is free for its whole life.
    """
    placed: list[Storage] = []
    total = 0
    for storage in sorted(storages, key=lambda s: (-s.bytes, s.first)):
        size = _rounded(storage.bytes)
        busy = sorted(
            (other.offset, other.offset + _rounded(other.bytes))
            for other in placed
            if other.first <= storage.last and storage.first <= other.last
        )
        offset = 0
        for begin, end in busy:
            if offset + size <= begin:
                break
            offset = max(offset, end)
        storage.offset = offset
        placed.append(storage)
        total = max(total, offset + size)
    return total


def _rounded(size: int) -> int:
    return -(-max(size, 1) // ALIGN) * ALIGN


def arena(size: int) -> np.ndarray:
    """`size` bytes of uninitialised memory that begin at a multiple of ALIGN."""
    raw = np.empty(size + ALIGN, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + size]
