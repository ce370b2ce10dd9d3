"""Samples for several processes (`paddle.incubate.hapi.distributed`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base import missing
from ...fluid.dygraph import ParallelEnv
from ...reader.samplers import BatchSampler

__all__ = ["DistributedBatchSampler"]


class DistributedBatchSampler(BatchSampler):
    """Lists of numbers of samples for this process of several (`paddle.incubate.hapi.distributed`).

    Every process gets as many; samples from the beginning fill up what does not come out even.

    Args:
        dataset: what knows its length.
        batch_size: how many samples each process takes at a time; positive.
        shuffle: whether a new order is drawn for each epoch, the same in each process.
        drop_last: whether a last batch that is smaller is left out.

    Raises AssertionError for other types and numbers.
    """

    def __init__(self, dataset: Any, batch_size: int, shuffle: bool = False, drop_last: bool = False) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise AssertionError(f"batch_size should be a positive integer, got {batch_size!r}")
        for name, value in (("shuffle", shuffle), ("drop_last", drop_last)):
            if not isinstance(value, bool):
                raise AssertionError(f"{name} should be a boolean value, got {value!r}")
        self.dataset = dataset
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last
        self.nranks, self.local_rank = ParallelEnv().nranks, ParallelEnv().local_rank
        self.epoch = 0
        self.num_samples = math.ceil(len(dataset) / self.nranks)
        self.total_size = self.num_samples * self.nranks

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(len(self.dataset))
        indices = [*order.tolist(), *order[: self.total_size - len(order)].tolist()]
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(indices)
            self.epoch += 1
        mine = self._share(indices)
        for start in range(0, len(mine), self.batch_size):
            batch = mine[start : start + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def _share(self, indices: list[int]) -> list[int]:
        """The indices for this process: its batch of each round of batches, and an even share of the last round."""
        whole = self.total_size // (self.batch_size * self.nranks) * self.batch_size * self.nranks
        mine: list[int] = []
        for start in range(self.local_rank * self.batch_size, whole, self.batch_size * self.nranks):
            mine += indices[start : start + self.batch_size]
        rest = indices[whole:]
        each = len(rest) // self.nranks
        return mine + rest[self.local_rank * each : (self.local_rank + 1) * each]

    def __len__(self) -> int:
        batches = self.num_samples // self.batch_size
        return batches if self.drop_last else math.ceil(self.num_samples / self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Set the number that seeds the order of the next epoch."""
        self.epoch = epoch


__getattr__ = missing.reporter(__name__)
