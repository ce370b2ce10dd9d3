"""The form that plans of the host and of GPUs have in common: instructions, who touches what, and when."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...framework import Operator
from ...ops.registry import OpDef, OpView
from . import jumps

_SHOWN = 6
"""How many variables of an instruction are named in its description."""


@dataclass(eq=False, slots=True)
class Instruction:
    """What a step does for operators, at one place.

    `ops`: the operators, in order; `reads`, `writes`: the variables concerned, by the names that their values have in
    the plan, arrays of offsets among them; the plan's `TypeEnv` has their types, and formulas for their shapes.
    `action`: what whoever runs it does: on the host a native call, the mark of a jump, or a function that calls the
    reference kernel; on a GPU a function that queues the work. `view`: the one operator, if it stands for one as it is.
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
    def kind(self) -> str:
        """The pattern name of the operator, or else its type, of an instruction for one operator; "" otherwise."""
        return "" if self.view is None else self.view.definition.planning.pattern or self.view.type

    @property
    def touches(self) -> tuple[str, ...]:
        """What is read, then what is written."""
        return (*self.reads, *self.writes)

    @property
    def jumps(self) -> bool:
        """Whether a jump begins or ends here, so that nothing may be moved past."""
        return isinstance(self.action, OpDef)

    @property
    def name(self) -> str:
        """The operators, how many of each type: `mul+elementwise_add`, `4 sgd`."""
        types = Counter(op.type for op in self.ops)
        return "+".join(name if count == 1 else f"{count} {name}" for name, count in types.items())

    def describe(self) -> str:
        """The operators and the variables, as one line."""
        return f"{self.name}({_some(self.reads)}) -> {_some(self.writes)}"


def _some(names: Sequence[str]) -> str:
    """Names with commas between; of many only the first."""
    left = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {left} more" if left > 0 else "")


def lifetimes(
    instructions: Iterable[Instruction], roots: Mapping[str, str], kept: Iterable[str]
) -> dict[str, tuple[int, int]]:
    """The first and the last instruction that touch each variable; `kept` are touched when all are done.

    What is there before a loop and touched in it is needed until that ends. `roots`: of some names the variable that
    counts, because it has the same memory or is the whole of it.
    """
    found: dict[str, tuple[int, int]] = {}
    at, instructions = -1, [*instructions]
    for at, instruction in enumerate(instructions):
        for name in instruction.touches:
            name = roots.get(name, name)
            found[name] = found[name][0] if name in found else at, at
    for begin, end in loops(instructions):
        found.update({name: (a, end) for name, (a, b) in found.items() if a < begin <= b < end})
    for name in kept:
        name = roots.get(name, name)
        found[name] = found[name][0] if name in found else at + 1, at + 1
    return found


def loops(instructions: Iterable[Instruction]) -> list[tuple[int, int]]:
    """Where loops begin and end, inner ones before those around them."""
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
    """Those that are in no other one, in order."""
    found: list[tuple[int, int]] = []
    for begin, end in loops(instructions):
        found = [(first, last) for first, last in found if first < begin] + [(begin, end)]
    return found


class Uses:
    """Who reads and writes the variables of a list of instructions.

    `needed`: variables that must have their values in the end. `roots`: names for the memory of others.
    """

    def __init__(
        self, instructions: Sequence[Instruction], needed: Iterable[str], roots: dict[str, str]
    ) -> None:
        self._instructions = instructions
        self.roots = roots
        self.needed = frozenset(map(self.root, needed))

    def root(self, name: str) -> str:
        """The variable whose memory a name means."""
        return self.roots.get(name, name)

    def merge(self, name: str, other: str) -> None:
        """Let a variable, and all names for its memory, be names for that of another one with the same value."""
        mine, its = self.root(name), self.root(other)
        self.roots.update({alias: its for alias, root in self.roots.items() if root == mine})
        self.roots[mine] = its

    @cached_property
    def written(self) -> Counter[str]:
        """How often each variable is written."""
        roots = self.roots
        return Counter([roots.get(name, name) for each in self._instructions for name in each.writes])

    @cached_property
    def makers(self) -> dict[str, Instruction]:
        """What writes each variable last."""
        return {self.root(name): each for each in self._instructions for name in each.writes}

    def readers(self, name: str) -> Sequence[Instruction]:
        """What reads a variable, in order; twice if it names its memory twice."""
        return self._readers.get(self.root(name), ())

    @cached_property
    def _readers(self) -> dict[str, list[Instruction]]:
        readers: dict[str, list[Instruction]] = defaultdict(list)
        roots = self.roots
        for each in self._instructions:
            for name in each.reads:
                readers[roots.get(name, name)].append(each)
        return readers

    def matters(self, name: str) -> bool:
        """Whether anybody reads `name`, or it must have its value in the end."""
        name = self.root(name)
        return name in self.needed or name in self._readers

    def private(self, name: str, inside: Collection[Instruction]) -> tuple[bool, bool]:
        """Whether nobody but `inside` needs the elements of `name`, and whether others look at its shape."""
        name = self.root(name)
        if name in self.needed or self.written[name] != 1:
            return False, False
        is_local = {id(each) for each in inside}
        others = [each for each in self._readers.get(name, ()) if id(each) not in is_local]
        return all(self._shape_only(each, name) for each in others), bool(others)

    def _shape_only(self, reader: Instruction, name: str) -> bool:
        if len(reader.ops) > 1:
            return False
        slots = {slot for slot, names in reader.op.inputs.items() if name in map(self.root, names)}
        return bool(slots) and slots <= reader.op.definition.shape_only
