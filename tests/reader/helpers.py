"""Readers that the tests use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from fluidlite.reader import Dataset


def numbers(count: int, start: int = 0, pause: float = 0.0) -> Callable[[], Iterator[int]]:
    """A reader of `count` ints."""

    def reader() -> Iterator[int]:
        for i in range(start, start + count):
            if pause:
                time.sleep(pause)
            yield i

    return reader


def failing(after: int, error: Exception | None = None) -> Callable[[], Iterator[int]]:
    """A reader that raises after `after` ints."""

    def broken_reader() -> Iterator[int]:
        yield from range(after)
        raise error if error is not None else OSError("the disk is on fire")

    return broken_reader


def endless() -> Iterator[int]:
    """Never stops."""
    i = 0
    while True:
        yield i
        i += 1


class Samples(Dataset):
    """The results of a function of the index."""

    def __init__(self, function: Callable[[int], Any] = lambda idx: idx, count: int = 4) -> None:
        self.function, self.count = function, count

    def __getitem__(self, idx: int) -> Any:
        return self.function(idx)

    def __len__(self) -> int:
        return self.count


class Watched:
    """A reader that notes how often it was opened and closed."""

    def __init__(self, reader: Callable[[], Any]) -> None:
        self.reader = reader
        self.opened = self.closed = 0

    def __call__(self) -> Iterator[Any]:
        self.opened += 1
        try:
            yield from self.reader()
        finally:
            self.closed += 1
