"""`PlaceScopes`: a scope for each place of the host, with the variables that are local to it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence, Set
from typing import Any

from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope


class PlaceScopes:
    """The first place's scope is the given one, the others are its children with their own values of local variables.

    Local variables are those that places write for themselves, such as the statistics of batch normalisation; all
    others are shared. Programs with common variables (`share_vars_from`) have one PlaceScopes. A local variable that is
    written into the scope between steps (`set`, a file, a startup program, a run on one place) is copied to all places.
    """

    def __init__(self, scope: Scope, count: int) -> None:
        self.scope = scope
        self.scopes = [scope, *(Scope(scope) for _ in range(count - 1))]
        self.varying: set[str] = set()
        """The variables whose values may differ between places."""
        self.version = 0
        """Counts the changes of `local` and `varying`, after which programs are partitioned anew."""
        self._stamps: dict[str, Any] = {}  # of the first place's values after the last step

    @property
    def local(self) -> Set[str]:
        return self._stamps.keys()

    def make_local(self, names: Iterable[str], varying: Iterable[str] = ()) -> None:
        """Give each place its own variables `names`; the values of those in `varying` may differ between places."""
        new = [name for name in names if name not in self._stamps]
        if new or not self.varying.issuperset(varying):
            self.version += 1
        self.varying.update(varying)
        for name in new:
            for scope in self.scopes[1:]:
                scope.var(name)
            self._copy_from_first(name)

    def set(self, name: str, values: Sequence[LoDTensor]) -> None:
        """Set a variable: to one value for each place, to which it is local, or to one value for all places."""
        for scope, value in zip(self.scopes, values, strict=False):
            _set(scope, name, value)
        if name in self._stamps:
            if len(values) == 1:
                self._copy_from_first(name)
            self._stamps[name] = _stamp(self._value(name))

    def before_step(self) -> None:
        """Copy to all places the local variables that were written into the scope since `after_step`."""
        for name, stamp in self._stamps.items():
            if _stamp(self._value(name)) != stamp:
                self._copy_from_first(name)

    def after_step(self) -> None:
        """Note that the places themselves have written their present values."""
        for name in self._stamps:
            self._stamps[name] = _stamp(self._value(name))

    def _value(self, name: str) -> Any:
        found = self.scope.find_var(name)
        return found.get() if found is not None else None

    def _copy_from_first(self, name: str) -> None:
        value = self._value(name)
        for scope in self.scopes[1:]:
            if not isinstance(value, LoDTensor):
                scope.var(name).set(copy.deepcopy(value))
            elif value.array is not None:
                _set(scope, name, value)
        self._stamps[name] = _stamp(value)


def _set(scope: Scope, name: str, value: LoDTensor) -> None:
    tensor = scope.var(name).get_tensor()
    tensor.set(value.array)
    tensor.hold_lod(value.offsets)


def _stamp(value: Any) -> Any:
    """A value that differs after a variable was written: its elements as bytes, or the object that it holds."""
    if isinstance(value, LoDTensor):
        array = value.array
        return None if array is None else (array.dtype.str, array.shape, array.tobytes())
    return value
