"""What the block of a loop does with counters and arrays, if its turns can be numbered beforehand.

fwd  word = read_from_array(words, i)        each turn is given an element: a stack
     state = read_from_array(states, i)      what the turn before has written there: carried
     ...
     write_to_array(out, i) -> outs          what all turns make: a stack
     increment(i)
     write_to_array(new, i) -> states
     less_than(i, n) -> cond                 as many turns as i is less than n
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from ...base.dtypes import VarType
from ...framework import Block, Operator
from ...framework.gradients.versions import changes_nothing, copied, counts
from ...ops.registry import EMPTY
from ..ir.errors import Unsupported
from ..ir.inference import is_unplannable
from .branching import ON_ARRAYS, is_inlinable, read_before, reads, results
from .residuals import residuals_of_branches

INTEGERS = (VarType.INT32, VarType.INT64)


class Access(NamedTuple):
    """An element of an array that a turn reads or writes: at the counter's value when the turn begins, plus `offset`.

    `like`: of a gradient that is taken out of the array, what it has the shape of.
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

    `counters`: how much each is more after a turn; `reads`, `writes`, `shortened`: what it does with arrays and rank
    tables; `ops`: what is left; `limit`: counter, offset and the variable that it is compared with, of the condition.
    `forward`: the block of which this one is the gradient's; what it declares is each turn's own.

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
        self._changed: set[str] = set()  # what is written to an array and then replaced
        for op in ops:
            role, copy = op.definition.planning.pattern, copied(op)
            if op.type in ON_ARRAYS and self._is_own(op):
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
                raise Unsupported("its condition is no comparison with a counter")
            else:
                self.ops.append(op)
                self._changed.update({access.variable for access in self.writes}.intersection(op.writes()))
        self.limit = self._comparisons.get(condition or "")
        self._check(condition)

    def _is_own(self, op: Operator) -> bool:
        """Whether an operator works on an array that each turn makes for itself."""
        (array,) = op.outputs["Out"] if op.type == "write_to_array" else op.inputs["X"]
        return array in self._own and self.counters.keys().isdisjoint(op.inputs.get("I", ()))

    def _compares(self, op: Operator) -> bool:
        """Whether the operator compares a counter with what stays the same."""
        return op.inputs["X"][0] in self.counters and op.inputs["Y"][0] not in self._written

    def _at(self, op: Operator) -> tuple[str, int]:
        (counter,) = op.inputs["I"]
        if counter not in self.counters:
            raise Unsupported(f"the index {counter!r} of an array is no counter")
        return counter, self.counters[counter]

    def _check(self, condition: str | None) -> None:
        if condition is not None and (self.limit is None or self.step != 1):
            raise Unsupported("how many turns there are is not known beforehand")
        if len({*self.counters.values()}) > 1 or abs(self.step) != 1:
            raise Unsupported("its counters do not go on by one")
        read = {name for op in self.ops for name in reads(op)}
        if not read.isdisjoint([condition, *self.counters, *self._comparisons]):
            raise Unsupported("it computes something with its counters")
        if any(access.variable in self.counters for access in self.writes):
            raise Unsupported("it writes its counters to an array")
        plain = {name for op in self.ops for name in op.writes()}
        found = [*(each.variable for each in self.reads), *(each.variable for each in self.shortened)]
        if len(found) != len({*found}) or not plain.isdisjoint(
            [*found, *(each.source for each in self.shortened), *self._changed]
        ):
            raise Unsupported("it replaces what it has read, or written to an array")
        written = {access.array: access for access in self.writes}
        readers = {access.array: access for access in self.reads}
        if len(written) < len(self.writes):
            raise Unsupported("it writes several elements of an array in a turn")
        for access in self.reads:
            other, write = readers[access.array], written.get(access.array)
            if (access.counter, access.offset) != (other.counter, other.offset):
                raise Unsupported("it reads several elements of an array in a turn")
            if other is not access and (other.like or access.like):
                raise Unsupported("it takes an element out of an array twice in a turn")
            if write and (write.counter, write.offset) != (access.counter, access.offset + self.step):
                raise Unsupported("it reads what is not of the turn before from an array that it writes")

    @property
    def step(self) -> int:
        """1 if the counters go up, -1 if they go down."""
        return next(iter(self.counters.values()), 1)

    @cached_property
    def inside(self) -> list[str]:
        """What the gradients of its branches read of them."""
        return residuals_of_branches(self.ops, arrays=True)

    @cached_property
    def outer(self) -> tuple[list[str], list[str]]:
        """Variables of blocks around that the operators replace: those that they read first, and the others."""
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
    """Integers that the operators only count."""
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
