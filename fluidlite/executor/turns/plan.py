"""`TurnsPlan`: the operators of one turn of a loop, which the engine runs for one turn after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import Size, always_equal, current_shape
from ...framework import Block, Operator, Program
from ...ops.registry import Call, OpView
from .. import failures
from ..plan import Instruction, Plan
from ..planning import CannotPlan
from ..scope import Scope
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
        self._outside: dict[str, str] = {}  # what is wanted -> the name of the memory that it is written to
        self._flipped: dict[str, tuple[str, int, int]] = {}  # transposed matrix -> the matrix, and its shape
        super().__init__(program, scope, feed, [*made, *sums], ops, block)
        if not all(self.is_native):
            raise CannotPlan("an operator of it has no native kernel")
        if any(self.levels) or self.meta.sparse:
            raise CannotPlan("it makes sequences or SelectedRows")
        self._columns = [self._slots[name] for name in self.moving]
        self._columns += [self._slots[self._outside[name]] for name in self._wanted]
        self._roots = [name for name in self.moving if isinstance(self.meta.shapes[name][0], Size)]
        self._fixed = [name for name in self.moving if name not in self._roots]
        self._expected = [self._registers.integer(self.meta.shapes[name][0]) for name in self._fixed]
        for name in self._wanted:
            self._expected += self._sizes_of(self._outside[name])
        for name in self._added:
            self._expected += self._sizes_of(name + SUM)

    def _sizes_of(self, name: str) -> list[int]:
        """The registers of a variable's first dimension and of its bytes."""
        return [
            self._registers.integer(self.meta.shapes[name][0]),
            self._registers.integer(self._bytes(name)),
        ]

    def _may_share(self, out: str, source: str, written: object) -> bool:
        return out not in self._results and super()._may_share(out, source, written)  # type: ignore[arg-type]

    def _lower(self, steps: list[tuple[Operator, OpView]], fetches: Sequence[str]) -> list[Instruction]:
        self._results = list(fetches)
        self._changes = {name for op, _ in steps for name in op.output_arg_names}
        results = dict(zip([*self._wanted, *self._added], fetches, strict=False))
        if any(not self.meta.shapes[name] for name in fetches):
            raise CannotPlan("it makes numbers without dimensions")
        instructions = [self._unflipped(op, action) for op, action in super()._lower(steps, fetches)]
        for name in self._wanted:
            result = results[name]
            if self._temporary(result) and result not in self._outside.values():
                self._outside[name] = result
            else:
                self._outside[name] = self._twin(result, name + MADE)
                call = Call("copy", [result, name + MADE], [self._bytes(result)])
                self._add(instructions, call)
        for name in self._added:
            result = results[name]
            if self.meta.dtypes[result] not in (VarType.FP32, VarType.FP64):
                raise CannotPlan("it adds up what is no float")
            suffix = "f32" if self.meta.dtypes[result] == VarType.FP32 else "f64"
            self._outside[name + SUM] = total = self._twin(result, name + SUM)
            count = self._bytes(result) // to_numpy(self.meta.dtypes[result]).itemsize
            self._add(instructions, Call(f"elementwise_add.{suffix}", [total, result, total], [count]))
        return instructions

    def _add(self, instructions: list[Instruction], call: Call) -> None:
        instructions.append((self._like, call))
        self._stands_for.append([self._like])

    def _twin(self, name: str, twin: str) -> str:
        """A name for memory of the shape and type of a variable."""
        self.meta.shapes[twin], self.meta.dtypes[twin] = self.meta.shapes[name], self.meta.dtypes[name]
        return twin

    def _unflipped(self, op: Operator, action: object) -> Instruction:
        """Products with the transpose of a matrix that stays: that is transposed once, before the turns."""
        if not isinstance(action, Call) or action.kernel.partition(".")[0] != "gemm" or not action.ints[4]:
            return op, action  # type: ignore[return-value]
        a, b, *others = action.operands
        if (
            b is None
            or self._root(b) in self.moving
            or self._temporary(self._root(b))
            or b in self.meta.known
        ):
            return op, action
        columns, depth = action.ints[1], action.ints[2]
        if isinstance(columns, Size) or isinstance(depth, Size) or self._written(b):
            return op, action
        flipped = b + FLIPPED
        self.meta.shapes[flipped], self.meta.dtypes[flipped] = (depth, columns), self.meta.dtypes[b]
        self._flipped[flipped] = self._root(b), columns, depth
        ints = [*action.ints[:4], 0, *action.ints[5:]]
        return op, Call(action.kernel, [a, flipped, *others], ints, action.floats)

    def _written(self, name: str) -> bool:
        return name in self._changes

    def _temporary(self, name: str) -> bool:
        return super()._temporary(name) and name not in self._flipped and name not in self._outside.values()

    def _emit(self, instructions: list[Instruction]) -> None:
        for name in (*self._outside.values(), *self._flipped):
            self._slot(name)
        super()._emit(instructions)

    def tables(
        self,
        found: Mapping[str, Stack],
        made: Mapping[str, Stack],
        totals: Mapping[str, np.ndarray],
        back: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """What the engine wants to know of each turn: addresses, and sizes.

        `found`, `made`: the values of `moving` and memory for what is made of all turns; `totals`: memory for sums.
        """
        stacks = [*(found[name] for name in self.moving), *(made[name] for name in self._wanted)]
        values = [found[name].rows for name in (*self._roots, *self._fixed)]
        for name in self._wanted:
            values += [made[name].rows, made[name].rows * made[name].bytes_of_row()]
        count = len(stacks[0])
        for name in self._added:
            values += [np.full(count, totals[name].shape[0]), np.full(count, totals[name].nbytes)]
        columns = [stack.addresses() for stack in stacks]
        return _rows(columns, count, back), _rows(values, count, back)

    def fitting(self, addresses: np.ndarray, values: np.ndarray) -> int:
        """How many of the first turns this plan can take."""
        return self.engine.fitting(self._columns, addresses, self._expected, values)

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
            self.engine.take_turns(self._columns, addresses, self._expected, values)
        except self._failure as failure:
            op = self.ops[failure.index]
            raise failures.in_operator(op, failures.native(op, failure.code, failure.err)) from None

    def memory_for(self, name: str) -> tuple[tuple[int, ...], np.dtype, str]:
        """Shape and type of something wanted or added, of the sizes at hand, and which of `moving` has as many rows."""
        name = self._outside.get(name, name + SUM)
        shape = self.meta.shapes[name]
        like = next(
            (other for other in self._roots if always_equal(self.meta.shapes[other][0], shape[0])), ""
        )
        return current_shape(shape), to_numpy(self.meta.dtypes[name]), like

    def describe(self) -> str:
        first, *lines = super().describe().splitlines()
        return "\n".join([f"turns of {first}", *lines])


def _rows(columns: Sequence[np.ndarray], count: int, back: bool) -> np.ndarray:
    """Columns as the rows of turns, in the order in which these are taken."""
    made = np.empty((count, len(columns)), np.int64)
    for number, column in enumerate(columns):
        made[:, number] = column[::-1] if back else column
    return made


__all__ = ["TurnsPlan"]
