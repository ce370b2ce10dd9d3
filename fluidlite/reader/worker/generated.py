"""Epochs of a loader whose generator runs in a worker process."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, NamedTuple, cast

from ..._ext.queue import QueueClosed
from ...base.lod import freeze
from ...executor.lod_tensor import LoDTensor
from ..loader.source import Feeding, FetchedBatch, Memory
from .pool import BatchRequests, WorkerPool
from .process import WorkerInfo, as_asked
from .random_state import RandomState, go_on


class Generated(BatchRequests):
    """The batches of `feeding` without the first `skip`, made by the process of `pool`: at most `capacity` wait.

    `pool` is of `worker_of`; it can serve another epoch when this one was read to its end.
    """

    def __init__(self, feeding: Feeding, skip: int, capacity: int, pool: WorkerPool) -> None:
        self._feeding = feeding
        self._done = False
        self._before: RandomState | None = RandomState()
        self._drew = False
        self._batches_per_request = max(capacity // 2, 1)  # batches requested at a time
        self._taken = 0
        super().__init__(pool)
        pool.send(0, Begin(skip, self._before))
        pool.send(0, capacity)

    def get(self) -> FetchedBatch:
        if self._done:
            raise QueueClosed("the worker is done")
        made, found = self.pool.receive(0)
        if made is None:
            self._done = True
            self._feeding.shortfall, after = found
            self._adopt_random_state(after)
            raise QueueClosed("the worker is done")
        self._drew = found
        self._taken += 1
        if self._taken == self._batches_per_request:
            self._taken = 0
            self.pool.send(0, self._batches_per_request)
        batch = [LoDTensor.wrap(array, [freeze(level) for level in lod]) for array, lod in made[0]]
        return FetchedBatch(batch, *made[1:])

    def waiting(self) -> int:
        return 0 if self._done else int(self.pool.ready(0))

    def close(self) -> None:
        self.pool.close()
        if self._drew:
            self._adopt_random_state(None)

    leave = close

    def _adopt_random_state(self, after: RandomState | None) -> None:
        before, self._before = self._before, None
        if before is not None:
            go_on(before, after)


def worker_of(feeding: Feeding, capacity: int) -> WorkerPool:
    """A process for epochs of `feeding`."""
    return WorkerPool(1, _read, feeding, name=f"the DataLoader of {feeding.name}", ahead=capacity)


class Begin(NamedTuple):
    """Request to begin an epoch with this random state, without its first `skip` batches."""

    skip: int
    state: RandomState


def _read(info: WorkerInfo, requests: Iterator[Begin | int]) -> Generator[Any, None, None]:
    """In the worker: yield the requested number of batches of each epoch, each with whether random numbers were drawn;
    at the end None with the reason if there were none, and the random state.
    """
    feeding: Feeding = info.payload
    memory = Memory(info.empty, info.memory, passing=True)
    for begin in requests:
        if not isinstance(begin, Begin):
            continue  # requests beyond the end of the epoch before
        feeding.shortfall = ""
        begin.state.restore()
        drew = False
        count = 0
        counts = cast("Iterator[int]", requests)  # until the end of the epoch
        with closing(as_asked(feeding.batches(begin.skip, memory), counts)) as batches:
            for batch, samples, reading, collating, _ in batches:
                count += 1
                if (
                    not drew and count & (count - 1) == 0
                ):  # at powers of two only: comparing states takes time
                    drew = RandomState() != begin.state
                arrays = [(tensor.array, tensor.offsets) for tensor in batch]
                yield (arrays, samples, reading + collating, 0.0), drew
        yield None, (feeding.shortfall, RandomState())
