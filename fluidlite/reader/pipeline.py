"""The way of a loader's batches from the generator's thread to the consumer, epoch after epoch."""

from __future__ import annotations

import enum
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .._ext.queue import QueueClosed, QueueForked
from ..framework import callsite
from .background import Stream
from .feeding import Feeding


class LoaderError(RuntimeError, AssertionError):
    """A loader was used in the wrong order (Fluid raises a bare AssertionError in these cases)."""


class State(enum.Enum):
    """What a pipeline is doing."""

    IDLE = "idle"  # no epoch was started yet
    RUNNING = "running"  # an epoch is on
    EXHAUSTED = "exhausted"  # all of the epoch's batches were taken
    FAILED = "failed"  # the generator's error was raised
    STOPPED = "stopped"  # the epoch was given up before its end


class Pipeline:
    """One epoch at a time; at most `capacity` items wait between the generator's thread and the consumer."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.state = State.IDLE
        self.stream: Stream | None = None
        self._feeding: Feeding | None = None
        self._lock = threading.RLock()
        self._past = {"epochs": 0, "batches": 0, "producer_waited": 0.0, "consumer_waited": 0.0}

    def start(self, read: Callable[[], Iterable[Any]], feeding: Feeding) -> Stream:
        """Begin an epoch of what `read` yields in the thread; LoaderError if one is on."""
        with self._lock:
            if self.state is State.RUNNING:
                raise LoaderError(
                    "the loader was started already: call reset() before start() begins another epoch"
                )
            self._leave()
            feeding.shortfall = ""
            self._feeding = feeding
            self.stream = Stream(read, self.capacity, f"loader of {feeding.name}")
            self.state = State.RUNNING
            return self.stream

    def take(self, stream: Stream) -> Any:
        """The next item of the epoch that `stream` belongs to.

        Raises QueueClosed at its end (with a warning if there was nothing at all), the generator's error, or
        LoaderError in the child of a fork.
        """
        try:
            return stream.get()
        except QueueClosed:
            self._finish(stream, State.EXHAUSTED)
            raise
        except QueueForked:
            raise LoaderError(
                "this epoch was begun before the process was forked, and the thread that reads for it is in the "
                "parent; begin an epoch in this process: iterate over the loader anew, or call reset() and start()"
            ) from None
        except BaseException as error:
            if error is stream.queue.error:
                self._finish(stream, State.FAILED)
            raise

    def _finish(self, stream: Stream, state: State) -> None:
        with self._lock:
            if stream is not self.stream or self.state is not State.RUNNING:
                return
            self.state = state
            feeding = self._feeding
        if state is State.EXHAUSTED and feeding is not None and not stream.queue.stats()["put"]:
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
            stream.stop()
            if self.state is State.RUNNING:
                self.state = State.STOPPED

    def _totals(self, stream: Stream | None) -> dict[str, Any]:
        totals = dict(self._past)
        if stream is not None:
            now = stream.queue.stats()
            totals["epochs"] += 1
            totals["batches"] += now["got"]
            totals["producer_waited"] += now["put_seconds"]
            totals["consumer_waited"] += now["get_seconds"]
        return totals

    def stats(self) -> dict[str, Any]:
        """Since the loader was made: `epochs` begun, `batches` taken (sets of them, with several devices),
        seconds that the generator waited for room (`producer_waited`) and the consumer for data
        (`consumer_waited`), the `state`, how many are `queued` of `capacity`, and the `bottleneck`:
        'reading' or 'computing', whoever was waited for longer.
        """
        with self._lock:
            totals = self._totals(self.stream)
            totals["state"] = self.state.value
            totals["queued"] = 0 if self.stream is None else len(self.stream.queue)
        totals["capacity"] = self.capacity
        reading = totals["consumer_waited"] > totals["producer_waited"]
        totals["bottleneck"] = "reading" if reading else "computing"
        return totals
