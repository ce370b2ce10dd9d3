"""Formulas of sizes as programs for the engine: one register for each number that is computed from sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ext import engine
from ...base.sizes import Real, Size, Sizes


class Registers:
    """The registers of one plan; `found` are the engine's, filled from formulas as these are asked for."""

    def __init__(self, sizes: Sizes) -> None:
        self.found = engine.Sizes()
        self._sizes = sizes
        self._atoms: dict[int, int] = {}
        self._constants: dict[int, int] = {}
        self._made: dict[Any, int] = {}
        self._reals: dict[int, tuple[Any, int]] = {}

    def integer(self, size: Any) -> int:
        """The register that holds an integer or a `Size`."""
        if not isinstance(size, Size):
            return self._constant(int(size))
        key = frozenset(size.terms.items())
        register = self._made.get(key)
        if register is None:
            total: int | None = None
            for atoms, times in size.terms.items():
                part: int | None = None
                for atom in atoms:
                    part = self._step(engine.Sizes.MUL, part, self._atom(atom))
                if times != 1 or part is None:
                    part = self._step(engine.Sizes.MUL, part, self._constant(times))
                total = self._step(engine.Sizes.ADD, total, part)
            assert total is not None
            register = self._made[key] = total
        return register

    def real(self, number: Any) -> int:
        """The real register that holds a float, an integer, a `Size` or a `Real`."""
        if isinstance(number, Size):
            return self.found.add_real(engine.Sizes.REAL_OF, self.integer(number))
        if not isinstance(number, Real):
            return self.found.add_real_const(float(number))
        known = self._reals.get(id(number))
        if known is not None:
            return known[1]
        kinds = {"+": engine.Sizes.REAL_ADD, "*": engine.Sizes.REAL_MUL, "/": engine.Sizes.REAL_DIV}
        register = self.found.add_real(kinds[number.kind], self.real(number.a), self.real(number.b))
        self._reals[id(number)] = number, register
        return register

    def shape(self, shape: Sequence[Any]) -> tuple[int, ...]:
        """A shape as the engine takes it: `-1 - register` for what varies."""
        return tuple([-1 - self.integer(n) if isinstance(n, Size) else n for n in shape])

    def add_guards(self) -> None:
        """Hand the guards over that have been noted so far; called once, when nothing will be asked any more."""
        kinds = {"==": engine.Sizes.EQ, "!=": engine.Sizes.NE, "<": engine.Sizes.LT, "<=": engine.Sizes.LE}
        for guard in list(self._sizes.guards.values()):
            self.found.guard(kinds[guard.kind], self.integer(guard.a), self.integer(guard.b))

    def _step(self, operation: int, a: int | None, b: int) -> int:
        return b if a is None else self.found.add(operation, a, b)

    def _constant(self, value: int) -> int:
        register = self._constants.get(value)
        if register is None:
            register = self._constants[value] = self.found.add(engine.Sizes.CONST, value)
        return register

    def _atom(self, number: int) -> int:
        register = self._atoms.get(number)
        if register is None:
            atom = self._sizes.atoms[number]
            if atom.kind == "root":
                register = self.found.add(engine.Sizes.ROOT, atom.a, self._sizes.stages.get(number, 0))
            else:
                operation = engine.Sizes.FLOORDIV if atom.kind == "//" else engine.Sizes.MOD
                register = self.found.add(operation, self.integer(atom.a), self.integer(atom.b))
            self._atoms[number] = register
        return register
