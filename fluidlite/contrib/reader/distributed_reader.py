"""The part of the batches that belongs to one of several trainers (`fluid.contrib.reader.distributed_reader`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from ...base import missing

__all__ = ["distributed_batch_reader"]

Reader = Callable[[], Iterable[Any]]


def distributed_batch_reader(batch_reader: Reader) -> Reader:
    """A reader of every n-th batch, for one of n trainers (`fluid.contrib.reader.distributed_batch_reader`).

    The environment says how many there are, PADDLE_TRAINERS_NUM (1 by default), and which one this is,
    PADDLE_TRAINER_ID (0 by default), when the function is called. What is left at the end and is not enough for
    all is left out.

    Raises:
        ValueError: there is no trainer of this number.
    """
    count = int(os.getenv("PADDLE_TRAINERS_NUM", "1"))
    own = int(os.getenv("PADDLE_TRAINER_ID", "0"))
    if not 0 <= own < count:
        raise ValueError(f"PADDLE_TRAINER_ID must be from 0 to {count - 1}, got {own}")

    def reader() -> Iterator[Any]:
        batches = iter(batch_reader())
        while len(turn := list(islice(batches, count))) == count:
            yield turn[own]

    return reader


__getattr__ = missing.reporter(__name__)
