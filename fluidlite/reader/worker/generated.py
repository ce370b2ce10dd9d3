"""Epochs of a loader whose generator runs in a worker process."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from ..._ext.queue import QueueClosed
from ...base.lod import freeze
from ...executor.tensors.lod_tensor import LoDTensor
from ..loader.source import Feeding, FetchedBatch, Memory
from .errors import WorkerDone
from .pool import WorkerPool
from .process import WorkerInfo, as_asked
from .random_state import RandomState, go_on
from .requests import BatchRequests


class Generated(BatchRequests):
    """What `feeding` yields without the first `skip` batches, made by a process of its own: at most `capacity` wait."""

    def __init__(self, feeding: Feeding, skip: int, capacity: int) -> None:
        self._feeding = feeding
        self._done = False
        self._before: RandomState | None = RandomState()
        self._drew = False
        self._together = max(capacity // 2, 1)  # batches asked for at a time
        self._taken = 0
        payload, name = (feeding, skip, self._before), f"the DataLoader of {feeding.name}"
        super().__init__(WorkerPool(1, _read, payload, name=name, ahead=capacity))
        self.pool.send(0, capacity)

    def get(self) -> FetchedBatch:
        if self._done:
            raise QueueClosed("the worker is done")
        try:
            made, self._drew = self.pool.receive(0)
        except WorkerDone as end:
            self._done = True
            self._feeding.shortfall, after = end.value
            self._go_on(after)
            self.pool.close()
            raise QueueClosed("the worker is done") from None
        self._taken += 1
        if self._taken == self._together:
            self._taken = 0
            self.pool.send(0, self._together)
        batch = [LoDTensor.wrap(array, [freeze(level) for level in lod]) for array, lod in made[0]]
        return FetchedBatch(batch, *made[1:])

    def waiting(self) -> int:
        return int(self.pool.ready(0))

    def close(self) -> None:
        self.pool.close()
        if self._drew:
            self._go_on(None)

    leave = close

    def _go_on(self, after: RandomState | None) -> None:
        before, self._before = self._before, None
        if before is not None:
            go_on(before, after)


def _read(info: WorkerInfo, requests: Iterator[int]) -> Generator[Any, None, Any]:
    """In the worker: the batches, each with whether random numbers were drawn; in the end why there were none, and
    the random state.
    """
    feeding, skip, before = info.payload
    before.restore()
    drew = False
    count = 0
    memory = Memory(info.empty, info.memory, passing=True)
    with closing(as_asked(feeding.batches(skip, memory), requests)) as batches:
        for batch, samples, reading, collating, _ in batches:
            count += 1
            if not drew and count & (count - 1) == 0:  # rarely: looking takes time
                drew = RandomState() != before
            arrays = [(tensor.array, tensor.offsets) for tensor in batch]
            yield (arrays, samples, reading + collating, 0.0), drew
    return feeding.shortfall, RandomState()
