"""Helpers of data sets of translated sentences."""

from __future__ import annotations

from collections.abc import Iterator

Pair = tuple[list[int], list[int], list[int]]
"""A sentence with both marks, its translation with the mark of the beginning, and with that of the end."""


def two_columns(data: bytes) -> Iterator[list[str]]:
    """Both sentences of each line that has two, with a tab between them."""
    for line in data.decode("utf8", "replace").split("\n"):
        columns = line.strip().split("\t")
        if len(columns) == 2:
            yield columns


def marked(source: list[int], target: list[int], begin: int, end: int) -> Pair:
    """The numbers of two sentences with marks around them."""
    return [begin, *source, end], [begin, *target], [*target, end]
