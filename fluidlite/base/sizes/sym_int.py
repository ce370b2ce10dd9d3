"""`SymInt`: an integer, usually a size, that may differ between steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .polynomials import Terms, ratio, summed
from .sym_float import SymFloat

if TYPE_CHECKING:
    from .shape_env import ShapeEnv


class SymInt:
    """A symbolic integer: a formula with a current `value`; see the package's docstring.

    It calculates and compares like an integer. A use that needs its value (an index, `int`, a hash) specialises the
    plan to it.
    """

    __array_ufunc__ = None  # NumPy's scalars defer to this class
    __slots__ = ("env", "terms", "value")

    def __init__(self, env: ShapeEnv, terms: Terms, value: int) -> None:
        self.env = env
        self.terms = terms
        self.value = value

    def _made(self, terms: Terms, value: int) -> Any:
        if not terms:
            return 0
        return terms[()] if len(terms) == 1 and () in terms else SymInt(self.env, terms, value)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, SymFloat):
            return NotImplemented
        if is_real(other) and not float(other).is_integer():
            return SymFloat("+", self, float(other))
        if not isinstance(other, SymInt):
            other = as_integer(other)
            if other is NotImplemented:
                return other
        return self._made(summed(self.terms, terms_of(other), 1), self.value + value_of(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __pos__(self) -> SymInt:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __neg__(self) -> Any:
        return self._made({symbols: -times for symbols, times in self.terms.items()}, -self.value)

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            if other == 1:
                return self
            scaled = {symbols: times * other for symbols, times in self.terms.items()} if other else {}
            return self._made(scaled, self.value * other)
        if isinstance(other, SymFloat):
            return NotImplemented
        if is_real(other) and not float(other).is_integer():
            return SymFloat("*", self, float(other))
        if not isinstance(other, SymInt):
            other = as_integer(other)
            if other is NotImplemented:
                return other
        terms: Terms = {}
        for symbols, times in self.terms.items():
            for more, factor in terms_of(other).items():
                key = tuple(sorted((*symbols, *more))) if more else symbols
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
        return SymFloat("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return SymFloat("/", other, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SymInt):
            if is_real(other):
                return float(self) == other
            other = as_integer(other)
            if other is NotImplemented:
                return False
        return self.env.evaluate("==", self, other)  # type: ignore[arg-type]

    def __lt__(self, other: Any) -> bool:
        if type(other) is int and other == 0 and self.env.all_nonnegative and min(self.terms.values()) > 0:
            return False  # the most frequent comparison
        return float(self) < other if is_real(other) else self.env.evaluate("<", self, other)

    def __le__(self, other: Any) -> bool:
        return float(self) <= other if is_real(other) else self.env.evaluate("<=", self, other)

    def __gt__(self, other: Any) -> bool:
        return float(self) > other if is_real(other) else self.env.evaluate("<", other, self)

    def __ge__(self, other: Any) -> bool:
        if type(other) is int and other == 0 and self.env.all_nonnegative and min(self.terms.values()) > 0:
            return True
        return float(self) >= other if is_real(other) else self.env.evaluate("<=", other, self)

    def __bool__(self) -> bool:
        return not self.env.evaluate("==", self, 0)

    def __index__(self) -> int:
        return self.env.specialise(self)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.env.specialise(self))

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else round(int(self), digits)

    def __trunc__(self) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__

    def __hash__(self) -> int:
        return hash(self.env.specialise(self))

    def __repr__(self) -> str:
        return str(self._shown())

    def __format__(self, spec: str) -> str:
        return format(self._shown(), spec)

    def _shown(self) -> int:
        return self.env.specialise(self) if self.env.user_visible else self.value

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class that `isinstance` sees: int for users' code."""
        return int if self.env.user_visible else SymInt

    def __copy__(self) -> SymInt:
        return self

    def __deepcopy__(self, memo: Any) -> SymInt:
        return self


def formula(size: Any) -> str:
    """A size's formula as text."""
    if not isinstance(size, SymInt):
        return str(size)
    parts = []
    for symbols, times in size.terms.items():
        names = [size.env.names[symbol] for symbol in symbols]
        parts.append("*".join(names if times == 1 and names else [str(times), *names]))
    return " + ".join(parts)


def is_real(other: Any) -> bool:
    """Whether a number's type is that of reals."""
    return isinstance(other, (float, SymFloat)) or (
        hasattr(other, "__float__") and not hasattr(other, "__index__")
    )


def as_integer(other: Any) -> Any:
    if is_real(other) and float(other).is_integer():
        return int(other)
    return other.__index__() if hasattr(other, "__index__") else NotImplemented


def terms_of(size: Any) -> Terms:
    if isinstance(size, SymInt):
        return size.terms
    return {(): size} if size else {}


def value_of(size: Any) -> int:
    return size.value if isinstance(size, SymInt) else size


def identical(a: Any, b: Any) -> bool:
    return terms_of(a) == terms_of(b) if isinstance(a, (SymInt, int)) else a is b


def divided(a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient and remainder as Python's: a polynomial and 0 if the formulas divide, else uninterpreted terms."""
    if not isinstance(b, SymInt):
        b = as_integer(b)
    env = (a if isinstance(a, SymInt) else b).env
    quotient, rest = divmod(value_of(a), value_of(b))
    exact = ratio(env.canonical(terms_of(a)), env.canonical(terms_of(b)))
    if exact is not None:
        if isinstance(b, SymInt) and not b:
            raise ZeroDivisionError("division by a size of 0")
        return SymInt(env, {}, 0)._made(exact, quotient), 0
    return env.uninterpreted("//", a, b, quotient), env.uninterpreted("%", a, b, rest)
