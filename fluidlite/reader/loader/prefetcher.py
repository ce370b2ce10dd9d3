"""Sources of the batches of an epoch: made on request, ahead by a thread, or by worker processes."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..._ext.queue import QueueClosed
from ...base.reports import profiling
from ..background import Stream
from ..worker.errors import PoolClosed, maker
from ..worker.pool import WorkerPool
from ..worker.requests import BatchRequests
from .source import FetchedBatch


class Prefetcher:
    """The source of the batches of an epoch.

    It releases threads and processes by itself when it fails, and otherwise in `stop`.
    """

    # Whether a thread in `get` should get a moment to leave before it is interrupted.
    patient = False

    def get(self) -> FetchedBatch:
        """The next batch. Raises QueueClosed at the end, or the reader's error, in every later call too."""
        raise NotImplementedError

    def failed(self, error: BaseException) -> bool:
        """Whether `error`, raised by `get`, ends the epoch."""
        return isinstance(error, Exception)

    def waiting(self) -> int:
        """How many batches are under way."""
        return 0

    def idle(self) -> float:
        """Seconds in which the readers waited for room."""
        return 0.0

    def stop(self, finished: bool) -> None:
        """Release the resources of the epoch; `finished`: whether all batches were taken. Idempotent."""

    def interrupt(self) -> None:
        """Wake a thread that waits in `get`; only `stop` may follow."""

    @property
    def queue(self) -> Any:
        """The queue in which batches wait."""
        return self

    size = waiting


def recorded(batches: Iterator[FetchedBatch]) -> Iterator[FetchedBatch]:
    """`batches`, with the time to read and collate each recorded for the profile, in the thread that does it."""
    with contextlib.ExitStack() as stack:
        if hasattr(batches, "close"):
            stack.callback(batches.close)
        for made in batches:
            recorder, end = profiling.detailed(), time.perf_counter_ns()
            if recorder is not None:
                read = end - int(1e9 * made.collating)
                recorder.add("reading", read - int(1e9 * made.reading), read, profiling.Kind.OTHER)
                recorder.add("collating", read, end, profiling.Kind.OTHER)
            yield made


class Direct(Prefetcher):
    """Batches made when they are asked for."""

    def __init__(self, batches: Iterator[FetchedBatch]) -> None:
        self._batches = batches if profiling.detailed() is None else recorded(batches)

    def get(self) -> FetchedBatch:
        for made in self._batches:
            return made
        raise QueueClosed("the epoch is over")

    def stop(self, finished: bool) -> None:
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


class Threaded(Prefetcher):
    """Batches made ahead by a thread, at most `capacity` of them. `name`: that of the source."""

    def __init__(self, batches: Iterator[FetchedBatch], capacity: int, name: str) -> None:
        source = batches if profiling.detailed() is None else recorded(batches)
        self._stream = Stream(lambda: source, capacity, f"loader of {name}")
        self.get = self._stream.get  # type: ignore[method-assign]
        self.failed = self._stream.failed  # type: ignore[method-assign]

    def waiting(self) -> int:
        return len(self._stream.queue)

    def idle(self) -> float:
        return self._stream.queue.stats()["put_seconds"]

    def stop(self, finished: bool) -> None:
        self._stream.stop()

    def interrupt(self) -> None:
        self._stream.queue.kill()

    @property
    def queue(self) -> Any:
        return self._stream.queue


class FromWorkers(Prefetcher):
    """Batches made by the processes of a pool, which goes back to `release`, or is closed if there is none."""

    def __init__(self, requests: BatchRequests, release: Callable[[WorkerPool], None] | None = None) -> None:
        self._requests = requests
        self._release = release
        self._idle_before = requests.pool.stats()["idle"]
        self._failure: Callable[[], BaseException] | None = None
        self._interrupted = False
        self._taking = threading.RLock()
        self.patient = release is not None

    def get(self) -> FetchedBatch:
        self._requests.pool.require_own()  # first, because another thread may have had the lock when we were forked
        with self._taking:
            if self._failure is not None:
                raise self._failure()
            try:
                return self._requests.get()
            except (QueueClosed, PoolClosed):
                raise QueueClosed("the workers are done") from None
            except Exception as error:
                self._failure = maker(error)
                self._requests.close()
                raise
            except BaseException:  # Ctrl-C: the number of outstanding requests is unknown
                self._interrupted = True
                raise

    def waiting(self) -> int:
        return self._requests.waiting()

    def idle(self) -> float:
        pool = self._requests.pool
        return (pool.stats()["idle"] - self._idle_before) / pool.count

    def stop(self, finished: bool) -> None:
        pool = self._requests.pool
        if self._release is None or self._interrupted or pool.closed:
            self._requests.close()
            return
        if not finished:
            self._requests.leave()
        release, self._release = self._release, _kept
        release(pool)

    def interrupt(self) -> None:
        self._requests.close()


def _kept(pool: WorkerPool) -> None:
    """Placeholder of a release function after the pool was handed on."""
