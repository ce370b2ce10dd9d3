"""Pauses of Python's garbage collector while programs and plans are made."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_pauses: list[object] = []
"""The pauses that will switch the collector on again."""


@contextmanager
def paused() -> Iterator[None]:
    """Pause the collector, also as a decorator: the objects of a program or plan in the making are no garbage.

    Otherwise it looks through all that have been made so far, time and again: a third of the time of large programs.
    """
    if not gc.isenabled():
        yield
        return
    pause = object()
    _pauses.append(pause)
    gc.disable()
    try:
        yield
    finally:
        if pause in _pauses:
            _pauses.remove(pause)
        gc.enable()


def _resume() -> None:
    """After a fork: the threads that have paused the collector do not exist in the child."""
    if _pauses:
        _pauses.clear()
        gc.enable()


os.register_at_fork(after_in_child=_resume)
