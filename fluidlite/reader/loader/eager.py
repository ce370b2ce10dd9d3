"""Loaders of generators in dygraph mode: batches of any types and shapes, as lists of eager Tensors."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._ext.collate import Handover
from ...eager import Tensor
from ...executor.tensors.lod_tensor import LoDTensor
from ...framework import mode
from ..calling import iterating
from ..collating import collate
from ..structure import rows_of
from .epoch import LoaderError
from .generator import IterableLoader, Loader, as_places
from .source import (
    ORDINARY,
    Batch,
    Feeding,
    FetchedBatch,
    Memory,
    Ready,
    SampleLists,
    Samples,
    pass_over,
    plain_array,
)


class OpenSamples(Samples):
    """Samples of any arrays and numbers; those of a batch must have equal shapes and structures."""

    def batches(self, skip: int = 0, memory: Memory = ORDINARY) -> Iterator[FetchedBatch]:
        with iterating(self.reader) as samples:
            pass_over(samples, skip * self.batch_size)
            while True:
                begin = time.perf_counter()
                rows = list(itertools.islice(samples, self.batch_size))
                if not rows or (self.drop_last and len(rows) < self.batch_size):
                    break
                yield stacked(self, rows, begin, memory)
        if rows:
            self.shortfall = (
                f": its {len(rows)} samples are less than one batch of {self.batch_size}, and drop_last=True leaves "
                "them out"
            )


class OpenSampleLists(SampleLists):
    """Lists of such samples."""

    def batches(self, skip: int = 0, memory: Memory = ORDINARY) -> Iterator[FetchedBatch]:
        with iterating(self.reader) as lists:
            pass_over(lists, skip)
            begin = time.perf_counter()
            for samples in lists:
                yield stacked(self, samples, begin, memory)
                begin = time.perf_counter()


def stacked(feeding: Feeding, samples: Any, begin: float, memory: Memory) -> FetchedBatch:
    """The batch of a list of samples, which were read from `begin` on."""
    read = time.perf_counter()
    if not hasattr(samples, "__iter__"):
        raise TypeError(
            f"the reader {feeding.name} given to {feeding.kind} should yield lists of samples, got "
            f"{type(samples).__name__}"
        )
    columns = collate(list(samples), False, memory.empty, f"the reader {feeding.name}")
    batch = []
    for i, column in enumerate(columns if isinstance(columns, list) else [columns]):
        if not isinstance(column, np.ndarray):
            raise TypeError(
                f"item {i} of the samples of the reader {feeding.name} is no array or number: a Tensor cannot hold it"
            )
        batch.append(LoDTensor.wrap(column))
    return FetchedBatch(batch, rows_of(batch), read - begin, time.perf_counter() - read)


class OpenReady(Ready):
    """Batches that are ready: arrays, tensors or nested lists of numbers."""

    def tensors(self, items: Any, handover: Handover, where: str) -> Batch:
        given = items if isinstance(items, (list, tuple)) else [items]
        return [
            LoDTensor.wrap(plain_array(item, handover, f"item {i} of {where}")[0])
            for i, item in enumerate(given)
        ]


class EagerLoader(IterableLoader):
    """A loader of dygraph mode: each item is a batch, a list of Tensors on the loader's memory, at the current place.

    `capacity`: how many batches may wait; `use_process`: run the generator in a process of its own; `double_buffer`:
    copy batches to a GPU ahead of time; `persistent`: keep that process from one epoch to the next.
    """

    _samples = OpenSamples
    _lists = OpenSampleLists
    _ready = OpenReady

    def __init__(
        self, capacity: int, use_process: bool = False, double_buffer: bool = True, persistent: bool = False
    ) -> None:
        super().__init__((), capacity, False, True, use_process, double_buffer, persistent)

    def _set(self, feeding: Feeding, places: Any) -> Loader:
        given = as_places(places if places is not None else mode._current_expected_place())
        if len(given) > 1:
            raise LoaderError(f"Number of places must be 1 in imperative mode, got {len(given)}: {given}")
        return super()._set(feeding, given)

    def _places(self) -> int | None:
        return None

    def _form(self, batch: Batch) -> list[Tensor]:
        return [Tensor(tensor.array) for tensor in batch]
