"""One pass over a dataset: where its batches come from, and what is counted on the way to the consumer."""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..._ext.queue import QueueClosed, QueueForked
from ...base import profiling
from ...framework import callsite
from ..background import Stream, finalize
from ..fetcher import FetchedBatch
from ..structure import size_of
from ..worker.dataset import Numbered, Streamed
from ..worker.pool import WorkerPool
from .pipeline import LoaderError, State
from .stats import Meter


class Source(Protocol):
    """Where an epoch gets its batches."""

    def get(self) -> FetchedBatch:
        """The next batch; QueueClosed at the end."""

    def waiting(self) -> int:
        """How many batches are under way."""

    def idle(self) -> float:
        """Seconds in which whoever reads waited for room."""

    def stop(self, finished: bool) -> None:
        """Release what the epoch holds; `finished` says whether all batches were taken."""

    def interrupt(self) -> None:
        """Wake a thread that waits in `get`. The source can only be stopped afterwards."""

    @property
    def patient(self) -> bool:
        """Whether it is better to wait a moment for such a thread first."""


class Direct:
    """Batches made when they are asked for."""

    def __init__(self, batches: Iterator[FetchedBatch]) -> None:
        self._batches = batches

    def get(self) -> FetchedBatch:
        for made in self._batches:
            return made
        raise QueueClosed("the epoch is over")

    def waiting(self) -> int:
        return 0

    def idle(self) -> float:
        return 0.0

    def stop(self, finished: bool) -> None:
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()

    def interrupt(self) -> None:
        pass  # nobody but the consumer ever is in `get`

    patient = False


class Threaded:
    """Batches made ahead by a thread, at most `capacity` of them."""

    patient = False

    def __init__(self, batches: Iterator[FetchedBatch], capacity: int, name: str) -> None:
        self._stream = Stream(lambda: batches, capacity, f"loader of {name}")
        self.get = self._stream.get

    def waiting(self) -> int:
        return len(self._stream.queue)

    def idle(self) -> float:
        return self._stream.queue.stats()["put_seconds"]

    def stop(self, finished: bool) -> None:
        self._stream.stop()

    def interrupt(self) -> None:
        self._stream.queue.kill()


class FromWorkers:
    """Batches made by the processes of a pool, which goes back to `release`, or is closed if there is none."""

    def __init__(self, epoch: Numbered | Streamed, release: Callable[[WorkerPool], None] | None) -> None:
        self._epoch = epoch
        self._release = release
        self._idle_before = epoch.pool.stats()["idle"]
        self._failed = False

    def get(self) -> FetchedBatch:
        try:
            return self._epoch.get()
        except QueueClosed:
            raise
        except BaseException:
            self._failed = True
            raise

    def waiting(self) -> int:
        return self._epoch.waiting()

    def idle(self) -> float:
        pool = self._epoch.pool
        return (pool.stats()["idle"] - self._idle_before) / pool.count

    def stop(self, finished: bool) -> None:
        pool = self._epoch.pool
        if self._release is None or self._failed or pool.closed:
            pool.close()
            return
        if not finished:
            self._epoch.leave()
        self._release(pool)

    def interrupt(self) -> None:
        self._epoch.pool.close()

    @property
    def patient(self) -> bool:
        return self._release is not None


@dataclass
class Position:
    """How far the consumer has come: all that is needed to go on there."""

    epoch: int
    batches: int  # taken in this epoch
    order: dict[str, Any] | None  # the state of the sampler from which the epoch's order was drawn
    workers: list[int] = field(default_factory=list)  # batches taken of each worker, where that matters
    state: State = State.RUNNING  # of the epoch


class Epoch:
    """One pass over the data of a `DataLoader`; it ends early when the iterator is closed or let go.

    `position`: from where on; kept up to date. `deliver` turns a batch into what the consumer gets. `devices`: sets
    of so many batches are made, None for single batches. `name`: what messages call the dataset. `meter`: what counts,
    if the source counts there as well.
    """

    def __init__(
        self,
        source: Source,
        position: Position,
        deliver: Callable[[Any], Any],
        devices: int | None,
        name: str,
        meter: Meter | None = None,
    ) -> None:
        self.source = source
        self.position = position
        self.meter = Meter() if meter is None else meter
        self._deliver = deliver
        self._devices = devices
        self._name = name
        self._begun = position.batches
        self._left: float | None = None  # when the consumer went to work on the last batch

    @property
    def state(self) -> State:
        """What the epoch is doing."""
        return self.position.state

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        if self._left is not None:
            self.meter.computing += time.perf_counter() - self._left
            self._left = None
        # An incomplete set at the end is left out, as in Fluid.
        batch = self._take() if self._devices is None else [self._take() for _ in range(self._devices)]
        self._left = time.perf_counter()
        return batch

    def _take(self) -> Any:
        if self.state is not State.RUNNING:
            raise StopIteration
        begin = time.perf_counter()
        try:
            recorder = profiling.active
            made = (
                self.source.get() if recorder is None else recorder.timed("DataLoader.next", self.source.get)
            )
        except QueueClosed:
            self._end(State.EXHAUSTED)
            if not self.meter.batches and not self._begun:
                self._warn()
            raise StopIteration from None
        except QueueForked:
            self._end(State.FAILED)
            raise LoaderError(
                "this epoch was begun before the process was forked, and what reads for it is in the parent; iterate "
                "over the DataLoader anew in this process"
            ) from None
        except Exception:
            self._end(State.FAILED)
            raise
        meter = self.meter
        meter.consumer_waited += time.perf_counter() - begin
        meter.reading += made.reading
        meter.collating += made.collating
        meter.batches += 1
        meter.samples += made.samples
        meter.bytes += size_of(made.batch)
        self.position.batches += 1
        if made.worker is not None:
            self.position.workers[made.worker] += 1
        return self._deliver(made.batch)

    def _warn(self) -> None:
        warnings.warn(
            f"the dataset {self._name} gave no batch in this epoch: it has no samples, or less than one batch with "
            "drop_last=True",
            RuntimeWarning,
            stacklevel=callsite.stacklevel(),
        )

    def counted(self) -> Meter:
        """What was counted so far."""
        if self.state is State.RUNNING:
            self.meter.producer_waited = self.source.idle()
        return self.meter

    def _end(self, state: State) -> None:
        if self.state is State.RUNNING:
            self.counted()
            self.position.state = state
            self.source.stop(state is State.EXHAUSTED)

    def close(self) -> None:
        """End the epoch and release its thread, or its workers."""
        self._end(State.STOPPED)

    def __del__(self) -> None:
        if hasattr(self, "meter"):
            finalize(self.close)


class Tally:
    """Adds up what the epochs of a loader have counted."""

    def __init__(self) -> None:
        self.epochs = 0
        self._past = Meter()
        self._running: list[tuple[weakref.ref[Epoch], Meter]] = []

    def begin(self, epoch: Epoch) -> None:
        """Count this epoch as well."""
        self.epochs += 1
        self._settle()
        self._running.append((weakref.ref(epoch), epoch.meter))

    def total(self) -> Meter:
        """What was counted so far."""
        self._settle()
        total = Meter()
        total.add(self._past)
        for reference, meter in self._running:
            epoch = reference()
            total.add(meter if epoch is None else epoch.counted())
        return total

    def _settle(self) -> None:
        """Keep only the sum of the epochs that are over."""
        running = []
        for reference, meter in self._running:
            epoch = reference()
            if epoch is not None and epoch.state is State.RUNNING:
                running.append((reference, meter))
            else:
                self._past.add(meter)
        self._running = running
