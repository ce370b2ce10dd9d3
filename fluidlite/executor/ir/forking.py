"""Plans in the child of a fork."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

from .locking import PlanLock


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
