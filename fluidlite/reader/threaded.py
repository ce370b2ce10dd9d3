"""Readers that work ahead in threads: `buffered`, `xmap_readers`, and the one place where readers start a thread."""

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
from .decorators import Reader, after, check_reader, iterating, room, whole

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


class XmapEndSignal:
    """The end marker in the queues of Fluid's `xmap_readers` (`paddle.reader.decorator.XmapEndSignal`)."""


def buffered(reader: Reader, size: int) -> Reader:
    """A reader of the same samples, read ahead by a thread: up to `size` (see `decorators.room`) wait in a buffer.

    An error of `reader` is raised after the samples before it. Follows `paddle.reader.buffered`.
    """
    check_reader(reader, "buffered")
    capacity = room(size, "size")

    @after(reader)
    def reading_ahead() -> Iterator[Any]:
        yield from drain(Stream(reader, capacity, "buffered reader"))

    return reading_ahead


def xmap_readers(
    mapper: Callable[[Any], Any], reader: Reader, process_num: int, buffer_size: int, order: bool = False
) -> Reader:
    """A reader of `mapper(sample)`, computed by `process_num` threads while up to `buffer_size` results
    wait.

    With `order` the results come in the order of the samples, without it as they get ready. An error of
    `reader` or `mapper` is raised in place of the sample; the results before it in that order come first.
    Follows `paddle.reader.xmap_readers`.
    """
    check_reader(reader, "xmap_readers")
    workers = whole(process_num, "process_num", 1)
    capacity = room(buffer_size, "buffer_size")
    if not callable(mapper):
        raise TypeError(f"the mapper of xmap_readers must be callable, got {type(mapper).__name__}")

    @after(reader)
    def mapped() -> Iterator[Any]:
        yield from (_in_order if order else _as_ready)(mapper, reader, workers, capacity)

    return mapped


def _as_ready(mapper: Callable[[Any], Any], reader: Reader, workers: int, capacity: int) -> Iterator[Any]:
    results = Queue(capacity)
    source = Stream(reader, capacity, "xmap reader")
    running = threading.Semaphore(workers - 1)

    reader_error: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                try:
                    sample = source.get()
                except QueueClosed:
                    break
                except BaseException as error:
                    reader_error.append(error)
                    break
                if not results.put(mapper(sample)):
                    return
        except BaseException as error:
            results.fail(without_frames(error, 1))
            return
        # The last thread to find the source drained signals the end; other threads may still be mapping before.
        if not running.acquire(blocking=False):
            if reader_error:
                results.fail(reader_error[0])
            else:
                results.close()

    threads = [spawn(work, name=f"fluidlite xmap {i}") for i in range(workers)]
    try:
        while True:
            try:
                result = results.get()
            except QueueClosed:
                return
            yield result
    finally:
        results.kill()
        source.stop()
        join(threads)


def _in_order(mapper: Callable[[Any], Any], reader: Reader, workers: int, capacity: int) -> Iterator[Any]:
    # Every sample gets a queue for its one result. Workers take pairs as they like, the consumer waits for
    # the results in the order in which the pairs were made.
    tasks = Queue(capacity)

    def tickets() -> Iterator[Queue]:
        with iterating(reader) as samples:
            for sample in samples:
                ticket = Queue(1)
                if not tasks.put((sample, ticket)):
                    return
                yield ticket
        tasks.close()

    def work() -> None:
        while True:
            try:
                sample, ticket = tasks.get()
            except QueueClosed:
                return
            try:
                ticket.put(mapper(sample))
            except BaseException as error:
                ticket.fail(without_frames(error, 1))

    threads = [spawn(work, name=f"fluidlite xmap {i}") for i in range(workers)]
    pending = Stream(tickets, capacity, "xmap reader")
    try:
        while True:
            try:
                ticket = pending.get()
            except QueueClosed:
                return
            yield ticket.get()
    finally:
        tasks.kill()
        pending.stop()
        join(threads)
