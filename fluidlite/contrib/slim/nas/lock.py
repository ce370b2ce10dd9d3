"""`fluid.contrib.slim.nas.lock`: files that one process at a time works on."""

from __future__ import annotations

import fcntl
from typing import Any

from ....base import missing

__all__ = ["LOCK_EX", "LOCK_UN", "lock", "unlock"]

LOCK_EX, LOCK_UN = fcntl.LOCK_EX, fcntl.LOCK_UN


def lock(file: Any) -> None:
    """Wait until nobody else holds the open `file`, and hold it."""
    fcntl.flock(file.fileno(), LOCK_EX)


def unlock(file: Any) -> None:
    """Let go of an open file."""
    fcntl.flock(file.fileno(), LOCK_UN)


__getattr__ = missing.reporter(__name__)
