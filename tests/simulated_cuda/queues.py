"""Queues of work, and the order in which it happens.

Nothing happens when it is issued. Work waits in the queue of its stream until something forces it to happen: a
synchronisation, or work that is ordered after it. What no event orders therefore happens as late as possible, which is
where code that forgot an event gives wrong results; with a seed, queues also advance at random moments.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from . import errors
from .capture import Capture, forbid_in_capture
from .errors import CUDARuntimeError
from .machine import Machine, machine

LEGACY, PER_THREAD = 1, 2


# A piece of work; what it returns, if anything, are pieces to be done next.
Work = Callable[[], "list[Any] | None"]


class NotYet(Exception):
    """A queue that was to advance on its own has got to work that waits for what is not issued yet."""


class Queue:
    """The work of one stream: `issued` entries so far, of which `executed` have happened."""

    def __init__(
        self, owner: Machine, device: int, pointer: int, blocking: bool, legacy: bool = False
    ) -> None:
        self.machine, self.device, self.pointer = owner, device, pointer
        self.blocking, self.legacy = blocking, legacy
        self.entries: deque[Work] = deque()
        self.parts: deque[Work] = deque()  # of the entry that is under way
        self.busy = False
        self.issued = self.executed = 0
        self.capture: Capture | None = None
        self.destroyed = False

    def push(self, work: Work) -> None:
        self.entries.append(work)
        self.issued += 1

    def run_to(self, position: int) -> None:
        """Do everything up to a position."""
        while self.executed < position and self.step():
            pass
        if self.executed < position and self.machine.advancing:
            raise NotYet

    def step(self) -> bool:
        """Do the next piece of work, if there is any."""
        if self.idle:
            return False
        if self.busy:
            raise CUDARuntimeError(errors.LAUNCH_FAILURE, "streams wait for each other for ever")
        work = (self.parts or self.entries).popleft()
        self.busy = True
        try:
            more = work()
            if more:
                self.parts.extendleft(reversed(more))
        except NotYet:
            self.parts.appendleft(work)
            raise
        finally:
            self.busy = False
            if not self.parts:
                self.executed += 1
        return True

    def drain(self) -> None:
        """Do everything that is there, and all that it waits for."""
        with self.machine.lock:
            if self.legacy:
                for other in others(self, blocking=True):
                    other.run_to(other.issued)
            self.run_to(self.issued)

    @property
    def idle(self) -> bool:
        return not self.entries and not self.parts


def others(queue: Queue, blocking: bool) -> list[Queue]:
    """The other queues of the same device that are (not) ordered with its legacy stream."""
    return [
        q
        for q in list(queue.machine.queues.values())
        if q is not queue and q.device == queue.device and q.blocking == blocking and not q.legacy
    ]


def legacy_queue(device: int) -> Queue:
    """The queue of a device's legacy default stream."""
    m = machine()
    with m.lock:
        queue = m.queues.get((device, 0))
        if queue is None:
            queue = m.queues[device, 0] = Queue(m, device, 0, blocking=True, legacy=True)
        return queue


def queue_of(pointer: int) -> Queue:
    """The queue behind a stream's address.

    Raises:
        CUDARuntimeError: there is no such stream (any more).
    """
    m = machine()
    m.check_driver()
    if pointer in (0, LEGACY):
        return legacy_queue(m.device)
    if pointer == PER_THREAD:
        key = (m.device, PER_THREAD, threading.get_ident())
        with m.lock:
            if key not in m.queues:
                m.queues[key] = Queue(m, m.device, PER_THREAD, blocking=True)
            return m.queues[key]
    queue = m.queues.get(pointer)
    if queue is None or queue.destroyed:
        raise CUDARuntimeError(errors.INVALID_HANDLE, f"stream {pointer:#x} does not exist (any more)")
    return queue


def enqueue(stream: int, work: Work) -> None:
    """Queue work on a stream, as a kernel is: it happens when something forces it to; captures record it.

    Args:
        stream: the address of a stream (`Stream.ptr`).
        work: called without arguments, once for each time the work happens (graphs call it at every launch).
    """
    push(queue_of(stream), work)


def push(queue: Queue, work: Work) -> None:
    """Queue work on a queue, after what the legacy stream orders it after."""
    m = queue.machine
    with m.lock:
        if queue.capture is not None:
            queue.capture.record(queue, work)
            return
        if queue.legacy:
            for other in others(queue, blocking=True):
                if other.capture is not None:
                    other.capture.invalid = True
                    raise CUDARuntimeError(errors.CAPTURE_IMPLICIT)
                wait_for(queue, other, other.issued)
        elif queue.blocking:
            legacy = legacy_queue(queue.device)
            wait_for(queue, legacy, legacy.issued)
        queue.push(work)
        if m.options.seed is not None and not m.advancing:
            advance(m)


def wait_for(queue: Queue, other: Queue, position: int) -> None:
    """Have what is queued from now on happen after a position of another queue."""
    if other.executed < position:
        queue.push(lambda: other.run_to(position))


def advance(m: Machine) -> None:
    """Let some queue do a part of its work, or not."""
    busy = [q for q in list(m.queues.values()) if not q.idle and not q.busy and q.capture is None]
    if busy and m.random.random() < 0.5:
        queue = m.random.choice(busy)
        m.advancing = True
        try:
            queue.run_to(m.random.randint(queue.executed, queue.issued))
        except NotYet:
            return
        finally:
            m.advancing = False


def synchronize_queue(queue: Queue) -> None:
    """Wait for a stream."""
    if queue.capture is not None:
        queue.capture.invalid = True
        raise CUDARuntimeError(errors.CAPTURE_UNSUPPORTED, "a capturing stream cannot be waited for")
    forbid_in_capture("waiting for a stream")
    queue.machine.counters.syncs += 1
    queue.drain()


def synchronize_device(device: int, *, count: bool = True) -> None:
    """Wait for all streams of a device."""
    m = machine()
    m.check_driver()
    with m.lock:
        for capture in m.captures:
            if capture.device == device:
                capture.invalid = True
                raise CUDARuntimeError(errors.CAPTURE_UNSUPPORTED, "waiting for a device that captures")
        m.counters.syncs += count
        for queue in list(m.queues.values()):
            if queue.device == device:
                queue.drain()
