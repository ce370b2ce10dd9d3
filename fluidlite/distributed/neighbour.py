"""The state of another process of this machine in /proc: stopped, as by `kill -STOP`, or not."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

LOOKS = 4
"""Consecutive checks that must find a process stopped: Ctrl-Z stops all of them for a while."""


class Neighbour:
    """The process `pid`."""

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/stat")
        self._stopped = 0

    def looks_stopped(self) -> int:
        """The number of consecutive checks, including this one, that found it stopped; 0 without /proc."""
        with suppress(OSError, IndexError):
            state = self._path.read_bytes().rpartition(b")")[2].split()[0]
            self._stopped = self._stopped + 1 if state == b"T" else 0
        return self._stopped


def numbers_here() -> np.ndarray:
    """The PID of this process, and the number of its PID namespace, 0 if unknown."""
    space = 0
    with suppress(OSError):
        space = os.stat("/proc/self/ns/pid").st_ino
    return np.array([os.getpid(), space], np.int64)
