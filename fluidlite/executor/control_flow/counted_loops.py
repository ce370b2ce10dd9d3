"""Counted loops: how a block uses counters and arrays, if its iterations can be numbered in advance.

fwd  word = read_from_array(words, i)        an element per iteration: a stacked input
     state = read_from_array(states, i)      written by the iteration before: loop-carried
     ...
     write_to_array(out, i) -> outs          an element per iteration: a stacked output
     increment(i)
     write_to_array(new, i) -> states
     less_than(i, n) -> cond                 trip count: as long as i is less than n
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from ...base.dtypes import VarType
from ...framework import Block, Operator
from ...framework.gradients.versions import changes_nothing, copied, counts
from ...ops.registry import EMPTY
from ..failures import Unsupported
from ..ir.inference import is_unplannable
from .blocks import ON_ARRAYS, is_inlinable, read_before, reads, residuals_of_branches, results

INTEGERS = (VarType.INT32, VarType.INT64)


class Access(NamedTuple):
    """An array element that an iteration reads or writes: at the counter's value when it begins, plus `offset`.

    `like`: for a gradient that is taken out of the array, the variable that has its shape.
    """

    variable: str
    array: str
    counter: str
    offset: int
    like: str = ""


class Shortened(NamedTuple):
    """The first rows of a variable: those of sequences of a rank table that have a step of this number."""

    variable: str
    source: str
    table: str
    counter: str
    offset: int


class CountedLoop:
    """The block of a loop with counters.

    `counters`: counter -> its increment per iteration; `reads`, `writes`, `shortened`: the uses of arrays and rank
    tables; `ops`: the other operators; `limit`: counter, offset and bound of the comparison that is the condition.
    `forward`: the block that this one is the gradient of; its variables are local to an iteration as well.

    Raises Unsupported if the block does anything else with arrays.
    """

    def __init__(self, block: Block, condition: str | None, forward: Block | None = None) -> None:
        self.block = block
        self._own = {*block.vars, *(forward.vars if forward is not None else ())}
        self.ops: list[Operator] = []
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.shortened: list[Shortened] = []
        ops = [op for op in block.ops if not changes_nothing(op)]
        self._written = [name for op in ops for name in op.writes()]
        self.counters = {name: 0 for name in _counters(block, ops) if name not in self._own}
        self._comparisons: dict[str, tuple[str, int, str]] = {}
        self._changed: set[str] = set()  # variables that are overwritten after they were written to an array
        for op in ops:
            role, copy = op.definition.planning.pattern, copied(op)
            if op.type in ON_ARRAYS and self._is_local_array(op):
                self.ops.append(op)
                continue
            if counts(op) and op.inputs["X"][0] in self.counters:
                self.counters[op.inputs["X"][0]] += int(op.attr("step"))
            elif role == "read":
                like = (op.inputs.get(op.definition.effects.consumes) or [""])[0]
                self.reads.append(Access(op.outputs["Out"][0], op.inputs["X"][0], *self._at(op), like))
            elif role == "write":
                self.writes.append(Access(op.inputs["X"][0], op.outputs["Out"][0], *self._at(op)))
            elif role == "shorten":
                (table,) = op.inputs["RankTable"]
                self.shortened.append(
                    Shortened(op.outputs["Out"][0], op.inputs["X"][0], table, *self._at(op))
                )
            elif role == "limit" and self._compares(op):
                (counter,), (limit,) = op.inputs["X"], op.inputs["Y"]
                self._comparisons[op.outputs["Out"][0]] = counter, self.counters[counter], limit
            elif copy and condition is not None and op.output_arg_names == [condition]:
                self._comparisons.pop(condition, None)
                if copy[0] in self._comparisons:
                    self._comparisons[condition] = self._comparisons[copy[0]]
            elif is_unplannable(op) and not is_inlinable(op, True):
                raise Unsupported(f"operator {op.type} has sub-blocks or non-tensor variables")
            elif condition in [*op.writes()]:
                raise Unsupported("its condition is not a comparison with a counter")
            else:
                self.ops.append(op)
                self._changed.update({access.variable for access in self.writes}.intersection(op.writes()))
        self.limit = self._comparisons.get(condition or "")
        self._check(condition)

    def _is_local_array(self, op: Operator) -> bool:
        """True if an operator works on an array that is local to an iteration."""
        (array,) = op.outputs["Out"] if op.type == "write_to_array" else op.inputs["X"]
        return array in self._own and self.counters.keys().isdisjoint(op.inputs.get("I", ()))

    def _compares(self, op: Operator) -> bool:
        """True if the operator compares a counter with a loop-invariant variable."""
        return op.inputs["X"][0] in self.counters and op.inputs["Y"][0] not in self._written

    def _at(self, op: Operator) -> tuple[str, int]:
        (counter,) = op.inputs["I"]
        if counter not in self.counters:
            raise Unsupported(f"the index {counter!r} of an array is not a counter")
        return counter, self.counters[counter]

    def _check(self, condition: str | None) -> None:
        if condition is not None and (self.limit is None or self.step != 1):
            raise Unsupported("its trip count does not follow from a counter")
        if len({*self.counters.values()}) > 1 or abs(self.step) != 1:
            raise Unsupported("its counters do not change by one")
        read = {name for op in self.ops for name in reads(op)}
        if not read.isdisjoint([condition, *self.counters, *self._comparisons]):
            raise Unsupported("it computes with its counters")
        if any(access.variable in self.counters for access in self.writes):
            raise Unsupported("it writes its counters to an array")
        plain = {name for op in self.ops for name in op.writes()}
        found = [*(each.variable for each in self.reads), *(each.variable for each in self.shortened)]
        if len(found) != len({*found}) or not plain.isdisjoint(
            [*found, *(each.source for each in self.shortened), *self._changed]
        ):
            raise Unsupported("it overwrites a variable that was read from an array, or written to one")
        written = {access.array: access for access in self.writes}
        readers = {access.array: access for access in self.reads}
        if len(written) < len(self.writes):
            raise Unsupported("it writes several elements of an array in an iteration")
        for access in self.reads:
            other, write = readers[access.array], written.get(access.array)
            if (access.counter, access.offset) != (other.counter, other.offset):
                raise Unsupported("it reads several elements of an array in an iteration")
            if other is not access and (other.like or access.like):
                raise Unsupported("it takes an element out of an array twice in an iteration")
            if write and (write.counter, write.offset) != (access.counter, access.offset + self.step):
                raise Unsupported("it reads an array that it writes at another element than the previous one")

    @property
    def step(self) -> int:
        """1 if the counters go up, -1 if they go down."""
        return next(iter(self.counters.values()), 1)

    @cached_property
    def branch_residuals(self) -> list[str]:
        """The residuals of the branches in the block."""
        return residuals_of_branches(self.ops, arrays=True)

    @cached_property
    def outer(self) -> tuple[list[str], list[str]]:
        """The outer variables that the operators write: those that they read before (loop-carried), and the others."""
        own, block = self._own, self.block
        first: list[str] = []
        only: list[str] = []
        seen: set[str] = set()
        for op in self.ops:
            seen.update((*reads(op), *read_before(op)))
            for name in results(op):
                if (
                    name != EMPTY
                    and name not in own
                    and not block._is_persistable(name)
                    and name not in (*first, *only)
                ):
                    (first if name in seen else only).append(name)
        return first, only


def _counters(block: Block, ops: Iterable[Operator]) -> list[str]:
    """Integers that the operators only increment."""
    found: dict[str, bool] = {}
    for op in ops:
        for name in op.writes():
            found[name] = found.get(name, True) and counts(op) and float(op.attr("step")).is_integer()
    made = []
    for name, only in found.items():
        var = block._find_var_recursive(name)
        if only and var is not None and not var.persistable:
            if var._dtype in INTEGERS and var._shape == (1,):
                made.append(name)
    return made


__all__ = ["Access", "CountedLoop", "Shortened"]
