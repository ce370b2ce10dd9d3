"""`DataLoader.from_dataset`: the batches of slot files for a loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...executor import LoDTensor
from ..slot_datasets import DatasetBase
from .generator import as_places


class DatasetLoader:
    """The batches of a data set of files, as a loop takes them (`fluid.reader.DatasetLoader`).

    Args:
        dataset: a `QueueDataset` or `InMemoryDataset`, in whose order batches come.
        places: devices; each item is a list with a batch for each, {name: LoDTensor}.
        drop_last: leave out a last batch with fewer samples, and a last item with fewer batches than places.

    Raises TypeError for another `dataset`; iterating raises what reading does.
    """

    def __init__(self, dataset: DatasetBase, places: Any, drop_last: bool) -> None:
        if not isinstance(dataset, DatasetBase):
            raise TypeError(f"dataset must be made by fluid.DatasetFactory, got {type(dataset).__name__}")
        self._dataset, self._places, self._drop_last = dataset, as_places(places), drop_last

    def __call__(self) -> DatasetLoader:
        return self

    def __iter__(self) -> Iterator[list[dict[str, LoDTensor]]]:
        item: list[dict[str, LoDTensor]] = []
        for feed in self._dataset._feeds():
            batch = {
                name: value if isinstance(value, LoDTensor) else LoDTensor.wrap(value)
                for name, value in feed.items()
            }
            if self._drop_last and _samples(next(iter(batch.values()))) < self._dataset._batch_size:
                continue
            item.append(batch)
            if len(item) == len(self._places):
                yield item
                item = []
        if item and not self._drop_last:
            yield item


def _samples(tensor: LoDTensor) -> int:
    return len(tensor.offsets[0]) - 1 if tensor.offsets else len(np.asarray(tensor.array))
