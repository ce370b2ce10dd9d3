"""`Registers`: compiles symbolic sizes to programs of the engine, with a register for each number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ext import engine
from ...base.sizes import ShapeEnv, SymFloat, SymInt


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
