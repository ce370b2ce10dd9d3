"""Passes, which rewrite the instructions of a plan, and the three schemes of fusion that CPU and GPU passes share.

fuse_pairs        producers with their consumers, neighbours by neighbours
fuse_runs         runs of neighbours, such as chains of elementwise calls
HorizontalFusion  instructions of the same kind from anywhere, such as the updates of an optimizer
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
"""`rule(before, after, uses)`: the instruction that fuses two neighbours; None if they cannot be fused."""


def fuse(
    instructions: list[Instruction],
    needed: Iterable[str],
    passes: Iterable[Pass],
    roots: dict[str, str] | None = None,
) -> list[Instruction]:
    """Apply passes in order. `needed`, `roots`: see `Uses`."""
    needed = list(needed)
    for each in passes:
        instructions = each(instructions, Uses(instructions, needed, {} if roots is None else roots))
    return instructions


@dataclass(frozen=True)
class IncompleteFusion:
    """The action of a fusion that is valid only if the next instruction joins it too."""

    views: tuple[OpView, ...]


@runtime_checkable
class ShapeProvider(Protocol):
    """An action that can bind arrays of the right shape to results that it no longer computes."""

    def with_shapes(self, names: Sequence[str]) -> Any:
        """The action that also binds arrays with undefined elements to these names."""
        ...


def fuse_two(
    before: Instruction, after: Instruction, action: Any, reads: Iterable[str], writes: Iterable[str]
) -> Instruction:
    """The instruction for the operators of both, with the given action."""
    ops: dict[int, Operator] = {id(op): op for op in (*before.ops, *after.ops)}
    return Instruction(tuple(ops.values()), tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)), action)


def fuse_pairs(*rules: Rule) -> Pass:
    """The pass that fuses neighbours by rules, as many as possible.

    It drops fusions that lose a result with other uses, so that rules need not check that.
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
    """The longest fusion of the instructions from a position on, and their number."""
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
    """A candidate for horizontal fusion: `main`, and instructions `before` and `after` it that the fusion replaces too.

    `key`: equal for candidates that one instruction can replace; `detail`: data of the pass.
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
    """Members with one key to fuse at the position of the last one, and the variables that they read and write."""

    place: int
    members: list[Any] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    def conflicts(self, reads: set[str], writes: set[str]) -> bool:
        """True if an instruction with these reads and writes depends on the group, or the group on it."""
        return bool(self.writes & (reads | writes) or self.reads & writes)


class Run(Protocol):
    """Neighbouring instructions to fuse."""

    def take(self, each: Instruction) -> bool:
        """Add an instruction; False if it cannot be fused with the others."""
        ...

    def finished(self) -> list[Instruction]:
        """The instructions that replace those added."""
        ...


def fuse_runs(start: Callable[[Uses], Run]) -> Pass:
    """The pass that fuses maximal runs of neighbours; `start` makes an empty run."""

    def fuse_all(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
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

    return fuse_all


class HorizontalFusion:
    """A pass that fuses instructions of the same kind at the position of the last one.

    An instruction moves only past instructions that neither depend on it nor it on them.
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
        """The candidate at a position; None if its instruction is none."""
        raise NotImplementedError

    def fused(self, members: list[Any]) -> list[Instruction]:
        """The instructions that replace members with one key."""
        raise NotImplementedError

    def is_absorbed(self, position: int, groups: Iterable[Group]) -> bool:
        """True if a member of one of the groups replaces the instruction at a position."""
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
