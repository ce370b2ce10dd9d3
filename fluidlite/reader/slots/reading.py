"""Threads that read slot files: batches ahead of the training threads, and files into memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..._ext.queue import QueueClosed
from ..._ext.slots import Records
from ..background import Stream, join, spawn
from .files import Slot, SlotReader

BATCHES_AHEAD = 8
"""How many batches a thread reads ahead."""

MANY = 1 << 62

Feed = dict[str, Any]


class Share:
    """The batches of one training thread, read ahead by a reader thread."""

    def __init__(self, batches: Callable[[], Iterator[Feed]], stop: Callable[[], None] | None = None) -> None:
        self._batches, self._stop = batches, stop
        self._stream: Stream | None = None

    def __iter__(self) -> Iterator[Feed]:
        stream = self._stream = Stream(self._batches, BATCHES_AHEAD, "data set")
        try:
            while True:
                try:
                    batch = stream.get()
                except QueueClosed:
                    return
                yield batch
        finally:
            self.stop()

    def stop(self) -> None:
        """Make the iterator end soon; may be called by another thread."""
        if self._stop is not None:
            self._stop()
        if self._stream is not None:
            self._stream.stop()


def batches_of_files(reader: SlotReader, paths: deque[str], batch_size: int) -> Iterator[Feed]:
    """Batches of the files in `paths`, which several threads may share; batches may span files."""
    parser = reader.parser
    while paths:
        try:
            path = paths.popleft()
        except IndexError:
            break
        for _ in reader.read(path, batch_size):
            while len(parser) >= batch_size:
                yield feed_of(reader.slots, parser.take(batch_size))
    while len(parser):
        yield feed_of(reader.slots, parser.take(batch_size))


def feed_of(slots: Sequence[Slot], columns: Sequence[Any]) -> Feed:
    """The feed of a batch, given the columns of its slots."""
    return {
        slot.name: slot.batch(numbers, offsets)
        for slot, (numbers, offsets) in zip(slots, columns, strict=True)
    }


class Loading:
    """Threads that read files into memory; each file is read by one of them."""

    def __init__(self, readers: Sequence[SlotReader], paths: Sequence[str]) -> None:
        self._readers, self._count = readers, len(paths)
        self._todo = deque(enumerate(paths))
        self._found: dict[int, Records] = {}
        self._error: BaseException | None = None
        self._threads = [spawn(self._work, reader, name="fluidlite slot files") for reader in readers]

    def _work(self, reader: SlotReader) -> None:
        try:
            while self._todo and self._error is None:
                try:
                    number, path = self._todo.popleft()
                except IndexError:
                    return
                for _ in reader.read(path, MANY):
                    pass
                self._found[number] = records = Records(slot.real for slot in reader.slots)
                records.take(reader.parser)
        except BaseException as error:
            self._error = self._error or error
            self.stop()

    def stop(self) -> None:
        """Make the threads end soon."""
        self._todo.clear()
        for reader in self._readers:
            reader.stop()

    def wait(self) -> list[Records]:
        """The records of each file. Raises the error of reading a file; an interruption ends the threads."""
        try:
            wait_for(self._threads)
        except BaseException:
            self.stop()
            join(self._threads)
            raise
        if self._error is not None:
            raise self._error
        return [self._found[number] for number in range(self._count)]


def wait_for(threads: Sequence[threading.Thread]) -> None:
    """Wait for threads to end, in a way that Ctrl-C can interrupt."""
    for thread in threads:
        while thread.is_alive():
            thread.join(0.1)
