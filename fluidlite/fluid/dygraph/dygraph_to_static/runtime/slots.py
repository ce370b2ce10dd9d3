"""The variables that parts of a function share: closure cells, globals, attributes, and the lists and dicts in them."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .....framework.math_ops import VariableMath
from ...members import Members
from ..rewriting import HELPERS
from .values import UNSET

Objects = Sequence[tuple[str, Callable[[], Any], str]]
"""Attributes that are changed: the label in messages, a function that returns the object, the attribute's name."""


class Slot:
    """A variable. `live`: it is read later; `carried`: it is read by the next iteration of a loop."""

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

    def __init__(self, label: str, space: dict[str, Any]) -> None:
        super().__init__(label)
        self._space = space

    def get(self) -> Any:
        return self._space.get(self.label, UNSET)

    def put(self, value: Any) -> None:
        if value is not UNSET:
            self._space[self.label] = value
        else:
            self._space.pop(self.label, None)


class Attribute(Slot):
    """An attribute of an object."""

    def __init__(self, label: str, owner: Any, name: str) -> None:
        super().__init__(label)
        self.owner = owner
        self.name = name

    def get(self) -> Any:
        return getattr(self.owner, self.name, UNSET)

    def put(self, value: Any) -> None:
        if value is not UNSET:
            if self.get() is not value:
                setattr(self.owner, self.name, value)
        elif self.get() is not UNSET:
            delattr(self.owner, self.name)


class Contents(Slot):
    """The elements of a list or dict, which may be shared; `get` returns a copy, `put` assigns in place."""

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
    """All variables that some parts of a function may change."""

    def __init__(
        self,
        parts: Sequence[Callable[..., Any]],
        names: Iterable[str],
        live: Iterable[str],
        carried: Iterable[str],
        objects: Objects,
    ) -> None:
        self._reach = Reach(parts)
        cells = self._reach.cells
        self.assigned: list[Slot] = []
        for name in names:
            if name in cells:
                self.assigned.append(Cell(name, cells[name], name in live, name in carried))
            else:
                self.assigned.append(Entry(name, parts[0].__globals__))
        for label, owner, name in objects:
            try:
                target = owner()
            except (AttributeError, NameError):
                continue  # the object is made in the parts themselves
            self.assigned.append(Attribute(label, target, name))
        self._find_contents()

    def add(self, attributes: Iterable[Attribute]) -> None:
        """Add attributes to the variables."""
        self.assigned += attributes
        self._find_contents()

    def _find_contents(self) -> None:
        known = {slot.label for slot in self.assigned}
        others = [
            Cell(name, cell, True, True) for name, cell in self._reach.cells.items() if name not in known
        ]
        held: list[Slot] = [*self.assigned, *others]
        self.contents: list[Contents] = []
        seen: set[int] = set()
        for slot in held:
            value = slot.get()
            if type(value) in (list, dict) and id(value) not in seen:
                seen.add(id(value))
                self.contents.append(Contents(slot.label, value, slot))

    def watch(self) -> Watch:
        """A Watch on the other attributes of objects that the parts can reach."""
        known = {(id(slot.owner), slot.name) for slot in self.assigned if isinstance(slot, Attribute)}
        return Watch(self._reach.values(), known)

    def all(self) -> list[Slot]:
        return [*self.assigned, *self.contents]

    def values(self) -> list[Any]:
        return [slot.get() for slot in self.all()]

    def restore(self, values: Iterable[Any]) -> None:
        for slot, value in zip(self.all(), values, strict=True):
            slot.put(value)


class Reach:
    """Cells by name and values of globals that functions, and the functions they mention, can reach."""

    def __init__(self, parts: Iterable[Callable[..., Any]]) -> None:
        self.cells: dict[str, types.CellType] = {}
        self.globals: list[Any] = []
        todo, seen = list(parts), set()
        while todo:
            part = todo.pop(0)
            code = getattr(part, "__code__", None)
            if code is None or code in seen:
                continue
            seen.add(code)
            for name, cell in zip(code.co_freevars, part.__closure__ or (), strict=True):
                if name not in self.cells and name != HELPERS:
                    self.cells[name] = cell
                    todo += _functions(Cell(name, cell, True, True).get())
            for name in _mentioned(code):
                value = part.__globals__.get(name)
                if _has_state(value):
                    self.globals.append(value)
                todo += _functions(value)

    def values(self) -> list[Any]:
        """The values of all cells and globals."""
        return [*(Cell("", cell, True, True).get() for cell in self.cells.values()), *self.globals]


def _functions(value: Any) -> list[Any]:
    known = isinstance(value, types.FunctionType) and _is_users(value.__module__)
    return [value] if known else []


def _mentioned(code: types.CodeType) -> set[str]:
    """The names of globals and attributes in a function and its nested functions."""
    inner = [item for item in code.co_consts if isinstance(item, types.CodeType)]
    return set(code.co_names).union(*map(_mentioned, inner))


class Watch:
    """A snapshot of objects' attributes, to detect which of them the building of a block changes."""

    def __init__(self, reached: Iterable[Any], known: set[tuple[int, str]]) -> None:
        self._known = known
        self._before: list[tuple[Any, dict[str, tuple[Any, Any]]]] = []
        todo = list(reached)
        seen: set[int] = set()
        while todo and len(seen) < _OBJECTS:
            item = todo.pop()
            if isinstance(item, types.MethodType):
                item = item.__self__
            if id(item) in seen or not _has_state(item):
                continue
            seen.add(id(item))
            state = _state(item)
            self._before.append((item, {name: (value, _copied(value)) for name, value in state.items()}))
            todo += state.values()
            if isinstance(item, Members):
                todo += item._sub_layers.values()

    def changes(self) -> list[Attribute]:
        """Restore the attributes whose values, or list or dict elements, have changed, and return them."""
        changed = []
        for item, before in self._before:
            now = _state(item)
            for name in (*before, *(name for name in now if name not in before)):
                value, copy = before.get(name, (UNSET, None))
                after = now.get(name, UNSET)
                if (id(item), name) in self._known or (value is after and same(copy, _copied(after))):
                    continue
                slot = Attribute(f"{type(item).__name__}.{name}", item, name)
                changed.append(slot)
                if isinstance(copy, (list, dict)):
                    Contents(name, value, slot).put(copy)
                slot.put(value)
        return changed


_OBJECTS = 10000
"""At most this many objects are inspected."""

_OTHERS = (types.ModuleType, types.FunctionType, type, VariableMath)


def _has_state(item: Any) -> bool:
    """True for layers and objects of the user's classes."""
    if isinstance(item, Members):
        return True
    if isinstance(item, _OTHERS) or not hasattr(item, "__dict__"):
        return False
    return _is_users(type(item).__module__)


def _is_users(module: str | None) -> bool:
    return (module or "").partition(".")[0] not in _PASSED


_PASSED = frozenset({__name__.partition(".")[0], "numpy", "builtins", "functools", "threading", "logging"})


def _state(item: Any) -> dict[str, Any]:
    if not isinstance(item, Members):
        return dict(vars(item))
    own = {name: value for name, value in vars(item).items() if name not in _STRUCTURE}
    return {**own, **item._buffers}


_STRUCTURE = frozenset({"_parameters", "_sub_layers", "_buffers", "_declarative"})


def _copied(value: Any) -> Any:
    return value.copy() if type(value) in (list, dict) else None


def same(one: Any, other: Any) -> bool:
    """True if two values are identical, or containers of identical values."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return False
