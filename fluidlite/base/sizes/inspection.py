"""Queries about numbers that may be symbolic sizes, which note no guards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .polynomials import summed
from .sym_float import SymFloat
from .sym_int import SymInt, terms_of


def current(number: Any) -> Any:
    """The current value of a number."""
    return number.value if isinstance(number, (SymInt, SymFloat)) else number


def current_shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """The current values of a shape's sizes."""
    return tuple([current(n) for n in shape])


def whole(values: Iterable[Any]) -> list[Any]:
    """Convert all values to int but symbolic sizes."""
    return [n if isinstance(n, SymInt) else int(n) for n in values]


def is_fixed(shape: tuple[Any, ...]) -> bool:
    """Whether a shape has no symbolic sizes."""
    return not any(isinstance(n, SymInt) for n in shape)


def is_data_dependent(number: Any) -> bool:
    """Whether a number is resolved only in the course of a run."""
    return isinstance(number, SymInt) and not number.env.stages.keys().isdisjoint(free_symbols(number))


def free_symbols(number: Any) -> set[int]:
    """The input symbols in a size's formula, by number; of symbols equal by guards the oldest."""
    if not isinstance(number, SymInt):
        return set()
    result: set[int] = set()
    for symbol in {symbol for symbols in number.env.canonical(number.terms) for symbol in symbols}:
        kind, a, b = number.env.symbols[symbol]
        result |= {symbol} if kind == "input" else free_symbols(a) | free_symbols(b)
    return result


def substituted(number: Any, values: Mapping[int, Any]) -> Any:
    """A size with its input symbols replaced by `values`: integers, or sizes of another environment."""
    if not isinstance(number, SymInt):
        return number
    total: Any = 0
    for symbols, times in number.env.canonical(number.terms).items():
        part: Any = times
        for symbol in symbols:
            kind, a, b = number.env.symbols[symbol]
            if kind == "input":
                factor = values[symbol]
            else:
                divided, by = substituted(a, values), substituted(b, values)
                factor = divided // by if kind == "//" else divided % by
            part = part * factor
        total = total + part
    return total


def always_equal(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for all sizes that the guards noted so far admit."""
    if not isinstance(a, SymInt) and not isinstance(b, SymInt):
        return bool(a == b)
    env = a.env if isinstance(a, SymInt) else b.env
    return not env.canonical(summed(terms_of(b), terms_of(a), -1))
