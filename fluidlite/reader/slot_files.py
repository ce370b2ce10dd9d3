"""Slot files: text with a sample a line, each slot of it a count and as many numbers (`MultiSlotDataFeed`)."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..base.dtypes import VarType, to_numpy
from ..base.errors import FormatError
from ..executor import LoDTensor

Sample = list[np.ndarray]
"""The numbers of each slot."""


@dataclass(frozen=True)
class Slot:
    """What one variable is fed with: numbers of `dtype`; with `shape` (without the batch) always as many, else a
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

    def parse(self, words: Sequence[str]) -> np.ndarray:
        """The numbers that `words` are; ValueError if one is none, or for another count than a dense slot has.

        Integers beyond int64 are hashes: their bits are kept.
        """
        if self.shape is not None and len(words) != prod(self.shape) and min(self.shape) >= 0:
            raise ValueError(
                f"has {len(words)} numbers, but its variable has shape [-1, {str(self.shape)[1:-1]}]"
            )
        try:
            with np.errstate(over="ignore"):
                return np.array(words, self.dtype)
        except OverflowError:
            return np.array([int(word) % 2**64 for word in words], np.uint64).view(np.int64)

    def batch(self, samples: Sequence[np.ndarray]) -> Any:
        """What is fed for these samples: a LoDTensor of sequences [numbers, 1], or an array."""
        joined = np.concatenate(samples)
        if self.shape is not None:
            return joined.reshape(len(samples), *self.shape)
        tensor = LoDTensor.wrap(joined.reshape(-1, 1))
        tensor.set_recursive_sequence_lengths([[len(sample) for sample in samples]])
        return tensor


def parse_line(line: str, slots: Sequence[Slot], where: str) -> Sample:
    """The sample on a line; what follows the last slot is ignored, as in Fluid.

    Raises FormatError naming `where` and the slot if a count or number is missing, or is none.
    """
    words = line.split()
    at = 0
    sample = []
    for slot in slots:
        try:
            count = int(words[at]) if at < len(words) else 0
            if count < 1:
                raise ValueError(
                    "needs a count of at least 1 before its numbers; let the generator pad empty slots"
                )
            at += 1 + count
            if at > len(words):
                raise ValueError(
                    f"should have {count} numbers, but the line ends after {count - (at - len(words))}"
                )
            sample.append(slot.parse(words[at - count : at]))
        except ValueError as error:
            raise FormatError(f"{where}: slot {slot.name!r} {error}: {line.strip()[:100]!r}") from None
    return sample


def samples_of(path: str, command: str, slots: Sequence[Slot]) -> Iterator[Sample]:
    """The samples in what the shell command `command` makes of file `path`.

    Raises FileNotFoundError, FormatError for a line that is no sample, RuntimeError if the command fails.
    """
    with _opened(path, command) as lines:
        for number, line in enumerate(lines, 1):
            yield parse_line(
                line, slots, f"{path}, line {number}" + (f" of {command!r}" if lines.name != path else "")
            )


@contextmanager
def _opened(path: str, command: str) -> Iterator[IO[str]]:
    with open(path, encoding="utf8", errors="replace") as source:
        if command.strip() in ("", "cat"):
            yield source
            return
        environment = {**os.environ, "PATH": os.pathsep.join([*_interpreters(), os.environ.get("PATH", "")])}
        process = subprocess.Popen(
            command,
            shell=True,
            stdin=source,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf8",
            errors="replace",
            env=environment,
        )
        assert process.stdout is not None
        try:
            yield process.stdout
            if process.wait():
                raise RuntimeError(
                    f"the pipe command {command!r} failed on {path} with status {process.returncode}"
                )
        finally:
            process.stdout.close()
            process.kill()
            process.wait()


def _interpreters() -> list[str]:
    """Where `python` in a command is an interpreter in which `paddle` is this package, as it is here."""
    ours = sys.modules.get("paddle.fluid") is sys.modules[__package__.partition(".")[0]]
    return [_wrappers(os.getpid())] if ours else []


@cache
def _wrappers(process: int) -> str:
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
