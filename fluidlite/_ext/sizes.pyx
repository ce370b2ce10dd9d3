"""Symbolic sizes: `SymInt`, an integer with its formula, and `ShapeEnv`, the symbols and guards of one plan.

`base/sizes.py` says what they are for. They are compiled because a plan calculates with them for every operand of every
operator.
"""
import math
from collections import namedtuple
from contextlib import contextmanager

INFINITE = math.inf
cdef object _MOST = 2**63 - 1


class WouldSpecialise(Exception):
    """The value of a symbolic size was needed where specialising is not allowed."""


class Symbol(namedtuple("Symbol", ("kind", "a", "b"))):
    """A size that is no polynomial of others: `a // b`, `a % b` (`kind` "//", "%") or an "input", at first `a`."""

    __slots__ = ()


class Guard(namedtuple("Guard", ("kind", "a", "b"))):
    """A comparison that a plan depends on: `kind` is "==", "!=", "<" or "<="."""

    __slots__ = ()

    def __str__(self):
        return f"{formula(self.a)} {self.kind} {formula(self.b)}"


# Polynomials over symbols, which are numbers of a `ShapeEnv`: product of symbols, sorted -> its coefficient.

cdef dict summed(dict a, dict b, int sign):
    cdef dict terms = dict(a)
    for symbols, times in b.items():
        total = terms.get(symbols, 0) + sign * times
        if total:
            terms[symbols] = total
        else:
            terms.pop(symbols, None)
    return terms


cdef dict negated(dict terms):
    return {symbols: -times for symbols, times in terms.items()}


cdef dict ratio(dict a, dict b):
    """a / b if b is a single product that divides each of a's; else None."""
    cdef dict out = {}
    if len(b) != 1:
        return None
    ((divisor, times),) = b.items()
    for symbols, factor in a.items():
        left = list(symbols)
        for symbol in divisor:
            if symbol not in left:
                return None
            left.remove(symbol)
        if factor % times:
            return None
        out[tuple(left)] = factor // times
    return out


cdef bint is_real(other):
    """Whether a number's type is that of reals."""
    if type(other) is int or isinstance(other, SymInt):
        return False
    return isinstance(other, (float, SymFloat)) or (
        hasattr(other, "__float__") and not hasattr(other, "__index__")
    )


cdef object as_integer(other):
    """A number as an integer or `SymInt`; NotImplemented if it is none."""
    if type(other) is int or isinstance(other, SymInt):
        return other
    if is_real(other) and float(other).is_integer():
        return int(other)
    return other.__index__() if hasattr(other, "__index__") else NotImplemented


cdef dict terms_of(size):
    if isinstance(size, SymInt):
        return (<SymInt> size).terms
    return {(): size} if size else {}


cdef object value_of(size):
    return (<SymInt> size).value if isinstance(size, SymInt) else size


cdef bint identical(a, b):
    return terms_of(a) == terms_of(b) if isinstance(a, (SymInt, int)) else a is b


cdef object polynomial(ShapeEnv env, dict terms, value):
    """The size with these terms: an integer if it is constant."""
    if not terms:
        return 0
    return terms[()] if len(terms) == 1 and () in terms else SymInt(env, terms, value)


cdef tuple divided(a, b):
    """Quotient and remainder as Python's: a polynomial and 0 if the formulas divide, else uninterpreted terms."""
    if not isinstance(b, SymInt):
        b = as_integer(b)
    cdef ShapeEnv env = (<SymInt> (a if isinstance(a, SymInt) else b)).env
    quotient, rest = divmod(value_of(a), value_of(b))
    exact = ratio(env.canonical(terms_of(a)), env.canonical(terms_of(b)))
    if exact is not None:
        if isinstance(b, SymInt) and not b:
            raise ZeroDivisionError("division by a size of 0")
        return polynomial(env, exact, quotient), 0
    return env.uninterpreted("//", a, b, quotient), env.uninterpreted("%", a, b, rest)


cdef class SymFloat:
    """A real number computed from symbolic sizes: `a kind b`.

    A use that needs its value specialises the plan to the sizes in its formula.
    """

    cdef readonly object kind, a, b
    cdef readonly double value

    def __init__(self, kind, a, b):
        self.kind, self.a, self.b = kind, a, b
        x, y = getattr(a, "value", a), getattr(b, "value", b)
        self.value = x / y if kind == "/" else x * y if kind == "*" else x + y

    def __mul__(self, other):
        return SymFloat("*", self, other)

    def __rmul__(self, other):
        return SymFloat("*", self, other)

    def __add__(self, other):
        return SymFloat("+", self, other)

    def __radd__(self, other):
        return SymFloat("+", self, other)

    def __truediv__(self, other):
        return SymFloat("/", self, other)

    def __rtruediv__(self, other):
        return SymFloat("/", other, self)

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __neg__(self):
        return SymFloat("*", self, -1.0)

    def __float__(self):
        for part in (self.a, self.b):
            float(part)  # specialises the plan if `part` is symbolic
        return self.value

    def __int__(self):
        return int(float(self))

    def __floor__(self):
        return math.floor(float(self))

    def __ceil__(self):
        return math.ceil(float(self))

    def __round__(self, digits=None):
        return round(float(self), digits)

    def __pow__(self, exponent, modulus):
        return float(self) ** exponent

    def __eq__(self, other):
        return float(self) == (float(other) if hasattr(other, "__float__") else other)

    def __lt__(self, other):
        return float(self) < float(other)

    def __le__(self, other):
        return float(self) <= float(other)

    def __gt__(self, other):
        return float(self) > float(other)

    def __ge__(self, other):
        return float(self) >= float(other)

    def __bool__(self):
        return float(self) != 0

    def __hash__(self):
        return hash(float(self))

    def __repr__(self):
        return repr(self.value)


cdef class SymInt:
    """A symbolic integer: a formula with a current `value`.

    It calculates and compares like an integer. A use that needs its value (an index, `int`, a hash) specialises the
    plan to it.
    """

    __array_ufunc__ = None  # NumPy's scalars defer to this class
    cdef readonly ShapeEnv env
    cdef readonly dict terms
    cdef readonly object value

    def __init__(self, ShapeEnv env, dict terms, value):
        self.env, self.terms, self.value = env, terms, value

    def __add__(self, other):
        if isinstance(other, SymFloat):
            return NotImplemented
        if is_real(other) and not float(other).is_integer():
            return SymFloat("+", self, float(other))
        if not isinstance(other, SymInt):
            other = as_integer(other)
            if other is NotImplemented:
                return other
        return polynomial(self.env, summed(self.terms, terms_of(other), 1), self.value + value_of(other))

    def __radd__(self, other):
        return self.__add__(other)

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __pos__(self):
        return self

    def __abs__(self):
        return self if self >= 0 else -self

    def __neg__(self):
        return polynomial(self.env, negated(self.terms), -self.value)

    def __mul__(self, other):
        cdef dict terms = {}
        if type(other) is int:
            if other == 1:
                return self
            if not other:
                return 0
            return polynomial(
                self.env, {symbols: times * other for symbols, times in self.terms.items()}, self.value * other
            )
        if isinstance(other, SymFloat):
            return NotImplemented
        if is_real(other) and not float(other).is_integer():
            return SymFloat("*", self, float(other))
        if not isinstance(other, SymInt):
            other = as_integer(other)
            if other is NotImplemented:
                return other
        for symbols, times in self.terms.items():
            for more, factor in terms_of(other).items():
                key = tuple(sorted((*symbols, *more))) if more else symbols
                terms[key] = terms.get(key, 0) + times * factor
        terms = {key: times for key, times in terms.items() if times}
        return polynomial(self.env, terms, self.value * value_of(other))

    def __rmul__(self, other):
        return self.__mul__(other)

    def __pow__(self, exponent, modulus):
        if is_real(exponent) or exponent < 0:
            return float(self) ** float(exponent)
        out = 1
        for _ in range(exponent):
            out = out * self
        return out

    def __rpow__(self, base, modulus):
        return base ** int(self)

    def __floordiv__(self, other):
        return float(self) // float(other) if is_real(other) else divided(self, other)[0]

    def __rfloordiv__(self, other):
        return float(other) // float(self) if is_real(other) else divided(as_integer(other), self)[0]

    def __mod__(self, other):
        return float(self) % float(other) if is_real(other) else divided(self, other)[1]

    def __rmod__(self, other):
        return float(other) % float(self) if is_real(other) else divided(as_integer(other), self)[1]

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __truediv__(self, other):
        return SymFloat("/", self, other)

    def __rtruediv__(self, other):
        return SymFloat("/", other, self)

    cdef bint is_nonnegative(self):
        """Whether no value is negative, by the signs of symbols and coefficients alone."""
        return self.env.all_nonnegative and min(self.terms.values()) > 0

    def __eq__(self, other):
        if not isinstance(other, SymInt):
            if is_real(other):
                return float(self) == other
            other = as_integer(other)
            if other is NotImplemented:
                return False
        return self.env.evaluate("==", self, other)

    def __lt__(self, other):
        if type(other) is int and other == 0 and self.is_nonnegative():
            return False  # the most frequent comparison
        return float(self) < other if is_real(other) else self.env.evaluate("<", self, other)

    def __le__(self, other):
        return float(self) <= other if is_real(other) else self.env.evaluate("<=", self, other)

    def __gt__(self, other):
        return float(self) > other if is_real(other) else self.env.evaluate("<", other, self)

    def __ge__(self, other):
        if type(other) is int and other == 0 and self.is_nonnegative():
            return True
        return float(self) >= other if is_real(other) else self.env.evaluate("<=", other, self)

    def __bool__(self):
        return not self.env.evaluate("==", self, 0)

    def __index__(self):
        return self.env.specialise(self)

    def __int__(self):
        return self.env.specialise(self)

    def __float__(self):
        return float(self.env.specialise(self))

    def __round__(self, digits=None):
        return self if digits is None or digits >= 0 else round(int(self), digits)

    def __trunc__(self):
        return self

    def __floor__(self):
        return self

    def __ceil__(self):
        return self

    def __hash__(self):
        return hash(self.env.specialise(self))

    def __repr__(self):
        return str(self._shown())

    def __format__(self, spec):
        return format(self._shown(), spec)

    cdef object _shown(self):
        return self.env.specialise(self) if self.env.user_visible else self.value

    @property
    def __class__(self):
        """The class that `isinstance` sees: int for users' code."""
        return int if self.env.user_visible else SymInt

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


cdef class ShapeEnv:
    """The symbols of one plan, their bounds and equalities, and the guards noted so far.

    `user_visible`: whether users' code gets symbolic sizes. Then they pretend to be of type int, and conversion to text
    specialises them, as the text may decide something. `stages`: data-dependent input symbol -> the stage of a run that
    resolves it.
    """

    cdef readonly bint user_visible, all_nonnegative
    cdef readonly list symbols, names
    cdef readonly dict guards, stages
    cdef list _low, _high
    cdef dict _same
    cdef bint _may_specialise

    def __init__(self, bint user_visible=False):
        self.user_visible = user_visible
        self.symbols, self.names = [], []
        self.guards, self.stages = {}, {}
        self._low, self._high = [], []
        self._same = {}  # symbol -> an older one that is equal by a guard
        self._may_specialise = True
        self.all_nonnegative = True  # whether no symbol can be negative

    def input_symbol(self, value, name, least=2, stage=0):
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

    cdef object _symbol(self, symbol, name, low):
        for number, known in enumerate(self.symbols if symbol.kind != "input" else ()):
            if known.kind == symbol.kind and identical(known.a, symbol.a) and identical(known.b, symbol.b):
                return number
        self.symbols.append(symbol)
        self.names.append(name)
        self._low.append(low)
        self._high.append(INFINITE)
        return len(self.symbols) - 1

    cdef SymInt uninterpreted(self, str kind, a, b, value):
        """A quotient or a remainder as an uninterpreted term, a symbol of its own."""
        cdef bint nonnegative = self.least(terms_of(a)) >= 0 and self.least(terms_of(b)) >= 0
        self.all_nonnegative = self.all_nonnegative and nonnegative
        name = f"({formula(a)} {kind} {formula(b)})"
        return SymInt(
            self, {(self._symbol(Symbol(kind, a, b), name, 0 if nonnegative else -_MOST),): 1}, value
        )

    cpdef dict canonical(self, dict terms):
        """`terms` with one symbol for all that are equal by guards."""
        cdef dict out = {}
        cdef bint differs = False
        if not self._same:
            return terms
        for symbols in terms:
            for symbol in symbols:
                if symbol in self._same:
                    differs = True
        if not differs:
            return terms
        for symbols, times in terms.items():
            key = tuple(sorted([self._same.get(symbol, symbol) for symbol in symbols]))
            out[key] = out.get(key, 0) + times
        return {key: times for key, times in out.items() if times}

    cdef object least(self, dict terms):
        """A lower bound of the polynomial."""
        total = 0.0
        for symbols, times in terms.items():
            part = times
            bounds = self._low if times > 0 else self._high
            for symbol in symbols:
                if self._low[symbol] < 0:
                    return -INFINITE
            if symbols:
                part = times * math.prod([bounds[symbol] for symbol in symbols])
            total = total + part
        return total

    cdef bint evaluate(self, str kind, a, b) except -1:
        """Evaluate `a kind b` ("==", "<" or "<=") for the current values; note a guard unless it is so for all sizes.

        Comparisons with the largest 64-bit integer need no guard: the engine refuses larger sizes.
        """
        if not isinstance(b, SymInt) and b >= _MOST:
            return kind != "=="
        cdef dict mine = terms_of(a), its = terms_of(b)
        if mine == its:  # most checks of operands compare a size with itself
            return kind != "<"
        cdef dict difference = self.canonical(summed(its, mine, -1))
        low, high = self.least(difference), -self.least(negated(difference))
        cdef bint result
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
    def without_specialising(self):
        """In this block, a use of a size that needs its value raises `WouldSpecialise`."""
        self._may_specialise = False
        try:
            yield
        finally:
            self._may_specialise = True

    cpdef object specialise(self, SymInt size):
        """Specialise the plan to the current value of `size`, which is returned."""
        if not self._may_specialise:
            raise WouldSpecialise(f"{formula(size)} is not the same in every step")
        self.evaluate("==", size, size.value)
        return size.value

    def is_constant(self, SymInt size):
        """Whether the guards noted so far admit one value of `size` only."""
        terms = self.canonical(size.terms)
        return self.least(terms) == -self.least(negated(terms))

    cdef object _guard(self, str kind, a, b):
        cdef dict difference = self.canonical(summed(terms_of(b), terms_of(a), -1))
        self.guards.setdefault((kind, frozenset(difference.items())), Guard(kind, a, b))
        symbols = [key for key in difference if key]
        if len(symbols) == 1 and len(symbols[0]) == 1 and abs(difference[symbols[0]]) == 1:
            self._bound(kind, symbols[0][0], difference[symbols[0]], difference.get((), 0))
        elif kind == "==" and len(difference) == 2 == len(symbols) and all([len(key) == 1 for key in symbols]):
            if sum(difference.values()) == 0 and 1 in difference.values():
                older, newer = sorted([key[0] for key in symbols])
                self._low[older] = max(self._low[older], self._low[newer])
                self._high[older] = min(self._high[older], self._high[newer])
                self._same[newer] = older
                for symbol, to in list(self._same.items()):
                    if to == newer:
                        self._same[symbol] = older

    cdef object _bound(self, str kind, symbol, sign, constant):
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


def formula(size):
    """A size's formula as text."""
    if not isinstance(size, SymInt):
        return str(size)
    parts = []
    for symbols, times in size.terms.items():
        names = [size.env.names[symbol] for symbol in symbols]
        parts.append("*".join(names if times == 1 and names else [str(times), *names]))
    return " + ".join(parts)


# Queries about numbers that may be symbolic, which note no guards; but for `product`.

cpdef object current(number):
    """The current value of a number."""
    if isinstance(number, SymInt):
        return (<SymInt> number).value
    return (<SymFloat> number).value if isinstance(number, SymFloat) else number


def current_shape(shape):
    """The current values of a shape's sizes."""
    return tuple([current(n) for n in shape])


def whole(values):
    """Convert all values to int but symbolic sizes."""
    return [n if isinstance(n, SymInt) else int(n) for n in values]


def is_fixed(shape):
    """Whether a shape has no symbolic sizes."""
    for n in shape:
        if isinstance(n, SymInt):
            return False
    return True


def is_data_dependent(number):
    """Whether a number is resolved only in the course of a run."""
    return isinstance(number, SymInt) and not number.env.stages.keys().isdisjoint(free_symbols(number))


def free_symbols(number):
    """The input symbols in a size's formula, by number; of symbols equal by guards the oldest."""
    cdef set result = set()
    if not isinstance(number, SymInt):
        return result
    cdef ShapeEnv env = (<SymInt> number).env
    for symbol in {symbol for symbols in env.canonical((<SymInt> number).terms) for symbol in symbols}:
        kind, a, b = env.symbols[symbol]
        result |= {symbol} if kind == "input" else free_symbols(a) | free_symbols(b)
    return result


def substituted(number, values):
    """A size with its input symbols replaced by `values`: integers, or sizes of another environment."""
    if not isinstance(number, SymInt):
        return number
    cdef ShapeEnv env = (<SymInt> number).env
    total = 0
    for symbols, times in env.canonical((<SymInt> number).terms).items():
        part = times
        for symbol in symbols:
            kind, a, b = env.symbols[symbol]
            if kind == "input":
                factor = values[symbol]
            else:
                one, by = substituted(a, values), substituted(b, values)
                factor = one // by if kind == "//" else one % by
            part = part * factor
        total = total + part
    return total


cpdef bint always_equal(a, b) except -1:
    """Whether two sizes are equal for all sizes that the guards noted so far admit."""
    if not isinstance(a, SymInt) and not isinstance(b, SymInt):
        return bool(a == b)
    cdef ShapeEnv env = (<SymInt> (a if isinstance(a, SymInt) else b)).env
    return not env.canonical(summed(terms_of(b), terms_of(a), -1))


def product(shape):
    """The number of elements; -1 if a dimension is unknown."""
    total = 1
    for n in shape:
        if n < 0:
            return -1
        total = total * n
    return total
