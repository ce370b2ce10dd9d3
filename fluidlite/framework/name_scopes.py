"""Scopes of names, which operators note for pictures of the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from ..base.context import Slot
from . import mode


class NameScope:
    """A scope of names; children of the same prefix are numbered (`fluid.framework.NameScope`)."""

    def __init__(self, name: str = "", parent: NameScope | None = None) -> None:
        self._children: Counter[str] = Counter()
        self._name = name
        self._parent = parent

    def child(self, prefix: str) -> NameScope:
        """A new scope inside this one: `prefix`, `prefix_1`, ..."""
        known = self._children[prefix]
        self._children[prefix] += 1
        return NameScope(f"{prefix}_{known}" if known else prefix, self)

    def parent(self) -> NameScope | None:
        return self._parent

    def name(self) -> str:
        return self._name


_scope: Slot[NameScope] = Slot("name_scope", NameScope())


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Set the name scope of the operators built inside the block (`fluid.name_scope`).

    It is called `prefix`; the second one of that name in the same place `prefix_1`, and so on. Has no effect on eager
    operators. Raises AssertionError without a prefix, while a program is built.
    """
    if mode.in_dygraph_mode():
        yield
        return
    if not prefix:
        raise AssertionError("namescope prefix can not be empty: give name_scope a name")
    with _scope.hold(_scope.get().child(prefix)):
        yield


def _full_name_scope() -> str:
    """The scopes of names that hold now, as operators note them: '/a/b/'."""
    path, scope = "/", _scope.get()
    while (parent := scope.parent()) is not None:
        path, scope = f"/{scope.name()}{path}", parent
    return path
