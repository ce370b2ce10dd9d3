"""Protocol-buffer messages that are built field by field: their text and wire forms."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

Field = tuple[int, str, Any]
"""Number, name, and the default: its type is the field's; a list for a repeated one (of the type of its element), a
class for a message."""


class Message:
    """A message with its fields as attributes: unset ones have their defaults, and are not written."""

    fields: ClassVar[tuple[Field, ...]] = ()

    def __init__(self) -> None:
        for _, name, default in self.fields:
            if isinstance(default, list):
                setattr(self, name, [])

    def __getattr__(self, name: str) -> Any:
        for _, known, default in type(self).fields:
            if known == name:
                if isinstance(default, type):
                    setattr(self, name, default())
                    return self.__dict__[name]
                return default
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if all(name != known for _, known, _ in self.fields):
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        self.__dict__[name] = value

    def _set(self) -> list[tuple[int, str, Any]]:
        """The fields that were set, and their single values."""
        result = []
        for number, name, _ in sorted(self.fields):
            value = self.__dict__.get(name)
            if value is not None:
                result += [(number, name, each) for each in (value if isinstance(value, list) else [value])]
        return result

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> list[str]:
        """The text form."""
        result: list[str] = []
        for _, name, value in self._set():
            result += block(name, value.lines()) if isinstance(value, Message) else said(name, value)
        return result

    def serialized(self) -> bytes:
        """The wire form."""
        return b"".join(_wire(number, value) for number, _, value in self._set())


def said(name: str, value: Any) -> list[str]:
    """The line of a field in the text form; none for None."""
    if value is None:
        return []
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif isinstance(value, str):
        value = '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return [f"{name}: {value}"]


def block(name: str, lines: list[str]) -> list[str]:
    """The lines of a message inside of another."""
    return [f"{name} {{", *(f"  {line}" for line in lines), "}"]


def _wire(number: int, value: Any) -> bytes:
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value % 2**64)
    data = value.serialized() if isinstance(value, Message) else value.encode()
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])
