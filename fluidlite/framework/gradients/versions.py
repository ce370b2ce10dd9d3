"""`Versions`: which value of a variable an operator has seen, where that is written more than once.

Gradient operators read variables of the forward operators by name, long after these have run. Loops overwrite variables
(counters, loop variables, conditions), so that a name may hold another value by then. Two things help:

* A counter that is only ever incremented is counted down by the gradient operators, as in Fluid: at the gradient of an
  operator it holds again what that operator saw.
* Of all others the value is copied, by an `assign` that is put into the forward block where the value is about to be
  overwritten. In the block of a loop the copy is a variable of the turn, and kept as such.
"""

from __future__ import annotations

from collections import defaultdict

from ...base.dtypes import VarType
from ...ops.registry import OpView
from ..block import Block
from ..operator import COPY, BlockMeta, Operator, OpRole


def counts(op: Operator) -> bool:
    """Whether `op` increments a variable in place."""
    return op.definition.role == "count" and op.inputs.get("X") == op.outputs.get("Out")


def changes_nothing(op: Operator) -> bool:
    """Whether `op` assigns a variable to itself, as the block of `while_loop` does."""
    return copied(op) == op.output_arg_names


def copied(op: Operator) -> list[str] | None:
    """The variable whose values the only result of `op` has; None if it is not a copy of one."""
    rule = op.definition.copies
    if rule is None or len(op.output_arg_names) != 1:
        return None
    found = rule(OpView(op.definition, op.inputs, op.outputs, op.attrs, BlockMeta(op.block)))
    return None if found is None else op.inputs[found[1]]


_UPDATE = OpRole.Optimize | OpRole.LRSched


def _written(op: Operator) -> set[str]:
    """The variables that `op` and its blocks write: gradients of loops count back what they do not name.

    Updates of persistable variables, by optimizers and of batch_norm's averages, are no new values: as in Fluid, what
    comes before them is differentiated with what the variables hold afterwards.
    """
    names = set(op.writes())
    if op.attr("op_role") & _UPDATE:
        names = {name for name in names if not op.block._is_persistable(name)}
    for slot in op.definition.stop_gradient:
        names.difference_update(name for name in op.outputs.get(slot, ()) if op.block._is_persistable(name))
    for block in op.sub_blocks():
        within = set().union(*(_written(inner) for inner in block.ops))
        updated = {name for inner in block.ops for name in inner.writes()} - within
        names = (names - updated) | (within - block.vars.keys())
    return names


class Versions:
    """The writes to the variables of a block, as they were when a pass over it began.

    `outer`, `at`: those of the block around, and the operator there that has this block.
    """

    def __init__(self, block: Block, outer: Versions | None = None, at: Operator | None = None) -> None:
        self.block = block
        self.outer, self.at = outer, at
        self._order = {id(op): number for number, op in enumerate(block.ops)}
        self._writers: dict[str, list[Operator]] = defaultdict(list)
        self._undone: set[tuple[int, str]] = set()
        self.replaced: set[str] = set()
        """Variables with several values in a run of the block, each with a gradient of its own."""
        seen: set[str] = set()
        for op in block.ops:
            seen.update(op.reads())
            if changes_nothing(op):
                continue
            for name in sorted(_written(op)):
                self._writers[name].append(op)
                if not counts(op) and (name in seen or not self.owns(name)) and not self._is_array(name):
                    self.replaced.add(name)
            seen.update(op.writes())

    def owns(self, name: str) -> bool:
        """Whether the variable begins with this block, or with the program."""
        return self.outer is None or name in self.block.vars

    def _is_array(self, name: str) -> bool:
        var = self.block._find_var_recursive(name)
        return var is not None and var.type == VarType.LOD_TENSOR_ARRAY

    def writes(self, name: str) -> bool:
        return name in self._writers

    def first(self, op: Operator, name: str) -> bool:
        """Whether `op` is the first to write a variable that begins with its block."""
        return self.owns(name) and self._writers[name][0] is op

    def constant(self, name: str) -> bool:
        """Whether a variable has the same value wherever it is read in one run of the block."""
        if not self.owns(name) and name not in self._writers:
            assert self.outer is not None
            return self.outer.constant(name)
        var = self.block.vars.get(name)
        given = var is None or var.is_data or var.persistable
        return len(self._writers.get(name, ())) <= (0 if given else 1)

    def undo(self, op: Operator, name: str) -> None:
        """Note that the gradient operators collected so far take back what `op` has written."""
        self._undone.add((id(op), name))

    def counted_back(self, name: str) -> bool:
        """Whether a variable from outside the block holds, at the gradient of each of its operators, what that saw.

        That is so if only increments of this block have changed it since the operators that lead here began.
        """
        mine = self._writers.get(name, ())
        if not all(counts(op) or (id(op), name) in self._undone for op in mine):
            return False
        around, at = self.outer, self.at
        while around is not None and at is not None:
            before = around._order[id(at)]
            since = [op for op in around._writers.get(name, ()) if op is not at]
            if around.owns(name):
                since = [op for op in since if around._order[id(op)] > before]
            if any((id(op), name) not in around._undone for op in since):
                return False
            if around.owns(name):
                return True
            at, around = around.at, around.outer
        return False

    def value(self, op: Operator, name: str, after: bool = False) -> str:
        """The variable that holds, when the gradient of `op` runs, what `name` held before `op` (or after it)."""
        if name not in self._writers:
            if self.owns(name) or self.outer is None or self.at is None:
                return name
            return self.outer.value(self.at, name)
        here = self._order[id(op)] + after
        later = [writer for writer in self._writers[name] if self._order[id(writer)] >= here]
        if self.owns(name):
            if all((id(writer), name) in self._undone for writer in later):
                return name
        elif self.counted_back(name):
            return name
        return self._kept(name, later)

    def _kept(self, name: str, later: list[Operator]) -> str:
        """A copy of the value that the first of the `later` writers overwrites; of the last value if there are none."""
        version = len(self._writers[name]) - len(later)
        copy = f"{name}{COPY}block{self.block.idx}@{version}"
        if copy in self.block.vars:
            return copy
        var = self.block._var_recursive(name)
        self.block.create_var(
            name=copy,
            type=var.type,
            shape=var.shape,
            dtype=var.dtype,
            lod_level=var.lod_level,
            stop_gradient=True,
        )
        place = later[0].idx if later else self._end()
        self.block._insert_op(
            place,
            type="assign" if self.has_value(name, place) else "keep_value",
            inputs={"X": [name]},
            outputs={"Out": [copy]},
            attrs={"op_role": OpRole.Forward},
        )
        return copy

    def has_value(self, name: str, place: int = 0) -> bool:
        """Whether a variable surely has a value before the operator at `place` of the block, whatever was decided."""
        before = self.block.ops[:place]
        if any(name in op.writes() and not op.definition.may_skip for op in before) or self._is_array(name):
            return True
        if not self.owns(name):
            assert self.outer is not None and self.at is not None
            return self.outer.has_value(name, self.at.idx)
        if self.at is not None:
            return not self.at.definition.may_skip  # others put it there
        var = self.block._find_var_recursive(name)
        return var is not None and (var.is_data or var.persistable)

    def _end(self) -> int:
        """Where the operators end that were here when the pass began."""
        return 1 + max(index for index, op in enumerate(self.block.ops) if id(op) in self._order)


__all__ = ["Versions", "changes_nothing", "copied", "counts"]
