"""The fuser: puts one instruction in the place of several. What it can put there is said by whom the plan is for.

A *pass* gets all instructions and gives those that take their place. There are three kinds that plans of the host and
of GPUs share: neighbours of which each works on what the one before makes (`fuse_pairs`), neighbours that go together
(`fuse_runs`), and instructions that are alike, wherever they stand (`HorizontalFusion`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from ...framework import Operator
from ...ops.registry import OpView
from ..ir.instructions import Instruction, Uses

Pass = Callable[[list[Instruction], Uses], list[Instruction]]
Rule = Callable[[Instruction, Instruction, Uses], Instruction | None]
"""One instruction for two that follow each other, if there is one: `rule(before, after, uses)`."""


def fuse(
    instructions: list[Instruction],
    needed: Iterable[str],
    passes: Iterable[Pass],
    roots: dict[str, str] | None = None,
) -> list[Instruction]:
    """The instructions after all passes. `needed`, `roots`: see `Uses`."""
    needed = list(needed)
    for each in passes:
        instructions = each(instructions, Uses(instructions, needed, {} if roots is None else roots))
    return instructions


@dataclass(frozen=True)
class IncompleteFusion:
    """Stands for the action of operators that can be joined only if the next one fits as well."""

    views: tuple[OpView, ...]


@runtime_checkable
class ShapeProvider(Protocol):
    """An action that can give something of the right shape for results that it does not make any more."""

    def with_shapes(self, names: Sequence[str]) -> Any:
        """The action that also gives, under these names, arrays of which nobody reads the elements."""
        ...


def fuse_two(
    before: Instruction, after: Instruction, action: Any, reads: Iterable[str], writes: Iterable[str]
) -> Instruction:
    """The instruction that does `action` for what two stand for."""
    ops: dict[int, Operator] = {id(op): op for op in (*before.ops, *after.ops)}
    return Instruction(tuple(ops.values()), tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)), action)


def fuse_pairs(*rules: Rule) -> Pass:
    """A pass that joins neighbours by rules, as many as fit.

    What is not made any more must be of no use to others; a rule does not ask that.
    """

    def run(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        out: list[Instruction] = []
        position = 0
        while position < len(instructions):
            found = _longest_fusion(instructions, position, uses, rules)
            out.append(found[0])
            position += found[1]
        return out

    return run


def _longest_fusion(
    instructions: Sequence[Instruction], position: int, uses: Uses, rules: Sequence[Rule]
) -> tuple[Instruction, int]:
    """What takes the place of the instruction at a position and of those behind it; how many these are in all."""
    inside = [instructions[position]]
    current = inside[0]
    found = current, 1
    for place in range(position + 1, len(instructions)):
        after, longer = instructions[place], None
        for rule in rules:
            longer = rule(current, after, uses)
            if longer is not None:
                break
        if longer is None:
            break
        inside.append(after)
        lost = set((*current.writes, *after.writes)).difference(longer.writes)
        seen = {name: uses.locality(name, inside) for name in lost}
        if not all(private for private, _ in seen.values()):
            break
        shapes = [name for name, (_, shape_wanted) in seen.items() if shape_wanted]
        if shapes:
            if not isinstance(longer.action, ShapeProvider):
                break
            longer = replace(
                longer, writes=(*longer.writes, *shapes), action=longer.action.with_shapes(shapes)
            )
        current = longer
        if not isinstance(longer.action, IncompleteFusion):
            found = longer, len(inside)
    return found


@dataclass
class Member:
    """Instructions that belong to one of those that are alike: `main`, and what it makes superfluous before and after.

    `key`: what those have in common that one instruction can do; `detail`: what else the pass knows of it.
    """

    key: Any
    main: Instruction
    before: tuple[Instruction, ...] = ()
    after: tuple[Instruction, ...] = ()
    detail: Any = None

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return (*self.before, self.main, *self.after)


@dataclass
class Group:
    """Members that can be put together, at the place of the last one; what they read and write."""

    place: int
    members: list[Any] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    def conflicts(self, reads: set[str], writes: set[str]) -> bool:
        """Whether the order between the group and something else matters."""
        return bool(self.writes & (reads | writes) or self.reads & writes)


class Run(Protocol):
    """Neighbouring instructions that become one."""

    def take(self, each: Instruction) -> bool:
        """Add an instruction; False if it does not go with the others."""
        ...

    def finished(self) -> list[Instruction]:
        """What stands in the place of those that were taken."""
        ...


def fuse_runs(start: Callable[[Uses], Run]) -> Pass:
    """The pass that joins instructions that stand together: as many as a run takes that `start` has made."""

    def join(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        out: list[Instruction] = []
        run = start(uses)
        for each in instructions:
            if run.take(each):
                continue
            out += run.finished()
            run = start(uses)
            if not run.take(each):
                out.append(each)
        return out + run.finished()

    return join


class HorizontalFusion:
    """A pass that puts alike instructions in one, with the last of them.

    One is done later than where it stood only if nothing in between touches what it works on.
    """

    def __init__(
        self, instructions: list[Instruction], uses: Uses, roots: Mapping[str, str] | None = None
    ) -> None:
        self.instructions = instructions
        self.uses = uses
        self.roots = uses.roots if roots is None else roots

    @classmethod
    def run(cls, instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        return cls(instructions, uses).rewritten()

    def member(self, position: int) -> Member | None:
        """What may be put together with others, if the instruction at a position is such."""
        raise NotImplementedError

    def fused(self, members: list[Any]) -> list[Instruction]:
        """What takes the place of members of one key."""
        raise NotImplementedError

    def is_absorbed(self, position: int, groups: Iterable[Group]) -> bool:
        """Whether a member of one of the groups has taken over the instruction at a position."""
        return False

    def rewritten(self) -> list[Instruction]:
        found = {
            position: member
            for position in range(len(self.instructions))
            if (member := self.member(position)) is not None
        }
        if not found:
            return self.instructions
        places = {id(each): position for position, each in enumerate(self.instructions)}
        replaced = {places[id(part)] for member in found.values() for part in member.before} | set(found)
        groups: list[Group] = []
        roots = self.roots
        open_groups: dict[Any, Group] = {}
        for position, instruction in enumerate(self.instructions):
            member = found.get(position)
            if instruction.is_jump:
                open_groups.clear()
            if member is None and position in replaced:
                continue
            if member is None and not open_groups:
                continue
            if self.is_absorbed(position, open_groups.values()):
                replaced.add(position)
                continue
            parts = member.instructions if member is not None else (instruction,)
            reads = {roots.get(name, name) for part in parts for name in part.reads}
            writes = {roots.get(name, name) for part in parts for name in part.writes}
            for key in [key for key, group in open_groups.items() if group.conflicts(reads, writes)]:
                del open_groups[key]
            if member is None:
                continue
            if member.key not in open_groups:
                groups.append(open_groups.setdefault(member.key, Group(position)))
            group = open_groups[member.key]
            group.place = position
            group.members.append(member)
            group.reads |= reads
            group.writes |= writes
        at: dict[int, list[Instruction]] = defaultdict(list)
        for group in groups:
            at[group.place] += self.fused(group.members)
        return [
            each
            for position, instruction in enumerate(self.instructions)
            for each in (*(() if position in replaced else (instruction,)), *at.get(position, ()))
        ]
