"""`ShapeEnv`: the symbols of one plan with their bounds and equalities, and the guards of the plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .polynomials import Terms, summed
from .sym_int import SymInt, formula, identical, terms_of, value_of

INFINITE = math.inf
_MOST = 2**63 - 1


class Symbol(NamedTuple):
    """A size that is no polynomial of others: `a // b`, `a % b` (`kind` "//", "%") or an "input", at first `a`."""

    kind: str
    a: Any
    b: Any


class Guard(NamedTuple):
    """A comparison that a plan depends on: `kind` is "==", "!=", "<" or "<="."""

    kind: str
    a: SymInt | int
    b: SymInt | int

    def __str__(self) -> str:
        return f"{formula(self.a)} {self.kind} {formula(self.b)}"


class WouldSpecialise(Exception):
    """The value of a symbolic size was needed where specialising is not allowed."""


class ShapeEnv:
    """The symbols of one plan, their bounds and equalities, and the guards noted so far.

    `user_visible`: whether users' code gets symbolic sizes. Then they pretend to be of type int, and conversion to text
    specialises them, as the text may decide something.
    """

    def __init__(self, user_visible: bool = False) -> None:
        self.user_visible = user_visible
        self.symbols: list[Symbol] = []
        self.names: list[str] = []
        self.guards: dict[Any, Guard] = {}
        self._low: list[int] = []
        self._high: list[float] = []
        self._same: dict[int, int] = {}  # symbol -> an older one that is equal by a guard
        self._may_specialise = True
        self.all_nonnegative = True  # whether no symbol can be negative
        self.stages: dict[int, int] = {}  # data-dependent input symbol -> the stage of a run that resolves it

    def input_symbol(self, value: int, name: str, least: float = 2, stage: int = 0) -> SymInt | int:
        """A new input symbol with the current `value`; `name` is for messages.

        Values below `least` are returned as they are. `stage`: for a data-dependent size, the stage that resolves it.
        """
        if value < least:
            return value
        size = SymInt(self, {(self._symbol(Symbol("input", value, None), name, 0),): 1}, value)
        if stage:
            self.stages[len(self.symbols) - 1] = stage
        self._guard("<=", int(least), size)
        return size

    def _symbol(self, symbol: Symbol, name: str, low: int) -> int:
        for number, known in enumerate(self.symbols if symbol.kind != "input" else ()):
            if known.kind == symbol.kind and identical(known.a, symbol.a) and identical(known.b, symbol.b):
                return number
        self.symbols.append(symbol)
        self.names.append(name)
        self._low.append(low)
        self._high.append(INFINITE)
        return len(self.symbols) - 1

    def uninterpreted(self, kind: str, a: SymInt | int, b: SymInt | int, value: int) -> SymInt:
        """A quotient or a remainder as an uninterpreted term, a symbol of its own."""
        nonnegative = self.least(terms_of(a)) >= 0 and self.least(terms_of(b)) >= 0
        self.all_nonnegative = self.all_nonnegative and nonnegative
        name = f"({formula(a)} {kind} {formula(b)})"
        return SymInt(
            self, {(self._symbol(Symbol(kind, a, b), name, 0 if nonnegative else -_MOST),): 1}, value
        )

    def canonical(self, terms: Terms) -> Terms:
        """`terms` with one symbol for all that are equal by guards."""
        if not self._same or not any(symbol in self._same for symbols in terms for symbol in symbols):
            return terms
        out: Terms = {}
        for symbols, times in terms.items():
            key = tuple(sorted(self._same.get(symbol, symbol) for symbol in symbols))
            out[key] = out.get(key, 0) + times
        return {key: times for key, times in out.items() if times}

    def least(self, terms: Terms) -> float:
        """A lower bound of the polynomial."""
        total = 0.0
        for symbols, times in terms.items():
            if not symbols:
                total += times
            elif any(self._low[symbol] < 0 for symbol in symbols):
                return -INFINITE
            else:
                total += times * math.prod(
                    (self._low if times > 0 else self._high)[symbol] for symbol in symbols
                )
        return total

    def evaluate(self, kind: str, a: SymInt | int, b: SymInt | int) -> bool:
        """Evaluate `a kind b` ("==", "<" or "<=") for the current values; note a guard unless it is so for all sizes.

        Comparisons with the largest 64-bit integer need no guard: the engine refuses larger sizes.
        """
        if not isinstance(b, SymInt) and b >= _MOST:
            return kind != "=="
        if terms_of(a) == terms_of(b):  # most checks of operands compare a size with itself
            return kind != "<"
        difference = self.canonical(summed(terms_of(b), terms_of(a), -1))
        low, high = (
            self.least(difference),
            -self.least({symbols: -times for symbols, times in difference.items()}),
        )
        if kind == "==":
            if low == high == 0:
                return True
            if low > 0 or high < 0:
                return False
            result = value_of(a) == value_of(b)
            self._guard("==" if result else "!=", a, b)
        else:
            bound = 0 if kind == "<=" else 1
            if low >= bound:
                return True
            if high < bound:
                return False
            result = value_of(a) <= value_of(b) if kind == "<=" else value_of(a) < value_of(b)
            if result:
                self._guard(kind, a, b)
            else:
                self._guard("<" if kind == "<=" else "<=", b, a)
        return result

    @contextmanager
    def without_specialising(self) -> Iterator[None]:
        """In this block, a use of a size that needs its value raises `WouldSpecialise`."""
        self._may_specialise = False
        try:
            yield
        finally:
            self._may_specialise = True

    def specialise(self, size: SymInt) -> int:
        """Specialise the plan to the current value of `size`, which is returned."""
        if not self._may_specialise:
            raise WouldSpecialise(f"{formula(size)} is not the same in every step")
        self.evaluate("==", size, size.value)
        return size.value

    def is_constant(self, size: SymInt) -> bool:
        """Whether the guards noted so far admit one value of `size` only."""
        terms = self.canonical(size.terms)
        return self.least(terms) == -self.least({symbols: -times for symbols, times in terms.items()})

    def _guard(self, kind: str, a: SymInt | int, b: SymInt | int) -> None:
        difference = self.canonical(summed(terms_of(b), terms_of(a), -1))
        self.guards.setdefault((kind, frozenset(difference.items())), Guard(kind, a, b))
        symbols = [key for key in difference if key]
        if len(symbols) == 1 and len(symbols[0]) == 1 and abs(difference[symbols[0]]) == 1:
            self._bound(kind, symbols[0][0], difference[symbols[0]], difference.get((), 0))
        elif kind == "==" and len(difference) == 2 == len(symbols) and all(len(key) == 1 for key in symbols):
            if sum(difference.values()) == 0 and 1 in difference.values():
                older, newer = sorted(key[0] for key in symbols)
                self._low[older] = max(self._low[older], self._low[newer])
                self._high[older] = min(self._high[older], self._high[newer])
                self._same[newer] = older
                self._same.update((k, older) for k, to in list(self._same.items()) if to == newer)

    def _bound(self, kind: str, symbol: int, sign: int, constant: int) -> None:
        """Tighten the bounds of a symbol by a guard of the form `0 kind sign * symbol + constant`."""
        if kind == "==":
            self._low[symbol] = -sign * constant
            self._high[symbol] = -sign * constant
        elif kind == "!=":
            if self._low[symbol] == -sign * constant:
                self._low[symbol] += 1
        elif sign > 0:
            self._low[symbol] = max(self._low[symbol], -constant + (kind == "<"))
        else:
            self._high[symbol] = min(self._high[symbol], constant - (kind == "<"))
