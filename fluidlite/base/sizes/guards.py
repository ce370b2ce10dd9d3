"""`Sizes`: what is known about the sizes of one plan, and what it depends on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .polynomials import Terms, summed
from .size import Size, formula, identical, terms_of, value_of

INFINITE = math.inf
_MOST = 2**63 - 1


class Atom(NamedTuple):
    """A size that is no polynomial of others: `kind` is "//" or "%", or "root" with its first value as `a`."""

    kind: str
    a: Any
    b: Any


class Guard(NamedTuple):
    """A comparison that a plan depends on: `kind` is "==", "!=", "<" or "<="."""

    kind: str
    a: Size | int
    b: Size | int

    def __str__(self) -> str:
        return f"{formula(self.a)} {self.kind} {formula(self.b)}"


class Undecided(Exception):
    """A number was asked for that changes from step to step."""


class Sizes:
    """The sizes of one plan: its atoms, what is known about them, and the guards noted so far.

    `told`: whether users' code gets to see sizes: they say that they are integers then, and one that becomes text has
    to be the same in every step, for the text may decide something.
    """

    def __init__(self, told: bool = False) -> None:
        self.told = told
        self.atoms: list[Atom] = []
        self.names: list[str] = []
        self.guards: dict[Any, Guard] = {}
        self._low: list[int] = []
        self._high: list[float] = []
        self._same: dict[int, int] = {}  # atom -> an older one that has been found equal
        self._tentative = False
        self.all_counts = True  # whether no atom can be negative
        self.stages: dict[int, int] = {}  # atom -> when it is found, if that is not before a run begins

    def root(self, value: int, name: str, least: float = 2, stage: int = 0) -> Size | int:
        """A size that may be another one in each step, `value` at the moment; `name` is for messages.

        Values below `least` are kept apart. `stage`: which of the sizes that a run finds it is one of.
        """
        if value < least:
            return value
        size = Size(self, {(self._atom(Atom("root", value, None), name, 0),): 1}, value)
        if stage:
            self.stages[len(self.atoms) - 1] = stage
        self._guard("<=", int(least), size)
        return size

    def _atom(self, atom: Atom, name: str, low: int) -> int:
        for number, known in enumerate(self.atoms if atom.kind != "root" else ()):
            if known.kind == atom.kind and identical(known.a, atom.a) and identical(known.b, atom.b):
                return number
        self.atoms.append(atom)
        self.names.append(name)
        self._low.append(low)
        self._high.append(INFINITE)
        return len(self.atoms) - 1

    def opaque(self, kind: str, a: Size | int, b: Size | int, value: int) -> Size:
        """A quotient or a remainder that has no simpler form."""
        counts = self.least(terms_of(a)) >= 0 and self.least(terms_of(b)) >= 0
        self.all_counts = self.all_counts and counts
        name = f"({formula(a)} {kind} {formula(b)})"
        return Size(self, {(self._atom(Atom(kind, a, b), name, 0 if counts else -_MOST),): 1}, value)

    def canonical(self, terms: Terms) -> Terms:
        """`terms` with sizes that are known to be equal put under one name."""
        if not self._same or not any(atom in self._same for atoms in terms for atom in atoms):
            return terms
        out: Terms = {}
        for atoms, times in terms.items():
            key = tuple(sorted(self._same.get(atom, atom) for atom in atoms))
            out[key] = out.get(key, 0) + times
        return {key: times for key, times in out.items() if times}

    def least(self, terms: Terms) -> float:
        """A number that the polynomial is never less than."""
        total = 0.0
        for atoms, times in terms.items():
            if not atoms:
                total += times
            elif any(self._low[atom] < 0 for atom in atoms):
                return -INFINITE
            else:
                total += times * math.prod((self._low if times > 0 else self._high)[atom] for atom in atoms)
        return total

    def decide(self, kind: str, a: Size | int, b: Size | int) -> bool:
        """Whether `a kind b` holds ("==", "<" or "<="); a guard is noted where other sizes may say otherwise.

        That a size fits 64 bits needs none: the engine refuses others.
        """
        if not isinstance(b, Size) and b >= _MOST:
            return kind != "=="
        difference = self.canonical(summed(terms_of(b), terms_of(a), -1))
        low, high = (
            self.least(difference),
            -self.least({atoms: -times for atoms, times in difference.items()}),
        )
        if kind == "==":
            if low == high == 0:
                return True
            if low > 0 or high < 0:
                return False
            found = value_of(a) == value_of(b)
            self._guard("==" if found else "!=", a, b)
        else:
            bound = 0 if kind == "<=" else 1
            if low >= bound:
                return True
            if high < bound:
                return False
            found = value_of(a) <= value_of(b) if kind == "<=" else value_of(a) < value_of(b)
            if found:
                self._guard(kind, a, b)
            else:
                self._guard("<" if kind == "<=" else "<=", b, a)
        return found

    @contextmanager
    def tentatively(self) -> Iterator[None]:
        """While this lasts, whatever needs to know the number that a size is gets `Undecided` instead."""
        self._tentative = True
        try:
            yield
        finally:
            self._tentative = False

    def exactly(self, size: Size) -> int:
        """The value of `size`, which every step must have from now on."""
        if self._tentative:
            raise Undecided(f"{formula(size)} is not the same in every step")
        self.decide("==", size, size.value)
        return size.value

    def stays(self, size: Size) -> bool:
        """Whether the guards noted so far admit one value only."""
        terms = self.canonical(size.terms)
        return self.least(terms) == -self.least({atoms: -times for atoms, times in terms.items()})

    def _guard(self, kind: str, a: Size | int, b: Size | int) -> None:
        difference = self.canonical(summed(terms_of(b), terms_of(a), -1))
        self.guards.setdefault((kind, frozenset(difference.items())), Guard(kind, a, b))
        atoms = [key for key in difference if key]
        if len(atoms) == 1 and len(atoms[0]) == 1 and abs(difference[atoms[0]]) == 1:
            self._bound(kind, atoms[0][0], difference[atoms[0]], difference.get((), 0))
        elif kind == "==" and len(difference) == 2 == len(atoms) and all(len(key) == 1 for key in atoms):
            if sum(difference.values()) == 0 and 1 in difference.values():
                older, newer = sorted(key[0] for key in atoms)
                self._low[older] = max(self._low[older], self._low[newer])
                self._high[older] = min(self._high[older], self._high[newer])
                self._same[newer] = older
                self._same.update((k, older) for k, to in list(self._same.items()) if to == newer)

    def _bound(self, kind: str, atom: int, sign: int, constant: int) -> None:
        """Remember what a guard of the form `0 kind sign * atom + constant` says about the atom."""
        if kind == "==":
            self._low[atom] = -sign * constant
            self._high[atom] = -sign * constant
        elif kind == "!=":
            if self._low[atom] == -sign * constant:
                self._low[atom] += 1
        elif sign > 0:
            self._low[atom] = max(self._low[atom], -constant + (kind == "<"))
        else:
            self._high[atom] = min(self._high[atom], constant - (kind == "<"))
