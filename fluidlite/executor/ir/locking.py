"""`PlanLock`: the lock that a run of a plan holds."""

from __future__ import annotations

import threading


class PlanLock:
    """A lock that a thread which holds it is refused, instead of waiting for itself.

    Finalisers, which the garbage collector calls wherever memory is allocated, and signal handlers may run a
    program in the middle of a step of that program. They have to take another plan.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._taken = False

    def acquire(self, blocking: bool = True) -> bool:
        """Whether the lock has been taken; waits for other threads if `blocking`."""
        if not self._lock.acquire(blocking):
            return False
        if self._taken:
            self._lock.release()
            return False
        self._taken = True
        return True

    def release(self) -> None:
        self._taken = False
        self._lock.release()

    def elsewhere(self) -> bool:
        """Whether another thread holds the lock."""
        if not self._lock.acquire(blocking=False):
            return True
        self._lock.release()
        return False
