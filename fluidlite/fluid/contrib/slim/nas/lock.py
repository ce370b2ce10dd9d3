"""`fluid.contrib.slim.nas.lock`: exclusive locks of files."""

from __future__ import annotations

import fcntl
from typing import Any

__all__ = ["LOCK_EX", "LOCK_UN", "lock", "unlock"]

LOCK_EX, LOCK_UN = fcntl.LOCK_EX, fcntl.LOCK_UN


def lock(file: Any) -> None:
    """Acquire the exclusive lock of an open file."""
    fcntl.flock(file.fileno(), LOCK_EX)


def unlock(file: Any) -> None:
    """Release the lock of an open file."""
    fcntl.flock(file.fileno(), LOCK_UN)
