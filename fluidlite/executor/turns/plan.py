"""`TurnsPlan`: the operators of one turn of a loop, which the engine runs for one turn after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import Size, always_equal
from ...framework import Block, Operator, Program
from ...ops.math.gemm import is_product
from ...ops.registry import Call, OpView
from ..host.plan import Plan
from ..plan.instructions import Instruction
from ..plan.shapes import CannotPlan
from ..tensors.scope import Scope
from .stacks import Stack

SUM = "@SUM"
MADE = "@MADE"
FLIPPED = "@FLIPPED"


class TurnsPlan(Plan):
    """Runs operators once for each turn, on values that stand somewhere else in each.

    Args:
        moving: the feeds that are others in each turn.
        made: what is wanted of all turns; it is written where stacks have it.
        sums: what is added up over the turns.
    """

    results_apart = True

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feed: Mapping[str, np.ndarray],
        moving: Sequence[str],
        made: Sequence[str],
        sums: Sequence[str],
        ops: Sequence[Operator],
        block: Block,
    ) -> None:
        self.moving = list(moving)
        self._wanted = list(made)
        self._added = list(sums)
        self._like = ops[-1]
        self._alike: dict[str, str] = {}
        self._outside: dict[str, str] = {}  # what is wanted -> the name of the memory that it is written to
        self._flipped: dict[str, tuple[str, int, int]] = {}  # transposed matrix -> the matrix, and its shape
        super().__init__(program, scope, feed, [*made, *sums], ops, block)
        if not all(self.is_native):
            raise CannotPlan("an operator of it has no native kernel")
        if any(self.levels) or self.meta.sparse:
            raise CannotPlan("it makes sequences or SelectedRows")
        expected: list[tuple[int, int]] = []
        roots: list[tuple[int, int]] = []
        for column, name in enumerate(self.moving):
            size = self.meta.shapes[name][0]
            (roots if isinstance(size, Size) else expected).append((self._registers.integer(size), column))
        column = len(self.moving)
        self._layouts: dict[str, tuple[int, ...]] = {}
        for name in [*(self._outside[name] for name in self._wanted), *(name + SUM for name in self._added)]:
            expected.append((self._registers.integer(self.meta.shapes[name][0]), column))
            expected.append((self._registers.integer(self.meta.bytes(name)), column + 1))
            self._layouts[name] = self._registers.shape(self.meta.shapes[name])
            column += 2
        slots = [self._slots[name] for name in self.moving]
        slots += [self._slots[self._outside[name]] for name in self._wanted]
        self.engine.set_turns(slots, roots, expected)

    def _lower(self, steps: list[tuple[Operator, OpView]], fetches: Sequence[str]) -> list[Instruction]:
        self._changes = {name for op, _ in steps for name in op.output_arg_names}
        results = dict(zip([*self._wanted, *self._added], fetches, strict=False))
        if any(not self.meta.shapes[name] for name in fetches):
            raise CannotPlan("it makes numbers without dimensions")
        instructions = [self._unflipped(each) for each in super()._lower(steps, fetches)]
        for name in self._wanted:
            result = results[name]
            if self._temporary(result) and result not in self._outside.values():
                self._outside[name] = result
            else:
                self._outside[name] = self._twin(result, name + MADE)
                call = Call("copy", [result, name + MADE], [self.meta.bytes(result)])
                instructions.append(self._lowering.native(self._like, call))
        for name in self._added:
            result = results[name]
            if self.meta.dtypes[result] not in (VarType.FP32, VarType.FP64):
                raise CannotPlan("it adds up what is no float")
            suffix = "f32" if self.meta.dtypes[result] == VarType.FP32 else "f64"
            self._outside[name + SUM] = total = self._twin(result, name + SUM)
            count = self.meta.bytes(result) // to_numpy(self.meta.dtypes[result]).itemsize
            call = Call(f"elementwise_add.{suffix}", [total, result, total], [count])
            instructions.append(self._lowering.native(self._like, call))
        return instructions

    def _twin(self, name: str, twin: str) -> str:
        """A name for memory of the shape and type of a variable."""
        self.meta.shapes[twin], self.meta.dtypes[twin] = self.meta.shapes[name], self.meta.dtypes[name]
        return twin

    def _unflipped(self, instruction: Instruction) -> Instruction:
        """Products with the transpose of a matrix that stays: that is transposed once, before the turns."""
        action = instruction.action
        if not isinstance(action, Call) or not is_product(action) or not action.ints[4]:
            return instruction
        a, b, *others = action.operands
        if (
            b is None
            or self._root(b) in self.moving
            or self._temporary(self._root(b))
            or b in self.meta.known
        ):
            return instruction
        columns, depth = action.ints[1], action.ints[2]
        if isinstance(columns, Size) or isinstance(depth, Size) or self._written(b):
            return instruction
        flipped = b + FLIPPED
        self.meta.shapes[flipped], self.meta.dtypes[flipped] = (depth, columns), self.meta.dtypes[b]
        self._flipped[flipped] = self._root(b), columns, depth
        ints = [*action.ints[:4], 0, *action.ints[5:]]
        call = Call(action.kernel, [a, flipped, *others], ints, action.floats)
        return replace(instruction, reads=(*instruction.reads, flipped), action=call)

    def _written(self, name: str) -> bool:
        return name in self._changes

    def _temporary(self, name: str) -> bool:
        return super()._temporary(name) and name not in self._flipped and name not in self._outside.values()

    def _emit(self, instructions: list[Instruction]) -> None:
        for name in (*self._outside.values(), *self._flipped):
            self._slot(name)
        super()._emit(instructions)

    def take_turns(
        self, arrays: Sequence[np.ndarray], addresses: np.ndarray, values: np.ndarray,
        totals: Mapping[str, np.ndarray],
    ) -> None:  # fmt: skip
        """Take turns that fit; `arrays`: the feeds, as they have been bound."""
        for name in self._added:
            self.engine.bind(self._slots[name + SUM], totals[name])
        for name, (matrix, columns, depth) in self._flipped.items():
            fed = matrix in self._fed
            array = arrays[self.feed_names.index(matrix)] if fed else self.meta.persistable[matrix].array
            assert array is not None
            flipped = np.ascontiguousarray(array.reshape(columns, depth).T)
            self.engine.bind(self._slots[name], flipped)
        try:
            self.engine.take_turns(addresses, values)
        except self._failure as failure:
            raise self._failed(failure) from None

    def memory_for(self, name: str) -> tuple[tuple[int, ...], np.dtype, str]:
        """Shape and type of something wanted or added, of the sizes at hand, and which of `moving` has as many rows."""
        name = self._outside.get(name, name + SUM)
        shape = self.meta.shapes[name]
        like = self._alike.get(name)
        if like is None:
            moving: list[str] = self.moving if isinstance(shape[0], Size) else []
            like = next((each for each in moving if always_equal(self.meta.shapes[each][0], shape[0])), "")
            self._alike[name] = like
        sizes = tuple([n if n >= 0 else self.engine.sizes.get(-1 - n) for n in self._layouts[name]])
        return sizes, to_numpy(self.meta.dtypes[name]), like

    def describe(self) -> str:
        first, *lines = super().describe().splitlines()
        return "\n".join([f"turns of {first}", *lines])


def tables(
    count: int, moving: Sequence[Stack], made: Sequence[Stack], totals: Sequence[np.ndarray], back: bool
) -> tuple[np.ndarray, np.ndarray]:
    """What the engine wants to know of each turn: addresses, and sizes.

    `count`: how many turns; `moving`: what moves, in the order of `TurnsPlan.moving`; `made`, `totals`: memory for what
    is wanted of all turns, and for sums; `back`: whether turns go from the last place to the first.
    """
    addresses = np.empty((count, len(moving) + len(made)), np.int64)
    values = np.empty((count, len(moving) + 2 * (len(made) + len(totals))), np.int64)
    way = slice(None, None, -1 if back else 1)
    for column, stack in enumerate((*moving, *made)):
        addresses[way, column] = stack.addresses()
    for column, stack in enumerate(moving):
        values[way, column] = stack.rows
    for column, stack in zip(range(len(moving), values.shape[1], 2), made, strict=False):
        values[way, column] = stack.rows
        np.multiply(stack.rows, stack.bytes_of_row(), out=values[way, column + 1])
    for column, total in zip(range(len(moving) + 2 * len(made), values.shape[1], 2), totals, strict=True):
        values[:, column], values[:, column + 1] = total.shape[0], total.nbytes
    return addresses, values


__all__ = ["TurnsPlan", "tables"]
