"""Polynomials over symbols, which are numbers of a `ShapeEnv`."""

from __future__ import annotations

from typing import TypeAlias

Terms: TypeAlias = dict[tuple[int, ...], int]
"""Product of symbols, sorted -> its coefficient."""


def summed(a: Terms, b: Terms, sign: int) -> Terms:
    terms = dict(a)
    for symbols, times in b.items():
        total = terms.get(symbols, 0) + sign * times
        if total:
            terms[symbols] = total
        else:
            terms.pop(symbols, None)
    return terms


def ratio(a: Terms, b: Terms) -> Terms | None:
    """a / b if b is a single product that divides each of a's; else None."""
    if len(b) != 1:
        return None
    ((divisor, times),) = b.items()
    out: Terms = {}
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
