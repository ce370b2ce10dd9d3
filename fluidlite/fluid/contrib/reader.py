"""Readers for trainers that share the work (`fluid.contrib.reader`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = ["distributed_batch_reader"]

Reader = Callable[[], Iterable[Any]]


def distributed_batch_reader(batch_reader: Reader) -> Reader:
    """A reader of every n-th batch, for one of n trainers (`fluid.contrib.reader.distributed_batch_reader`).

    PADDLE_TRAINERS_NUM (1 by default) and PADDLE_TRAINER_ID (0 by default) are read when the function is called. The
    last batches are dropped if there are fewer than trainers.

    Raises:
        ValueError: PADDLE_TRAINER_ID is out of range.
    """
    count = int(os.getenv("PADDLE_TRAINERS_NUM", "1"))
    own = int(os.getenv("PADDLE_TRAINER_ID", "0"))
    if not 0 <= own < count:
        raise ValueError(f"PADDLE_TRAINER_ID must be from 0 to {count - 1}, got {own}")

    def reader() -> Iterator[Any]:
        batches = iter(batch_reader())
        while len(group := list(islice(batches, count))) == count:
            yield group[own]

    return reader
