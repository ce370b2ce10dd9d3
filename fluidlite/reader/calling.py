"""Calling readers, and naming them in messages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any


def describe(reader: Callable[[], Any]) -> str:
    """The name of a reader in messages: the name and line of the user's function."""
    while hasattr(reader, "__wrapped__"):
        reader = reader.__wrapped__
    if isinstance(reader, functools.partial):
        return describe(reader.func)
    name = getattr(reader, "__qualname__", None) or type(reader).__qualname__
    code = getattr(reader, "__code__", None)
    return f"{name}()" if code is None else f"{name}() ({code.co_filename}:{code.co_firstlineno})"


@contextmanager
def iterating(reader: Callable[[], Iterable[Any]]) -> Iterator[Iterator[Any]]:
    """Call `reader`, give an iterator over what it returns, and close that iterator at the end whatever
    happens.

    Raises TypeError naming the reader if it returns something else.
    """
    result = reader()
    if not hasattr(result, "__iter__") and not hasattr(result, "__getitem__"):
        raise TypeError(
            f"the reader {describe(reader)} returned {type(result).__name__}, expected an iterable of samples or "
            "batches: it should yield them, or return a generator or list"
        )
    iterator = iter(result)
    try:
        yield iterator
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
