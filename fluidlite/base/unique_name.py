"""Unique names for variables, parameters and operators (`fluid.unique_name`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import context, missing


class UniqueNameGenerator:
    """Counts per key: `fc` gives `fc_0`, `fc_1`, ..."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.ids: dict[str, int] = {}
        self.claimed: set[str] = set()

    def __call__(self, key: str) -> str:
        number = self.ids.get(key, 0)
        self.ids[key] = number + 1
        return f"{self.prefix}{key}_{number}"


_first = UniqueNameGenerator()
_current: context.Slot[UniqueNameGenerator] = context.Slot("unique_name", _first)


def generate(key: str) -> str:
    """A name `key_N` that the current generator has not given out yet."""
    return _current.get()(key)


def claim(name: str) -> bool:
    """Whether the user may call a parameter of dygraph mode `name`: only once with the current generator."""
    claimed = _current.get().claimed
    if name in claimed:
        return False
    claimed.add(name)
    return True


def switch(new_generator: UniqueNameGenerator | None = None) -> UniqueNameGenerator:
    """Make `new_generator` (or a fresh one) the current generator; returns the one replaced."""
    old = _current.get()
    _current.set(new_generator if new_generator is not None else UniqueNameGenerator())
    return old


@contextmanager
def guard(new_generator: UniqueNameGenerator | str | bytes | None = None) -> Iterator[None]:
    """Count names from zero inside the block, so that two networks can get the same parameter names.

    `new_generator` may be a generator to go on with, or a string put before each name.
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    with _current.hold(new_generator if new_generator is not None else UniqueNameGenerator()):
        yield


__getattr__ = missing.reporter(__name__)
