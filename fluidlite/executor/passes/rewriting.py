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

from ..._ext.operands import Aliases
from ...framework import Operator
from ...ops.registry import OpDef, OpView
from ..ir.instructions import Instruction, Need, Uses
from .patterns import Match, NoMatch, Pattern, require

Pass = Callable[[list[Instruction], Uses], list[Instruction]]
Rule = Callable[[Instruction, Instruction, Uses], Instruction | None]
"""`rule(before, after, uses)`: the instruction that fuses two neighbours; None if they cannot be fused."""


def fuse(
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
    """An action for several instructions, at the position of the last one, or the first; see `joined`."""

    parts: Sequence[Instruction]
    action: Any
    reads: Iterable[str | None] | None = None
    writes: Iterable[str | None] | None = None
    at_first: bool = False


def fuse_matches(pattern: Pattern, rule: Callable[[Match], Sequence[Replacement]]) -> Pass:
    """The pass that replaces matches of a pattern, found from its last line, the results of the pass included.

    It replaces none of which something else needs a result, or whose instructions cannot be moved, so that rules need
    not check that; they raise `NoMatch` for other reasons.
    """

    def run(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        if not pattern.may_match(instructions):
            return instructions
        made = pattern.made_by(instructions, uses)
        ends = [each for each in instructions if pattern.may_end(each, made, uses)]
        if not ends:
            return instructions
        code = _Code(instructions, uses)
        for each in ends:
            match = Match(uses)
            if match.extend(pattern, last=each):
                try:
                    code.replace(rule(match))
                except NoMatch:
                    continue
        return [each for slot in code.slots for each in slot]

    return run


class _Code:
    """The instructions while matches are replaced: what is now at the position of each."""

    def __init__(self, instructions: Sequence[Instruction], uses: Uses) -> None:
        self._uses = uses
        self.slots = [[each] for each in instructions]
        self._places = {id(each): at for at, each in enumerate(instructions)}

    def replace(self, replacements: Sequence[Replacement]) -> None:
        """Make all of these replacements; raises NoMatch if that would change a result."""
        if not replacements:
            return
        parts = {id(each): each for one in replacements for each in one.parts}
        require(parts.keys() <= self._places.keys())
        made = [self._moved(one) for one in replacements]
        lost = self._roots([name for each in parts.values() for name in each.writes])
        lost -= self._roots([name for _, each in made for name in each.writes])
        require(lost.isdisjoint(self._roots([name for _, each in made for name in each.reads])))
        require(all([self._uses.is_private(name, parts.values()) for name in lost]))
        for key in parts:
            at = self._places.pop(key)
            self.slots[at] = [each for each in self.slots[at] if id(each) != key]
        for at, each in made:
            self.slots[at].append(each)
            self._places[id(each)] = at
            self._uses.producers.update(dict.fromkeys(self._roots(each.writes), each))

    def _roots(self, names: Iterable[str]) -> set[str]:
        return set(map(self._uses.root, names))

    def _moved(self, one: Replacement) -> tuple[int, Instruction]:
        """The new instruction and its position, if no part moves past a jump or an instruction that depends on it."""
        parts = sorted(one.parts, key=lambda each: self._places[id(each)])
        places = [self._places[id(each)] for each in parts]
        to = places[0 if one.at_first else -1]
        fused = joined(parts, one.action, one.reads, one.writes)
        own = set(map(id, parts))
        passed = [
            (at, each)
            for at in range(places[0], places[-1] + 1)
            for each in self.slots[at]
            if id(each) not in own
        ]
        if not passed:
            return to, fused
        require(not any(each.is_jump for _, each in passed))
        touched = [(at, self._roots(each.reads), self._roots(each.writes)) for at, each in passed]
        made, kept = self._roots(n for each in parts for n in each.writes), self._roots(fused.writes)
        for start, each in zip(places, parts, strict=True):
            result = self._roots(each.writes) & kept
            fixed = (self._roots(each.reads) - made) | result
            for at, reads, writes in touched:
                require(
                    at not in range(min(start, to), max(start, to) + 1)
                    or not (writes & fixed or reads & result)
                )
        return to, fused


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
        needs = {name: uses.need(name, inside) for name in lost}
        if Need.ELEMENTS in needs.values():
            break
        shapes = [name for name, need in needs.items() if need is Need.SHAPE]
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
        places = {id(each): position for position, each in enumerate(self.instructions)}
        replaced = {places[id(part)] for member in found.values() for part in member.before} | set(found)
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
