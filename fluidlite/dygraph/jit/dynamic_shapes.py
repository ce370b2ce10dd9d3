"""`DynamicShapes`: the input shapes of a trace with dynamic dimensions."""

from __future__ import annotations

import threading
from collections.abc import Set
from typing import Any

from ...base.sizes import ShapeEnv, SymFloat, SymInt
from ...executor.cpu.registers import Registers
from ...framework import Program

Shapes = tuple[tuple[int, ...], ...]
Axes = Set[tuple[int, int]]
"""(number of an input, axis)."""


class DynamicShapes:
    """Shapes for a trace, with a `SymInt` for each of the dimensions `axes`.

    Where the traced code compares a size, or needs its number, a guard is added. `close`, called after the trace,
    replaces the symbolic sizes in the program. From then on `fit` evaluates the guards for other shapes.
    """

    def __init__(self, shapes: Shapes, axes: Axes) -> None:
        self._sizes = ShapeEnv(user_visible=True)
        self.shapes = [
            tuple(
                [
                    self._sizes.input_symbol(n, f"feed_{k}.{axis}") if (k, axis) in axes else n
                    for axis, n in enumerate(shape)
                ]
            )
            for k, shape in enumerate(shapes)
        ]
        self._lock = threading.RLock()
        self._asked = 0

    def close(self, program: Program, result: Any) -> Any:
        """Declare the dynamic dimensions of `program` as -1 and replace all other sizes in it by numbers.

        Returns `result` with its sizes replaced, too.
        """
        result = self._number(result)
        for block in program.blocks:
            for op in block.ops:
                for name, value in op.attrs.items():
                    if _sized(value):
                        op._set_attr(name, self._number(value))
        for block in program.blocks:
            for var in block.vars.values():
                if any(isinstance(n, SymInt) for n in var._shape or ()):
                    var._shape = tuple([self._declared(n) for n in var._shape])
        registers = Registers(self._sizes)
        self._roots = [
            (k, axis, registers.integer(n))
            for k, shape in enumerate(self.shapes)
            for axis, n in enumerate(shape)
            if isinstance(n, SymInt)
        ]
        self.varies = any(
            isinstance(n, SymInt) and not self._sizes.is_constant(n) for shape in self.shapes for n in shape
        )
        self._fixed = [[None if isinstance(n, SymInt) else n for n in shape] for shape in self.shapes]
        registers.add_guards()
        self._found = registers.values
        return result

    def fit(self, shapes: Shapes) -> bool:
        """True if the trace is valid for inputs of these shapes."""
        for own, shape in zip(self._fixed, shapes, strict=True):
            for known, n in zip(own, shape, strict=True):
                if known is not None and known != n:
                    return False
        with self._lock:
            while True:  # a finaliser in this thread may have evaluated other shapes meanwhile
                self._asked = asked = self._asked + 1
                for k, axis, register in self._roots:
                    self._found.set(register, shapes[k][axis])
                fits = self._found.evaluate() and self._found.holds()
                if self._asked == asked:
                    return fits

    def _declared(self, n: int) -> int:
        if not isinstance(n, SymInt):
            return n
        return n.value if self._sizes.is_constant(n) else -1

    def _number(self, value: Any) -> Any:
        """`value` with numbers in place of its sizes, which become guards."""
        if isinstance(value, SymInt):
            return int(value)
        if isinstance(value, SymFloat):
            return float(value)
        if not _sized(value):
            return value
        if isinstance(value, dict):
            return {name: self._number(item) for name, item in value.items()}
        items = [self._number(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _sized(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_sized(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(_sized(item) for item in value)
    return isinstance(value, (SymInt, SymFloat))
