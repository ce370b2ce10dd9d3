"""Counted loops: how a block goes through arrays, if a counter says at which elements.

fwd  word = read_from_array(words, i)        an element per iteration: a stacked input
     state = read_from_array(states, i)      written by the iteration before: loop-carried
     ...
     write_to_array(out, i) -> outs          an element per iteration: a stacked output
     increment(i)
     write_to_array(new, i) -> states
     less_than(i, n) -> cond                 trip count: as long as i is less than n
"""

from __future__ import annotations

from typing import NamedTuple

from ...framework import Block, Operator
from ...framework.gradients.versions import changes_nothing, counts
from ...ops.registry import EMPTY
from ..failures import Unsupported
from ..ir.inference import is_unplannable
from .blocks import is_inlinable, read_before, reads, results


class Access(NamedTuple):
    """An array element that an iteration reads or writes: that of its step or, if `follows`, of the next one.

    `like`: for a gradient that is taken out of the array, the variable that has its shape.
    """

    variable: str
    array: str
    follows: bool
    like: str = ""


class Shortened(NamedTuple):
    """The first rows of a variable: those of sequences of a rank table that have the step."""

    variable: str
    source: str
    table: str


class CountedLoop:
    """The block of a loop with one counter, as `DynamicRNN` makes it, or of its gradient.

    `counter`: is one more after an iteration, in a gradient one less; `limit`: what it is compared with; `reads`,
    `writes`, `shortened`: the uses of arrays and rank tables; `carried`: array of a loop-carried variable -> what an
    iteration writes to it; `ops`: the other operators; `outer`: outer variables that these read and then replace.
    `forward`: the block that this one is the gradient of; its variables are local to an iteration as well.

    Raises Unsupported if the block does anything else with arrays.
    """

    def __init__(self, op: Operator, forward: Block | None = None) -> None:
        self._op, self._block = op, op.attrs["sub_block"]
        self._own = {*self._block.vars, *(forward.vars if forward is not None else ())}
        self.ops: list[Operator] = []
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.shortened: list[Shortened] = []
        self.limit = ""
        ops = [each for each in self._block.ops if not changes_nothing(each)]
        indices = {name for each in ops for name in each.inputs.get("I", ())} - self._own
        self.counter = next((n for each in ops if counts(each) for n in each.writes() if n in indices), "")
        condition = "" if forward is not None else op.inputs["Condition"][0]
        self._sort(ops, condition, forward is not None)
        arrays = {access.array for access in self.reads}
        self.carried = {each.array: each.variable for each in self.writes if each.array in arrays}
        self._check(condition, forward is not None)
        self.outer = self._replaced()

    def _refusal(self, reason: str) -> Unsupported:
        return Unsupported(reason, self._op)

    def _sort(self, ops: list[Operator], condition: str, gradient: bool) -> None:
        """Sort the operators by what they do with counter, arrays and rank tables."""
        counted = False
        written = {name for op in ops for name in op.writes()}
        for op in ops:
            role = op.definition.planning.pattern
            on_counter = self.counter in op.inputs.get("I", ())
            follows = counted != gradient
            if counts(op) and op.inputs["X"] == [self.counter]:
                if counted or op.attr("step") != (-1 if gradient else 1):
                    raise self._refusal("its counter does not change by one")
                counted = True
            elif role == "read" and on_counter:
                like = (op.inputs.get(op.definition.effects.consumes) or [""])[0]
                self.reads.append(Access(op.outputs["Out"][0], op.inputs["X"][0], follows, like))
            elif role == "write" and on_counter:
                self.writes.append(Access(op.inputs["X"][0], op.outputs["Out"][0], follows))
            elif role == "shorten" and on_counter and not follows:
                (table,) = op.inputs["RankTable"]
                self.shortened.append(Shortened(op.outputs["Out"][0], op.inputs["X"][0], table))
            elif role == "limit" and op.inputs["X"] == [self.counter] and op.outputs["Out"] == [condition]:
                (self.limit,) = op.inputs["Y"]
                if not counted or self.limit in written:
                    raise self._refusal("its trip count does not follow from a counter")
            elif is_unplannable(op) and not is_inlinable(op, True):
                raise self._refusal(f"operator {op.type} has sub-blocks or non-tensor variables")
            else:
                self.ops.append(op)
                if not {each.variable for each in self.writes}.isdisjoint(op.writes()):
                    raise self._refusal("it overwrites a variable that was written to an array")
        if not counted or not (self.limit or gradient):
            raise self._refusal("its trip count does not follow from a counter")

    def _check(self, condition: str, gradient: bool) -> None:
        read = {name for op in self.ops for name in reads(op)}
        written = {name for op in self.ops for name in op.writes()}
        if not read.union(written, (each.variable for each in self.writes)).isdisjoint(
            (condition, self.counter)
        ):
            raise self._refusal("it computes with its counter or its condition")
        if any(map(self._block._is_persistable, written)):
            raise self._refusal("it changes persistable variables")
        found = [each.variable for each in self.reads] + [each.variable for each in self.shortened]
        sources = [each.source for each in self.shortened]
        if len(found) != len({*found}) or not written.isdisjoint([*found, *sources]):
            raise self._refusal("it overwrites a variable that was read from an array")
        taken = [each.array for each in self.reads if each.like or gradient]
        if len(self.writes) != len({each.array for each in self.writes}) or len(taken) != len({*taken}):
            raise self._refusal("it writes, or takes out, several elements of an array in an iteration")
        # Forward, an iteration reads elements of its step and writes those of the next; backward vice versa.
        here, there = (self.writes, self.reads) if gradient else (self.reads, self.writes)
        matching = [each for each in there if each.array in self.carried or not gradient]
        if any(each.follows for each in here) or any(
            each.follows != (each.array in self.carried) for each in matching
        ):
            raise self._refusal("it reads an array that it writes at another element than the previous one")

    def _replaced(self) -> list[str]:
        found: list[str] = []
        seen: set[str] = set()
        for op in self.ops:
            seen.update((*reads(op), *read_before(op)))
            for name in results(op):
                if name == EMPTY or name in (*self._own, *found) or self._block._is_persistable(name):
                    continue
                if name not in seen:
                    raise self._refusal(f"the value of {name!r} from the last iteration is needed")
                found.append(name)
        return found


__all__ = ["CountedLoop"]
