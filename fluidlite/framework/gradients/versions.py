"""`Versions`: the value of a variable that an operator read, where the variable is written more than once.

Gradient operators read variables of the forward operators by name, long after these have run. Loops overwrite variables
(counters, loop variables, conditions), so that a name may hold another value by then. There are two remedies:

* Gradient operators count a counter that is only ever incremented back down, as in Fluid, so that the gradient of an
  operator reads the value that the operator read.
* All other values are copied, by an `assign` in the forward block before the write that overwrites them. In the block
  of a loop the copy is a variable of the iteration, and stashed as such.
"""

from __future__ import annotations

from collections import defaultdict

from ...base.dtypes import VarType
from ...ops.registry import OpView
from ..block import Block
from ..common_attrs import OpRole
from ..operator import COPY, BlockMeta, Operator


def counts(op: Operator) -> bool:
    """Whether `op` increments a variable in place."""
    return op.definition.planning.pattern == "count" and op.inputs.get("X") == op.outputs.get("Out")


def changes_nothing(op: Operator) -> bool:
    """Whether `op` assigns a variable to itself, as the block of `while_loop` does."""
    return copied(op) == op.output_arg_names


def copied(op: Operator) -> list[str] | None:
    """The variable that the only result of `op` is a copy of; None if it is none."""
    rule = op.definition.planning.identity
    if rule is None or len(op.output_arg_names) != 1:
        return None
    found = rule(OpView(op.definition, op.inputs, op.outputs, op.attrs, BlockMeta(op.block)))
    return None if found is None else op.inputs[found[1]]


_UPDATE = OpRole.Optimize | OpRole.LRSched


def _written(op: Operator) -> set[str]:
    """The variables that `op` and its blocks write: gradients of loops count counters back that they do not name.

    Updates of persistable variables, by optimizers and of batch_norm's averages, are no new values: as in Fluid, what
    comes before them is differentiated with what the variables hold afterwards.
    """
    names = set(op.writes())
    if op.attr("op_role") & _UPDATE:
        names = {name for name in names if not op.block._is_persistable(name)}
    for slot in op.definition.no_grad:
        names.difference_update(name for name in op.outputs.get(slot, ()) if op.block._is_persistable(name))
    for block in op.sub_blocks():
        written = set().union(*(_written(inner) for inner in block.ops))
        updated = {name for inner in block.ops for name in inner.writes()} - written
        names = (names - updated) | (written - block.vars.keys())
    return names


class Versions:
    """The writes to the variables of a block before its gradient operators were added.

    `outer`, `at`: the writes of the outer block, and the operator there that has this block.
    """

    def __init__(self, block: Block, outer: Versions | None = None, at: Operator | None = None) -> None:
        self.block = block
        self.outer, self.at = outer, at
        self._order = {id(op): number for number, op in enumerate(block.ops)}
        self._writers: dict[str, list[Operator]] = defaultdict(list)
        self._reverted: set[tuple[int, str]] = set()
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
        """Note that the gradient operators collected so far revert the write of `op`."""
        self._reverted.add((id(op), name))

    def counted_back(self, name: str) -> bool:
        """Whether gradient operators read an outer variable with the value that the forward operators read.

        True if only increments of this block have changed it since the outer operators with this block began.
        """
        mine = self._writers.get(name, ())
        if not all(counts(op) or (id(op), name) in self._reverted for op in mine):
            return False
        outer, at = self.outer, self.at
        while outer is not None and at is not None:
            before = outer._order[id(at)]
            since = [op for op in outer._writers.get(name, ()) if op is not at]
            if outer.owns(name):
                since = [op for op in since if outer._order[id(op)] > before]
            if any((id(op), name) not in outer._reverted for op in since):
                return False
            if outer.owns(name):
                return True
            at, outer = outer.at, outer.outer
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
            if all((id(writer), name) in self._reverted for writer in later):
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
        """Whether a variable has a value before the operator at `place` of the block on every path."""
        before = self.block.ops[:place]
        if any(name in op.writes() and not op.definition.effects.may_skip for op in before) or self._is_array(
            name
        ):
            return True
        if not self.owns(name):
            assert self.outer is not None and self.at is not None
            return self.outer.has_value(name, self.at.idx)
        if self.at is not None:
            return not self.at.definition.effects.may_skip  # the operator with this block sets it
        var = self.block._find_var_recursive(name)
        return var is not None and (var.is_data or var.persistable)

    def _end(self) -> int:
        """The position after the last forward operator."""
        return 1 + max(index for index, op in enumerate(self.block.ops) if id(op) in self._order)


__all__ = ["Versions", "changes_nothing", "copied", "counts"]
