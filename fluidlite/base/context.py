"""The only home of ambient state: named slots, each changed for the length of a block.

A new thread starts from the defaults, which are process-wide: `Slot.set` outside of any `hold` replaces the default.
One that is to see what its maker sees runs what `carrying` gives.

Slots are no ContextVars: before Python 3.12, garbage may be collected while one is being set, and where a finalizer
sets one as well, values are lost or freed while they are in use.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Frame(Generic[T]):
    """The value of a slot in one `with` block."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


class Frames(threading.local, Generic[T]):
    """The stack of a slot's frames in the calling thread; the outermost, the default, is shared by all threads."""

    def __init__(self, default: Frame[T]) -> None:
        self.held = [default]


class Slot(Generic[T]):
    """An ambient variable (the current program, scope, name generator, ...)."""

    _all: list[Slot[Any]] = []

    def __init__(self, name: str, default: T) -> None:
        self.name = name
        self.frames: Frames[T] = Frames(Frame(default))
        self._all.append(self)

    def get(self) -> T:
        return self.frames.held[-1].value

    def set(self, value: T) -> None:
        """Replace the value: that of the enclosing `hold` if there is one, the process's default otherwise."""
        self.frames.held[-1].value = value

    @contextmanager
    def hold(self, value: T) -> Iterator[T]:
        """Set `value` inside the block, and restore the previous one afterwards.

        A block may end before one that it encloses, and in another thread, as those of abandoned generators do: the
        values of other blocks stay.
        """
        held, frame = self.frames.held, Frame(value)
        held.append(frame)
        try:
            yield value
        finally:
            held.remove(frame)

    @classmethod
    def carrying(cls, function: Callable[..., T]) -> Callable[..., T]:
        """`function` for another thread, where it finds the values of all slots, and of ContextVars, that hold here."""
        found = [(slot, slot.get()) for slot in cls._all if len(slot.frames.held) > 1]
        run = contextvars.copy_context().run

        def carried(*args: Any) -> T:
            for slot, value in found:
                slot.frames.held.append(Frame(value))
            return run(function, *args)

        return carried


before_step: list[Callable[[], object]] = []
"""Functions that steps begin with: a process that has joined others counts its steps."""
