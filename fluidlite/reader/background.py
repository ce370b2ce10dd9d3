"""Running a generator in a background thread: the one place where readers start threads."""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

from .._ext.queue import Queue, QueueClosed
from ..base.context import Slot
from .calling import iterating

# Seconds to wait for a thread after a request to stop. One that is stuck in the user's code for longer is
# abandoned: as a daemon it ends when that code returns, and does not keep the process alive.
PATIENCE = 0.5

_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


def spawn(target: Callable[..., None], *args: Any, name: str) -> threading.Thread:
    """Start a daemon thread that sees the caller's context (current program, scope, ...)."""
    thread = threading.Thread(target=Slot.carrying(target), args=args, name=name, daemon=True)
    _threads.add(thread)
    thread.start()
    return thread


def join(threads: Iterable[threading.Thread]) -> None:
    """Wait at most `PATIENCE` seconds for threads that were asked to stop."""
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(max(deadline - time.monotonic(), 0))


def finalize(close: Callable[[], None]) -> None:
    """Call `close`, from a `__del__`.

    Python drops exceptions in `__del__`, KeyboardInterrupt too, and the program would go on. So an interrupted `close`
    is repeated, and a new thread raises the signal anew once `__del__` has returned: until then the main thread holds
    the GIL.
    """
    try:
        close()
    except KeyboardInterrupt:
        close()
        _thread.start_new_thread(_interrupt, ())


def _interrupt() -> None:
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def live_threads() -> int:
    """How many threads of readers are running."""
    return sum(thread.is_alive() for thread in list(_threads))


def without_frames(error: BaseException, count: int) -> BaseException:
    """`error` with the outermost `count` frames of its traceback, which are ours, taken off.

    The user sees his own code first, and the traceback does not keep our objects alive.
    """
    trace: TracebackType | None = error.__traceback__
    for _ in range(count):
        if trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
    return error.with_traceback(trace)


class Stream:
    """The items of `reader`, fetched ahead by a thread into a queue of at most `capacity`.

    Starts at once. `get` gives the items in order; then it raises QueueClosed, or the reader's error with
    the reader's traceback (without the outermost `frames`, which are ours). `stop` may be called at any time, from any
    thread, any number of times.
    """

    def __init__(
        self, reader: Callable[[], Iterable[Any]], capacity: int, name: str, frames: int = 1
    ) -> None:
        self.queue = Queue(capacity)
        self.get = self.queue.get
        self._thread = spawn(_produce, reader, self.queue, frames, name=f"fluidlite {name}")
        _streams.add(self)

    def left(self) -> bool:
        """Whether the thread has ended; waits a moment for one that was asked to stop."""
        join([self._thread])
        return not self._thread.is_alive()

    def failed(self, error: BaseException) -> bool:
        """Whether `error`, raised by `get`, is the reader's."""
        return error is self.queue.error

    def stop(self) -> None:
        """Stop fetching, drop the waiting items, and let the reader's thread end."""
        self.queue.kill()
        join([self._thread])

    def __del__(self) -> None:
        queue = getattr(self, "queue", None)
        if queue is not None:
            queue.kill()


def _produce(reader: Callable[[], Iterable[Any]], queue: Queue, frames: int) -> None:
    stopped = False
    try:
        with iterating(reader) as iterator:
            for item in iterator:
                if not queue.put(item):
                    stopped = True
                    return
    except BaseException as error:
        if stopped:
            raise  # an error while closing, after the consumer has left: `threading.excepthook` reports it
        queue.fail(without_frames(error, frames))
    else:
        queue.close()


def drain(stream: Stream) -> Iterator[Any]:
    """The items of a stream, which is stopped at the end or when the iterator is closed."""
    try:
        while True:
            try:
                item = stream.get()
            except QueueClosed:
                return
            yield item
    finally:
        stream.queue.kill()
        stream.stop()


@atexit.register
def _stop_all() -> None:
    """Let threads end before the interpreter does: one that asks for the GIL after that would be killed
    where it is.
    """
    for stream in list(_streams):
        stream.queue.kill()
    join(list(_threads))


# The child of a fork lacks the threads, and their locks may be held for ever.
os.register_at_fork(after_in_child=_streams.clear)
os.register_at_fork(after_in_child=_threads.clear)
