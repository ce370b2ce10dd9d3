"""Passes, which rewrite the instructions of a plan, and the schemes of fusion that CPU and GPU passes share.

fuse_matches      graphs of instructions that a pattern describes (`patterns.py`)
fuse_pairs        neighbours by neighbours, where operators have no native calls
fuse_runs         runs of neighbours, such as chains of elementwise calls
HorizontalFusion  instructions of the same kind from anywhere, such as the updates of an optimizer
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ..._ext.operands import Aliases
from ...framework import Operator
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


@runtime_checkable
class ShapeProvider(Protocol):
    """An action that can bind arrays of the right shape to results that it no longer computes."""

    def with_shapes(self, names: Sequence[str]) -> Any:
        """The action that also binds arrays with undefined elements to these names."""


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
    """One instruction (see `joined`) for several, at the position of the last one, or the first."""

    parts: Sequence[Instruction]
    action: Any
    reads: Iterable[str | None] | None = None
    writes: Iterable[str | None] | None = None
    at_first: bool = False


Rule = Callable[[Instruction, Instruction, Uses], Replacement | None]
"""`rule(before, after, uses)`: what replaces two neighbours; None if nothing does."""


def fuse_matches(pattern: Pattern, rule: Callable[[Match], Sequence[Replacement]]) -> Pass:
    """The pass that replaces the matches of a pattern, in order; fused instructions match, too.

    Rules need not check that nothing else needs a result that is lost, nor that the parts can be moved to one position.
    """

    def step(code: _Code, each: Instruction) -> None:
        match = pattern.match(code.uses, each)
        if match is not None:
            with suppress(NoMatch):
                code.replace(rule(match))

    return _by_steps(step, pattern.starts)


def fuse_pairs(*rules: Rule) -> Pass:
    """The pass that fuses neighbours, and the fused ones with their neighbours, as often as possible."""
    return _by_steps(lambda code, each: code.grow(each, rules))


def _by_steps(
    step: Callable[[_Code, Instruction], None],
    starts: Callable[[list[Instruction]], list[Instruction]] = lambda each: each,
) -> Pass:
    def run(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        found = starts(instructions)
        if not found:
            return instructions
        code = _Code(instructions, uses)
        for each in found:
            step(code, each)
        return [each for slot in code.slots for each in slot]

    return run


class _Code:
    """Instructions while some are replaced. `slots`: those that are now at the position of each original one."""

    def __init__(self, instructions: Sequence[Instruction], uses: Uses) -> None:
        self.uses = uses
        self.slots = [[each] for each in instructions]
        self._places = {each: at for at, each in enumerate(instructions)}

    def grow(self, after: Instruction, rules: Sequence[Rule]) -> None:
        """Fuse an instruction with the one before it, and the fused one again, as long as a rule does."""
        at = self._places.get(after, 0) - 1
        while at > 0 and not self.slots[at]:
            at -= 1
        if at >= 0 and self.slots[at]:
            for one in filter(None, (rule(self.slots[at][-1], after, self.uses) for rule in rules)):
                with suppress(NoMatch):
                    return self.grow(self.replace([one])[0], rules)

    def replace(self, replacements: Sequence[Replacement]) -> list[Instruction]:
        """The instructions of these replacements, in place of their parts; NoMatch if they would change a result."""
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
            require(len(made) == 1 and isinstance(made[0].action, ShapeProvider))
            made[0].writes, made[0].action = (*made[0].writes, *shapes), made[0].action.with_shapes(shapes)
        at = [self._places[one.parts[0 if one.at_first else -1]] for one in replacements]
        for each in parts:
            self.slots[self._places.pop(each)].remove(each)
        for place, one, each in zip(at, replacements, made, strict=True):
            self.slots[place].append(each)
            self._places[each] = place
            self.uses.replace(one.parts, each)
        return made

    def _roots(self, names: Iterable[str]) -> set[str]:
        return set(map(self.uses.root, names))

    def _moved(self, one: Replacement) -> Instruction:
        """The instruction of a replacement with sorted parts; raises NoMatch if one cannot be moved to the others."""
        parts = one.parts = sorted(one.parts, key=self._places.__getitem__)
        fused, moving = joined(parts, one.action, one.reads, one.writes), Group()
        slots = self.slots[self._places[parts[0]] : self._places[parts[-1]] + 1]
        span = [each for slot in slots for each in slot]
        if len(span) == len(parts):
            return fused
        made, kept = self._roots([name for each in parts for name in each.writes]), self._roots(fused.writes)
        for each in reversed(span) if one.at_first else span:
            reads, writes = self._roots(each.reads), self._roots(each.writes)
            if each in parts:
                moving.reads |= reads - made
                moving.writes |= writes & kept
            else:
                require(not each.is_jump and not moving.conflicts(reads, writes))
        return fused


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

    place: int = 0
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
        run, has_begun = start(uses), False
        for each in instructions:
            if run.take(each):
                has_begun = True
                continue
            if has_begun:
                out += run.finished()
                run = start(uses)
                has_begun = run.take(each)
            if not has_begun:
                out.append(each)
        return [*out, *(run.finished() if has_begun else ())]

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
        places = {each: position for position, each in enumerate(self.instructions)}
        replaced = {places[part] for member in found.values() for part in member.before} | set(found)
        groups: list[Group] = []
        roots = self.roots
        open_groups: dict[Any, Group] = {}
        for position, instruction in enumerate(self.instructions):
            member = found.get(position)
            if isinstance(instruction.action, OpDef):
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
