"""`LoopPlan`: a loop whose turns are one plan each, run by the engine without Python between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._ext.engine import OUT_OF_RANGE, UNFIT, KernelFailure
from ...base.dtypes import VarType, to_numpy
from ...base.sizes import is_fixed, is_found
from ...framework import Block, Operator, Program
from ...ops.registry import Call, OpView, Shape
from ..host.memory import made_in_place
from ..host.packing import Packing
from ..host.plan import Plan
from ..plan.elements import ELEMENTS, FOUND, TURN, WRITE
from ..plan.found import Missed
from ..plan.instructions import Instruction
from ..plan.marks import MARKS, MERGE
from ..plan.shapes import CannotPlan, in_place_of
from ..tensors.scope import Scope
from .array_elements import begin, leave
from .environment import Environment
from .pieces import Piece


class LoopPlan(Plan):
    """Runs the operators of a loop's block, then again as long as a condition holds; at least once.

    What the block reads of the variables around it before it writes them are the feeds. Those of them that it also
    writes (`carried`) are given as arrays of the plan's own: at the end of a turn each holds what the turn has made of
    its variable. Results are in memory of their own as well, so that copying one into its feed destroys no other.

    Args:
        results: the variables around the block that it writes; what they are in the end is fetched.
        condition: the one of them, or a persistable variable, that decides whether there is another turn.
        how: what else `Analysis` takes: `finds` and `like` if turns go through arrays, and may find sizes.

    Raises CannotPlan also if a variable has another shape, type or other sequences at the end of a turn than at its
    beginning.
    """

    results_apart = True

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feed: Mapping[str, np.ndarray],
        results: Sequence[str],
        condition: str,
        ops: Sequence[Operator],
        block: Block,
        **how: Any,
    ) -> None:
        self.carried = [name for name in results if name in feed]
        self.wanted = list(results)
        self._results: dict[str, str] = {}  # variable -> its value at the end of a turn
        self._condition = condition
        self._like = ops[-1]
        self.finds = "finds" in how
        self._reads: set[str] = set()  # the arrays that turns read
        self._kinds: dict[str, tuple[Shape, VarType]] = {}  # shape and type of an array's elements
        self._first: list[Instruction] = []  # what comes before the turns
        super().__init__(program, scope, feed, results, ops, block, **how)

    def _lower(self, steps: list[tuple[Operator, OpView]], fetches: Sequence[str]) -> list[Instruction]:
        self._results = dict(zip(self.wanted, fetches, strict=False))
        self._check()
        self._check_elements(steps)
        instructions = super()._lower(steps, fetches)
        for name in self.carried:
            result = self._results[name]
            op = in_place_of(self._like, MERGE, {"X": [result]}, {"Out": [name]}, {})
            call = Call("copy", [result, name], [self.meta.bytes(name)])
            instructions.append(self._lowering.native(op, call))
        if self.finds:  # a turn may have to be taken again
            return [*self._first, *instructions]
        return [
            *self._first,
            *made_in_place(
                instructions,
                self._lowering.aliases,
                lambda name: name in self.carried or self._temporary(name),
            ),
        ]

    def _packed(self, instructions: list[Instruction]) -> list[Instruction]:
        written = {self._root(name) for each in instructions for name in each.writes} | {*self.carried}
        found = Packing(self.meta, self._root, lambda name: name not in written)
        made = [found.of(each) for each in instructions]
        self._first = [found.pack(name, made[0]) for name in found.made]
        return made

    def _allocate(self, instructions: list[Instruction], fetches: Sequence[str]) -> None:
        needed = [name for each in self._first for name in each.writes]  # in all turns
        super()._allocate(instructions, [*fetches, *needed])

    def _check(self) -> None:
        """Raise CannotPlan unless a turn leaves things in the way that the next one wants to find them."""
        meta = self.meta
        for name in self._unset:
            if name in self.wanted and name not in self.carried:
                raise CannotPlan(f"variable {name!r} has no value where a branch is not taken")
        for name, result in self._results.items():
            if name not in self.carried and any(map(is_found, meta.shapes[result])):
                raise CannotPlan(f"the size of variable {name!r} is found by each turn")
            if result in meta.sparse or result in meta.part_of or meta.is_persistable(name):
                raise CannotPlan(f"variable {name!r} is no array, or lives in the scope")
        for name in self.carried:
            result = self._results[name]
            if meta.dtypes[name] != meta.dtypes[result] or meta.shapes[name] != meta.shapes[result]:
                raise CannotPlan(f"variable {name!r} has another shape or type after a turn")
            if meta.lod(name) != meta.lod(result):
                raise CannotPlan(f"variable {name!r} has other sequences after a turn")
        result = self._results.get(self._condition, self._condition)
        if not meta.has(result):
            raise CannotPlan(f"no operator of the block makes the condition {self._condition!r}")
        shape = meta.shapes[result]
        if meta.dtypes[result] != VarType.BOOL or not is_fixed(shape) or math.prod(shape) != 1:
            raise CannotPlan(f"the condition {self._condition!r} is not one bool")

    def _check_elements(self, steps: Sequence[tuple[Operator, OpView]]) -> None:
        """Raise CannotPlan unless elements of an array are alike, and all can be undone that is done with them."""
        for op, view in steps:
            if op.definition in _TOUCHING:
                slot, array = "Out" if op.definition is FOUND else "X", op.attrs["array"]
                shape, dtype = view.shape(slot), view.dtype(slot)
                if (
                    not shape
                    or any(map(is_found, shape[1:]))
                    or 0 in shape[1:]
                    or array in self.meta.block.vars
                ):
                    raise CannotPlan(
                        "elements of an array have several shapes, or no elements, or are a turn's own"
                    )
                if self._kinds.setdefault(array, (shape[1:], dtype)) != (shape[1:], dtype):
                    raise CannotPlan("elements of an array get another shape or type")
                if op.definition is FOUND:
                    self._reads.add(array)
            elif self.finds and (
                op.definition.random or (op.definition.host and op.definition not in (TURN, *MARKS))
            ):
                raise CannotPlan(f"it goes through arrays, and what operator {op.type} does cannot be undone")
            elif self.finds and any(map(self.meta.is_persistable, op.output_arg_names)):
                raise CannotPlan("it goes through arrays, and changes persistable variables")

    def _before_finding(self, instructions: Sequence[Instruction]) -> list[str]:
        return []  # `_check_elements` has seen to it

    def _emit(self, instructions: list[Instruction]) -> None:
        super()._emit(instructions)
        self._layouts = {
            name: (to_numpy(dtype), self._registers.shape(shape))
            for name, (shape, dtype) in self._kinds.items()
        }
        turns = self.engine.add_jump(self._slot(self._results.get(self._condition, self._condition)))
        back = self.engine.add_jump()
        self.engine.set_target(turns, back + 1)
        self.engine.set_target(back, len(self._first))

    def _sign(self, followed: int = 0) -> None:
        self.engine.set_signature(
            [self._entry(name) for name in self.feed_names],
            [self.feed_names.index(name) for name in self.carried],
        )

    def accepts(self, arrays: list[np.ndarray]) -> bool:
        """Bind the arrays of the feeds, copies of those that the loop changes."""
        carried = frozenset(self.carried)
        given = [
            array.copy() if name in carried else array
            for name, array in zip(self.feed_names, arrays, strict=True)
        ]
        self._given = {name: given[at] for at, name in enumerate(self.feed_names) if name in carried}
        return super().accepts(given)

    def begin(self, environment: Environment) -> None:
        """Have the loop find the elements of the arrays that it reads; comes between `accepts` and `run`.

        Arrays of which nobody wants what has been read are none of the loop's.
        """
        for name in self._layouts:
            there = environment.find(name) if name in self._reads else None
            begin(self._elements[name + ELEMENTS], there, *self._layout(name))

    def back_out(self, environment: Environment) -> None:
        """Leave what the turns before the last one have done, which has come to nothing."""
        for elements in self._elements.values():
            elements.forget_turn()
        self.leave(environment)
        for name, array in self._given.items():
            environment.put(name, array, environment.lod_of(name))

    def leave(self, environment: Environment) -> None:
        """Put what the loop has written into the arrays."""
        for name in self._layouts:
            leave(self._elements[name + ELEMENTS], name, *self._layout(name), environment)

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
        first, *lines = super().describe().splitlines()
        again = (
            f"  again while {self._condition}, with {', '.join(self.carried) or 'nothing'} of the turn before"
        )
        return "\n".join([f"loop of {first}", *lines, again])


_TOUCHING = (FOUND, WRITE)


class LoopPiece(Piece):
    """All turns of a loop."""

    def __init__(self, end: int, plan: LoopPlan, inputs: Sequence[tuple[str, int | None]]) -> None:
        super().__init__(end, plan, inputs, plan.wanted)

    def _found(self, plan: Plan, arrays: list[np.ndarray], environment: Environment) -> list[Any] | None:
        """What all turns make; Missed if one has to be taken in another way, see `Missed.turns`."""
        assert isinstance(plan, LoopPlan)
        if not plan.accepts(arrays):
            return None
        plan.begin(environment)
        try:
            plan.run()
        except Missed:
            plan.back_out(environment)
            raise
        plan.leave(environment)
        return plan.fetch()
