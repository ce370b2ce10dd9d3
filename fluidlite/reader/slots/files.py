"""Slot files: their format, threads that read them, samples exchanged between processes."""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._ext.queue import QueueClosed
from ..._ext.slots import PROBLEMS, Parser, Records
from ...base.dtypes import VarType, to_numpy
from ...base.errors import FormatError
from ...base.storage.files import fetched, is_url
from ...distributed import world
from ...executor import LoDTensor
from ..threaded import Stream, join, spawn

if TYPE_CHECKING:
    import subprocess


@dataclass(frozen=True)
class Slot:
    """The data of one variable: numbers of `dtype`; with `shape` (without the batch) a fixed number, else a
    sequence.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None

    @classmethod
    def of(cls, var: Any) -> Slot:
        """The slot for a variable; ValueError for another dtype than float32 and int64."""
        if var.dtype not in (VarType.FP32, VarType.INT64):
            raise ValueError(
                f"fluid.dataset feeds variables of dtype float32 and int64, but {var.name!r} is {to_numpy(var.dtype)}"
            )
        return cls(var.name, np.dtype(to_numpy(var.dtype)), None if var.lod_level else tuple(var.shape[1:]))

    @property
    def real(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def width(self) -> int:
        """The number of elements of a sample; -1 for any."""
        return -1 if self.shape is None or min(self.shape, default=0) < 0 else prod(self.shape)

    def batch(self, numbers: np.ndarray, offsets: np.ndarray) -> Any:
        """The feed for the numbers of some samples: a LoDTensor of sequences [numbers, 1], or an array."""
        if self.shape is not None:
            return numbers.reshape(len(offsets) - 1, *self.shape)
        return LoDTensor.wrap(numbers.reshape(-1, 1), (offsets,))


class SlotReader:
    """Reads slot files one after the other.

    `text_slots`: the number of text slots before the numbers on each line, which are skipped. `sparse`: whether
    sequences have no zeros, as in Fluid's memory (reals below 1e-6 are some), but one for a sample of nothing else.
    """

    def __init__(
        self, slots: Sequence[Slot], command: str, text_slots: int = 0, sparse: bool = False
    ) -> None:
        self.slots, self._command = slots, command
        self.parser = Parser(
            [slot.real for slot in slots],
            [slot.width for slot in slots],
            text_slots,
            [sparse and slot.shape is None for slot in slots],
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Make a running `read` stop soon; may be called by another thread."""
        self._stopped = True
        self.parser.stop()
        if self._process is not None:
            _kill(self._process)

    def read(self, path: str, records: int) -> Iterator[None]:
        """Parse the output of the pipe command for a file; yields whenever the parser holds `records` samples.

        Raises FileNotFoundError, FormatError for a line that is no sample, RuntimeError if the command fails.
        """
        self.parser.begin()
        with self._opened(path) as file:
            while not self.parser.read(file, records):
                yield
            fault = self.parser.fault
            if fault is not None:
                yield  # the samples before the faulty line
                raise FormatError(self._explained(fault, path) + self._failure(file))

    def _explained(self, fault: tuple[int, int, int, int, int, bytes, bytes], path: str) -> str:
        line, number, problem, expected, found, word, text = fault
        slot, shown = self.slots[number], word.decode("utf8", "replace")
        if problem == PROBLEMS["count"]:
            what = "needs a count of at least 1 before its numbers; let the generator pad empty slots"
        elif problem == PROBLEMS["short"]:
            what = f"should have {expected} numbers, but the line ends after {found}"
        elif problem == PROBLEMS["width"]:
            what = (
                f"has {found} numbers, but its variable has shape [-1, {str(slot.shape)[1:-1].rstrip(',')}]"
            )
        else:
            what = f"expects a {'number' if slot.real else 'whole number'}, got {shown!r}"
        where = f"{path}, line {line}" + ("" if self._plain() else f" of {self._command!r}")
        return f"{where}: slot {slot.name!r} {what}: {text.decode('utf8', 'replace').strip()!r}"

    def _failure(self, output: int) -> str:
        """The exit status for the message of a parse error at the end of the output of a failed pipe command."""
        if self._process is None or not select.select([output], [], [], 0)[0] or os.read(output, 1):
            return ""
        import subprocess  # slow to import

        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        status = self._process.returncode
        return f"; then the pipe command ended with status {status}" if status else ""

    def _plain(self) -> bool:
        return self._command.strip() in ("", "cat")

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        with fetched(path) if is_url(path) else open(path, "rb", buffering=0) as source:
            if self._plain():
                yield source.fileno()
                return
            environment = {
                **os.environ,
                "PATH": os.pathsep.join([*_interpreters(), os.environ.get("PATH", "")]),
            }
            import subprocess  # slow to import

            # In a session of its own, so that the processes started by the command can be ended with it.
            process = self._process = subprocess.Popen(
                self._command, shell=True, stdin=source, stdout=subprocess.PIPE, env=environment,
                start_new_session=True,
            )  # fmt: skip
            assert process.stdout is not None
            try:
                if self._stopped:
                    return
                yield process.stdout.fileno()
                if process.wait() and not self._stopped:
                    raise RuntimeError(
                        f"the pipe command {self._command!r} failed on {path} with status {process.returncode}"
                    )
            finally:
                process.stdout.close()
                _kill(process)
                process.wait()
                self._process = None


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _interpreters() -> list[str]:
    """Folders for PATH in which `python` is an interpreter whose `paddle` is this package."""
    ours = sys.modules.get("paddle.fluid") is sys.modules[__package__.partition(".")[0]]
    return [_wrappers(os.getpid())] if ours else []


@cache
def _wrappers(process: int) -> str:
    import shlex
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="fluidlite-")
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == process else None)
    python = shlex.quote(sys.executable)
    for name in ("python", "python3"):
        script = Path(folder, name)
        script.write_text(
            f'#!/bin/sh\ncase "$1" in -*) exec {python} "$@" ;; *) exec {python} -m fluidlite "$@" ;; esac\n'
        )
        script.chmod(0o755)
    return folder


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


def globally_shuffled(records: Records, slots: Sequence[Slot], round_number: int) -> Records:
    """This process' samples after a global shuffle; each sample goes to a process drawn uniformly.

    `round_number`: the number of this exchange, which seeds the draws.
    """
    import tempfile

    run = world()
    lines = _lines(records, slots)
    owners = np.random.default_rng((run.rank, round_number)).integers(0, run.size, len(lines))
    parts = [
        np.frombuffer(b"".join(lines[k] for k in np.flatnonzero(owners == rank)), np.uint8)
        for rank in range(run.size)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "samples")
        path.write_bytes(b"".join(part.tobytes() for part in run.exchange(parts)))
        (found,) = Loading([SlotReader(slots, "", 0)], [str(path)]).wait()
    return found


def _lines(records: Records, slots: Sequence[Slot]) -> list[bytes]:
    """The samples as lines of a slot file: for each slot a count and the numbers."""
    words: list[list[str]] = [[] for _ in range(len(records))]
    for slot, (numbers, offsets) in zip(slots, records.batch(0, len(records)), strict=True):
        texts = [repr(float(x)) for x in numbers] if slot.real else [str(x) for x in numbers.tolist()]
        ends = offsets.tolist()
        for row, begin, end in zip(words, ends, ends[1:], strict=False):
            row += [str(end - begin), *texts[begin:end]]
    return [(" ".join(row) + "\n").encode() for row in words]
