"""`LoopPlan`: a loop with arrays that others know as well, whose turns find how large elements are.

While it turns, what is read and written is memory of the engine's; see `plan/elements.py` (`FOUND`, `WRITE`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._ext.engine import OUT_OF_RANGE, UNFIT, KernelFailure
from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.sizes import is_data_dependent
from ...base.tensor_array import TensorArray
from ...framework import Operator, Program
from ...ops.registry import OpView, Shape
from ..host.plan import HARMLESS, Plan
from ..plan.elements import ELEMENTS, FOUND, TURN, WRITE
from ..plan.instructions import Instruction
from ..plan.refusals import CannotPlan, Missed
from ..tensors.scope import Scope
from .environment import Environment
from .pieces import Piece

_TOUCHING = (FOUND, WRITE)


class LoopPlan(Plan):
    """One `while`, of which a turn can be taken again by another plan: it writes to arrays and to what is fetched only.

    `how`: what else `Plan` takes; `like` and `finds` have to be there.
    """

    can_undo_turns = True

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feed: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        op: Operator,
        **how: Any,
    ) -> None:
        self._reads: set[str] = set()  # the arrays that turns read
        super().__init__(program, scope, feed, fetches, [op], op.block, **how)

    def _lower(self, steps: list[tuple[Operator, OpView]], fetches: Sequence[str]) -> list[Instruction]:
        kinds: dict[str, tuple[Shape, VarType]] = {}  # shape and type of the rows of an array's elements
        for op, view in steps:
            if op.definition in _TOUCHING:
                slot, array = "Out" if op.definition is FOUND else "X", op.attrs["array"]
                shape, dtype = view.shape(slot), view.dtype(slot)
                if not shape or any(map(is_data_dependent, shape[1:])) or 0 in shape[1:]:
                    raise CannotPlan("elements of an array have several shapes, or no elements")
                if kinds.setdefault(array, (shape[1:], dtype)) != (shape[1:], dtype):
                    raise CannotPlan("elements of an array get another shape or type")
                if op.definition is FOUND:
                    self._reads.add(array)
            elif op.definition.effects.random or (
                op.definition.effects.host and op.definition not in (TURN, *HARMLESS)
            ):
                raise CannotPlan(f"it goes through arrays, and what operator {op.type} does cannot be undone")
            elif any(map(self.meta.is_persistable, op.output_arg_names)):
                raise CannotPlan("it goes through arrays, and changes persistable variables")
        self._layouts = {
            name: (to_numpy(dtype), self._registers.shape(shape)) for name, (shape, dtype) in kinds.items()
        }
        return super()._lower(steps, fetches)

    def _before_finding(self, instructions: Sequence[Instruction]) -> list[str]:
        return []  # `_lower` has seen to it

    def begin(self, environment: Environment) -> None:
        """Have the loop find the elements of the arrays that it reads; comes between `accepts` and `run`.

        Arrays of which nobody wants what has been read are none of the loop's. Raises Missed for elements of another
        type, or with rows of another shape.
        """
        for name in self._layouts:
            array = environment.find(name) if name in self._reads else None
            elements, (dtype, tail) = self._elements[name + ELEMENTS], self._layout(name)
            if not isinstance(array, TensorArray):
                elements.begin()
                continue
            there = array.arrays
            if any(each is not None and (each.dtype != dtype or each.shape[1:] != tail) for each in there):
                raise Missed("elements of an array have another shape or type")
            elements.begin(
                [None if each is None else np.ascontiguousarray(each) for each in there], array.lods
            )

    def forget_turn(self) -> None:
        """Have the turn that is under way come to nothing."""
        for elements in self._elements.values():
            elements.forget_turn()

    def leave(self, environment: Environment) -> None:
        """Put what has been written into the arrays."""
        for name in self._layouts:
            elements = self._elements[name + ELEMENTS]
            if not elements.count:
                continue
            first = elements.first
            whole, bounds, lods = elements.take(*self._layout(name))
            array, made = environment.find(name), TensorArray.cut(whole, bounds, lods)
            if not isinstance(array, TensorArray):
                array = TensorArray()
            if not len(array) and not first:
                array = made
            else:
                array.put(first, made.arrays, lods)
            environment.put(name, array)

    def _layout(self, name: str) -> tuple[np.dtype, tuple[int, ...]]:
        """Type and shape of a row of an array's elements, of the sizes at hand."""
        dtype, shape = self._layouts[name]
        return dtype, tuple([n if n >= 0 else self.engine.sizes.get(-1 - n) for n in shape])

    def _failed(self, failure: KernelFailure) -> Exception:
        op = self.ops[failure.index]
        turns = max((elements.turns - 1 for elements in self._elements.values()), default=0)
        if failure.code == UNFIT:
            return Missed("its turns find other sizes", turns, self._found_by(failure.index, failure.err))
        if failure.code == OUT_OF_RANGE and op.definition in _TOUCHING:
            return Missed("it reads or writes elements of an array out of order", turns)
        return super()._failed(failure)

    def describe(self) -> str:
        return f"loop of {super().describe()}"


class LoopPiece(Piece):
    """All turns of a loop."""

    def _found(self, plan: Plan, arrays: list[np.ndarray], environment: Environment) -> list[Any] | None:
        """What all turns make; Missed, with what the turns before have made, if one has to be taken in another way."""
        assert isinstance(plan, LoopPlan)
        if not plan.accepts(arrays):
            return None
        plan.begin(environment)
        try:
            plan.run()
        except Missed:
            plan.forget_turn()
            plan.leave(environment)
            self._put(plan.fetch(), environment)
            raise
        plan.leave(environment)
        return plan.fetch()


def like(array: Any, index: Any) -> tuple[Shape, VarType, list[int]]:
    """Shape, type and lengths of the offsets of the element of an array that is read next."""
    if not isinstance(array, TensorArray) or not len(array):
        raise CannotPlan("an array that is read has no element yet", passing=True)
    known = isinstance(index, np.ndarray) and index.size == 1 and 0 <= index.item() < len(array)
    at = int(index.item()) if known else len(array) - 1
    element = array.arrays[at]
    if element is None:
        raise CannotPlan("an array that is read has no element yet", passing=True)
    if not element.ndim:
        raise CannotPlan("elements of an array have no dimensions")
    return element.shape, to_vartype(element.dtype), [len(level) for level in array.lods[at]]
