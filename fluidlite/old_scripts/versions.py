"""`distutils.version`: versions that compare part by part."""

from __future__ import annotations

import functools
import re


@functools.total_ordering
class LooseVersion:
    """A version of any form; numbers in it compare as numbers. `version` is the list of its parts."""

    def __init__(self, vstring: str | None = None) -> None:
        if vstring:
            self.parse(vstring)

    def parse(self, vstring: str) -> None:
        """Take the version `vstring`."""
        self.vstring = vstring
        parts = re.findall(r"\d+|[a-z]+|[^\d a-z.]+", vstring)
        self.version: list[int | str] = [int(part) if part.isdigit() else part for part in parts]

    def __str__(self) -> str:
        return self.vstring

    def __repr__(self) -> str:
        return f"{type(self).__name__} ('{self}')"

    def _key(self) -> list[int | str]:
        return self.version

    def _other(self, other: object) -> LooseVersion | None:
        return (
            type(self)(other)
            if isinstance(other, str)
            else other
            if isinstance(other, LooseVersion)
            else None
        )

    def __eq__(self, other: object) -> bool:
        found = self._other(other)
        return NotImplemented if found is None else self._key() == found._key()

    def __lt__(self, other: object) -> bool:
        found = self._other(other)
        return NotImplemented if found is None else self._key() < found._key()

    __hash__ = None  # type: ignore[assignment]


class StrictVersion(LooseVersion):
    """Two or three numbers and perhaps a or b with a number for versions before; ValueError for another form."""

    def parse(self, vstring: str) -> None:
        """Take the version `vstring`."""
        found = re.fullmatch(r"(\d+)\.(\d+)(?:\.(\d+))?(?:([ab])(\d+))?", vstring)
        if found is None:
            raise ValueError(f"expected a version such as 1.2 or 1.2.3b1, got {vstring!r}")
        self.vstring = vstring
        first, second, third, letter, number = found.groups()
        self.version = [int(first), int(second), int(third or 0), letter or "~", int(number or 0)]
