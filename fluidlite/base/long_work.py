"""Help for long work on many objects: Python's garbage collector paused, progress bars in terminals."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

_pauses: list[object] = []
"""The pauses that will switch the collector on again."""


@contextmanager
def collector_paused() -> Iterator[None]:
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

MANY = 3000
"""`over` shows a bar for this many elements or more, which take a second or more."""


def bar(total: int | None, title: str, **options: Any) -> AbstractContextManager[Any]:
    """A bar of tqdm on stderr; a context that gives None if that is no terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from tqdm import tqdm  # slow to import

    return tqdm(total=total, desc=title, **options)


def over(items: Sequence[T], title: str) -> Iterable[T]:
    """Iterate over the items, with a bar if there are many."""
    return items if len(items) < MANY else _counted(items, title)


def _counted(items: Sequence[T], title: str) -> Iterator[T]:
    with bar(len(items), title, unit="op", leave=False) as shown:
        for item in items:
            yield item
            if shown is not None:
                shown.update()
