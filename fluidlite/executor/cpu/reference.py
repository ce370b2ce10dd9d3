"""Actions of operators in plans without a native kernel: Python calls the reference kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...framework import Operator
from ...ops.registry import LEVEL, LodArray, OperatorError, check_result
from .. import failures
from ..ir.data_dependent import PendingShapes

Array = Callable[[str], np.ndarray]


def reference(
    op: Operator,
    array: Array,
    levels: Callable[[str], Iterable[str]],
    pending: PendingShapes | None,
) -> Sequence[Callable[[], None]]:
    """The function that calls the reference kernel of `op` on the memory of a plan and stores the results there.

    With data-dependent sizes there are two: `measure` runs the kernel and writes the sizes, `store_held` stores the
    results after the engine has resolved the sizes.

    Args:
        array: returns the elements of a variable in this step.
        levels: returns the names of a variable's offsets.
    """

    def called() -> Iterable[tuple[str, Any]]:
        """The results of the kernel by variable."""
        inputs = {slot: [array(name) for name in names] for slot, names in op.inputs.items() if names}
        lods = None
        if op.definition.sequences.takes_lod:
            lods = {
                slot: [tuple(map(array, levels(name))) for name in names] for slot, names in op.inputs.items()
            }
        try:
            results = op.definition.call(np, inputs, op.attrs, lods, on_numpy=True)
        except Exception as error:
            failures.raise_in_operator(op, error)
        return op._named(results)

    def store(name: str, value: Any) -> None:
        """Copy a result to the memory of its variable; raises OperatorError for another shape or element type."""
        if isinstance(value, LodArray):
            for level, offsets in zip(levels(name), value.lod, strict=False):
                if level.startswith(name + LEVEL):  # its own, not an input's
                    store(level, offsets)
            value = value.array
        target = array(name)
        try:
            check_result(op.type, value, target.shape, target.dtype)
        except OperatorError as error:
            raise failures.in_operator(op, error) from None
        np.copyto(target, value, casting="same_kind")

    def step() -> None:
        for name, value in called():
            store(name, value)

    held: list[tuple[str, Any]] = []

    def measure() -> None:
        assert pending is not None
        held[:] = called()
        array(pending.scratch)[:] = pending.measure(held)

    def store_held() -> None:
        for name, value in held:
            store(name, value)
        held.clear()

    return [step] if pending is None else [measure, store_held]
