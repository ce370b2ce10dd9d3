"""The feed of a data set: names and types of slots, batches, the pipe command, in the text form that Fluid prints
(`fluid.DataFeedDesc`, `desc()` of data sets).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...base import missing
from ...base.errors import FormatError
from ...base.storage.messages import block, said

__all__ = ["DataFeedDesc"]

_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'")
_TOKEN = re.compile(rf"{_QUOTED.pattern}|[A-Za-z_][\w.]*|[-+]?[\w.]+|[][{{}}<>:,;]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass
class SlotDescription:
    """One slot; fields that are None are not set and not printed."""

    name: str | None = None
    type: str | None = None
    is_dense: bool | None = None
    is_used: bool | None = None
    shape: list[int] = field(default_factory=list)

    def lines(self) -> list[str]:
        return [*said("name", self.name), *said("type", self.type), *said("is_dense", self.is_dense),
                *said("is_used", self.is_used), *(f"shape: {size}" for size in self.shape)]  # fmt: skip


@dataclass
class FeedDescription:
    """The feed of a data set; fields that are None are not set and not printed."""

    name: str | None = None
    batch_size: int | None = None
    slots: list[SlotDescription] | None = None
    uid_slot: str | None = None
    pipe_command: str | None = None
    thread_num: int | None = None
    rank_offset: str | None = None
    pv_batch_size: int | None = None

    def __str__(self) -> str:
        lines = [*said("name", self.name), *said("batch_size", self.batch_size)]
        if self.slots is not None:
            inside = [line for slot in self.slots for line in block("slots", slot.lines())]
            lines += block("multi_slot_desc", [*inside, *said("uid_slot", self.uid_slot)])
        lines += [*said("pipe_command", self.pipe_command), *said("thread_num", self.thread_num)]
        lines += [*said("rank_offset", self.rank_offset), *said("pv_batch_size", self.pv_batch_size)]
        return "".join(f"{line}\n" for line in lines)


class DataFeedDesc:
    """A description of slots read from a file, to be changed (`fluid.DataFeedDesc`).

    Args:
        proto_file: the path of a file with the text of Fluid's message `DataFeedDesc`: `name`, `batch_size`,
            `multi_slot_desc { slots { name type is_dense is_used shape } }`.

    Raises:
        FileNotFoundError: there is no such file.
        FormatError: the text is none of this message; it names the line.
    """

    def __init__(self, proto_file: str | os.PathLike[str]) -> None:
        with open(proto_file, encoding="utf8") as file:
            self.proto_desc = _Reader(file.read(), os.fspath(proto_file)).description()
        if self.proto_desc.pipe_command is None:
            self.proto_desc.pipe_command = "cat"

    def set_batch_size(self, batch_size: int) -> None:
        """How many samples are a batch; TypeError unless it is an integer."""
        self.proto_desc.batch_size = whole(batch_size, "batch_size")

    def set_dense_slots(self, dense_slots_name: Sequence[str]) -> None:
        """Mark slots as dense, with a fixed number of elements; KeyError for a name that no slot has."""
        for name in dense_slots_name:
            self._slot(name).is_dense = True

    def set_use_slots(self, use_slots_name: Sequence[str]) -> None:
        """Mark slots as fed; KeyError for a name that no slot has."""
        for name in use_slots_name:
            self._slot(name).is_used = True

    def desc(self) -> str:
        """The text of the message."""
        return str(self.proto_desc)

    def _slot(self, name: str) -> SlotDescription:
        found = [slot for slot in self.proto_desc.slots or () if slot.name == name]
        if not found:
            raise KeyError(name)
        return found[-1]


def whole(value: Any, what: str) -> int:
    """`value`; TypeError naming `what` unless it is an integer."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what}: {value!r} has type {type(value).__name__}, but expected one of: int")
    return int(value)


class _Reader:
    """Reads the text form of the message."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._tokens: list[tuple[int, str]] = []
        for number, line in enumerate(text.splitlines(), 1):
            at = 0
            while at < len(line) and line[at] != "#":
                if line[at].isspace():
                    at += 1
                    continue
                found = _TOKEN.match(line, at)
                if not found:
                    raise FormatError(f"{source}, line {number}: cannot read {line[at : at + 20]!r}")
                self._tokens.append((number, found.group()))
                at = found.end()
        self._at = 0

    def description(self) -> FeedDescription:
        found = FeedDescription()
        self._fields(found, {"multi_slot_desc": lambda: self._slots(found)}, "")
        return found

    def _slots(self, found: FeedDescription) -> None:
        if found.slots is not None:
            raise self._wrong("there is a second multi_slot_desc")
        slots = found.slots = []

        def slot() -> None:
            slots.append(SlotDescription())
            self._fields(slots[-1], {}, self._opened())

        self._fields(found, {"slots": slot}, self._opened(), ("uid_slot",))

    def _opened(self) -> str:
        if self._next() == ":":
            self._at += 1
        opening = self._take("{", "<")
        return "}" if opening == "{" else ">"

    def _fields(self, target: Any, blocks: Any, end: str, only: Sequence[str] = ()) -> None:
        while self._next() != end:
            name = self._take()
            if name in blocks:
                blocks[name]()
            elif name in (only or vars(target)) and name not in ("slots", *(() if only else ("uid_slot",))):
                self._take(":")
                self._value(target, name)
            else:
                raise self._wrong(f"the message has no field {name!r}")
            if self._next() in (",", ";"):
                self._at += 1
        self._at += bool(end)

    def _value(self, target: Any, name: str) -> None:
        if name == "shape":
            many = self._next() == "["
            self._at += many
            target.shape.append(self._whole())
            while many and self._take(",", "]") == ",":
                target.shape.append(self._whole())
            return
        if getattr(target, name) is not None:
            raise self._wrong(f"there is a second {name!r}")
        if name in ("batch_size", "thread_num", "pv_batch_size"):
            setattr(target, name, self._whole())
        elif name in ("is_dense", "is_used"):
            setattr(
                target, name, self._take("true", "false", "t", "f", "1", "0", "True", "False") in "true1True"
            )
        else:
            parts = [self._text()]
            while self._next()[:1] in ("'", '"') and self._next():
                parts.append(self._text())
            setattr(target, name, "".join(parts))

    def _whole(self) -> int:
        word = self._take()
        try:
            return int(word, 0)
        except ValueError:
            raise self._wrong(f"{word!r} is no integer") from None

    def _text(self) -> str:
        word = self._take()
        if not _QUOTED.fullmatch(word):
            raise self._wrong(f"{word!r} is no text in quotes")
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), word[1:-1])

    def _next(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, *allowed: str) -> str:
        word = self._next()
        if not word or (allowed and word not in allowed):
            self._at += 1
            raise self._wrong(
                f"expected {' or '.join(map(repr, allowed)) or 'more'}, got {word or 'the end'!r}"
            )
        self._at += 1
        return word

    def _wrong(self, what: str) -> FormatError:
        line = self._tokens[min(self._at, len(self._tokens)) - 1][0] if self._tokens else 1
        return FormatError(f"{self._source}, line {line}: {what}")


__getattr__ = missing.reporter(__name__)
