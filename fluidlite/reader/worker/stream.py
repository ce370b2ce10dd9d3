"""Epochs of a loader whose generator runs in a worker process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

from ..._ext.queue import QueueClosed, QueueForked
from ...base.lod import freeze
from ...executor.lod_tensor import LoDTensor
from ..background import finalize
from ..loader.source import Batch, Feeding
from .errors import PoolClosed, WorkerDone, maker
from .pool import WorkerPool
from .process import WorkerInfo, as_asked
from .random_state import RandomState, go_on


class WorkerStream:
    """What `feeding` yields, made by a process of its own: at most `capacity` batches wait.

    Has what pipelines use of a `background.Stream`; there is no thread, the consumer himself takes batches out of the
    shared memory. `arranged` makes an iterator over what `get` gives from the iterator over the batches.
    """

    def __init__(
        self, feeding: Feeding, arranged: Callable[[Iterator[Batch]], Iterator[Any]], capacity: int
    ) -> None:
        self._capacity = capacity
        self._batches = _Batches(feeding, capacity)
        self._arranged = arranged(self._batches)
        self._got = 0
        self._failure: Callable[[], BaseException] | None = None
        self._taking = threading.RLock()

    def get(self) -> Any:
        """The next item; raises QueueClosed at the end, or the generator's error, again and again."""
        self._batches.pool.require_own()  # first, because another thread may have had the lock when we were forked
        with self._taking:
            return self._get()

    def _get(self) -> Any:
        if self._failure is not None:
            raise self._failure()
        try:
            item = next(self._arranged)
        except (StopIteration, PoolClosed):
            raise QueueClosed("the worker is done") from None
        except QueueForked:
            raise
        except Exception as error:
            self._failure = maker(error)
            self.stop()
            raise
        self._got += 1
        return item

    def failed(self, error: BaseException) -> bool:
        """Whether `error`, raised by `get`, ends the epoch."""
        return isinstance(error, Exception)

    def stop(self) -> None:
        """End the worker. May be called at any time, from any thread, any number of times."""
        self._batches.close()

    def __del__(self) -> None:
        if hasattr(self, "_batches"):
            finalize(self.stop)

    @property
    def queue(self) -> WorkerStream:
        """Itself: it stands for the queue that other streams have."""
        return self

    def stats(self) -> dict[str, Any]:
        """As `Queue.stats`, with the `bytes` received and the seconds that the worker was `working` and `sending`."""
        pool = self._batches.pool.stats()
        return {
            "put": int(pool["batches"]),
            "got": self._got,
            "put_seconds": pool["idle"],
            "get_seconds": pool["waited"],
            "bytes": int(pool["bytes"] + pool["piped_bytes"]),
            "working": pool["working"],
            "sending": pool["sending"],
        }

    def __len__(self) -> int:
        return int(self._batches.pool.ready(0))

    size = __len__

    @property
    def capacity(self) -> int:
        return self._capacity


class _Batches:
    """The batches of one epoch as they come from the worker."""

    def __init__(self, feeding: Feeding, capacity: int) -> None:
        self.feeding = feeding
        self.done = False
        self.before: RandomState | None = RandomState()
        self.drew = False
        self.together = max(capacity // 2, 1)  # batches asked for at a time
        self.taken = 0
        self.pool = WorkerPool(
            1, _read, (feeding, self.before), name=f"the DataLoader of {feeding.name}", ahead=capacity
        )
        self.pool.send(0, capacity)

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Batch:
        if self.done:
            raise StopIteration
        try:
            arrays, self.drew = self.pool.receive(0)
        except WorkerDone as end:
            self.done = True
            self.feeding.shortfall, after = end.value
            self.go_on(after)
            self.pool.close()
            raise StopIteration from None
        self.taken += 1
        if self.taken == self.together:
            self.taken = 0
            self.pool.send(0, self.together)
        return [LoDTensor.wrap(array, [freeze(level) for level in lod]) for array, lod in arrays]

    def close(self) -> None:
        self.pool.close()
        if self.drew:
            self.go_on(None)

    def go_on(self, after: RandomState | None) -> None:
        before, self.before = self.before, None
        if before is not None:
            go_on(before, after)


def _read(info: WorkerInfo, requests: Iterator[int]) -> Generator[Any, None, Any]:
    """In the worker: the batches, each with whether random numbers were drawn; in the end why there were none, and
    the random state.
    """
    feeding, before = info.payload
    before.restore()
    feeding.memory, feeding.allocate, feeding.copied = info.memory, info.empty, True
    drew = False
    count = 0
    with closing(as_asked(feeding.batches(), requests)) as batches:
        for batch in batches:
            count += 1
            if not drew and count & (count - 1) == 0:  # rarely: looking takes time
                drew = RandomState() != before
            yield [(tensor.array, tensor.offsets) for tensor in batch], drew
    return feeding.shortfall, RandomState()
