"""Progress bars for long loops, in terminals."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

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
