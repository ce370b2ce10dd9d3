"""Symbolic sizes: integers with the formula that they come from, for plans that serve many shapes.

A plan is made for one set of sizes and kept for all others that its guards admit. While it is made, each size that may
change is a `SymInt`: it calculates like its current value, and results are `SymInt`s, too. Where its value decides
something (a comparison, use as an index), a *guard* is noted: the plan is valid while its guards hold. A formula is a
polynomial over *symbols*: sizes of feeds (input symbols), and quotients and remainders that have no simpler form. So
`(n * 64) // 64` is `n`, and neither `n * 64 < 0` nor `n * 64 == 64 * n` needs a guard.

Sizes 0 and 1 have a meaning of their own (no elements; broadcasting), so they are specialised: plain integers with a
guard. All other input symbols are at least 2.

The classes are compiled (`_ext/sizes.pyx`). `Registers` makes formulas and guards a program for the engine. The
functions are about shapes, of integers or symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ext import engine
from .._ext.sizes import (
    INFINITE,
    ShapeEnv,
    SymFloat,
    SymInt,
    WouldSpecialise,
    always_equal,
    current,
    current_shape,
    formula,
    free_symbols,
    is_data_dependent,
    is_fixed,
    product,
    substituted,
    whole,
)

Terms = dict[tuple[int, ...], int]
"""A polynomial: product of symbols, sorted -> its coefficient."""

Shape = tuple[int, ...]

__all__ = [
    "INFINITE",
    "Registers",
    "Shape",
    "ShapeEnv",
    "SymFloat",
    "SymInt",
    "Terms",
    "WouldSpecialise",
    "aligned",
    "always_equal",
    "collapse",
    "current",
    "current_shape",
    "formula",
    "free_symbols",
    "is_data_dependent",
    "is_fixed",
    "lacking",
    "may_equal",
    "middle",
    "product",
    "reduced_axes",
    "rows_along",
    "same_shape",
    "substituted",
    "whole",
    "with_size_of",
]


class Registers:
    """The registers of one plan; `values` are the engine's, extended by each new formula."""

    def __init__(self, sizes: ShapeEnv) -> None:
        self.values = engine.Sizes()
        self._sizes = sizes
        self._symbols: dict[int, int] = {}
        self._constants: dict[int, int] = {}
        self._made: dict[Any, int] = {}
        self._reals: dict[int, tuple[Any, int]] = {}

    def integer(self, size: Any) -> int:
        """The register that holds an integer or a `SymInt`."""
        if not isinstance(size, SymInt):
            return self._constant(int(size))
        key = frozenset(size.terms.items())
        register = self._made.get(key)
        if register is None:
            total: int | None = None
            for symbols, times in size.terms.items():
                part: int | None = None
                for symbol in symbols:
                    part = self._step(engine.Sizes.MUL, part, self._symbol(symbol))
                if times != 1 or part is None:
                    part = self._step(engine.Sizes.MUL, part, self._constant(times))
                total = self._step(engine.Sizes.ADD, total, part)
            assert total is not None
            register = self._made[key] = total
        return register

    def real(self, number: Any) -> int:
        """The real register that holds a float, an integer, a `SymInt` or a `SymFloat`."""
        if isinstance(number, SymInt):
            return self.values.add_real(engine.Sizes.REAL_OF, self.integer(number))
        if not isinstance(number, SymFloat):
            return self.values.add_real_const(float(number))
        existing = self._reals.get(id(number))
        if existing is not None:
            return existing[1]
        kinds = {"+": engine.Sizes.REAL_ADD, "*": engine.Sizes.REAL_MUL, "/": engine.Sizes.REAL_DIV}
        register = self.values.add_real(kinds[number.kind], self.real(number.a), self.real(number.b))
        self._reals[id(number)] = number, register
        return register

    def shape(self, shape: Sequence[Any]) -> tuple[int, ...]:
        """A shape for the engine: `-1 - register` for a symbolic size."""
        return tuple([-1 - self.integer(n) if isinstance(n, SymInt) else n for n in shape])

    def add_guards(self) -> None:
        """Emit the guards collected so far; called once, after the last size has been compared."""
        kinds = {"==": engine.Sizes.EQ, "!=": engine.Sizes.NE, "<": engine.Sizes.LT, "<=": engine.Sizes.LE}
        for guard in list(self._sizes.guards.values()):
            self.values.guard(kinds[guard.kind], self.integer(guard.a), self.integer(guard.b))

    def _step(self, operation: int, a: int | None, b: int) -> int:
        return b if a is None else self.values.add(operation, a, b)

    def _constant(self, value: int) -> int:
        register = self._constants.get(value)
        if register is None:
            register = self._constants[value] = self.values.add(engine.Sizes.CONST, value)
        return register

    def _symbol(self, number: int) -> int:
        register = self._symbols.get(number)
        if register is None:
            symbol = self._sizes.symbols[number]
            if symbol.kind == "input":
                register = self.values.add(engine.Sizes.ROOT, symbol.a, self._sizes.stages.get(number, 0))
            else:
                operation = engine.Sizes.FLOORDIV if symbol.kind == "//" else engine.Sizes.MOD
                register = self.values.add(operation, self.integer(symbol.a), self.integer(symbol.b))
            self._symbols[number] = register
        return register


def same_shape(x: Shape, y: Shape) -> bool:
    """Whether two shapes are equal; sizes are compared only where that is all that can make a difference."""
    return len(x) == len(y) and x == y


def may_equal(x: Sequence[int], y: Sequence[int]) -> bool:
    """False if two shapes differ in their number of dimensions, or in a size that both know."""
    return len(x) == len(y) and not any(m != n and min(m, n) >= 0 for m, n in zip(x, y, strict=True))


def with_size_of(shape: Sequence[int], other: Shape, dimension: int, at: int) -> list[int]:
    """`shape` with dimension `at` as long as `dimension` of `other`, for `..._batch_size_like` operators."""
    size = [int(n) for n in shape]
    size[at] = other[dimension]
    return size


def aligned(x: Shape, y: Shape, axis: int) -> tuple[Shape, Shape]:
    """Both shapes with as many dimensions: the shorter one is aligned at `axis` of the longer (-1: at its end).

    Ones at the end of the shorter shape that would reach beyond the longer are dropped, as Fluid does.
    """
    if len(x) < len(y):
        long, short = aligned(y, x, axis)
        return short, long
    at = len(x) - len(y) if axis == -1 else axis
    room = len(x) - at
    while len(y) > room and y[-1] == 1:
        y = y[:-1]
    return tuple(x), (1,) * at + tuple(y) + (1,) * (room - len(y))


def middle(x: Shape, y: Shape, axis: int) -> tuple[int, int, int] | None:
    """X seen as (pre, n, post) with Y standing at n, or None if Y does not fill dimensions side by side."""
    if len(y) > len(x) or product(x) == 0:
        return None
    left, right = aligned(x, y, axis)
    if len(left) != len(right):
        return None
    full = [k for k, n in enumerate(right) if n != 1]
    if not full:
        return 1, 1, product(x)
    first, last = full[0], full[-1] + 1
    if not same_shape(left[first:last], right[first:last]):
        return None
    return product(left[:first]), product(left[first:last]), product(left[last:])


def lacking(x: Shape, y: Shape, axis: int) -> tuple[list[int], list[int]] | None:
    """X seen as few dimensions, and for each whether Y has it as well; None if Y has what X lacks.

    Neighbours that Y has, or lacks, are one.
    """
    if len(y) > len(x) or product(x) == 0:
        return None
    left, right = aligned(x, y, axis)
    if len(left) != len(right):
        return None
    sizes: list[int] = []
    stands: list[int] = []
    for m, n in zip(left, right, strict=True):
        there = int(n != 1)
        if there and m != n:
            return None
        if stands and stands[-1] == there:
            sizes[-1] *= m
        elif there or m != 1:
            sizes.append(m)
            stands.append(there)
    return sizes, stands


def rows_along(shape: Shape, axis: int) -> tuple[int, int] | None:
    """(rows, n) when `axis` is the last axis of `shape` that is longer than 1, which row kernels need; else None."""
    axis = axis % len(shape)
    if product(shape[axis + 1 :]) != 1:
        return None
    return product(shape[:axis]), shape[axis]


def reduced_axes(rank: int, dim: list[int] | tuple[int, ...] | int, reduce_all: bool) -> tuple[int, ...]:
    """The axes that a reduction over `dim` removes, sorted and not negative."""
    if reduce_all:
        return tuple(range(rank))
    listed = [dim] if isinstance(dim, int) else dim
    return tuple(sorted({axis % rank for axis in listed}))


def collapse(shape: Shape, axes: tuple[int, ...]) -> tuple[int, int, int] | None:
    """`shape` collapsed to (before, within, after) the `axes`, or None if these are not adjacent."""
    if not axes or axes[-1] - axes[0] + 1 != len(axes):
        return None
    return product(shape[: axes[0]]), product(shape[axes[0] : axes[-1] + 1]), product(shape[axes[-1] + 1 :])
