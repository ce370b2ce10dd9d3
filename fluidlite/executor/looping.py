"""`LoopPlan`: a loop whose turns are one plan each, run by the engine without Python between them."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..base.dtypes import VarType
from ..base.sizes import is_fixed
from ..framework import Block, Operator, Program
from ..ops.registry import Call, OpView, find
from .form import Instruction
from .plan import Plan
from .planning import CannotPlan
from .scope import Scope


class LoopPlan(Plan):
    """Runs the operators of a loop's block, then again as long as a condition holds; at least once.

    What the block reads of the variables around it before it writes them are the feeds. Those of them that it also
    writes (`carried`) are given as arrays of the plan's own: at the end of a turn each holds what the turn has made of
    its variable. Results are in memory of their own as well, so that copying one into its feed destroys no other.

    Args:
        results: the variables around the block that it writes; what they are in the end is fetched.
        condition: the one of them, or a lasting variable, that decides whether there is another turn.
        ops: the block's operators.

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
    ) -> None:
        self.carried = [name for name in results if name in feed]
        self._wanted = list(results)
        self._results: dict[str, str] = {}  # variable -> its value at the end of a turn
        self._condition = condition
        self._like = ops[-1]
        super().__init__(program, scope, feed, results, ops, block)

    def _lower(self, steps: list[tuple[Operator, OpView]], fetches: Sequence[str]) -> list[Instruction]:
        self._results = dict(zip(self._wanted, fetches, strict=False))
        self._check()
        instructions = super()._lower(steps, fetches)
        for name in self.carried:
            result = self._results[name]
            if self._lives_in_feed(instructions, name, result):
                aliases = self._lowering.aliases
                aliases.update((other, name) for other, root in [*aliases.items()] if root == result)
                aliases[result] = name
            else:
                op = _assign(self._like, result, name)
                call = Call("copy", [result, name], [self._bytes(name)])
                instructions.append(self._lowering.native(op, call))
        return instructions

    def _check(self) -> None:
        """Raise CannotPlan unless a turn leaves things in the way that the next one wants to find them."""
        meta = self.meta
        for name, result in self._results.items():
            if result in meta.sparse or result in meta.part_of or meta.lasting(name):
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

    def _lives_in_feed(self, instructions: list[Instruction], name: str, result: str) -> bool:
        """Whether the end value of a variable can be made where its feed is: nobody wants that any more by then."""
        if not self._temporary(result):
            return False
        first, last = len(instructions), -1
        for step, instruction in enumerate(instructions):
            for touched in map(self._root, instruction.touches):
                if touched == result:
                    first = min(first, step)
                elif touched == name:
                    last = step
        return last < first or (last == first and self._updates(instructions[first], name, result))

    def _updates(self, instruction: Instruction, name: str, result: str) -> bool:
        """Whether an instruction may write `result` over the `name` that it reads."""
        op, action = instruction.op, instruction.action
        if not isinstance(action, Call) or [self._root(n) for n in action.operands if n].count(name) != 1:
            return False
        return any(
            op.outputs.get(out) == [result] and op.inputs.get(source) == [name]
            for out, source in op.definition.inplace
        )

    def _emit(self, instructions: list[Instruction]) -> None:
        super()._emit(instructions)
        turns = self.engine.add_jump(self._slot(self._results.get(self._condition, self._condition)))
        back = self.engine.add_jump()
        self.engine.set_target(turns, back + 1)
        self.engine.set_target(back, 0)

    def _sign(self, followed: int = 0) -> None:
        self.engine.set_signature(
            [self._entry(name) for name in self.feed_names],
            [self.feed_names.index(name) for name in self.carried],
        )

    def own(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The arrays of the feeds with copies of those that the loop changes."""
        carried = frozenset(self.carried)
        return [
            array.copy() if name in carried else array
            for name, array in zip(self.feed_names, arrays, strict=True)
        ]

    def describe(self) -> str:
        first, *lines = super().describe().splitlines()
        again = (
            f"  again while {self._condition}, with {', '.join(self.carried) or 'nothing'} of the turn before"
        )
        return "\n".join([f"loop of {first}", *lines, again])


def _assign(like: Operator, source: str, target: str) -> Operator:
    """An operator that copies, in the place of another one."""
    made = copy.copy(like)
    made.type = "assign"
    made.definition = find(made.type)
    made.inputs, made.outputs, made.attrs = {"X": [source]}, {"Out": [target]}, {}
    return made
