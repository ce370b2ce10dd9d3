"""Patterns: small graphs of native calls to find in a program, written as lines in program order.

    scores = product(q, keys | m n k)       results = kernel(operands | integers, then reals)
    biased = add(scores, bias)?             may be missing: its result is its first operand then
    p      = softmax(biased | _ n)          "_": any variable or number

A name stands for one variable, or one number, in all lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...base.sizes import always_equal
from ...ops.kernels.kernel_def import KERNELS
from ...ops.registry import Call
from ..ir.instructions import Instruction, Need, Uses

_LINE = re.compile(r"(.+?) = (\w+)\(([^|)]*)(?:\|(.*))?\)(\??)")
_ANY = "_"


class NoMatch(Exception):
    """The instructions do not match, or must not be replaced."""


def require(condition: bool) -> None:
    if not condition:
        raise NoMatch


class Node(NamedTuple):
    """The operands, results and numbers of a call, which a line of a pattern is compared with."""

    operands: Sequence[str | None]
    results: Sequence[str | None]
    numbers: Sequence[Any] = ()


Reader = Callable[[Instruction], Node | None]


def node_of(call: Call) -> Node | None:
    """The node of a call as its kernel is declared."""
    kernel, count = KERNELS[call.kernel], len(call.operands)
    if kernel is None or not count:
        return None
    operands, places = [*call.operands], sorted([kernel.places[name] % count for name in kernel.made])
    results = [operands[at] for at in places]
    for at in reversed(places):
        del operands[at]
    return Node(operands, results, [*call.ints, *call.floats])


class _Line:
    def __init__(self, text: str) -> None:
        found = _LINE.fullmatch(text)
        if found is None:
            raise ValueError(
                f"a line of a pattern must be 'results = kernel(operands | numbers)', got {text!r}"
            )
        self.results, self.operands, numbers = (re.findall(r"\w+", found[k] or "") for k in (1, 3, 4))
        self.numbers = [int(word) if word.isdecimal() else word for word in numbers]
        self.kernel, self.optional = found[2], bool(found[5])


class Pattern:
    """The lines of a text.

    Args:
        readers: what words for kernels mean: several kernels, or a function from an instruction to its node (None if
            it does not fit). Other words are kernels.
        start: the line to start from, best one of a rare kernel, by its result; the last one by default.
    """

    def __init__(self, text: str, readers: Mapping[str, str | Reader] | None = None, start: str = "") -> None:
        self._readers = readers or {}
        self.lines = [_Line(line.strip()) for line in text.splitlines() if line.strip()]
        self.variables = {name for line in self.lines for name in (*line.results, *line.operands)}
        self._start = next((line for line in self.lines if line.results[0] == start), self.lines[-1])

    def starts(self, instructions: Iterable[Instruction]) -> list[Instruction]:
        """The instructions that may be the line to start from."""
        calls = [each for each in instructions if isinstance(each.action, Call)]
        reader = self._readers.get(self._start.kernel, self._start.kernel)
        if isinstance(reader, str):
            return [each for each in calls if each.action.kernel.partition(".")[0] in reader.split()]
        return [each for each in calls if reader(each) is not None]

    def match(self, uses: Uses, start: Instruction) -> Match | None:
        """The match that starts from an instruction; None if there is none."""
        match = Match(uses)
        return match if match._take(self, self._start, [start]) and match.extend(self) else None

    def node(self, line: _Line, each: Instruction) -> Node | None:
        """The node of an instruction with a call; None if it does not fit a line."""
        reader = self._readers.get(line.kernel, line.kernel)
        if not isinstance(reader, str):
            return reader(each)
        return node_of(each.action) if each.action.name in reader.split() else None


@dataclass
class Match:
    """A match of patterns: what names stand for, and the instructions of lines by the names of their first results.

    All calls have one element type.
    """

    uses: Uses
    names: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Instruction] = field(default_factory=dict)
    type: str = ""

    def __contains__(self, line: str) -> bool:
        return line in self.found

    @property
    def parts(self) -> list[Instruction]:
        """The instructions in order."""
        return sorted(self.found.values(), key=self.uses.places.__getitem__)

    def extend(self, pattern: Pattern, others: Need = Need.ELEMENTS) -> bool:
        """Match the lines of one more pattern, all of them or nothing.

        They are found from what is known: as the producer of their first result, or else as the only reader of their
        first operand that fits. `others`: the most that other instructions may need of the variables that the pattern
        shares with those that are matched already.
        """
        found = Match(self.uses, {**self.names}, {**self.numbers}, {**self.found}, self.type)
        pending = [line for line in pattern.lines if line.results[0] not in self.found]
        while pending:
            line, candidates = found._next(pending)
            pending.remove(line)
            if not found._take(pattern, line, candidates) and not found._skip(line):
                return False
        shared = self.names.keys() & pattern.variables if others is not Need.ELEMENTS else ()
        if any(self.uses.need(self.names[name], found.found.values()) > others for name in shared):
            return False
        self.names |= found.names
        self.numbers |= found.numbers
        self.found |= found.found
        self.type = found.type
        return True

    def _next(self, pending: Sequence[_Line]) -> tuple[_Line, Sequence[Instruction]]:
        """A line of which a variable is known, and the instructions that it may be."""
        for line in pending:
            if line.results[0] in self.names:
                root = self.uses.root(self.names[line.results[0]])
                return line, [self.uses.producers[root]] if self.uses.written[root] == 1 else []
        for line in pending:
            if line.operands and line.operands[0] in self.names:
                return line, list(dict.fromkeys(self.uses.readers(self.names[line.operands[0]])))
        raise ValueError(f"no line has an operand or result of {[line.results[0] for line in pending]}")

    def _take(self, pattern: Pattern, line: _Line, candidates: Sequence[Instruction]) -> bool:
        """Add a line, if just one of the instructions fits it."""
        fitting = [found for each in candidates if (found := self._bound(pattern, line, each)) is not None]
        if len(fitting) == 1:
            each, names, numbers = fitting[0]
            self.names |= names
            self.numbers |= numbers
            self.found[line.results[0]] = each
            self.type = self.type or each.action.type
        return len(fitting) == 1

    def _bound(
        self, pattern: Pattern, line: _Line, each: Instruction
    ) -> tuple[Instruction, dict[str, str], dict[str, Any]] | None:
        """An instruction, and the names and numbers that it gives to a line; None if it does not fit."""
        call, root = each.action, self.uses.root
        if not isinstance(call, Call) or (self.type and call.type not in ("", self.type)):
            return None
        node = pattern.node(line, each)
        if node is None or len(line.operands) > len(node.operands) or len(line.numbers) > len(node.numbers):
            return None
        names: dict[str, str] = {}
        numbers: dict[str, Any] = {}
        words, variables = (
            (*line.operands, *line.results),
            (*node.operands[: len(line.operands)], *node.results),
        )
        for word, name in zip(words, variables, strict=False):
            if word != _ANY:
                known = self.names.get(word) or names.setdefault(word, name or "")
                if name is None or root(known) != root(name):
                    return None
        for number, value in zip(line.numbers, node.numbers, strict=False):
            if isinstance(number, str) and number != _ANY:
                number = self.numbers[number] if number in self.numbers else numbers.setdefault(number, value)
            if number != _ANY and not always_equal(number, value):
                return None
        return each, names, numbers

    def _skip(self, line: _Line) -> bool:
        """Let the result of an optional line be its first operand; False if the line is required."""
        if line.optional:
            result, operand = line.results[0], line.operands[0]
            known = self.names[result if result in self.names else operand]
            self.names.setdefault(result, known)
            self.names.setdefault(operand, known)
        return line.optional
