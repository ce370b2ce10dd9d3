"""The variables that parts of a function share: cells of closures, globals, attributes, and lists and dicts in them."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .values import UNSET

Objects = Sequence[tuple[str, Callable[[], Any], str]]
"""Attributes that are changed: what messages call each, its object, its name."""


class Slot:
    """One variable. `live`: whether somebody reads it later; `carried`: whether the next turn of a loop does."""

    def __init__(self, label: str, live: bool = True, carried: bool = True) -> None:
        self.label = label
        self.live = live
        self.carried = carried

    def get(self) -> Any:
        raise NotImplementedError

    def put(self, value: Any) -> None:
        raise NotImplementedError


class Cell(Slot):
    """A local variable."""

    def __init__(self, label: str, cell: types.CellType, live: bool, carried: bool) -> None:
        super().__init__(label, live, carried)
        self._cell = cell

    def get(self) -> Any:
        try:
            return self._cell.cell_contents
        except ValueError:
            return UNSET

    def put(self, value: Any) -> None:
        if value is not UNSET:
            self._cell.cell_contents = value
        elif self.get() is not UNSET:
            del self._cell.cell_contents


class Entry(Slot):
    """A global variable, or an attribute kept in a dict."""

    def __init__(self, label: str, around: dict[str, Any]) -> None:
        super().__init__(label)
        self._around = around

    def get(self) -> Any:
        return self._around.get(self.label, UNSET)

    def put(self, value: Any) -> None:
        if value is not UNSET:
            self._around[self.label] = value
        else:
            self._around.pop(self.label, None)


class Attribute(Slot):
    """An attribute of an object."""

    def __init__(self, label: str, owner: Any, name: str) -> None:
        super().__init__(label)
        self._owner = owner
        self._name = name

    def get(self) -> Any:
        return getattr(self._owner, self._name, UNSET)

    def put(self, value: Any) -> None:
        if value is not UNSET:
            if self.get() is not value:
                setattr(self._owner, self._name, value)
        elif self.get() is not UNSET:
            delattr(self._owner, self._name)


class Contents(Slot):
    """What is in a list or dict that several may hold; `get` gives a copy, `put` changes it in place."""

    def __init__(self, label: str, container: Any, holder: Slot) -> None:
        super().__init__(label)
        self.container = container
        self.holder = holder

    def get(self) -> Any:
        return self.container.copy()

    def put(self, value: Any) -> None:
        if isinstance(self.container, list):
            self.container[:] = value
        else:
            self.container.clear()
            self.container.update(value)


class Slots:
    """All variables that some functions, parts of one, may change."""

    def __init__(
        self,
        parts: Sequence[Callable[..., Any]],
        names: Iterable[str],
        live: Iterable[str],
        carried: Iterable[str],
        objects: Objects,
    ) -> None:
        cells: dict[str, types.CellType] = {}
        for part in parts:
            cells.update(zip(part.__code__.co_freevars, part.__closure__ or (), strict=True))
        self.assigned: list[Slot] = []
        for name in names:
            if name in cells:
                self.assigned.append(Cell(name, cells[name], name in live, name in carried))
            else:
                self.assigned.append(Entry(name, parts[0].__globals__))
        for label, owner, name in objects:
            try:
                found = owner()
            except (AttributeError, NameError):
                continue  # the object is made in the parts themselves
            self.assigned.append(Attribute(label, found, name))
        known = {slot.label for slot in self.assigned}
        held: list[Slot] = [
            *self.assigned, *[Cell(name, cell, True, True) for name, cell in cells.items() if name not in known],
        ]  # fmt: skip
        self.contents: list[Contents] = []
        seen: set[int] = set()
        for slot in held:
            value = slot.get()
            if type(value) in (list, dict) and id(value) not in seen:
                seen.add(id(value))
                self.contents.append(Contents(slot.label, value, slot))

    def all(self) -> list[Slot]:
        return [*self.assigned, *self.contents]

    def values(self) -> list[Any]:
        return [slot.get() for slot in self.all()]

    def restore(self, values: Iterable[Any]) -> None:
        for slot, value in zip(self.all(), values, strict=True):
            slot.put(value)


def same(one: Any, other: Any) -> bool:
    """Whether two values are one, or containers of the same ones."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return False
