"""Readers that work ahead in threads: `buffered` and `xmap_readers`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from .._ext.queue import Queue, QueueClosed
from .background import Stream, drain, join, spawn, without_frames
from .calling import iterating
from .decorators import Reader, after, check_reader, room, whole


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
