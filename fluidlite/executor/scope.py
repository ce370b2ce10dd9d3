"""`Scope`: persistent variables by name (`fluid.Scope`, `fluid.global_scope`, `fluid.scope_guard`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ..base import callsite, selected_rows
from ..base.context import Slot
from ..base.errors import EnforceNotMet
from ..base.rank_table import RankTable
from ..base.reports.texts import names_shortly
from .lod_tensor import LoDTensor, LoDTensorArray

T = TypeVar("T")


class VersionCell:
    """Counts changes of a scope's variables.

    `version` counts replacements of their memory, after which plans bind anew; `writes` counts writes to their
    elements, after which copies on other GPUs are renewed.
    """

    __slots__ = ("version", "writes")

    def __init__(self) -> None:
        self.version = self.writes = 0


class ScopeVariable:
    """A variable of a scope: holds a `LoDTensor` or another value that was set."""

    __slots__ = ("_cell", "_value", "name")

    def __repr__(self) -> str:
        return f"<variable {self.name!r} of a scope: {self._value!r:.60}>"

    def __init__(self, name: str, cell: VersionCell) -> None:
        self.name = name
        self._cell = cell
        self._value: Any = None

    def get_tensor(self) -> LoDTensor:
        """The tensor of this variable, created if it has no value yet.

        Raises TypeError if the variable holds something else.
        """
        if self._value is None:
            tensor = LoDTensor()
            tensor._owner = self._cell
            self._value = tensor
        if not isinstance(self._value, LoDTensor):
            raise TypeError(f"variable {self.name!r} holds a {type(self._value).__name__}, not a LoDTensor")
        return self._value

    def get_lod_tensor_array(self) -> LoDTensorArray:
        """The tensor array of this variable, created if it has no value yet."""
        if self._value is None:
            self._value = LoDTensorArray()
        if not isinstance(self._value, LoDTensorArray):
            raise TypeError(
                f"variable {self.name!r} holds a {type(self._value).__name__}, not a LoDTensorArray"
            )
        return self._value

    def get_lod_rank_table(self) -> RankTable:
        """The rank table of this variable; one of no sequences is created if it has no value yet.

        Raises EnforceNotMet if the variable holds something else.
        """
        if self._value is None:
            self._value = RankTable.empty()
        return self._held(RankTable, "LoDRankTable")

    def get_selected_rows(self) -> RowsInScope:
        """The SelectedRows of this variable; empty ones are created if it has no value yet.

        Raises EnforceNotMet if the variable holds something else.
        """
        if self._value is None:
            self._value = RowsInScope()
        return self._held(RowsInScope, "SelectedRows")

    def set_int(self, value: int) -> None:
        """Set a whole number; EnforceNotMet if the variable holds a value of another type."""
        self._set_number(int, value)

    def get_int(self) -> int:
        """The whole number that was set; EnforceNotMet if there is none."""
        return self._held(int, "whole number")

    def is_int(self) -> bool:
        return type(self._value) is int

    def set_float(self, value: float) -> None:
        """Set a number; EnforceNotMet if the variable holds a value of another type."""
        self._set_number(float, value)

    def get_float(self) -> float:
        """The number that was set; EnforceNotMet if there is none."""
        return self._held(float, "number")

    def is_float(self) -> bool:
        return type(self._value) is float

    def _set_number(self, kind: type[T], value: Any) -> None:
        if self._value is not None:
            self._held(kind, kind.__name__)
        self.set(kind(value))  # type: ignore[call-arg]

    def _held(self, kind: type[T], what: str) -> T:
        if self._value is None:
            raise EnforceNotMet(f"Variable {self.name!r} is not initialized: it holds no {what}")
        if type(self._value) is not kind:
            raise EnforceNotMet(f"variable {self.name!r} holds a {type(self._value).__name__}, not a {what}")
        return self._value

    def get(self) -> Any:
        """The value of the variable, or None."""
        return self._value

    def set(self, value: Any) -> None:
        """Replace the value by `value`."""
        if isinstance(value, LoDTensor):
            value._owner = self._cell
        self._value = value
        self._cell.version += 1

    def is_set(self) -> bool:
        """True if there is a value; a tensor must have elements."""
        if isinstance(self._value, LoDTensor):
            return self._value.array is not None
        return self._value is not None


class Scope:
    """Variables by name, with a parent scope for names that are not found here.

    Children made by `new_scope` share the counter of changes, so a plan bound to a child also sees the parent's.
    """

    def __repr__(self) -> str:
        names = self.local_var_names()
        return f"<Scope of {len(names)} variables{': ' if names else ''}{names_shortly(names)}>"

    def __init__(self, parent: Scope | None = None) -> None:
        self._parent = parent
        self._vars: dict[str, ScopeVariable] = {}
        self._kids: list[Scope] = []
        self._cell: VersionCell = parent._cell if parent is not None else VersionCell()

    def var(self, name: str) -> ScopeVariable:
        """The variable `name` of this scope itself, created if there is none."""
        found = self._vars.get(name)
        if found is None:
            found = self._vars[name] = ScopeVariable(name, self._cell)
            self._cell.version += 1
        return found

    def find_var(self, name: str) -> ScopeVariable | None:
        """The variable `name` of this scope or of a parent, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._vars.get(name)
            if found is not None:
                return found
            scope = scope._parent
        return None

    def new_scope(self) -> Scope:
        """A child scope."""
        kid = Scope(self)
        self._kids.append(kid)
        return kid

    def _remove_from_pool(self) -> None:
        """Do nothing: a scope is freed with its last reference."""

    def drop_kids(self) -> None:
        """Forget all child scopes."""
        self._kids.clear()

    def erase(self, names: list[str]) -> None:
        """Forget the variables `names` of this scope."""
        for name in names:
            self._vars.pop(name, None)
        self._cell.version += 1

    def local_var_names(self) -> list[str]:
        """The names of this scope's own variables."""
        return list(self._vars)


_current: Slot[Scope] = Slot("scope", Scope())


def global_scope() -> Scope:
    """The scope that `Executor.run` uses when none is given (`fluid.global_scope`).

    Returns:
        A Scope: that of the innermost `scope_guard`, else one that the process begins with.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> w = fluid.layers.create_parameter([2], "float32", name="w")
        >>> _ = fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
        >>> tensor = fluid.global_scope().find_var("w").get_tensor()
        >>> tensor.set(np.array([1, 2], "float32"), fluid.CPUPlace())
        >>> np.array(tensor)
        array([1., 2.], dtype=float32)
    """
    return _current.get()


def switch_scope(scope: Scope) -> Scope:
    """Make `scope` the global scope; returns the previous one."""
    before = _current.get()
    _current.set(scope)
    return before


@contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Make `scope` the global scope inside the block (`fluid.scope_guard`).

    Anything else than a Scope changes nothing and is warned of: in Fluid programs can be built inside of
    `scope_guard("skip_quant")`, which some mean as a `name_scope`, though not run.
    """
    if isinstance(scope, Scope):
        with _current.hold(scope):
            yield
        return
    given = f"{scope!r}" if isinstance(scope, str) else f"a {type(scope).__name__}"
    text = f"scope_guard takes a fluid.Scope, got {given}: the global scope stays the one that it was"
    callsite.warn(text + (f"; was fluid.name_scope({given}) meant?" if isinstance(scope, str) else ""))
    yield


class RowsInScope:
    """Some rows of a table: their indices (`rows()`) and values (`get_tensor()`), and its `height()`."""

    def __init__(self, rows: Sequence[int] = (), height: int = 0) -> None:
        self._rows = [int(row) for row in rows]
        self._height = int(height)
        self._tensor = LoDTensor()

    def height(self) -> int:
        return self._height

    def set_height(self, height: int) -> None:
        self._height = int(height)

    def rows(self) -> list[int]:
        return self._rows

    def set_rows(self, rows: Sequence[int]) -> None:
        self._rows = [int(row) for row in rows]

    def get_tensor(self) -> LoDTensor:
        """The values, [len(rows), ...], as a tensor that can be set."""
        return self._tensor

    def numel(self) -> int:
        """The number of elements of the values."""
        return int(np.prod(self._tensor.shape()))

    def sync_index(self) -> None:
        """Do nothing: there is no index of rows."""

    def value(self) -> selected_rows.SelectedRows:
        """The rows as operators take them; ValueError unless there is a row for each value."""
        return selected_rows.SelectedRows(
            np.array(self._rows, "int64"), self._tensor._elements(), self._height
        )

    def take(self, value: selected_rows.SelectedRows) -> None:
        """Take over the rows that an operator has computed."""
        self._rows, self._height = [int(row) for row in value.rows], value.height
        self._tensor.replace(value.values)
