"""`multiprocess_reader`: readers that run in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from .background import PATIENCE, Stream, drain, iterating
from .decorators import Reader, check_reader, whole

# Forked children can run readers that are closures. Pipes are made and processes forked one after the other:
# a child that inherited the write end of another's pipe would keep it open, and the end of the other would
# go unnoticed.
_context = multiprocessing.get_context("fork")
_forking = threading.Lock()
_live: set[BaseProcess] = set()

_ITEM, _END, _ERROR = range(3)
_TOGETHER = 64  # samples of one worker in a row while others may have some


class WorkerTraceback(Exception):
    """The traceback of an error in a worker process as text; it is the cause of the error raised here."""

    def __str__(self) -> str:
        return f"\n\nin the worker process:\n{self.args[0]}"


def _begin_child() -> None:
    """In the child of a fork: the lock is held by the thread that forked, and the processes are its parent's."""
    global _forking
    _forking = threading.Lock()
    _live.clear()


os.register_at_fork(after_in_child=_begin_child)


def live_processes() -> int:
    """How many worker processes of this process are running."""
    return sum(process.is_alive() for process in list(_live))


def multiprocess_reader(readers: Sequence[Reader], use_pipe: bool = True, queue_size: int = 1000) -> Reader:
    """A reader of the samples of all `readers`, each of which runs in a process of its own.

    With `use_pipe` the readers take turns, so that the order is always the same; without it samples come as
    they are ready and up to `queue_size` of them wait in this process. An error of a reader is raised here
    with its traceback after the samples before it (as a RuntimeError if it cannot be sent); a process that
    was killed gives a RuntimeError that names it. Samples have to be picklable. Follows
    `paddle.reader.multiprocess_reader`.
    """
    if not isinstance(readers, (list, tuple)) or not readers:
        raise ValueError(f"multiprocess_reader takes a list of at least one reader, got {readers!r:.80}")
    for reader in readers:
        check_reader(reader, "multiprocess_reader")
    capacity = whole(queue_size, "queue_size", 1)

    def by_turns() -> Iterator[Any]:
        with Workers(readers) as workers:
            turn = list(workers.all)
            while turn:
                for worker in list(turn):
                    more, sample = worker.receive()
                    if more:
                        yield sample
                    else:
                        turn.remove(worker)

    def as_ready() -> Iterator[Any]:
        with Workers(readers) as workers:
            # Ending the workers first wakes the thread that waits for their pipes.
            yield from drain(
                Stream(workers.as_ready, capacity, "multiprocess reader"), before_stop=workers.end
            )

    return by_turns if use_pipe else as_ready


class Worker:
    """One process that runs one reader, and the pipe that its samples come through."""

    def __init__(self, number: int, total: int, reader: Reader, inherited: Sequence[Connection]) -> None:
        self.label = f"reader {number} of {total}"
        with _forking, warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads: the child runs nothing but the reader.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.connection, writer = _context.Pipe(duplex=False)
            try:
                self.process = _context.Process(
                    target=_work, args=(reader, writer, [*inherited, self.connection]), daemon=True
                )
                self.process.start()
            finally:
                writer.close()
        _live.add(self.process)

    def receive(self) -> tuple[bool, Any]:
        """(True, the next sample), or (False, None) at the end; raises what the reader raised."""
        try:
            kind, value = pickle.loads(
                self.connection.recv_bytes()
            )  # from our own child, nobody else has the pipe
        except (EOFError, ConnectionError):
            raise RuntimeError(self._obituary()) from None
        if kind == _ITEM:
            return True, value
        if kind == _END:
            return False, None
        raise _rebuilt(value, self.label)

    def _obituary(self) -> str:
        self.process.join(PATIENCE)
        code = self.process.exitcode
        how = f"exited with status {code}"
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        return f"{self.label} of multiprocess_reader (process {self.process.pid}) {how} before it was done"

    def end(self) -> None:
        """End the process if it is running; whoever waits for its pipe wakes up."""
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(PATIENCE)
            if self.process.is_alive():
                self.process.kill()
        self.process.join()

    def close(self) -> None:
        """Forget the ended process and its pipe."""
        self.connection.close()
        _live.discard(self.process)
        self.process.close()


class Workers:
    """The processes of one pass over the readers, all ended when the block is left."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self.readers = readers
        self.all: list[Worker] = []

    def __enter__(self) -> Workers:
        try:
            for number, reader in enumerate(self.readers):
                self.all.append(
                    Worker(number, len(self.readers), reader, [worker.connection for worker in self.all])
                )
        except BaseException:
            self.__exit__()
            raise
        return self

    def as_ready(self) -> Iterator[Any]:
        """The samples of all workers as they come."""
        running = {worker.connection: worker for worker in self.all}
        while running:
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                # What one worker has ready is taken together: fewer waits, and small readers come whole.
                for _ in range(_TOGETHER):
                    more, sample = running[connection].receive()
                    if not more:
                        del running[connection]
                        break
                    yield sample
                    if not connection.poll():
                        break

    def end(self) -> None:
        for worker in self.all:
            worker.end()

    def __exit__(self, *exc_info: object) -> None:
        self.end()
        for worker in self.all:
            worker.close()


def _work(reader: Reader, writer: Connection, inherited: Sequence[Connection]) -> None:
    """What a worker process does."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C goes to the whole group; the parent handles it and ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for connection in inherited:
        connection.close()  # so that nobody but the parent can read: writing fails when the parent is gone
    try:
        try:
            with iterating(reader) as samples:
                for sample in samples:
                    writer.send_bytes(pickle.dumps((_ITEM, sample), pickle.HIGHEST_PROTOCOL))
            writer.send_bytes(pickle.dumps((_END, None)))
        except BrokenPipeError:
            raise
        except BaseException as error:
            writer.send_bytes(pickle.dumps((_ERROR, _portable(error))))
    except BrokenPipeError:
        return


def _portable(error: BaseException) -> tuple[bytes | None, str, str]:
    """An error as (itself pickled, or None if that does not work; type and message; traceback)."""
    described = "".join(traceback.format_exception_only(type(error), error)).strip()
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        return None, described, trace
    return pickled, described, trace


def _rebuilt(portable: tuple[bytes | None, str, str], label: str) -> BaseException:
    pickled, described, trace = portable
    if pickled is not None:
        error: BaseException = pickle.loads(pickled)
    else:
        error = RuntimeError(f"{label} of multiprocess_reader failed: {described}")
    error.__cause__ = WorkerTraceback(trace)
    return error
