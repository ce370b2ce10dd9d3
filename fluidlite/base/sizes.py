"""Sizes that change from step to step: numbers that remember the formula they come from.

A plan is made for one set of sizes and kept for all others. While it is made, each size that may change is a `Size`: it
counts like the integer it is at the moment, and its results are `Size`s again. Where its value decides something (a
comparison, use as an index), a *guard* is noted: the plan holds as long as its guards do. A formula is a polynomial
over *atoms*: sizes of what is fed, and quotients and remainders that have no simpler form. So `(n * 64) // 64` is `n`,
and whether `n * 64` is negative, or another than `64 * n`, needs no guard.

Sizes of 0 and 1 mean something else than others (nothing to do; broadcasting), so that those are plain integers, with a
guard; all other sizes are known to be 2 or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

Terms: TypeAlias = dict[tuple[int, ...], int]
"""A polynomial: the atoms that are multiplied, sorted -> how often."""

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
            if known.kind == atom.kind and _identical(known.a, atom.a) and _identical(known.b, atom.b):
                return number
        self.atoms.append(atom)
        self.names.append(name)
        self._low.append(low)
        self._high.append(INFINITE)
        return len(self.atoms) - 1

    def opaque(self, kind: str, a: Size | int, b: Size | int, value: int) -> Size:
        """A quotient or a remainder that has no simpler form."""
        counts = self.least(_terms(a)) >= 0 and self.least(_terms(b)) >= 0
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
        difference = self.canonical(_sum(_terms(b), _terms(a), -1))
        low, high = (
            self.least(difference),
            -self.least({atoms: -times for atoms, times in difference.items()}),
        )
        if kind == "==":
            if low == high == 0:
                return True
            if low > 0 or high < 0:
                return False
            found = _value(a) == _value(b)
            self._guard("==" if found else "!=", a, b)
        else:
            bound = 0 if kind == "<=" else 1
            if low >= bound:
                return True
            if high < bound:
                return False
            found = _value(a) <= _value(b) if kind == "<=" else _value(a) < _value(b)
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
        difference = self.canonical(_sum(_terms(b), _terms(a), -1))
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


class Size:
    """An integer that may be another one in each step; see the module's text.

    Counts and compares like an integer. Whatever needs to know the number itself (an index, `int`, a hash) gets it, and
    binds the plan to it.
    """

    __array_ufunc__ = None  # NumPy's numbers leave it to us
    __slots__ = ("sizes", "terms", "value")

    def __init__(self, sizes: Sizes, terms: Terms, value: int) -> None:
        self.sizes = sizes
        self.terms = terms
        self.value = value

    def _made(self, terms: Terms, value: int) -> Any:
        if not terms:
            return 0
        return terms[()] if len(terms) == 1 and () in terms else Size(self.sizes, terms, value)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Real):
            return NotImplemented
        if _is_real(other) and not float(other).is_integer():
            return Real("+", self, float(other))
        if not isinstance(other, Size):
            other = _integer(other)
            if other is NotImplemented:
                return other
        return self._made(_sum(self.terms, _terms(other), 1), self.value + _value(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __pos__(self) -> Size:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __neg__(self) -> Any:
        return self._made({atoms: -times for atoms, times in self.terms.items()}, -self.value)

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            if other == 1:
                return self
            scaled = {atoms: times * other for atoms, times in self.terms.items()} if other else {}
            return self._made(scaled, self.value * other)
        if isinstance(other, Real):
            return NotImplemented
        if _is_real(other) and not float(other).is_integer():
            return Real("*", self, float(other))
        if not isinstance(other, Size):
            other = _integer(other)
            if other is NotImplemented:
                return other
        terms: Terms = {}
        for atoms, times in self.terms.items():
            for more, factor in _terms(other).items():
                key = tuple(sorted((*atoms, *more))) if more else atoms
                terms[key] = terms.get(key, 0) + times * factor
        return self._made({key: times for key, times in terms.items() if times}, self.value * _value(other))

    __rmul__ = __mul__

    def __pow__(self, exponent: Any) -> Any:
        if _is_real(exponent) or exponent < 0:
            return float(self) ** float(exponent)
        out: Any = 1
        for _ in range(exponent):
            out = out * self
        return out

    def __rpow__(self, base: Any) -> Any:
        return base ** int(self)

    def __floordiv__(self, other: Any) -> Any:
        return float(self) // float(other) if _is_real(other) else _divided(self, other)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        return float(other) // float(self) if _is_real(other) else _divided(_integer(other), self)[0]

    def __mod__(self, other: Any) -> Any:
        return float(self) % float(other) if _is_real(other) else _divided(self, other)[1]

    def __rmod__(self, other: Any) -> Any:
        return float(other) % float(self) if _is_real(other) else _divided(_integer(other), self)[1]

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return Real("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return Real("/", other, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Size):
            if _is_real(other):
                return float(self) == other
            other = _integer(other)
            if other is NotImplemented:
                return False
        return self.sizes.decide("==", self, other)  # type: ignore[arg-type]

    def __lt__(self, other: Any) -> bool:
        if type(other) is int and other == 0 and self.sizes.all_counts and min(self.terms.values()) > 0:
            return False  # what is asked most often
        return float(self) < other if _is_real(other) else self.sizes.decide("<", self, other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= other if _is_real(other) else self.sizes.decide("<=", self, other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > other if _is_real(other) else self.sizes.decide("<", other, self)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= other if _is_real(other) else self.sizes.decide("<=", other, self)

    def __bool__(self) -> bool:
        return not self.sizes.decide("==", self, 0)

    def __index__(self) -> int:
        return self.sizes.exactly(self)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.sizes.exactly(self))

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else round(int(self), digits)

    def __trunc__(self) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__

    def __hash__(self) -> int:
        return hash(self.sizes.exactly(self))

    def __repr__(self) -> str:
        return str(self._shown())

    def __format__(self, spec: str) -> str:
        return format(self._shown(), spec)

    def _shown(self) -> int:
        return self.sizes.exactly(self) if self.sizes.told else self.value

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """What `isinstance` goes by: users' code takes a size for the integer that it stands for."""
        return int if self.sizes.told else Size

    def __copy__(self) -> Size:
        return self

    def __deepcopy__(self, memo: Any) -> Size:
        return self


class Real:
    """A real number that is computed from sizes: `a kind b`.

    Whatever needs to know the number itself gets it, and binds the plan to the sizes that it comes from.
    """

    __slots__ = ("a", "b", "kind", "value")

    def __init__(self, kind: str, a: Any, b: Any) -> None:
        self.kind, self.a, self.b = kind, a, b
        x, y = getattr(a, "value", a), getattr(b, "value", b)
        self.value: float = x / y if kind == "/" else x * y if kind == "*" else x + y

    def __mul__(self, other: Any) -> Real:
        return Real("*", self, other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Real:
        return Real("+", self, other)

    __radd__ = __add__

    def __truediv__(self, other: Any) -> Real:
        return Real("/", self, other)

    def __rtruediv__(self, other: Any) -> Real:
        return Real("/", other, self)

    def __sub__(self, other: Any) -> Real:
        return self + -other

    def __rsub__(self, other: Any) -> Real:
        return -self + other

    def __neg__(self) -> Real:
        return Real("*", self, -1.0)

    def __float__(self) -> float:
        for part in (self.a, self.b):
            if isinstance(part, (Size, Real)):
                float(part)
        return self.value

    def __int__(self) -> int:
        return int(float(self))

    def __floor__(self) -> int:
        return math.floor(float(self))

    def __ceil__(self) -> int:
        return math.ceil(float(self))

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self), digits)

    def __pow__(self, exponent: float) -> float:
        return float(self) ** exponent

    def __eq__(self, other: object) -> bool:
        return float(self) == (float(other) if isinstance(other, (Size, Real)) else other)

    def __lt__(self, other: Any) -> bool:
        return float(self) < float(other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > float(other)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= float(other)

    def __bool__(self) -> bool:
        return float(self) != 0

    def __hash__(self) -> int:
        return hash(float(self))

    def __repr__(self) -> str:
        return repr(self.value)


def current(number: Any) -> Any:
    """The number itself; nothing is noted."""
    return number.value if isinstance(number, (Size, Real)) else number


def current_shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape in numbers; nothing is noted."""
    return tuple([current(n) for n in shape])


def whole(values: Iterable[Any]) -> list[Any]:
    """Integers as such, and sizes as they are."""
    return [n if isinstance(n, Size) else int(n) for n in values]


def is_fixed(shape: tuple[Any, ...]) -> bool:
    """Whether a shape is the same in every step."""
    return not any(isinstance(n, Size) for n in shape)


def is_found(number: Any) -> bool:
    """Whether a number is known only when part of a run is over."""
    return isinstance(number, Size) and not number.sizes.stages.keys().isdisjoint(atoms_of(number))


def atoms_of(number: Any) -> set[int]:
    """The roots that a size is made from, by number; sizes found equal go by that of the oldest."""
    if not isinstance(number, Size):
        return set()
    found: set[int] = set()
    for atom in {atom for atoms in number.sizes.canonical(number.terms) for atom in atoms}:
        kind, a, b = number.sizes.atoms[atom]
        found |= {atom} if kind == "root" else atoms_of(a) | atoms_of(b)
    return found


def rebuilt(number: Any, roots: Mapping[int, Any]) -> Any:
    """What a size comes to if its roots are `roots`: integers, or sizes of others."""
    if not isinstance(number, Size):
        return number
    total: Any = 0
    for atoms, times in number.sizes.canonical(number.terms).items():
        part: Any = times
        for atom in atoms:
            kind, a, b = number.sizes.atoms[atom]
            if kind == "root":
                factor = roots[atom]
            else:
                divided, by = rebuilt(a, roots), rebuilt(b, roots)
                factor = divided // by if kind == "//" else divided % by
            part = part * factor
        total = total + part
    return total


def always_equal(a: Any, b: Any) -> bool:
    """Whether two sizes are equal in every step that the plan is for; nothing is noted."""
    if not isinstance(a, Size) and not isinstance(b, Size):
        return bool(a == b)
    sizes = a.sizes if isinstance(a, Size) else b.sizes
    return not sizes.canonical(_sum(_terms(b), _terms(a), -1))


def formula(size: Any) -> str:
    """How a size is computed, for people."""
    if not isinstance(size, Size):
        return str(size)
    parts = []
    for atoms, times in size.terms.items():
        names = [size.sizes.names[atom] for atom in atoms]
        parts.append("*".join(names if times == 1 and names else [str(times), *names]))
    return " + ".join(parts)


def _is_real(other: Any) -> bool:
    """Whether a number is none of whole numbers, by its type."""
    return isinstance(other, (float, Real)) or (
        hasattr(other, "__float__") and not hasattr(other, "__index__")
    )


def _integer(other: Any) -> Any:
    if _is_real(other) and float(other).is_integer():
        return int(other)
    return other.__index__() if hasattr(other, "__index__") else NotImplemented


def _terms(size: Any) -> Terms:
    if isinstance(size, Size):
        return size.terms
    return {(): size} if size else {}


def _value(size: Any) -> int:
    return size.value if isinstance(size, Size) else size


def _sum(a: Terms, b: Terms, sign: int) -> Terms:
    terms = dict(a)
    for atoms, times in b.items():
        total = terms.get(atoms, 0) + sign * times
        if total:
            terms[atoms] = total
        else:
            terms.pop(atoms, None)
    return terms


def _identical(a: Any, b: Any) -> bool:
    return _terms(a) == _terms(b) if isinstance(a, (Size, int)) else a is b


def _divided(a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient and remainder, as Python's; where it comes out even by the formulas alone, these are simple."""
    if not isinstance(b, Size):
        b = _integer(b)
    sizes = (a if isinstance(a, Size) else b).sizes
    quotient, rest = divmod(_value(a), _value(b))
    exact = _ratio(sizes.canonical(_terms(a)), sizes.canonical(_terms(b)))
    if exact is not None:
        if isinstance(b, Size) and not b:
            raise ZeroDivisionError("a size of 0 divides nothing")
        return Size(sizes, {}, 0)._made(exact, quotient), 0
    return sizes.opaque("//", a, b, quotient), sizes.opaque("%", a, b, rest)


def _ratio(a: Terms, b: Terms) -> Terms | None:
    """a / b if b is a single product that divides each of a's; else None."""
    if len(b) != 1:
        return None
    ((divisor, times),) = b.items()
    out: Terms = {}
    for atoms, factor in a.items():
        left = list(atoms)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if factor % times:
            return None
        out[tuple(left)] = factor // times
    return out
