"""Keeps a step's temporaries within a limit: values are made again where they are read next, in the place of being
kept, and parameters are updated as soon as their gradients are there.

    conv2d(x, w) -> y                      conv2d(x, w) -> y
    batch_norm(y) -> z                     batch_norm(y) -> z
    relu(z) -> a                           relu(z) -> a
    ...                                    ...
                                           batch_norm(y) -> z@AGAIN1
                                           relu(z@AGAIN1) -> a@AGAIN2
    conv2d_grad(a, ...)                    conv2d_grad(a@AGAIN2, ...)

What goes first is what frees most bytes, at the instruction that has most of them alive, for the work that it is to be
made again (`ops/again.py`). The numbers of a step are the same to the bit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from ...base.sizes import current
from ...framework import Operator
from ...ops.again import Again, again, work
from ...ops.chains import Chain
from ...ops.registry import Call
from ..plan import marks
from ..plan.instructions import Instruction
from ..plan.meta import ExactMeta
from ..plan.shapes import renamed
from .early_updates import updated_early
from .memory import Survey, surveyed

PASS = "recomputation"
"""What this is called among the passes that can be left out."""

AGAIN = "@AGAIN"
_MOST_TOGETHER = 64
"""How many instructions may be made again for one value."""
_MOST_TRIED = 24
"""How many values are tried, if those before do not lower the peak."""
_SMALL = 64
"""Values that are so many times smaller than what they make free are rather kept than made again."""


@dataclass
class _Remaking:
    """How a variable is made again in front of an instruction.

    `makers`: the instructions that have made it and what it is made of, and how each is done again, in order; `names`:
    the new names of what they make; `other`: names under which what they read is there already. `work`: as `again.work`
    counts it; `kept`: bytes of what they read that has to be kept for it.
    """

    makers: list[tuple[Instruction, Again]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)
    work: float = 0.0
    kept: int = 0


class Recomputation:
    """Instructions whose temporaries are to take fewer bytes.

    Args:
        roots: names for the memory of others.
        kept: variables that are needed when all is done.
        temporary: whether a variable has memory of the plan's.
        begin: the first instruction in front of which something may be made again; what is fed and persistable may be
            another one by then if it is not 0.
    """

    def __init__(
        self,
        instructions: list[Instruction],
        meta: ExactMeta,
        roots: dict[str, str],
        kept: Collection[str],
        temporary: Callable[[str], bool],
        begin: int = 0,
    ) -> None:
        from ..._ext import kernels  # brings SciPy, which importing the package alone should not

        self._available = kernels.available
        self._meta, self._roots, self._temporary, self._begin = meta, roots, temporary, begin
        self._kept = frozenset(map(self._root, kept))
        self._bytes: dict[str, int] = {}
        self._origin: dict[str, str] = {}  # of what is made again, which variable that is
        self._versions: defaultdict[str, list[str]] = defaultdict(list)
        self._count = 0
        self._again: dict[int, tuple[Instruction, Again | None]] = {}
        self.instructions = instructions
        self.survey = self._surveyed(instructions)

    def update_early(self) -> None:
        """Update each parameter as soon as its gradient is there and nobody reads it any more."""
        self.instructions = updated_early(self.instructions, self._roots)
        self.survey = self._surveyed(self.instructions)

    def lower(self) -> bool:
        """Have fewer bytes alive where most are; False if there is nothing left to be made again."""
        found = sorted(self._candidates(), key=lambda each: -each[0])
        for _, name, place, remaking in found[:_MOST_TRIED]:
            instructions = self._remade(name, place, remaking)
            survey = self._surveyed(instructions)
            if survey.lower_than(self.survey):
                self.instructions, self.survey = instructions, survey
                for old, new in remaking.names.items():
                    origin = self._origin[new] = self._origin.get(old, old)
                    self._versions[origin].append(new)
                return True
        return False

    def _root(self, name: str) -> str:
        return self._roots.get(name, name)

    def _size(self, name: str) -> int:
        """How many bytes a variable has now."""
        root = self._root(name)
        if root not in self._bytes:
            self._bytes[root] = current(self._meta.bytes(root)) if root in self._meta.shapes else 0
        return self._bytes[root]

    def _surveyed(self, instructions: list[Instruction]) -> Survey:
        return surveyed(instructions, self._roots, self._kept, self._temporary, self._meta.bytes)

    def _candidates(self) -> Iterable[tuple[float, str, int, _Remaking]]:
        """What is alive at the peak without being touched, where it is read next, and how it is made again; each with
        the bytes that it frees for the work.
        """
        survey, peak = self.survey, self.survey.at
        depth = 0
        straight: list[bool] = []
        for each in self.instructions:
            depth += (each.action in marks.BEGINS) - (each.action in marks.ENDS)
            straight.append(depth == 0 and not each.jumps)
        for name, (first, last) in survey.lives.items():
            if not first < peak < last or name in self._kept or self._size(name) == 0:
                continue
            places = survey.touched[name]
            later = [at for at in places if at > peak]
            if peak in places or not later or later[0] < self._begin:
                continue
            if not straight[first] or not straight[later[0]]:
                continue
            if not all(self._can_read_another(self.instructions[at]) for at in later):
                continue
            remaking = self._remaking(name, later[0], straight)
            if remaking is not None:
                freed = self._size(name) - remaking.kept
                if freed > 0:
                    yield freed / max(remaking.work, 1.0), name, later[0], remaking

    def _can_read_another(self, reader: Instruction) -> bool:
        """Whether an instruction may be given another variable of the same type and shape."""
        return isinstance(reader.action, Call) and self._available(reader.action.kernel)

    def _remaking(self, name: str, place: int, straight: list[bool]) -> _Remaking | None:
        """How to make a variable again in front of an instruction; None if that cannot be done."""
        found = _Remaking()
        return found if self._add(name, place, self._size(name), straight, found) else None

    def _add(self, name: str, place: int, freed: int, straight: list[bool], found: _Remaking) -> bool:
        survey, peak = self.survey, self.survey.at
        first = survey.lives[name][0]
        maker = self.instructions[first]
        way = self._way(maker)
        if way is None or not straight[first] or name not in map(self._root, way.results):
            return False
        if len(found.makers) >= _MOST_TOGETHER:
            return False
        results = {*map(self._root, way.results)}
        for read in dict.fromkeys(
            self._root(operand)
            for operand in way.call.operands
            if operand is not None and operand not in way.results
        ):
            if read in results:
                return False
            if not self._temporary(read):
                if not self._stays(read, first, place):
                    return False
                continue
            if read in found.names or read in found.other:
                continue
            if len(survey.written[read]) != 1:
                return False
            begin, end = survey.lives[read]
            if begin < place and end >= peak:  # it is there at the peak, and may have to stay for longer
                continue
            if end < place and self._size(read) * _SMALL <= freed:
                found.kept += self._size(read)
                continue
            version = self._version(read, place)
            if version is not None:
                found.other[read] = version
                continue
            if not self._add(read, place, freed, straight, found):
                return False
        for result in way.results:
            self._count += 1
            found.names[self._root(result)] = (
                f"{self._origin.get(self._root(result), self._root(result))}{AGAIN}{self._count}"
            )
        found.makers.append((maker, way))
        found.work += work(way.call, self._size)
        return True

    def _version(self, name: str, place: int) -> str | None:
        """A variable with the same value that is there at the peak, or is made in front of an instruction."""
        origin = self._origin.get(name, name)
        for version in (origin, *self._versions[origin]):
            life = self.survey.lives.get(version)
            if version != name and life is not None and life[0] < place and life[1] >= self.survey.at:
                return version
        return None

    def _stays(self, name: str, first: int, place: int) -> bool:
        """Whether a variable that is no temporary has its value at two instructions."""
        if self._begin and name not in self._meta.known:
            return False
        return not any(first <= at < place for at in self.survey.written.get(name, ()))

    def _way(self, maker: Instruction) -> Again | None:
        """How to do again what an instruction does; None if that cannot be."""
        if id(maker) not in self._again:
            self._again[id(maker)] = maker, self._found_way(maker)
        return self._again[id(maker)][1]

    def _found_way(self, maker: Instruction) -> Again | None:
        if not isinstance(maker.action, Call) or maker.op._is_optimize_op():
            return None
        way = again(maker.action, maker.reads, maker.writes)
        if way is None or not self._available(way.call.kernel):
            return None
        results = {*map(self._root, way.results)}
        read = {
            self._root(name) for name in way.call.operands if name is not None and name not in way.results
        }
        return (
            None
            if results & read
            or any(len(self.survey.written[name]) != 1 for name in results if self._temporary(name))
            else way
        )

    def _remade(self, name: str, place: int, remaking: _Remaking) -> list[Instruction]:
        """The instructions, with a variable made again for those from `place` on."""
        for old, new in remaking.names.items():
            self._meta.set(new, self._meta.shapes[old], self._meta.dtypes[old])
        names = remaking.other | remaking.names
        made = []
        for maker, way in remaking.makers:
            writes = tuple(names[self._root(result)] for result in way.results)
            call = self._with_names(way.call, names)
            reads = (each for each in call.operands if each is not None and each not in writes)
            ops = tuple(renamed(op, self._of_operator(op, names)) for op in maker.ops)
            made.append(Instruction(ops, tuple(dict.fromkeys(reads)), writes, call))
        behind, later = self._without_later(self.instructions[place:], remaking.names)
        later[name] = remaking.names[name]
        left = [self._reading(each, later) for each in behind]
        return self._without_unread([*self.instructions[:place], *made, *left])

    def _without_later(
        self, instructions: list[Instruction], names: dict[str, str]
    ) -> tuple[list[Instruction], dict[str, str]]:
        """Instructions without those that make again, later, what there is in `names`; what is to be read instead."""
        same = {
            version: new
            for old, new in names.items()
            for version in self._versions[self._origin.get(old, old)]
            if version != old
        }
        left, later = [], {}
        for each in instructions:
            if each.writes and all(name in same for name in each.writes):
                later.update({name: same[name] for name in each.writes})
            else:
                left.append(each)
        return left, later

    def _of_operator(self, op: Operator, names: dict[str, str]) -> dict[str, str]:
        """New names for the variables of an operator."""
        mine = (*op.input_arg_names, *op.output_arg_names)
        return {name: names[self._root(name)] for name in mine if self._root(name) in names}

    def _with_names(self, call: Call, names: dict[str, str]) -> Call:
        """The call on the memory of others."""
        operands = [None if each is None else names.get(self._root(each), each) for each in call.operands]
        if not isinstance(call, Chain):
            return replace(call, operands=operands)
        pairs = [(names.get(self._root(a), a), names.get(self._root(b), b)) for a, b in call.replaceable]
        return replace(call, operands=operands, replaceable=pairs)

    def _reading(self, each: Instruction, names: dict[str, str]) -> Instruction:
        """An instruction that reads other variables."""
        if all(self._root(name) not in names for name in each.reads):
            return each
        reads = tuple(names.get(self._root(name), name) for name in each.reads)
        ops = tuple(renamed(op, self._of_operator(op, names), outputs=False) for op in each.ops)
        return replace(each, ops=ops, reads=reads, action=self._with_names(each.action, names))

    def _without_unread(self, instructions: list[Instruction]) -> list[Instruction]:
        """The instructions without those that make what nobody reads any more."""
        readers = Counter(self._root(name) for each in instructions for name in each.reads)
        left = []
        for at, each in reversed([*enumerate(instructions)]):
            writes = [*map(self._root, each.writes)]
            unread = writes and not any(readers[name] or name in self._kept for name in writes)
            way = self._way(each) if unread and at >= self._begin else None
            if way is not None and len(way.results) == len(writes) and all(map(self._temporary, writes)):
                readers.subtract(map(self._root, each.reads))
            else:
                left.append(each)
        return left[::-1]


@dataclass
class Limited:
    """Instructions whose temporaries take `taken` bytes in the place of `most`, and the `limit`."""

    instructions: list[Instruction]
    taken: int
    most: int
    limit: int

    @property
    def fits(self) -> bool:
        return self.taken <= self.limit

    def __str__(self) -> str:
        again = sum(any(AGAIN in name for name in each.writes) for each in self.instructions)
        return (
            f"temporaries take {_size_text(self.taken)} in the place of {_size_text(self.most)}, with {again} "
            f"instructions made again; the limit is {_size_text(self.limit)}"
        )


def limited(found: Recomputation, limit: int) -> Limited:
    """Instructions whose temporaries take at most `limit` bytes, or as few as can be.

    Sizes for which other instructions would do are excluded by guards.
    """
    most = found.survey.arena()
    _noted(found.survey, limit)
    if most <= limit:
        return Limited(found.instructions, most, most, limit)
    found.update_early()
    wanted = limit
    while True:
        while found.survey.peak > wanted and found.lower():
            pass
        taken = found.survey.arena()
        if taken <= limit or found.survey.peak > wanted:
            break
        wanted = found.survey.peak - (taken - limit)  # there are gaps between what is alive
    if taken <= limit:
        _noted(found.survey, limit)
    return Limited(found.instructions, taken, most, limit)


def _noted(survey: Survey, limit: int) -> bool:
    """Have the plan hold for sizes with which the temporaries fit, or do not, as they do now."""
    return survey.formula <= limit


def _size_text(count: int) -> str:
    return f"{count / 2**20:.1f} MB" if count >= 1 << 20 else f"{count / 2**10:.1f} KB"
