"""Slot files: text with a sample a line, each slot of it a count and as many numbers (`MultiSlotDataFeed`)."""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._ext.slots import PROBLEMS, Parser
from ...base.dtypes import VarType, to_numpy
from ...base.errors import FormatError
from ...base.storage.urls import fetched, is_url
from ...executor import LoDTensor

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
