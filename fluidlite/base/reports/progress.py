"""Progress bars for what takes long, for people who watch and have tqdm."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

MANY = 3000
"""From how many elements on `over` shows a bar: what a second or more goes to."""


def bar(total: int | None, title: str, **options: Any) -> AbstractContextManager[Any]:
    """A bar of tqdm on stderr; a context that gives None if that is no terminal, or without tqdm."""
    if not sys.stderr.isatty():
        return nullcontext()
    try:
        from tqdm import tqdm
    except ImportError:
        return nullcontext()
    return tqdm(total=total, desc=title, **options)


def over(items: Sequence[T], title: str) -> Iterable[T]:
    """The items, with a bar while they are gone through if there are many."""
    return items if len(items) < MANY else _counted(items, title)


def _counted(items: Sequence[T], title: str) -> Iterator[T]:
    with bar(len(items), title, unit="op", leave=False) as shown:
        for item in items:
            yield item
            if shown is not None:
                shown.update()
