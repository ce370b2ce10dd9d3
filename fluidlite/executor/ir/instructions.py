"""Instructions, the common form of plans for CPUs and GPUs; their live ranges, loops and def-use chains."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

from ..._ext.operands import Aliases
from ...framework import Operator
from ...ops.registry import OpDef, OpView
from . import jumps

_SHOWN = 6
"""The number of variables that the description of an instruction lists."""


@dataclass(eq=False, slots=True)
class Instruction:
    """One action of a step, for one operator or several fused ones.

    Args:
        ops: the operators, in order.
        reads, writes: the variables by their SSA names, arrays of offsets included; the plan's `TypeEnv` has their
            types and symbolic shapes.
        action: on the CPU a native call, the definition of a jump, or a function that calls the reference kernel; on a
            GPU a `Launch`.
        view: the operator, if the instruction is all of a single one.
    """

    ops: tuple[Operator, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    action: Any
    view: OpView | None = None

    @property
    def op(self) -> Operator:
        """The first operator."""
        return self.ops[0]

    @property
    def role(self) -> int:
        """The `OpRole` of the first operator."""
        return self.ops[0].attrs.get("op_role", 0)  # type: ignore[no-any-return]

    @property
    def kind(self) -> str:
        """The pattern name or the type of the operator, if the instruction is for a single one; else ""."""
        return "" if self.view is None else self.view.definition.planning.pattern or self.view.type

    @property
    def accessed(self) -> tuple[str, ...]:
        """The variables read, then those written."""
        return (*self.reads, *self.writes)

    @property
    def is_jump(self) -> bool:
        """True if a jump begins or ends here; nothing may be moved past it."""
        return isinstance(self.action, OpDef)

    @property
    def name(self) -> str:
        """The types of the operators with their counts: `mul+elementwise_add`, `4 sgd`."""
        types = Counter(op.type for op in self.ops)
        return "+".join(name if count == 1 else f"{count} {name}" for name, count in types.items())

    def describe(self) -> str:
        """The operators and the variables, as one line."""
        return f"{self.name}({_some(self.reads)}) -> {_some(self.writes)}"


def has_jumps(instructions: Iterable[Instruction]) -> bool:
    """True for code with branches or loops."""
    return any([isinstance(each.action, OpDef) for each in instructions])


def _some(names: Sequence[str]) -> str:
    """The first names, separated by commas, and the number of the rest."""
    left = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {left} more" if left > 0 else "")


def lifetimes(
    instructions: Iterable[Instruction], roots: Mapping[str, str], kept: Iterable[str]
) -> dict[str, tuple[int, int]]:
    """The live range of each variable: its first and last instruction; those of `kept` last until after all.

    A variable from before a loop that the loop accesses is live until the loop ends. `roots`: alias -> variable that
    owns the memory.
    """
    found: dict[str, tuple[int, int]] = {}
    at, instructions = -1, [*instructions]
    for at, instruction in enumerate(instructions):
        for name in (*instruction.reads, *instruction.writes):
            name = roots.get(name, name)
            found[name] = found[name][0] if name in found else at, at
    for begin, end in loops(instructions):
        found.update({name: (a, end) for name, (a, b) in found.items() if a < begin <= b < end})
    for name in kept:
        name = roots.get(name, name)
        found[name] = found[name][0] if name in found else at + 1, at + 1
    return found


def loops(instructions: Iterable[Instruction]) -> list[tuple[int, int]]:
    """The first and last instruction of each loop, inner loops first."""
    found: list[tuple[int, int]] = []
    begun: list[int] = []
    for at, each in enumerate(instructions):
        if each.action in jumps.BEGINS:
            begun.append(at)
        elif each.action in jumps.ENDS:
            begin = begun.pop()
            if each.action is jumps.BACK_EDGE:
                found.append((begin, at))
    return found


def outermost_loops(instructions: Iterable[Instruction]) -> list[tuple[int, int]]:
    """The first and last instruction of each loop that is in no other one, in order."""
    found: list[tuple[int, int]] = []
    for begin, end in loops(instructions):
        found = [(first, last) for first, last in found if first < begin] + [(begin, end)]
    return found


class Need(IntEnum):
    """The part of a variable that instructions read: nothing, its shape, or its elements."""

    NOTHING = 0
    SHAPE = 1
    ELEMENTS = 2


class Uses:
    """The def-use chains of a list of instructions, by alias set.

    `needed`: variables that are live at the end; `roots`: alias -> variable that owns the memory.
    """

    def __init__(self, instructions: Sequence[Instruction], needed: Iterable[str], roots: Aliases) -> None:
        self._instructions = instructions
        self.roots, self.root = roots, roots.root
        self.needed = frozenset(map(self.root, needed))
        self._successors: dict[Instruction, list[Instruction]] = defaultdict(list)

    @cached_property
    def places(self) -> dict[Instruction, int]:
        """The position of each instruction; of a fused one, that of the part that it replaces."""
        return {each: at for at, each in enumerate(self._instructions)}

    @cached_property
    def written(self) -> Counter[str]:
        """The number of writes of each variable."""
        roots = self.roots
        return Counter([roots.get(name, name) for each in self._instructions for name in each.writes])

    @cached_property
    def producers(self) -> dict[str, Instruction]:
        """The last instruction that writes each variable."""
        return {self.root(name): each for each in self._instructions for name in each.writes}

    def replace(self, parts: Iterable[Instruction], fused: Instruction) -> None:
        """Let an instruction be the producer and the reader of what it and its parts access."""
        self.producers.update({self.root(name): fused for name in fused.writes})
        for each in parts:
            self._successors[each].append(fused)

    def readers(self, name: str) -> Sequence[Instruction]:
        """The instructions that read a variable, in order; one for each of its operands."""
        return [now for each in self._readers.get(self.root(name), ()) for now in self._current(each)]

    def _current(self, each: Instruction) -> list[Instruction]:
        """The instructions that have replaced one; if none has, itself."""
        if each not in self._successors:
            return [each]
        return [now for successor in self._successors[each] for now in self._current(successor)]

    @cached_property
    def _readers(self) -> dict[str, list[Instruction]]:
        readers: dict[str, list[Instruction]] = defaultdict(list)
        roots = self.roots
        for each in self._instructions:
            for name in each.reads:
                readers[roots.get(name, name)].append(each)
        return readers

    def is_used(self, name: str) -> bool:
        """True if an instruction reads `name`, or it is live at the end."""
        name = self.root(name)
        return name in self.needed or name in self._readers

    def need(self, name: str, inside: Iterable[Instruction]) -> Need:
        """The need of all instructions but `inside`, and of the fetches, for a variable that these write."""
        name = self.root(name)
        if name in self.needed or self.written[name] != 1:
            return Need.ELEMENTS
        here = set(inside)
        others = [each for each in self.readers(name) if each not in here]
        if not others:
            return Need.NOTHING
        return Need.SHAPE if all([self._shape_only(each, name) for each in others]) else Need.ELEMENTS

    def _shape_only(self, reader: Instruction, name: str) -> bool:
        if len(reader.ops) > 1:
            return False
        slots = {slot for slot, names in reader.op.inputs.items() if name in map(self.root, names)}
        return bool(slots) and slots <= reader.op.definition.shape_only
