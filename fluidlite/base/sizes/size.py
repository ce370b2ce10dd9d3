"""`Size`: an integer that may be another one in each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .polynomials import Terms, ratio, summed
from .reals import Real

if TYPE_CHECKING:
    from .guards import Sizes


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
        if is_real(other) and not float(other).is_integer():
            return Real("+", self, float(other))
        if not isinstance(other, Size):
            other = as_integer(other)
            if other is NotImplemented:
                return other
        return self._made(summed(self.terms, terms_of(other), 1), self.value + value_of(other))

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
        if is_real(other) and not float(other).is_integer():
            return Real("*", self, float(other))
        if not isinstance(other, Size):
            other = as_integer(other)
            if other is NotImplemented:
                return other
        terms: Terms = {}
        for atoms, times in self.terms.items():
            for more, factor in terms_of(other).items():
                key = tuple(sorted((*atoms, *more))) if more else atoms
                terms[key] = terms.get(key, 0) + times * factor
        return self._made({key: times for key, times in terms.items() if times}, self.value * value_of(other))

    __rmul__ = __mul__

    def __pow__(self, exponent: Any) -> Any:
        if is_real(exponent) or exponent < 0:
            return float(self) ** float(exponent)
        out: Any = 1
        for _ in range(exponent):
            out = out * self
        return out

    def __rpow__(self, base: Any) -> Any:
        return base ** int(self)

    def __floordiv__(self, other: Any) -> Any:
        return float(self) // float(other) if is_real(other) else divided(self, other)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        return float(other) // float(self) if is_real(other) else divided(as_integer(other), self)[0]

    def __mod__(self, other: Any) -> Any:
        return float(self) % float(other) if is_real(other) else divided(self, other)[1]

    def __rmod__(self, other: Any) -> Any:
        return float(other) % float(self) if is_real(other) else divided(as_integer(other), self)[1]

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
            if is_real(other):
                return float(self) == other
            other = as_integer(other)
            if other is NotImplemented:
                return False
        return self.sizes.decide("==", self, other)  # type: ignore[arg-type]

    def __lt__(self, other: Any) -> bool:
        if type(other) is int and other == 0 and self.sizes.all_counts and min(self.terms.values()) > 0:
            return False  # what is asked most often
        return float(self) < other if is_real(other) else self.sizes.decide("<", self, other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= other if is_real(other) else self.sizes.decide("<=", self, other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > other if is_real(other) else self.sizes.decide("<", other, self)

    def __ge__(self, other: Any) -> bool:
        return float(self) >= other if is_real(other) else self.sizes.decide("<=", other, self)

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


def formula(size: Any) -> str:
    """How a size is computed, for people."""
    if not isinstance(size, Size):
        return str(size)
    parts = []
    for atoms, times in size.terms.items():
        names = [size.sizes.names[atom] for atom in atoms]
        parts.append("*".join(names if times == 1 and names else [str(times), *names]))
    return " + ".join(parts)


def is_real(other: Any) -> bool:
    """Whether a number is none of whole numbers, by its type."""
    return isinstance(other, (float, Real)) or (
        hasattr(other, "__float__") and not hasattr(other, "__index__")
    )


def as_integer(other: Any) -> Any:
    if is_real(other) and float(other).is_integer():
        return int(other)
    return other.__index__() if hasattr(other, "__index__") else NotImplemented


def terms_of(size: Any) -> Terms:
    if isinstance(size, Size):
        return size.terms
    return {(): size} if size else {}


def value_of(size: Any) -> int:
    return size.value if isinstance(size, Size) else size


def identical(a: Any, b: Any) -> bool:
    return terms_of(a) == terms_of(b) if isinstance(a, (Size, int)) else a is b


def divided(a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient and remainder, as Python's; where it comes out even by the formulas alone, these are simple."""
    if not isinstance(b, Size):
        b = as_integer(b)
    sizes = (a if isinstance(a, Size) else b).sizes
    quotient, rest = divmod(value_of(a), value_of(b))
    exact = ratio(sizes.canonical(terms_of(a)), sizes.canonical(terms_of(b)))
    if exact is not None:
        if isinstance(b, Size) and not b:
            raise ZeroDivisionError("a size of 0 divides nothing")
        return Size(sizes, {}, 0)._made(exact, quotient), 0
    return sizes.opaque("//", a, b, quotient), sizes.opaque("%", a, b, rest)
