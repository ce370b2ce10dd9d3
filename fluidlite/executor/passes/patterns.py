"""Patterns: small graphs of kernels to find in a program, written as lines in program order.

    scores = product(q, keys | m n k)       results = kernel(operands | numbers)
    biased = add(scores, bias)?             may be missing: its result is its first operand then
    p      = softmax(biased | _ n)          "_": any variable, number or kernel

A name stands for one variable, or one number, in all lines. A kernel is that of a native call, or one of the pattern's
own `readers`, functions that see several kernels as one, or only some calls of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...base.sizes import always_equal
from ...ops.kernels.kernel_def import KERNELS
from ...ops.registry import Call
from ..ir.instructions import Instruction, Uses

_LINE = re.compile(
    r"(?P<results>.+?) = (?P<kernel>\w+)\((?P<operands>[^|)]*)(\|(?P<numbers>.*))?\)(?P<mark>\??)"
)
_WORD = re.compile(r"\w+")
_ANY = "_"


class NoMatch(Exception):
    """The instructions do not match, or must not be replaced."""


def require(condition: bool) -> None:
    if not condition:
        raise NoMatch


class Node(NamedTuple):
    """What a line of a pattern is compared with: operands that a call reads, its results, and its numbers."""

    operands: Sequence[str | None]
    results: Sequence[str | None]
    numbers: Sequence[Any] = ()


Reader = Callable[[Call], Node | None]


def node_of(call: Call) -> Node | None:
    """The operands and results of a call as its kernel declares them, and its integers."""
    kernel, count = KERNELS[call.kernel], len(call.operands)
    if kernel is None or not count:
        return None
    operands, places = [*call.operands], sorted([kernel.places[name] % count for name in kernel.made])
    results = [operands[at] for at in places]
    for at in reversed(places):
        del operands[at]
    return Node(operands, results, call.ints)


@dataclass(frozen=True)
class _Line:
    results: list[str]
    kernel: str
    operands: list[str]
    numbers: list[str]
    optional: bool


class Pattern:
    """The lines of a text. `readers`: word for a kernel -> function from a call to its `Node`, or None."""

    def __init__(self, text: str, readers: dict[str, Reader] | None = None) -> None:
        self.readers = readers or {}
        self.lines = [self._line(line.strip()) for line in text.splitlines() if line.strip()]
        *others, last = self.lines
        sources = [line for line in others if not line.optional and line.results[0] in last.operands[:1]]
        self.source = sources[0] if sources and not last.optional else None
        """The line that makes the first operand of the last one; None if that may be from elsewhere."""
        kernels = {line.kernel for line in self.lines if not line.optional}
        self.kernels = kernels.difference(self.readers, [_ANY])
        """The kernels without which nothing matches."""

    def _line(self, text: str) -> _Line:
        found = _LINE.fullmatch(text)
        if found is None:
            raise ValueError(f"a line of a pattern is 'results = kernel(operands | numbers)', got {text!r}")
        results, operands, numbers = (
            _WORD.findall(found[part] or "") for part in ("results", "operands", "numbers")
        )
        return _Line(results, found["kernel"], operands, numbers, bool(found["mark"]))

    def may_end(self, each: Instruction, made: AbstractSet[str], uses: Uses) -> bool:
        """False if an instruction cannot be the last line; `made`: the variables that calls of `source` make."""
        if not isinstance(each.action, Call):
            return False
        if self.source is not None and made.isdisjoint(map(uses.root, filter(None, each.action.operands))):
            return False
        return self.read(self.lines[-1], each) is not None

    def may_match(self, instructions: Iterable[Instruction]) -> bool:
        """False if a kernel of the pattern is not called."""
        called = [each.action.kernel for each in instructions if isinstance(each.action, Call)]
        return not self.kernels or self.kernels <= {kernel.partition(".")[0] for kernel in called}

    def made_by(self, instructions: Iterable[Instruction], uses: Uses) -> set[str]:
        """The variables that calls of `source` make."""
        if self.source is None:
            return set()
        found = [each for each in instructions if self.read(self.source, each) is not None]
        return {uses.root(name) for each in found for name in each.writes}

    def read(self, line: _Line, each: Instruction | None) -> Node | None:
        """The node of an instruction; None if it does not call the kernel of a line."""
        if each is None or not isinstance(each.action, Call):
            return None
        reader = self.readers.get(line.kernel)
        if reader is None:
            reader = node_of if line.kernel in (each.action.name, _ANY) else None
        return None if reader is None else reader(each.action)


class Match:
    """A match of patterns: the variable and number of each name, and the instruction of each line by its first result.

    Lines are found from what is known: producers of results first, then the only reader of a first operand that fits.
    All calls have one element type.
    """

    def __init__(self, uses: Uses) -> None:
        self.uses = uses
        self.names: dict[str, str] = {}
        self.numbers: dict[str, Any] = {}
        self.found: dict[str, Instruction] = {}
        self.type = ""

    def __contains__(self, line: str) -> bool:
        return line in self.found

    def call(self, line: str) -> Call:
        """The call of a line."""
        call: Call = self.found[line].action
        return call

    def parts(self, lines: Iterable[str]) -> list[Instruction]:
        """The instructions of these lines, without those that are missing."""
        return [self.found[line] for line in lines if line in self.found]

    def is_private(self, name: str) -> bool:
        """True if only matched instructions read the variable of a name."""
        return self.uses.is_private(self.names[name], self.found.values())

    def extend(self, pattern: Pattern, last: Instruction | None = None, private: bool = False) -> bool:
        """Match one more pattern, all of it or nothing.

        Args:
            last: the instruction of its last line.
            private: whether only matched instructions may read the variables that it shares with those before.
        """
        changed = self.names, self.numbers, self.found
        before, kind = [dict(each) for each in changed], self.type
        pending = [*pattern.lines]
        known = None if last is None else (pending[-1], [last])
        fits = True
        while fits and pending:
            line, candidates = known or self._next(pending)
            known = None
            pending.remove(line)
            fits = self._take(pattern, line, candidates) or self._skip(line)
        if fits and private:
            words = {word for line in pattern.lines for word in (*line.results, *line.operands)}
            fits = all(map(self.is_private, before[0].keys() & words))
        if not fits:
            self.type = kind
            for now, then in zip(changed, before, strict=True):
                now.clear()
                now.update(then)
        return fits

    def _next(self, pending: Sequence[_Line]) -> tuple[_Line, Sequence[Instruction]]:
        """A line of which a variable is known, and the instructions that it may be."""
        for line in pending:
            if line.results[0] in self.names:
                root = self.uses.root(self.names[line.results[0]])
                return line, [self.uses.producers[root]] if self.uses.written[root] == 1 else []
        for line in pending:
            if line.operands and line.operands[0] in self.names:
                readers = self.uses.readers(self.names[line.operands[0]])
                return line, list({id(each): each for each in readers}.values())
        raise ValueError(
            f"no operand of {[line.results[0] for line in pending]} is the result of another line"
        )

    def _take(self, pattern: Pattern, line: _Line, candidates: Sequence[Instruction]) -> bool:
        """Add the only one of the instructions that fits a line."""
        fitting = [(each, found) for each in candidates if (found := self._unified(pattern, line, each))]
        if len(fitting) != 1:
            return False
        ((each, (names, numbers)),) = fitting
        self.names.update(names)
        self.numbers.update(numbers)
        self.found[line.results[0]] = each
        self.type = self.type or each.action.type
        return True

    def _unified(
        self, pattern: Pattern, line: _Line, each: Instruction
    ) -> tuple[dict[str, str], dict[str, Any]] | None:
        """The names and numbers with those of an instruction for a line; None if it does not fit."""
        node = pattern.read(line, each)
        if node is None or (self.type and each.action.type not in ("", self.type)):
            return None
        if len(line.operands) > len(node.operands) or len(line.results) > len(node.results):
            return None
        if len(line.numbers) > len(node.numbers):
            return None
        names, numbers, root = dict(self.names), dict(self.numbers), self.uses.root
        for words, variables in (line.operands, node.operands), (line.results, node.results):
            for word, name in zip(words, variables, strict=False):
                if word == _ANY:
                    continue
                if name is None or root(names.setdefault(word, name)) != root(name):
                    return None
        for word, number in zip(line.numbers, node.numbers, strict=False):
            wanted = int(word) if word.isdecimal() else numbers.setdefault(word, number)
            if word != _ANY and not always_equal(wanted, number):
                return None
        return names, numbers

    def _skip(self, line: _Line) -> bool:
        """Let the result of an optional line be its first operand; False if the line is required."""
        if line.optional:
            result, operand = line.results[0], line.operands[0]
            if result in self.names:
                self.names.setdefault(operand, self.names[result])
            else:
                self.names[result] = self.names[operand]
        return line.optional
