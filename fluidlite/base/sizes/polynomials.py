"""Polynomials over atoms, which stand for numbers that nobody knows yet."""

from __future__ import annotations

from typing import TypeAlias

Terms: TypeAlias = dict[tuple[int, ...], int]
"""The atoms that are multiplied, sorted -> how often."""


def summed(a: Terms, b: Terms, sign: int) -> Terms:
    terms = dict(a)
    for atoms, times in b.items():
        total = terms.get(atoms, 0) + sign * times
        if total:
            terms[atoms] = total
        else:
            terms.pop(atoms, None)
    return terms


def ratio(a: Terms, b: Terms) -> Terms | None:
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
