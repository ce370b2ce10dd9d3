"""`OpenShapes`: the shapes of a trace's inputs where some dimensions may be others in a later call."""

from __future__ import annotations

import threading
from collections.abc import Set
from typing import Any

from ...base.sizes import Real, Size, Sizes
from ...executor.host.registers import Registers
from ...framework import Program

Shapes = tuple[tuple[int, ...], ...]
Axes = Set[tuple[int, int]]
"""(number of an input, axis)."""


class OpenShapes:
    """Shapes for a trace, with a `Size` for each of the dimensions `axes`.

    What the code that is traced decides on a size, or needs as a number, becomes a guard; `close`, which comes after
    the trace, takes the sizes out of the program. From then on `fit` says which shapes the trace is for.
    """

    def __init__(self, shapes: Shapes, axes: Axes) -> None:
        self._sizes = Sizes(told=True)
        self.shapes = [
            tuple(
                [
                    self._sizes.root(n, f"feed_{k}.{axis}") if (k, axis) in axes else n
                    for axis, n in enumerate(shape)
                ]
            )
            for k, shape in enumerate(shapes)
        ]
        self._lock = threading.RLock()
        self._asked = 0

    def close(self, program: Program, result: Any) -> Any:
        """Declare the dimensions of `program` that may change as -1, and have everything else that was made of sizes be
        numbers, also in `result`, which is returned like this.
        """
        result = self._number(result)
        for block in program.blocks:
            for op in block.ops:
                for name, value in op.attrs.items():
                    if _sized(value):
                        op._set_attr(name, self._number(value))
        for block in program.blocks:
            for var in block.vars.values():
                if any(isinstance(n, Size) for n in var._shape or ()):
                    var._shape = tuple([self._declared(n) for n in var._shape])
        registers = Registers(self._sizes)
        self._roots = [
            (k, axis, registers.integer(n))
            for k, shape in enumerate(self.shapes)
            for axis, n in enumerate(shape)
            if isinstance(n, Size)
        ]
        self.varies = any(
            isinstance(n, Size) and not self._sizes.stays(n) for shape in self.shapes for n in shape
        )
        self._fixed = [[None if isinstance(n, Size) else n for n in shape] for shape in self.shapes]
        registers.add_guards()
        self._found = registers.found
        return result

    def fit(self, shapes: Shapes) -> bool:
        """Whether the trace computes the same as the code for inputs of these shapes."""
        for own, shape in zip(self._fixed, shapes, strict=True):
            for known, n in zip(own, shape, strict=True):
                if known is not None and known != n:
                    return False
        with self._lock:
            while True:  # again if this thread has asked for other shapes meanwhile, in a finaliser
                self._asked = asked = self._asked + 1
                for k, axis, register in self._roots:
                    self._found.set(register, shapes[k][axis])
                fits = self._found.evaluate() and self._found.holds()
                if self._asked == asked:
                    return fits

    def _declared(self, n: int) -> int:
        if not isinstance(n, Size):
            return n
        return n.value if self._sizes.stays(n) else -1

    def _number(self, value: Any) -> Any:
        """`value` with numbers for the sizes in it, which have to be these in every call."""
        if isinstance(value, Size):
            return int(value)
        if isinstance(value, Real):
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
    return isinstance(value, (Size, Real))
