"""`DataLoader.from_dataset`: the batches of slot files for a loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from ...base.errors import TypeAssertion
from ...executor import LoDTensor
from ..collating import rows_of
from ..slots.datasets import DatasetBase
from .base import BaseLoader
from .epoch import BatchFormat, Epoch, Position
from .generator import as_places
from .source import Direct, FetchedBatch
from .stats import Meter


class DatasetLoader(BaseLoader):
    """The batches of a data set of files, as a loop takes them (`fluid.reader.DatasetLoader`).

    Args:
        dataset: a `QueueDataset` or `InMemoryDataset`, in whose order batches come.
        places: devices; each item is a list with a batch for each, {name: LoDTensor}. They take files, or parts of the
            memory, round-robin; a device without data left takes from the others.
        drop_last: leave out last batches with fewer samples, and a last item with fewer batches than places.

    Raises TypeError for another `dataset`; iterating raises what reading does.
    """

    def __init__(self, dataset: DatasetBase, places: Any, drop_last: bool) -> None:
        super().__init__()
        if not isinstance(dataset, DatasetBase):
            raise TypeAssertion(f"dataset must be made by fluid.DatasetFactory, got {type(dataset).__name__}")
        self._dataset, self._places, self._drop_last = dataset, as_places(places), drop_last

    def __call__(self) -> DatasetLoader:
        return self

    def _open(self, position: Position, meter: Meter) -> Epoch:
        places = len(self._places)
        format = BatchFormat(dict, None, places, self._drop_last, count_lists=True)
        return Epoch(Direct(self._batches(position.batches * places)), position, format, meter)

    def _capacity(self) -> int:
        return 0

    def _batches(self, skip: int) -> Iterator[FetchedBatch]:
        begin = time.perf_counter()
        for feed in self._round_robin():
            batch = {
                name: value if isinstance(value, LoDTensor) else LoDTensor.wrap(value)
                for name, value in feed.items()
            }
            samples = rows_of(batch)
            if self._drop_last and samples < self._dataset._batch_size:
                continue
            if skip:
                skip -= 1
            else:
                yield FetchedBatch(batch, samples, time.perf_counter() - begin, 0.0)
            begin = time.perf_counter()

    def _round_robin(self) -> Iterator[dict[str, Any]]:
        """The batches of the places' parts of the data, round-robin, until all are exhausted."""
        parts = self._dataset._parts(len(self._places))
        try:
            reading = [iter(part) for part in parts]
            while reading:
                for batches in list(reading):
                    feed = next(batches, None)
                    if feed is None:
                        reading.remove(batches)
                    else:
                        yield feed
        finally:
            for part in parts:
                part.stop()
