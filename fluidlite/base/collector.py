"""Python's garbage collector beside work that makes many objects, all of which stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """Pause the collector, also as a decorator: the objects of a program or plan in the making are no garbage.

    Otherwise it looks through all that have been made so far, time and again: a third of the time of large programs.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
