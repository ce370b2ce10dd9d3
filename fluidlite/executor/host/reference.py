"""`Reference`: an operator of a plan that Python computes, by its reference kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...framework import Operator
from ...ops.registry import LEVEL, LodArray, OperatorError, check_result
from .. import failures
from ..plan.found import Sought


class Reference:
    """Calls the reference kernel of `op` on the memory of a plan, and puts the results there.

    `array`: the elements of a variable in this step; `levels`: the names of its offsets.
    """

    def __init__(
        self,
        op: Operator,
        array: Callable[[str], np.ndarray],
        levels: Callable[[str], Iterable[str]],
    ) -> None:
        self._op = op
        self._array = array
        self._levels = levels

    def steps(self, sought: Sought | None) -> Sequence[Callable[[], None]]:
        """The instructions: one, or if sizes are sought two, between which the engine takes them."""
        held: list[tuple[str, Any]] = []

        def seek() -> None:
            assert sought is not None
            held[:] = self._called()
            self._array(sought.scratch)[:] = sought.measured(held)

        def keep() -> None:
            for name, value in held:
                self._store(name, value)
            held.clear()

        def step() -> None:
            for name, value in self._called():
                self._store(name, value)

        return [step] if sought is None else [seek, keep]

    def _called(self) -> Iterable[tuple[str, Any]]:
        """What the kernel makes, by the names of the variables."""
        op = self._op
        inputs = {slot: [self._array(name) for name in names] for slot, names in op.inputs.items() if names}
        lods = None
        if op.definition.lod:
            lods = {
                slot: [tuple(map(self._array, self._levels(name))) for name in names]
                for slot, names in op.inputs.items()
            }
        try:
            results = op.definition.call(np, inputs, op.attrs, lods, direct=True)
        except Exception as error:
            failures.raise_in_operator(op, error)
        return op._named(results)

    def _store(self, name: str, value: Any) -> None:
        """Copy a result to where the variable is; it must be of that variable's shape and type."""
        if isinstance(value, LodArray):
            for level, offsets in zip(self._levels(name), value.lod, strict=False):
                if level.startswith(name + LEVEL):  # its own, not an input's
                    self._store(level, offsets)
            value = value.array
        array = self._array(name)
        try:
            check_result(self._op.type, value, array.shape, array.dtype)
        except OperatorError as error:
            raise failures.in_operator(self._op, error) from None
        np.copyto(array, value, casting="same_kind")
