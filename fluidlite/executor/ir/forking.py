"""Plans in the child of a fork."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

from .locking import PlanLock


class Lockable(Protocol):
    """A plan: whoever runs it holds `lock`; one whose `version` is not its program's is made anew."""

    lock: PlanLock
    version: int


_plans: weakref.WeakSet[Lockable] = weakref.WeakSet()


def watch(plan: Lockable) -> None:
    """Have `plan` given up in children that are forked while another thread runs it."""
    _plans.add(plan)


def _give_up_running() -> None:
    """After a fork: plans that other threads were running in the parent will never be done here; make them anew."""
    for plan in list(_plans):
        if plan.lock.elsewhere():
            plan.lock = PlanLock()
            plan.version = -1


os.register_at_fork(after_in_child=_give_up_running)
