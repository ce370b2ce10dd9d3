"""`LoopBody`: the operators of one turn of a loop, as a plan on values that stand somewhere else in each turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import SymInt, always_equal, current, free_symbols, substituted
from ...framework import Operator, Program
from ...ops.math.gemm import Matrix
from ...ops.registry import Call, OpView, Shape
from ..plan.elements import KEEP, POP
from ..plan.instructions import Instruction
from ..plan.refusals import CannotPlan
from ..plan.turn_feeds import FIRST, Feeds
from ..plan.turn_ops import Layout, LoopForm
from ..tensors.scope import Scope
from .packing import Packing
from .plan import Plan

SUM = "@SUM"
MADE = "@MADE"


class LoopBody(Plan):
    """The turns of a loop that stands in a plan.

    Everything is fed: what moves by the sizes that `Feeds.moving` has. What is made is written where whoever takes the
    turns says.
    """

    results_apart = True

    def __init__(self, program: Program, scope: Scope, form: LoopForm, feeds: Feeds) -> None:
        self._feeds = feeds
        self.moving = [*form.of("Packed", "Parts", "Like", "Same"), *form.shortened]
        self.moving += [each.name for each in form.carried] + [level + FIRST for level in form.others]
        self._wanted = form.of("Made", "Each", "Last")
        self._added = form.names["Sums"]
        self._like = form.ops[-1]
        self._outside: dict[str, str] = {}  # what is wanted -> the name of the memory that it is written to
        self.packed: dict[str, Matrix] = {}  # what is packed before the turns, and of which matrix
        wanted = [*self._wanted, *self._added]
        super().__init__(program, scope, feeds.arrays, wanted, form.ops, form.block, named=feeds)
        for op, native in zip(self.ops, self.is_native, strict=True):
            if not native and op.definition.effects.host:
                raise CannotPlan(f"operator {op.type} of it does more than to compute")
        likes = {op.inputs["Like"][0] for op in form.ops if op.definition is POP}
        if not likes.isdisjoint(self._root(name) for each in self.instructions for name in each.touches):
            raise CannotPlan("its turns look at what a loop of another turn has kept")
        if self.meta.sparse:
            raise CannotPlan("it makes SelectedRows")
        if self.meta.persistable:
            raise CannotPlan("its turns look at persistable variables by other names")

    def _lower(self, steps: list[tuple[Operator, OpView]], fetches: Sequence[str]) -> list[Instruction]:
        self._changes = {name for op, _ in steps for name in op.output_arg_names}
        results = dict(zip([*self._wanted, *self._added], fetches, strict=False))
        if any(not self.meta.shapes[name] for name in fetches):
            raise CannotPlan("it makes numbers without dimensions")
        instructions = super()._lower(steps, fetches)
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
            added = self._without_zeros(instructions, result)
            count = self.meta.bytes(added) // to_numpy(self.meta.dtypes[added]).itemsize
            call = Call(f"elementwise_add.{suffix}", [total, added, total], [count])
            instructions.append(self._lowering.native(self._like, call))
        return instructions

    def _without_zeros(self, instructions: list[Instruction], name: str) -> str:
        """What to add where `name` is: itself, or its first rows, if zeros have been put behind them for that alone."""
        made = [each for each in instructions if name in each.writes]
        if (
            len(made) != 1
            or made[0].op.definition.planning.pattern != "shorten_grad"
            or not isinstance(made[0].action, Call)
        ):
            return name
        if any(self._root(read) == name for each in instructions for read in each.reads):
            return name
        (found,) = made[0].reads
        instructions.remove(made[0])
        return found

    def _twin(self, name: str, twin: str) -> str:
        """A name for memory of the shape and type of a variable."""
        self.meta.shapes[twin], self.meta.dtypes[twin] = self.meta.shapes[name], self.meta.dtypes[name]
        return twin

    def _packed(self, instructions: list[Instruction]) -> list[Instruction]:
        found = Packing(self.meta, self._root, self._stays)
        self.packed = found.made
        return [found.of(each) for each in instructions]

    def _stays(self, name: str) -> bool:
        """Whether a matrix is the same in all turns, and is not of the plan alone."""
        if name in self.moving or name in self._changes or name in self.meta.known:
            return False
        return not self._temporary(name)

    def _temporary(self, name: str) -> bool:
        return super()._temporary(name) and name not in self.packed and name not in self._outside.values()

    def _emit(self, instructions: list[Instruction]) -> None:
        for name in (*self._outside.values(), *self.packed):
            self._slot(name)
        super()._emit(instructions)

    def describe(self) -> str:
        first, *lines = super().describe().splitlines()
        return "\n".join([f"turns of {first}", *lines])

    def _array(self, name: str) -> np.ndarray:
        self._views.clear()  # it may stand somewhere else in each turn
        return super()._array(name)

    def _takes(self, feed: Mapping[str, np.ndarray]) -> bool:
        return True  # what the loop around it says

    def _sign(self, followed: int = 0) -> None:
        """Whoever takes the turns points at what is fed."""

    def fits(self, moving: Mapping[str, int]) -> bool:
        """Whether the guards admit such sizes in a turn."""
        sizes = self._registers.found
        for label, value in moving.items():
            root = self.meta.roots.get(label)
            if isinstance(root, SymInt):
                sizes.set(self._registers.integer(root), value)
            elif root is not None and root != value:
                return False
        return sizes.evaluate() and sizes.holds()

    def _rows(self, size: int) -> list[str]:
        """Which of the sizes that move this may be, and "" if it is always the same."""
        found = [k for k, root in self.meta.roots.items() if always_equal(root, size)]
        if self._feeds.rows is not None and size == self._feeds.rows:
            return ["n", ""]
        rows = [k for k in self._feeds.moving if k in found]
        moves = isinstance(size, SymInt) and len(found) == len(rows) and self._outside_size(size) is None
        return rows if moves else [*rows, ""]

    def _outside_size(self, size: Any) -> Any:
        """What a size of a turn is in the plan around; None if it moves."""
        roots = {}
        for label, root in self.meta.roots.items():
            if label in self._feeds.outer:
                roots.update(dict.fromkeys(free_symbols(root), self._feeds.outer[label]))
        return substituted(size, roots) if free_symbols(size) <= roots.keys() else None

    def result(self, name: str, empty: bool) -> tuple[list[str], Shape, VarType, tuple[str, ...]]:
        """Of something made: which rows it may have (see `_rows`), its shape, with labels for sizes from outside behind
        the first one, its type, and its offsets. `empty`: if it has no elements, sizes may move."""
        inner = self._outside.get(name) or self._outside[name + SUM]
        shape: list[Any] = []
        sizes = self.meta.shapes[inner]
        for axis, size in enumerate(sizes):
            labels = [
                k
                for k, root in self.meta.roots.items()
                if k not in self._feeds.moving and always_equal(root, size)
            ]
            if empty and sizes[0] == 0:
                labels += self._rows(size)
            outside = None if labels else self._outside_size(size)
            if axis and isinstance(size, SymInt) and not labels and outside is None:
                raise CannotPlan(f"variable {name!r} has a size that follows from others")
            shape.append(
                labels[0] if labels and isinstance(size, SymInt) else size if outside is None else outside
            )
        plain = self.fetched[[*self._wanted, *self._added].index(name)]
        return self._rows(sizes[0]), tuple(shape), self.meta.dtypes[inner], self.meta.lod(plain)

    def keeps(self) -> dict[str, tuple[list[list[Any]], VarType]]:
        """What loops in a turn keep for their gradients: of each array what an element has along each axis, as labels
        and as a number, and its type."""
        found: dict[str, tuple[list[list[Any]], VarType]] = {}
        for op in self.ops:
            if op.definition is KEEP:
                (name,) = op.inputs["X"]
                if self.meta.lod(name):
                    raise CannotPlan("a loop in a turn keeps sequences")
                shape = [self._called(size) for size in self.meta.shapes[name]]
                found[op.attrs["array"]] = shape, self.meta.dtypes[name]
        return found

    def _called(self, size: int) -> list[Any]:
        """The labels of the sizes that this is, and what it is outside if it stays."""
        found: list[Any] = [k for k, root in self.meta.roots.items() if always_equal(root, size)]
        outside = self._outside_size(size)
        return found if outside is None else [*found, outside]

    def check_carried(self, name: str, after: str, leaves: str, dtype: VarType) -> None:
        """Raise CannotPlan unless a turn leaves what the next one wants to find."""
        inner = self._outside.get(after, after)
        left, found = self.meta.shapes[inner], self.meta.shapes[name]
        if not left or leaves not in self._rows(left[0]):
            raise CannotPlan(f"variable {name!r} has another number of rows after a turn")
        start = 1 if leaves else 0
        if (
            len(left) != len(found)
            or self.meta.dtypes[inner] != dtype
            or not all(map(always_equal, left[start:], found[start:]))
        ):
            raise CannotPlan(f"variable {name!r} has another shape or type after a turn")

    def connections(
        self, layout: Layout, read: Mapping[str, int], made: Mapping[str, int]
    ) -> tuple[Any, ...]:
        """What `Engine.add_loop` wants to know of a body."""
        form, slots = layout.form, self._slots
        follows = [(slots[name], read[name]) for name in self.moving]
        follows += [(slots[self._outside[name]], made[name]) for name in self._wanted]
        stays = [
            (slots[name], layout.read[name]) for name in (*form.names["Const"], *form.levels, *self.packed)
        ]
        stays += [(slots[name + SUM], layout.made[name]) for name in self._added]
        where = {"n": 0, "m": 1} | {label: 2 + at for label, at in layout.sizes.items()}
        roots, spans = [], []
        for label, root in self.meta.roots.items():
            register = self._registers.integer(root) if isinstance(root, SymInt) else -1
            if label in where:
                roots.append((register, where[label], current(root)))
            else:
                spans.append((register, layout.bounds[label], current(root)))
        return self.engine, follows, stays, roots, spans


__all__ = ["LoopBody"]
