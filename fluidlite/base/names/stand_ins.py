"""Stand-ins for names of Fluid 1.8 that are missing in this package: they can be imported, and raise when used.

A script runs until it uses a missing name. Stand-ins can be passed on, stored, subclassed and tested with `hasattr` as
in Fluid; calling them, their subclasses or their attributes raises NotSupportedError.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from ..errors import NotSupportedError


class StandIn(ABCMeta):
    """The type of names that are missing. They are classes, so that classes can be derived from them.

    (An ABCMeta so that scripts may mix them with abstract classes.)
    """

    _explain: Callable[[], str]
    _never: str | None

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotSupportedError(cls._explain())

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name)
        raise NotSupportedError(cls._explain(), name=name)

    def __getitem__(cls, key: Any) -> NoReturn:
        raise NotSupportedError(cls._explain())

    def __iter__(cls) -> NoReturn:
        raise NotSupportedError(cls._explain())

    def __instancecheck__(cls, instance: Any) -> bool:
        return False

    def __repr__(cls) -> str:
        return f"<{cls._explain()}>"


def stand_in(module: str, name: str, explain: Callable[[], str], never: str | None = None) -> StandIn:
    """A stand-in for `name` of Fluid's `module`; `explain()` returns the text of its error.

    `never`: why the name will never be supported, if that is decided.
    """
    space = {
        "__module__": module,
        "__doc__": "Not in fluidlite.",
        "_explain": staticmethod(explain),
        "_never": never,
    }
    return StandIn(name, (), space)


class StandInModule(ModuleType):
    """A module of Fluid that is missing here; `find` looks its names up."""

    def __init__(self, name: str, find: Callable[[str], Any], names: list[str]) -> None:
        super().__init__(name, "A module of Fluid 1.8 that is not in fluidlite.")
        self.__path__: list[str] = []
        self.__all__ = names
        self._find = find

    def __getattr__(self, name: str) -> Any:
        return self._find(name)

    def __dir__(self) -> list[str]:
        return self.__all__


def why_never(value: Any) -> str | None:
    """Why the name that `value` replaces will never be supported; None if undecided or `value` is no stand-in."""
    return value._never if isinstance(value, StandIn) else None


def is_stand_in(value: Any) -> bool:
    """Whether `value` only stands for a name that is missing."""
    return isinstance(value, (StandIn, StandInModule))
