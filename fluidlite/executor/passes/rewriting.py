"""Passes, which rewrite the instructions of a plan, and the schemes of fusion that CPU and GPU passes share.

fuse_matches      graphs of instructions that a pattern describes (`patterns.py`)
fuse_alike        instructions of the same kind from anywhere, such as the updates of an optimizer
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ..._ext.operands import Aliases
from ...framework import Operator, OpRole
from ...ops.registry import OpDef
from ..ir.instructions import Instruction, Need, Uses
from .patterns import Match, NoMatch, Pattern, require

Pass = Callable[[list[Instruction], Uses], list[Instruction]]


def apply_passes(
    instructions: list[Instruction],
    needed: Iterable[str],
    passes: Iterable[Pass],
    roots: Aliases | None = None,
) -> list[Instruction]:
    """Apply passes in order. `needed`, `roots`: see `Uses`."""
    needed = list(needed)
    roots = Aliases() if roots is None else roots
    for each in passes:
        instructions = each(instructions, Uses(instructions, needed, roots))
    return instructions


def in_halves(
    instructions: list[Instruction],
    needed: Sequence[str],
    run: Callable[[list[Instruction], Sequence[str]], list[Instruction]],
) -> tuple[list[Instruction], int]:
    """Run passes over the instructions before the first backward one, and over the others; nothing moves between.

    Returns the instructions and the position of the second half.
    """
    backward = [each.role & OpRole.Backward for each in instructions]
    cut = next((at for at, is_backward in enumerate(backward) if is_backward), len(backward))
    read = {name for each in instructions[cut:] for name in each.reads}
    first = run(instructions[:cut], [*needed, *read])
    return [*first, *run(instructions[cut:], needed)], len(first)


def joined(
    parts: Sequence[Instruction],
    action: Any,
    reads: Iterable[str | None] | None = None,
    writes: Iterable[str | None] | None = None,
) -> Instruction:
    """The instruction for the operators of all parts; by default it accesses the variables that the new call does."""
    ops: dict[int, Operator] = {id(op): op for each in parts for op in each.ops}
    operands = set(action.operands) if reads is None or writes is None else ()
    if reads is None:
        reads = [name for each in parts for name in each.reads if name in operands]
    if writes is None:
        writes = [name for each in parts for name in each.writes if name in operands]
    read, written = dict.fromkeys(filter(None, reads)), dict.fromkeys(filter(None, writes))
    return Instruction(tuple(ops.values()), tuple(read), tuple(written), action)


@dataclass
class Replacement:
    """One instruction (see `joined`) for several, at the position of the last one, or the first if only that can be."""

    parts: Sequence[Instruction]
    action: Any
    reads: Iterable[str | None] | None = None
    writes: Iterable[str | None] | None = None
    at_first: bool = False


def fuse_matches(pattern: Pattern, rule: Callable[[Match], Sequence[Replacement]]) -> Pass:
    """The pass that replaces the matches of a pattern, in order; fused instructions match, too.

    Rules need not check that nothing else needs a result that is lost, nor that the parts can be moved to one position.
    """

    def run(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        starts = pattern.starts(instructions)
        if not starts:
            return instructions
        code = _Code(instructions, uses)
        for each in starts:
            match = pattern.match(uses, each) if each in uses.places else None
            if match is not None:
                with suppress(NoMatch):
                    code.replace(rule(match))
        return [each for slot in code.slots for each in slot]

    return run


class _Code:
    """Instructions while some are replaced. `slots`: those that are now at the position of each original one."""

    def __init__(self, instructions: Sequence[Instruction], uses: Uses) -> None:
        self.uses = uses
        self.slots = [[each] for each in instructions]
        self._places = uses.places

    def replace(self, replacements: Sequence[Replacement]) -> None:
        """Put the instructions of replacements in place of their parts; NoMatch if they would change a result."""
        parts = {each for one in replacements for each in one.parts}
        require(parts <= self._places.keys())
        made = [self._moved(one) for one in replacements]
        lost = self._roots([name for each in parts for name in each.writes])
        lost -= self._roots([name for each in made for name in each.writes])
        require(all([lost.isdisjoint(map(self.uses.root, each.reads)) for each in made]))
        needs = {name: self.uses.need(name, parts) for name in lost}
        require(Need.ELEMENTS not in needs.values())
        shapes = [name for name, need in needs.items() if need is Need.SHAPE]
        if shapes:
            require(len(made) == 1 and hasattr(made[0].action, "with_shapes"))  # on a GPU
            made[0].writes, made[0].action = (*made[0].writes, *shapes), made[0].action.with_shapes(shapes)
        at = [self._places[one.parts[0 if one.at_first else -1]] for one in replacements]
        for each in parts:
            self.slots[self._places.pop(each)].remove(each)
        for place, one, each in zip(at, replacements, made, strict=True):
            self.slots[place].append(each)
            self._places[each] = place
            self.uses.replace(one.parts, each)

    def _roots(self, names: Iterable[str]) -> set[str]:
        return set(map(self.uses.root, names))

    def _moved(self, one: Replacement) -> Instruction:
        """The instruction of a replacement with sorted parts; raises NoMatch if one cannot be moved to the others."""
        parts = one.parts = sorted(one.parts, key=self._places.__getitem__)
        fused = joined(parts, one.action, one.reads, one.writes)
        slots = self.slots[self._places[parts[0]] : self._places[parts[-1]] + 1]
        span = [each for slot in slots for each in slot]
        if len(span) == len(parts):
            return fused
        for to_first in (one.at_first, not one.at_first):
            if self._can_move(span, fused, parts, to_first):
                one.at_first = to_first
                return fused
        raise NoMatch

    def _can_move(
        self, span: list[Instruction], fused: Instruction, parts: Sequence[Instruction], to_first: bool
    ) -> bool:
        """True if parts can be moved to the first (or last) of them, past the others of a span."""
        made, kept = self._roots([name for each in parts for name in each.writes]), self._roots(fused.writes)
        moving = Group()
        for each in reversed(span) if to_first else span:
            reads, writes = self._roots(each.reads), self._roots(each.writes)
            if each in parts:
                moving.reads |= reads - made
                moving.writes |= writes & kept
            elif each.is_jump or moving.conflicts(reads, writes):
                return False
        return True


@dataclass
class Group:
    """Instructions to fuse at the position of the last one, and the variables that they read and write."""

    place: int = 0
    members: list[Instruction] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    def conflicts(self, reads: set[str], writes: set[str]) -> bool:
        """True if an instruction with these reads and writes depends on the group, or the group on it."""
        return bool(self.writes & (reads | writes) or self.reads & writes)


def fuse_alike(
    key: Callable[[Instruction], Any], fused: Callable[[list[Instruction]], list[Instruction]]
) -> Pass:
    """Horizontal fusion: the pass that fuses instructions with one key (None: not to be fused) from anywhere.

    They are fused at the position of the last one; an instruction moves only past instructions that neither depend on
    it nor it on them. `fused`: the instructions that replace at least two.
    """

    def run(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        keys = [key(each) for each in instructions]
        if len({*keys} - {None}) == len(keys) - keys.count(None):
            return instructions
        groups: list[Group] = []
        open_groups: dict[Any, Group] = {}
        roots = uses.roots
        for position, (each, its_key) in enumerate(zip(instructions, keys, strict=True)):
            if isinstance(each.action, OpDef):
                open_groups.clear()
            if its_key is None and not open_groups:
                continue
            reads = {roots.get(name, name) for name in each.reads}
            writes = {roots.get(name, name) for name in each.writes}
            for conflicting in [k for k, group in open_groups.items() if group.conflicts(reads, writes)]:
                del open_groups[conflicting]
            if its_key is None:
                continue
            if its_key not in open_groups:
                groups.append(open_groups.setdefault(its_key, Group()))
            group = open_groups[its_key]
            group.place = position
            group.members.append(each)
            group.reads |= reads
            group.writes |= writes
        at = {group.place: fused(group.members) for group in groups if len(group.members) > 1}
        gone = {each for group in groups if len(group.members) > 1 for each in group.members}
        return [
            now
            for position, each in enumerate(instructions)
            for now in at.get(position, () if each in gone else (each,))
        ]

    return run
