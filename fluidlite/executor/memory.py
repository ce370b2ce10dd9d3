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

    Raises MemoryError if all together are more than could be counted.
    """
    from .._ext.engine import Places

    storages = list(storages)
    places = Places()
    for storage in storages:
        places.add(storage.first, storage.last)
    total, offsets = places.place([storage.bytes for storage in storages])
    for storage, offset in zip(storages, offsets, strict=True):
        storage.offset = offset
    return total


def part(block: np.ndarray, storage: Storage, size: int) -> np.ndarray:
    """The bytes of an arena that a variable of `size` bytes has in its storage."""
    return block[storage.offset : storage.offset + size]


def arena(size: int) -> np.ndarray:
    """`size` bytes of uninitialised memory that begin at a multiple of ALIGN."""
    raw = np.empty(size + ALIGN, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + size]
