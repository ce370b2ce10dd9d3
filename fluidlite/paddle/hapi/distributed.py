"""Samples for several processes (`paddle.incubate.hapi.distributed`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...fluid.dygraph import ParallelEnv
from ...reader import samplers

__all__ = ["DistributedBatchSampler"]


class DistributedBatchSampler(samplers.DistributedBatchSampler):
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
        self.dataset = dataset  # of any class, unlike that of `paddle.io`
        self.batch_size, self.shuffle, self.drop_last = batch_size, shuffle, drop_last
        self.nranks, self.local_rank = ParallelEnv().nranks, ParallelEnv().local_rank
        self.epoch = 0

    def __iter__(self) -> Iterator[list[int]]:
        epoch = self.epoch
        batches = super().__iter__()
        if not self.shuffle:
            self.epoch = epoch  # only orders that are drawn count
        return batches
