"""One pass over the data of a loader: the consumer's position, and statistics."""

from __future__ import annotations

import enum
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..._ext.queue import QueueClosed, QueueForked
from ...base import callsite
from ...base.errors import called
from ...base.reports import profiling
from ..collating import size_of
from ..threaded import finalize
from .device_buffer import DevicePrefetcher, Devices
from .source import FetchedBatch, Prefetcher
from .stats import Meter


@called("AssertionError")
class LoaderError(RuntimeError, AssertionError):
    """A loader was used in the wrong order (Fluid raises a bare AssertionError in these cases)."""


class State(enum.Enum):
    """The states of an epoch."""

    IDLE = "idle"  # no epoch was started yet
    RUNNING = "running"  # an epoch is on
    EXHAUSTED = "exhausted"  # all of the epoch's batches were taken
    FAILED = "failed"  # the reader's error was raised
    STOPPED = "stopped"  # the epoch was closed before its end


@dataclass
class Position:
    """The consumer's position: all that is needed to resume there."""

    epoch: int
    batches: int = 0  # taken in this epoch, or sets of them
    order: dict[str, Any] | None = None  # the state of the sampler from which the epoch's order was drawn
    workers: list[int] = field(default_factory=list)  # batches taken of each worker, where that matters
    state: State = State.RUNNING  # of the epoch


@dataclass
class BatchFormat:
    """The format of the items that the consumer gets.

    `form` converts a batch. `devices`: items are lists of so many batches; None: single ones. `drop_last`: a last
    list that is shorter is left out. `count_lists`: lists are counted instead of batches. `alone`: the loader has
    one epoch at a time, and using an ended one raises an error. `barren(left)`: the warning for an epoch without items,
    given the number of batches that were too few for a list.
    """

    form: Callable[[Any], Any]
    barren: Callable[[int], str] | None = None
    devices: int | None = None
    drop_last: bool = True
    count_lists: bool = False
    alone: bool = False


class Epoch:
    """One pass over the data; it ends early when the iterator is closed or garbage.

    `position`: where to begin; updated with each item. `meter`: the statistics.
    """

    def __init__(self, prefetcher: Prefetcher, position: Position, format: BatchFormat, meter: Meter) -> None:
        self.prefetcher = prefetcher
        self.position = position
        self.meter = meter
        self._format = format
        self._begun = position.batches
        self._left: float | None = None  # when the consumer took the last batch

    @property
    def state(self) -> State:
        """The state of the epoch."""
        return self.position.state

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        try:
            return self.take()
        except QueueClosed:
            if self._format.alone and self.state is State.STOPPED:
                raise LoaderError(
                    "this epoch ended because the same DataLoader was iterated again or closed meanwhile; "
                    "make a separate loader for each concurrent loop"
                ) from None
            raise StopIteration from None

    def take(self) -> Any:
        """The next item. Raises QueueClosed when the epoch is over, or the reader's error."""
        meter, format = self.meter, self._format
        if self._left is not None:
            meter.computing += time.perf_counter() - self._left
            self._left = None
        if format.devices is None:
            made = [self._get()]
        else:
            made = []
            try:
                while len(made) < format.devices:
                    made.append(self._get())
            except QueueClosed:
                if not made or format.drop_last:
                    self._warn_if_barren(len(made))
                    raise
        items = []
        for batch, samples, reading, collating, worker in made:
            meter.reading += reading
            meter.collating += collating
            meter.samples += samples
            meter.bytes += size_of(batch)
            if worker is not None:
                self.position.workers[worker] += 1
            items.append(format.form(batch))
        count = 1 if format.count_lists else len(items)
        meter.batches += count
        self.position.batches += count
        self._left = time.perf_counter()
        return items[0] if format.devices is None else items

    def _get(self) -> FetchedBatch:
        if self.state is not State.RUNNING and not (self._format.alone and self.state is State.FAILED):
            raise QueueClosed("the epoch is over")
        begin = time.perf_counter()
        try:
            recorder, get = profiling.active, self.prefetcher.get
            made = get() if recorder is None else recorder.timed("DataLoader.next", get)
        except QueueClosed:
            if self._end(State.EXHAUSTED) and self._format.devices is None:
                self._warn_if_barren(0)
            raise
        except QueueForked:
            raise LoaderError(
                "this epoch was begun before the process was forked, and its reader belongs to the parent; "
                "begin an epoch in this process: iterate over the loader, or call reset() and start()"
            ) from None
        except BaseException as error:
            if self.prefetcher.failed(error) and self.state is State.RUNNING:
                self.counted()
                self.position.state = State.FAILED
            raise
        self.meter.consumer_waited += time.perf_counter() - begin
        return made

    def _warn_if_barren(self, left: int) -> None:
        """Warn if the epoch ended without an item: it had only `left` batches, too few for a list."""
        barren = self._format.barren
        if barren and self.state is State.EXHAUSTED and not self.meter.batches and not self._begun:
            self._begun = -1  # warned once
            callsite.warn(barren(left), RuntimeWarning)

    def waiting(self) -> int:
        """How many items are under way."""
        if self.state is not State.RUNNING:
            return 0
        together = self._format.devices if self._format.count_lists else None
        return self.prefetcher.waiting() // (together or 1)

    def counted(self) -> Meter:
        """The current statistics of the epoch."""
        if self.state is State.RUNNING:
            self.meter.producer_waited = self.prefetcher.idle()
        return self.meter

    def _end(self, state: State) -> bool:
        running = self.state is State.RUNNING
        if running:
            self.counted()
            self.position.state = state
        self.prefetcher.stop(self.state is State.EXHAUSTED)
        return running

    def move_to(self, devices: Devices, ahead: bool) -> None:
        """Copy the remaining batches to these devices, unless they go to devices already."""
        if not isinstance(self.prefetcher, DevicePrefetcher):
            self.prefetcher = DevicePrefetcher(self.prefetcher, devices, ahead, self.meter, "a program")

    def close(self) -> None:
        """End the epoch and release its thread, or its workers. May be called again, also if it was interrupted."""
        self._end(State.STOPPED)

    def __del__(self) -> None:
        if hasattr(self, "_left"):
            finalize(self.close)


class Tally:
    """Sums the statistics of the epochs of a loader."""

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
        """The sum over all epochs."""
        self._settle()
        total = Meter()
        total.add(self._past)
        for reference, meter in self._running:
            epoch = reference()
            total.add(meter if epoch is None else epoch.counted())
        return total

    def _settle(self) -> None:
        """Fold the epochs that are over into one sum."""
        running = []
        for reference, meter in self._running:
            epoch = reference()
            if epoch is not None and epoch.state is State.RUNNING:
                running.append((reference, meter))
            else:
                self._past.add(meter)
        self._running = running
