"""`SymFloat`: a real number computed from symbolic sizes."""

from __future__ import annotations

import math
from typing import Any


class SymFloat:
    """A real number computed from symbolic sizes: `a kind b`.

    A use that needs its value specialises the plan to the sizes in its formula.
    """

    __slots__ = ("a", "b", "kind", "value")

    def __init__(self, kind: str, a: Any, b: Any) -> None:
        self.kind, self.a, self.b = kind, a, b
        x, y = getattr(a, "value", a), getattr(b, "value", b)
        self.value: float = x / y if kind == "/" else x * y if kind == "*" else x + y

    def __mul__(self, other: Any) -> SymFloat:
        return SymFloat("*", self, other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> SymFloat:
        return SymFloat("+", self, other)

    __radd__ = __add__

    def __truediv__(self, other: Any) -> SymFloat:
        return SymFloat("/", self, other)

    def __rtruediv__(self, other: Any) -> SymFloat:
        return SymFloat("/", other, self)

    def __sub__(self, other: Any) -> SymFloat:
        return self + -other

    def __rsub__(self, other: Any) -> SymFloat:
        return -self + other

    def __neg__(self) -> SymFloat:
        return SymFloat("*", self, -1.0)

    def __float__(self) -> float:
        for part in (self.a, self.b):
            float(part)  # specialises the plan if `part` is symbolic
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
        return float(self) == (float(other) if hasattr(other, "__float__") else other)

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
