"""The batches that worker processes make: of a dataset, in an order that does not depend on their number, or a
generator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, NamedTuple, cast

from ..._ext.queue import QueueClosed
from ...base.lod import freeze
from ...executor.lod_tensor import LoDTensor
from ..collating import plain
from ..fetcher import FetcherConfig
from ..loader.source import Feeding, FetchedBatch, Memory
from ..random_source import RandomState, go_on
from .pool import BatchRequests, WorkerPool
from .process import WorkerInfo, as_asked, current_worker


class DatasetWorkerInfo(NamedTuple):
    """A worker process as its dataset sees it: the worker's `id` (from 0), `num_workers`, its copy of the `dataset`,
    and the `seed` that `random` and `numpy.random` started from there."""

    id: int
    num_workers: int
    dataset: Any
    seed: int | None


def get_worker_info() -> DatasetWorkerInfo | None:
    """The description of the current worker process of a `DataLoader`; None elsewhere.

    An IterableDataset shares its samples out by it. Follows `paddle.io.get_worker_info`.
    """
    worker = current_worker()
    if worker is None or not isinstance(worker.payload, FetcherConfig):
        return None
    return DatasetWorkerInfo(worker.id, worker.num_workers, worker.payload.dataset, worker.seed)


class Begin(NamedTuple):
    """Request to begin an epoch over an IterableDataset without its first `skip` batches."""

    skip: int


NEXT = "next"  # request for the next batch of an IterableDataset


def serve(info: WorkerInfo, requests: Iterator[Any]) -> Generator[tuple[Any, ...] | None, None, None]:
    """The worker's loop: make the batch of each list of indices, or the next one; None at the end of an epoch."""
    config: FetcherConfig = info.payload
    fetcher = config.fetcher(Memory(info.empty, info.memory, passing=True))
    custom = config.collate_fn is not None or config.batch_size is None
    stream: Iterator[FetchedBatch] = iter(())
    for request in requests:
        if isinstance(request, Begin):
            stream = fetcher.stream(request.skip)
            continue
        made = next(stream, None) if config.iterable else fetcher.numbered(request)
        yield None if made is None else (plain(made.batch) if custom else made.batch, *made[1:])


class Numbered(BatchRequests):
    """An epoch over numbered samples: batch k of `order` is made by worker k modulo their number.

    `ahead`: how many batches each worker is asked for in advance.
    """

    def __init__(self, pool: WorkerPool, order: Iterator[Any], ahead: int) -> None:
        super().__init__(pool)
        self._order = order
        self._asked: deque[int] = deque()
        self._next = 0
        for _ in range(ahead * pool.count):
            self._ask()

    def _ask(self) -> None:
        for numbers in self._order:
            self.pool.send(self._next, numbers)
            self._asked.append(self._next)
            self._next = (self._next + 1) % self.pool.count
            return

    def get(self) -> FetchedBatch:
        if not self._asked:
            raise QueueClosed("the epoch is over")
        made = FetchedBatch(*self.pool.receive(self._asked.popleft()))
        self._ask()
        return made

    def waiting(self) -> int:
        return len(self._asked)

    def leave(self) -> None:
        for worker in range(self.pool.count):
            self.pool.discard(worker, self._asked.count(worker))
        self._asked.clear()


class Streamed(BatchRequests):
    """An epoch over an IterableDataset: batches come from the workers round-robin until all have ended.

    `taken`: how many batches of each worker were taken before, if the epoch is resumed. Their samples are read, but
    not collated. `ahead` as in `Numbered`.
    """

    def __init__(self, pool: WorkerPool, taken: list[int], ahead: int) -> None:
        super().__init__(pool)
        self._asked = [0] * pool.count
        # Workers that gave fewer batches come first, as they would have without the interruption.
        self._rotation = deque(sorted(range(pool.count), key=lambda worker: (taken[worker], worker)))
        for worker in self._rotation:
            pool.send(worker, Begin(taken[worker]))
        for _ in range(ahead):
            for worker in self._rotation:
                self._ask(worker)

    def _ask(self, worker: int) -> None:
        self.pool.send(worker, NEXT)
        self._asked[worker] += 1

    def get(self) -> FetchedBatch:
        while self._rotation:
            worker = self._rotation[0]
            made = self.pool.receive(worker)
            self._asked[worker] -= 1
            if made is not None:
                self._ask(worker)
                self._rotation.rotate(-1)
                return FetchedBatch(*made)._replace(worker=worker)
            self._rotation.popleft()
            self.pool.discard(worker, self._asked[worker])
            self._asked[worker] = 0
        raise QueueClosed("the epoch is over")

    def waiting(self) -> int:
        return sum(self._asked)

    def leave(self) -> None:
        for worker, asked in enumerate(self._asked):
            self.pool.discard(worker, asked)
        self._asked = [0] * self.pool.count
        self._rotation.clear()


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
        pool.send(0, BeginGenerator(skip, self._before))
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


class BeginGenerator(NamedTuple):
    """Request to begin an epoch with this random state, without its first `skip` batches."""

    skip: int
    state: RandomState


def _read(info: WorkerInfo, requests: Iterator[BeginGenerator | int]) -> Generator[Any, None, None]:
    """In the worker: yield the requested number of batches of each epoch, each with whether random numbers were drawn;
    at the end None with the reason if there were none, and the random state.
    """
    feeding: Feeding = info.payload
    memory = Memory(info.empty, info.memory, passing=True)
    for begin in requests:
        if not isinstance(begin, BeginGenerator):
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
