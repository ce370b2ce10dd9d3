"""Streams and events."""

from collections.abc import Callable
from typing import Any

from . import errors
from .capture import Capture, Graph, forbid_in_capture
from .errors import CUDARuntimeError
from .machine import machine
from .queues import (
    LEGACY,
    PER_THREAD,
    Queue,
    advance,
    enqueue,
    legacy_queue,
    others,
    push,
    queue_of,
    synchronize_device,
    synchronize_queue,
    wait_for,
)

__all__ = [
    "LEGACY", "Queue", "enqueue", "legacy_queue", "push", "queue_of", "synchronize_device",
    "synchronize_queue",
]  # fmt: skip


class Event:
    """A moment in a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        if interprocess and not disable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        m = machine()
        m.check_driver()
        self.timing = not disable_timing
        self.device_id = m.device
        self.ptr = id(self)
        self._queue: Queue | None = None
        self._position = 0
        self._captured: tuple[Capture, frozenset[int]] | None = None

    @property
    def done(self) -> bool:
        """Whether everything before the moment has happened."""
        self._check_captured()
        forbid_in_capture("asking for an event")
        queue = self._queue
        if queue is None:
            return True
        if queue.machine.options.seed is not None:
            with queue.machine.lock:
                advance(queue.machine)
        if queue.executed < self._position and queue.machine.random.random() < 0.25:
            # A device gets on with its work also while nobody waits for it.
            with queue.machine.lock:
                queue.run_to(self._position)
        return queue.executed >= self._position

    def _check_captured(self) -> None:
        if self._captured is not None and self._captured[0].active:
            self._captured[0].invalid = True
            raise CUDARuntimeError(errors.CAPTURED_EVENT)
        if self._captured is not None:
            raise CUDARuntimeError(errors.CAPTURED_EVENT, "the event was last recorded by a capture")

    def record(self, stream: "Stream | None" = None) -> None:
        """Make this the present moment of a stream, of the current one by default."""
        queue = (stream or get_current_stream())._queue
        if queue.device != self.device_id:
            raise CUDARuntimeError(
                errors.INVALID_HANDLE, f"event of device {self.device_id} on a stream of {queue.device}"
            )
        with queue.machine.lock:
            if queue.capture is not None:
                self._captured = (queue.capture, queue.capture.heads_of(queue))
                self._queue = None
                return
            self._captured = None
            if queue.legacy:
                for other in others(queue, blocking=True):
                    wait_for(queue, other, other.issued)
            self._queue, self._position = queue, queue.issued

    def synchronize(self) -> None:
        """Wait until the moment has come."""
        self._check_captured()
        forbid_in_capture("waiting for an event")
        machine().check_driver()
        machine().counters.syncs += 1
        if self._queue is not None:
            with self._queue.machine.lock:
                self._queue.run_to(self._position)


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two events, which on this machine is always one."""
    for event in (start_event, end_event):
        if not event.timing:
            raise CUDARuntimeError(errors.INVALID_HANDLE, "the event was made with disable_timing=True")
        if event._queue is None:
            raise CUDARuntimeError(errors.INVALID_HANDLE, "the event was never recorded")
        if event._queue.executed < event._position:
            raise CUDARuntimeError(600)
    return 1.0


class BaseStream:
    """What streams have in common."""

    ptr: int
    device_id: int

    @property
    def _queue(self) -> Queue:
        return queue_of(self.ptr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BaseStream) and self.ptr == other.ptr and self.device_id == other.device_id

    def __hash__(self) -> int:
        return hash((self.ptr, self.device_id))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"

    def __enter__(self) -> "BaseStream":
        stack = _stack()
        stack.append(_current_of(self._usable()))
        _set_current(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _set_current(_stack().pop())

    def _usable(self) -> int:
        device = machine().device
        if self.device_id not in (-1, device):
            raise RuntimeError(f"The stream is of device {self.device_id}, the current device is {device}.")
        return device

    def use(self) -> "BaseStream":
        """Make this the current stream of the thread."""
        self._usable()
        _set_current(self)
        return self

    @property
    def done(self) -> bool:
        """Whether the stream has nothing to do."""
        queue = self._queue
        if queue.capture is not None:
            queue.capture.invalid = True
            raise CUDARuntimeError(errors.CAPTURE_UNSUPPORTED)
        return queue.idle

    def synchronize(self) -> None:
        """Wait until the stream has nothing to do."""
        synchronize_queue(self._queue)

    def record(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default."""
        if event is None:
            event = Event()
        event.record(self)  # type: ignore[arg-type]
        return event

    def wait_event(self, event: Event) -> None:
        """Have what follows wait for an event."""
        queue = self._queue
        with queue.machine.lock:
            if event._captured is not None:
                capture, heads = event._captured
                if not capture.active:
                    raise CUDARuntimeError(errors.CAPTURE_ISOLATION, "the capture of this event has ended")
                capture.join(queue, heads)
            elif queue.capture is not None:
                if event._queue is not None:
                    queue.capture.invalid = True
                    raise CUDARuntimeError(errors.CAPTURE_ISOLATION)
            elif event._queue is not None:
                wait_for(queue, event._queue, event._position)

    def launch_host_func(self, callback: Callable[[Any], None], arg: Any) -> None:
        """Have a function called, with one argument, when the stream gets there. It may not call CUDA."""
        queue = self._queue

        def call() -> None:
            local = queue.machine.local
            local.in_callback = True
            try:
                callback(arg)
            finally:
                local.in_callback = False

        push(queue, call)

    def add_callback(self, callback: Callable[[Any, int, Any], None], arg: Any) -> None:
        """As `launch_host_func`, with stream and status before the argument; captures refuse it."""
        queue = self._queue
        if queue.capture is not None:
            raise RuntimeError("add_callback() is not allowed during stream capture")
        self.launch_host_func(lambda each: callback(self, 0, each), arg)

    def begin_capture(self, mode: int | None = None) -> None:
        """Record instead of doing what is issued from now on."""
        queue = self._queue
        if queue.legacy:
            raise CUDARuntimeError(errors.CAPTURE_UNSUPPORTED, "the legacy stream cannot be captured")
        if queue.capture is not None:
            raise CUDARuntimeError(errors.INVALID_VALUE, "the stream captures already")
        with queue.machine.lock:
            Capture(queue, 2 if mode is None else mode)

    def end_capture(self) -> Graph:
        """Stop recording; returns what was recorded."""
        queue = self._queue
        if queue.capture is None:
            raise CUDARuntimeError(errors.INVALID_VALUE, "the stream does not capture")
        with queue.machine.lock:
            return queue.capture.end(queue)

    def is_capturing(self) -> bool:
        capture = self._queue.capture
        if capture is not None and capture.invalid:
            raise CUDARuntimeError(errors.CAPTURE_INVALIDATED)
        return capture is not None

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr


class Stream(BaseStream):
    """A stream of the current device."""

    null: "Stream"
    ptds: "Stream"

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False) -> None:
        if null or ptds:
            self.ptr, self.device_id = (PER_THREAD if ptds else 0), -1
            return
        m = machine()
        m.check_driver()
        with m.lock:
            self.ptr = 0x7C0000000000 + 0x100 * (len(m.queues) + 1)
            self.device_id = m.device
            m.queues[self.ptr] = Queue(m, m.device, self.ptr, blocking=not non_blocking)
        self._own: Queue | None = m.queues[self.ptr]

    def __del__(self) -> None:
        # Queued work still happens; only the name is gone.
        queue = getattr(self, "_own", None)
        if queue is not None:
            queue.destroyed = True


class ExternalStream(BaseStream):
    """A stream that somebody else made."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr, self.device_id = ptr, device_id


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


def _stack() -> list[BaseStream]:
    local = machine().local
    if not hasattr(local, "stack"):
        local.stack = []
    return local.stack


def _current_of(device: int) -> BaseStream:
    return getattr(machine().local, "streams", {}).get(device, Stream.null)


def _set_current(stream: BaseStream) -> None:
    m = machine()
    device = m.device if stream.device_id == -1 else stream.device_id
    if not hasattr(m.local, "streams"):
        m.local.streams = {}
    m.local.streams[device] = stream


def get_current_stream(device_id: int = -1) -> Any:
    """The current stream of this thread, of the current device by default."""
    m = machine()
    m.check_driver()
    return _current_of(m.device if device_id == -1 else device_id)


def current_queue() -> Queue:
    """The queue of the current stream."""
    return get_current_stream()._queue
