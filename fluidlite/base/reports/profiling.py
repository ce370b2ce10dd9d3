"""Profiling: spans of time that operators, executors and loaders record while a profiler is active."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

SPANS_KEPT = 500_000
"""The limit of a thread's spans in the trace; the table counts all."""


STEP = "Executor.run"
"""The name of a step's overhead: its time outside of operators."""


UPDATE = "Optimizer.update"
"""The name of the overhead of an update of eager parameters."""

TRAINER = "fluidlite trainer"
"""The prefix of the names of threads that train a program from files."""

TRAINERS = "waiting for trainers"
"""The name of the time that `train_from_dataset` waits for these threads."""


class ProfilerState(IntEnum):
    """The devices that are profiled: none, the host, the GPU, or both (`fluid.core.ProfilerState`)."""

    kDisabled = 0
    kCPU = 1
    kCUDA = 2
    kAll = 3


class Kind(IntEnum):
    """The kind of a span: an operator, a copy from or to a GPU, or overhead."""

    OPERATOR = 0
    COPY = 1
    OTHER = 2


class Span(NamedTuple):
    """A stretch of time: nanoseconds of `time.perf_counter_ns`. `device`: begin and length on a GPU, in nanoseconds."""

    name: str
    kind: Kind
    begin: int
    length: int
    device: tuple[int, int] | None = None


@dataclass
class Row:
    """All spans of one name: their number, and nanoseconds of the host and of GPUs."""

    name: str
    kind: Kind
    calls: int = 0
    host: int = 0
    device: int = 0
    shortest: int = 0
    longest: int = 0

    def add(self, host: int, device: int, length: int) -> None:
        self.shortest = min(self.shortest, length) if self.calls else length
        self.longest = max(self.longest, length)
        self.calls += 1
        self.host += host
        self.device += device

    def merge(self, other: Row) -> None:
        """Count in the row of another thread."""
        self.shortest = min(self.shortest, other.shortest) if self.calls else other.shortest
        self.longest = max(self.longest, other.longest)
        self.calls += other.calls
        self.host += other.host
        self.device += other.device


class Lane:
    """The records of one thread. `inside`: for each open frame, nanoseconds of the spans in it."""

    __slots__ = ("dropped", "inside", "name", "rows", "spans")

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[str, Row] = {}
        self.spans: list[Span] = []
        self.dropped = 0
        self.inside: list[int] = []


class Recorder:
    """Collects spans of all threads, for a profiler of `state`.

    `detailed`: also records threads and worker processes of loaders, for a report of a whole run, which a script's
    own use of `fluid.profiler` neither ends nor clears.
    """

    def __init__(self, state: ProfilerState, detailed: bool = False) -> None:
        self.state = state
        self.detailed = detailed
        self.reset()

    @property
    def on_device(self) -> bool:
        """Whether to record times of GPUs."""
        return self.state is not ProfilerState.kCPU

    def reset(self) -> None:
        """Discard all records."""
        self.lanes: list[Lane] = []
        self.loaders: list[Any] = []
        """The loaders that have begun an epoch, if the profile is detailed."""
        self.workers: dict[str, list[tuple[int, Sequence[float]]]] = {}
        """For each worker process the times of its messages, with its total seconds working, sending and idle."""
        self._mine = threading.local()

    def _lane(self) -> Lane:
        lane: Lane | None = getattr(self._mine, "lane", None)
        if lane is None:
            lane = self._mine.lane = Lane(threading.current_thread().name)
            self.lanes.append(lane)
        return lane

    def add(
        self,
        name: str,
        begin: int,
        end: int,
        kind: Kind = Kind.OPERATOR,
        device: tuple[int, int] | None = None,
        nested: int = 0,
    ) -> None:
        """Record a span of this thread. `nested`: nanoseconds of it that inner spans have recorded already."""
        lane = self._lane()
        length = end - begin
        if lane.inside:
            lane.inside[-1] += length
        own, there = length - nested, device[1] if device is not None else 0
        counted = {ProfilerState.kCPU: own, ProfilerState.kCUDA: there}.get(self.state, own + there)
        row = lane.rows.get(name)
        if row is None:
            row = lane.rows[name] = Row(name, kind)
        row.add(own, there, counted)
        if len(lane.spans) < SPANS_KEPT:
            lane.spans.append(Span(name, kind, begin, length, device))
        else:
            lane.dropped += 1

    def heard(self, worker: str, clock: Sequence[float]) -> None:
        """Record a message of a worker process."""
        self.workers.setdefault(worker, []).append((time.perf_counter_ns(), clock))

    def leave_out(self, since: int) -> None:
        """Exclude the time of recording, since `since`, from the enclosing span."""
        inside = self._lane().inside
        if inside:
            inside[-1] += time.perf_counter_ns() - since

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        """The result of `work`, recorded as a span."""
        with self.span(name):
            return work()

    @contextmanager
    def span(self, name: str, kind: Kind = Kind.OTHER) -> Iterator[None]:
        """Record the time of the block, less the spans recorded inside."""
        lane = self._lane()
        depth = len(lane.inside)
        lane.inside.append(0)
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            end = time.perf_counter_ns()
            nested = lane.inside[depth]
            del lane.inside[depth:]
            self.add(name, begin, end, kind, nested=nested)


active: Recorder | None = None
"""The current recorder; None while no profiler is active."""

_watchers: list[Callable[[Recorder | None], Any]] = []


def watch(watcher: Callable[[Recorder | None], Any]) -> None:
    """Register `watcher(active)`, which is called when profiling begins or ends."""
    _watchers.append(watcher)


def detailed() -> Recorder | None:
    """The current recorder if it records loaders' threads and processes, too."""
    return active if active is not None and active.detailed else None


def switch(recorder: Recorder | None) -> Recorder | None:
    """Begin to record with `recorder`, or end with None; returns the recorder before."""
    global active
    before, active = active, recorder
    for watcher in _watchers:
        watcher(recorder)
    return before
