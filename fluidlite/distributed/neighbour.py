"""Another process of this machine, as the system tells of it: whether it is stopped, as by `kill -STOP`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

LOOKS = 4
"""How many looks, one after the other, have to find a process stopped: all may have been, for a while, by Ctrl-Z."""


class Neighbour:
    """The process `pid`."""

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/stat")
        self._stopped = 0

    def looks_stopped(self) -> int:
        """How many times in succession, now included, it was found stopped; 0 where the system does not tell."""
        with suppress(OSError, IndexError):
            state = self._path.read_bytes().rpartition(b")")[2].split()[0]
            self._stopped = self._stopped + 1 if state == b"T" else 0
        return self._stopped


def numbers_here() -> np.ndarray:
    """The number of this process, and that of the space in which the system counts them, 0 if it does not tell."""
    space = 0
    with suppress(OSError):
        space = os.stat("/proc/self/ns/pid").st_ino
    return np.array([os.getpid(), space], np.int64)
