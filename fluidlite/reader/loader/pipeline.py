"""The way of a loader's batches from the generator's thread to the consumer, epoch after epoch."""

from __future__ import annotations

import enum
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..._ext.queue import QueueClosed, QueueForked
from ...base import profiling
from ...framework import callsite
from ..background import Stream
from ..structure import rows_of, size_of
from ..worker.stream import WorkerStream
from .device_buffer import Devices, MovedStream, staging_memory
from .resume import checked_state
from .source import Batch, Feeding
from .stats import Meter, bottleneck


class LoaderError(RuntimeError, AssertionError):
    """A loader was used in the wrong order (Fluid raises a bare AssertionError in these cases)."""


class State(enum.Enum):
    """What a pipeline is doing."""

    IDLE = "idle"  # no epoch was started yet
    RUNNING = "running"  # an epoch is on
    EXHAUSTED = "exhausted"  # all of the epoch's batches were taken
    FAILED = "failed"  # the generator's error was raised
    STOPPED = "stopped"  # the epoch was given up before its end


Arranged = Callable[[Iterator[Batch]], Iterator[Any]]


class Pipeline:
    """One epoch at a time; at most `capacity` items wait between the generator's thread and the consumer.

    `use_process`: the generator runs in a process of its own instead of a thread. `devices`: GPUs that the batches of
    the epochs to come go to, in turn or (`sets`) one of each item to each; `ahead`: before they are taken.
    """

    def __init__(self, capacity: int, use_process: bool = False) -> None:
        self.capacity = capacity
        self.use_process = use_process
        self.state = State.IDLE
        self.stream: Stream | WorkerStream | MovedStream | None = None
        self.devices: Devices = ()
        self.sets = False
        self.ahead = True
        self._feeding: Feeding | None = None
        self._lock = threading.RLock()
        self._epochs = 0  # begun here
        self._past = Meter()
        self._meter = Meter()  # of the epoch that was begun last
        self._left: float | None = None  # when the consumer went to work on the last item
        self._epoch = -1  # number of the epoch that was begun last, in this run and those it goes on from
        self._taken = 0  # items of that epoch, also in those runs
        self._resume: dict[str, Any] | None = None  # where the next epoch begins

    def start(
        self, feeding: Feeding, arranged: Arranged = iter, together: int = 1
    ) -> Stream | WorkerStream | MovedStream:
        """Begin an epoch of the batches of `feeding`, made by `arranged` to what `take` gives.

        `together`: how many batches make one such item. LoaderError if an epoch is on.
        """
        with self._lock:
            if self.state is State.RUNNING:
                raise LoaderError(
                    "the loader was started already: call reset() before start() begins another epoch"
                )
            self._leave()
            feeding.shortfall = ""
            self._feeding = feeding
            resume = self._resume or {"epoch": self._epoch + 1, "batches": 0}
            self._resume = None
            self._epoch, self._taken = resume["epoch"], resume["batches"]
            self._epochs += 1
            self._left = None
            feeding.skip = self._taken * together
            feeding.meter = self._meter = Meter()
            devices = self.devices
            feeding.put_together_in(None if self.use_process or not self.ahead else staging_memory(devices))
            if self.use_process:
                self.stream = WorkerStream(feeding, arranged, self.capacity)
            else:
                self.stream = Stream(
                    lambda: arranged(feeding.batches()), self.capacity, f"loader of {feeding.name}"
                )
            if devices:
                self._move(self.stream, devices)
            self.state = State.RUNNING
            return self.stream

    def _move(self, source: Stream | WorkerStream, devices: Devices) -> None:
        assert self._feeding is not None
        name = f"copies for {self._feeding.name}"
        self.stream = MovedStream(source, devices, self.sets, self.ahead, self._meter, name)

    def move_to(self, devices: Devices) -> None:
        """Have batches go to these devices from now on; if those of this epoch go to others, from the next on."""
        with self._lock:
            self.devices = devices
            if devices and self.state is State.RUNNING and isinstance(self.stream, (Stream, WorkerStream)):
                self._move(self.stream, devices)

    def take(self, stream: Stream | WorkerStream | MovedStream) -> Any:
        """The next item of the epoch that `stream` belongs to.

        Raises QueueClosed at its end (with a warning if there was nothing at all), the generator's error, or
        LoaderError in the child of a fork.
        """
        if self._left is not None:
            self._meter.computing += time.perf_counter() - self._left
            self._left = None
        try:
            recorder = profiling.active
            item = stream.get() if recorder is None else recorder.timed("DataLoader.next", stream.get)
        except QueueClosed:
            self._finish(stream, State.EXHAUSTED)
            raise
        except QueueForked:
            raise LoaderError(
                "this epoch was begun before the process was forked, and what reads for it belongs to the "
                "parent; begin an epoch in this process: iterate over the loader anew, or call reset() and start()"
            ) from None
        except BaseException as error:
            if stream.failed(error):
                self._finish(stream, State.FAILED)
            raise
        self._taken += 1
        meter = self._meter
        meter.batches += 1
        meter.samples += rows_of(item)
        meter.bytes += size_of(item)
        self._left = time.perf_counter()
        return item

    def _finish(self, stream: Stream | WorkerStream | MovedStream, state: State) -> None:
        with self._lock:
            if stream is not self.stream or self.state is not State.RUNNING:
                return
            self.state = state
            feeding = self._feeding
        if state is State.EXHAUSTED and feeding is not None and not self._taken:
            warnings.warn(
                f"the reader {feeding.name} given to {feeding.kind} yielded no batch in this epoch"
                f"{feeding.shortfall}",
                RuntimeWarning,
                stacklevel=callsite.stacklevel(),
            )

    def stop(self) -> None:
        """Give up the epoch that is on, if any, and forget the one that is over; the generator's thread
        ends.
        """
        with self._lock:
            self._leave()

    def _leave(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            self._past = self._totals(stream)
            self._meter = Meter()
            if self.state is State.RUNNING:
                self.state = State.STOPPED
            stream.stop()

    def _totals(self, stream: Stream | WorkerStream | MovedStream | None) -> Meter:
        total = Meter()
        total.add(self._past)
        if stream is not None:
            total.add(self._meter)
            now = stream.queue.stats()
            total.producer_waited += now["put_seconds"]
            total.consumer_waited += now["get_seconds"]
            total.reading += now.get("working", 0.0)
        return total

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is: the number of the epoch and how many items he took of it."""
        with self._lock:
            if self._resume is not None:
                return dict(self._resume)
            if self._epoch < 0 or self.state is State.EXHAUSTED:
                return {"epoch": self._epoch + 1, "batches": 0}
            return {"epoch": self._epoch, "batches": self._taken}

    def set_state_dict(self, state: Mapping[str, Any]) -> None:
        """Have the next epoch go on where `state_dict` was called; ValueError for a state of something else."""
        self._resume = checked_state(state)

    def stats(self) -> dict[str, Any]:
        """Since the loader was made: `epochs` begun; `batches` (sets of them, with several devices), `samples` and
        `bytes` taken; seconds of `reading` and `collating` (all is `reading` if a process does it), those in which the
        generator waited for room (`producer_waited`) and the consumer for data (`consumer_waited`), and of the
        consumer's `computing` in between; bytes `copied` to GPUs, seconds of `staging` and `copying` them; the `state`,
        how many are `queued` of `capacity`, the `workers` (processes), and the `bottleneck`: 'reading' or 'computing',
        whoever was waited for longer, or 'copying'.
        """
        with self._lock:
            found: dict[str, Any] = {"epochs": self._epochs, **self._totals(self.stream).as_dict()}
            found["state"] = self.state.value
            found["queued"] = 0 if self.stream is None else len(self.stream.queue)
        found["capacity"] = self.capacity
        found["workers"] = int(self.use_process)
        found["bottleneck"] = bottleneck(found)
        return found
