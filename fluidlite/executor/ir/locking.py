"""`PlanLock`: the lock that a run of a plan holds; plans in the child of a fork."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


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


class Lockable(Protocol):
    """A plan: a run holds `lock`; a plan whose `version` is not its program's is recompiled."""

    lock: PlanLock
    version: int


_plans: weakref.WeakSet[Lockable] = weakref.WeakSet()


def watch(plan: Lockable) -> None:
    """Invalidate `plan` in children that are forked while another thread runs it."""
    _plans.add(plan)


def _give_up_running() -> None:
    """After a fork: invalidate the plans that other threads of the parent were running, which never end here."""
    for plan in list(_plans):
        if plan.lock.elsewhere():
            plan.lock = PlanLock()
            plan.version = -1


os.register_at_fork(after_in_child=_give_up_running)
