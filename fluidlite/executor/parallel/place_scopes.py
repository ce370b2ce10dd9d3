"""`PlaceScopes`: the scopes of several places of the host, with what each of them has for itself."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence, Set
from typing import Any

from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope


class PlaceScopes:
    """A scope for each place: the first one's is the scope itself, the others are its children.

    Programs that share their variables (`share_vars_from`) share this. What places have for themselves, such as the
    statistics of normalisation, is in the children; everything else is in the scope. A value that something else has
    written into the scope since the last step (`set`, a file, a startup program, a run on one place) is copied to all
    places.
    """

    def __init__(self, scope: Scope, count: int) -> None:
        self.scope = scope
        self.scopes = [scope, *(Scope(scope) for _ in range(count - 1))]
        self.different: set[str] = set()
        """The variables whose values may differ from place to place."""
        self.version = 0
        """Counts what is new in `own` and `different`: programs look again then."""
        self._seen: dict[str, Any] = {}

    @property
    def own(self) -> Set[str]:
        """The variables that each place has for itself."""
        return self._seen.keys()

    def hold(self, names: Iterable[str], different: Iterable[str] = ()) -> None:
        """Have each place keep the variables `names` for itself, of which `different` may differ."""
        new = [name for name in names if name not in self._seen]
        if new or not self.different.issuperset(different):
            self.version += 1
        self.different.update(different)
        for name in new:
            for scope in self.scopes[1:]:
                scope.var(name)
            self._spread(name)

    def put(self, name: str, values: Sequence[LoDTensor]) -> None:
        """Set a variable: to one value for each place, which has it for itself, or to one for all places."""
        for scope, value in zip(self.scopes, values, strict=False):
            tensor = scope.var(name).get_tensor()
            tensor.set(value.array)
            tensor.hold_lod(value.offsets)
        if name in self._seen:
            if len(values) == 1:
                self._spread(name)
            self._seen[name] = _stamp(self._value(name))

    def bring(self) -> None:
        """Copy to all places what something else has written into the scope since `note`."""
        for name, seen in self._seen.items():
            if _stamp(self._value(name)) != seen:
                self._spread(name)

    def note(self) -> None:
        """Note what the scope has: the places have written it."""
        for name in self._seen:
            self._seen[name] = _stamp(self._value(name))

    def _value(self, name: str) -> Any:
        found = self.scope.find_var(name)
        return found.get() if found is not None else None

    def _spread(self, name: str) -> None:
        """Copy what the scope has to the other places."""
        value = self._value(name)
        for scope in self.scopes[1:]:
            if not isinstance(value, LoDTensor):
                scope.var(name).set(copy.deepcopy(value))
            elif value.array is not None:
                tensor = scope.var(name).get_tensor()
                tensor.set(value.array)
                tensor.hold_lod(value.offsets)
        self._seen[name] = _stamp(value)


def _stamp(value: Any) -> Any:
    """What tells whether a variable has been written: its elements, or the object that it holds."""
    if isinstance(value, LoDTensor):
        array = value.array
        return None if array is None else (array.dtype.str, array.shape, array.tobytes())
    return value
