"""The only home of ambient state: named slots over ContextVars, each changed for the length of a block.

A new thread starts from the defaults, which are process-wide: `Slot.set` outside of any `hold` replaces the default.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")


class Slot(Generic[T]):
    """One piece of ambient state (the current program, scope, name generator, ...)."""

    def __init__(self, name: str, default: T) -> None:
        self._default = default
        self._var: ContextVar[T] = ContextVar(f"fluidlite.{name}")

    def get(self) -> T:
        return self._var.get(self._default)

    def set(self, value: T) -> None:
        """Replace the value: that of the enclosing `hold` if there is one, the process's default otherwise."""
        if self._var.get(_UNSET) is _UNSET:
            self._default = value
        else:
            self._var.set(value)

    @contextmanager
    def hold(self, value: T) -> Iterator[T]:
        """Have `value` inside the block and what was there before after it, whatever happens inside."""
        token = self._var.set(value)
        try:
            yield value
        finally:
            self._var.reset(token)


_UNSET: object = object()
