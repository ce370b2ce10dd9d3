"""`Pattern`: matches graphs of calls along def-use chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.sizes import SymFloat, SymInt, always_equal
from ...ops.registry import Call
from ..ir.instructions import Instruction, Uses


class NoMatch(Exception):
    """The instructions do not match, or must not be replaced."""


def require(condition: bool) -> None:
    if not condition:
        raise NoMatch


def equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(always_equal, one, other))


def number(real: Any) -> float:
    require(not isinstance(real, (SymFloat, SymInt)))
    return float(real)


def no_shift(call: Call) -> bool:
    return bool(call.floats[1] == 0)


class Pattern:
    """A match of calls of kernels of one element type; raises `NoMatch` if there is none."""

    def __init__(self, uses: Uses, type: str) -> None:
        self._uses = uses
        self._type = type

    @property
    def _matched(self) -> list[Instruction]:
        """The instructions matched so far."""
        raise NotImplementedError

    def _root(self, name: str | None) -> str:
        return self._uses.root(name or "")

    def _is(self, each: Instruction | None, *kinds: str) -> bool:
        """True for a call of one of these kernels, of the pattern's element type."""
        if each is None or not isinstance(each.action, Call):
            return False
        return each.action.name in kinds and each.action.type in ("", self._type)

    def _producer(self, name: str | None, *kinds: str) -> Instruction | None:
        root = self._root(name)
        made = self._uses.producers.get(root)
        return made if self._uses.written[root] == 1 and self._is(made, *kinds) else None

    def _consumer(
        self, name: str | None, *kinds: str, fits: Callable[[Call], bool] = lambda _: True
    ) -> Instruction | None:
        """The only call of these kernels that reads a variable and satisfies `fits`."""
        found = [
            each for each in self._uses.readers(name or "") if self._is(each, *kinds) and fits(each.action)
        ]
        return found[0] if len(found) == 1 else None

    def _taken(self, into: list[Instruction], each: Instruction | None) -> Call:
        if each is None:
            raise NoMatch
        into.append(each)
        call: Call = each.action
        return call

    def _is_private(self, name: str | None, *more: Instruction) -> bool:
        return self._uses.locality(name or "", [*self._matched, *more]) == (True, False)
