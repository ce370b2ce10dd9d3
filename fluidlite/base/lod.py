"""Levels of detail (LoD): which rows of a tensor are one sequence, and which sequences are one of the level above."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Lod = tuple[np.ndarray, ...]
"""The offsets of each level, outermost first, () for none: int64 of one dimension, contiguous and read-only.

Sequence k of a level begins at offset k and ends at offset k + 1, counted in sequences of the level below, or in rows
on the last level. So an array begins with 0, never decreases, and has one element more than there are sequences.
"""

_INT64 = np.dtype(np.int64)


def as_lod(levels: Iterable[Any]) -> Lod:
    """Levels of detail from lists or arrays of offsets; read-only int64 arrays are used, others copied."""
    return tuple([level if _is_offsets(level) else frozen_offsets(level) for level in levels])


def _is_offsets(level: Any) -> bool:
    if type(level) is not np.ndarray or level.dtype is not _INT64 or level.ndim != 1:
        return False
    flags = level.flags
    return not flags.writeable and flags.c_contiguous and flags.aligned


def frozen_offsets(level: Any) -> np.ndarray:
    """The offsets of one level as a new array; TypeError unless they are a list of integers."""
    try:
        given = np.asarray(level)
    except ValueError:
        given = np.empty((), object)
    if given.size == 0:
        given = given.astype(np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise TypeError(f"a level of detail is a list of whole numbers, got {level!r:.80}")
    return freeze(np.array(given, np.int64))


def freeze(offsets: np.ndarray) -> np.ndarray:
    """Make `offsets` read-only and return it."""
    offsets.flags.writeable = False
    return offsets


def from_lengths(lengths: Any) -> np.ndarray:
    """The offsets of sequences of these lengths; TypeError unless they are a list of integers."""
    given = frozen_offsets(lengths)
    offsets = np.zeros(len(given) + 1, np.int64)
    np.cumsum(given, out=offsets[1:])
    return freeze(offsets)


def joined(levels: Sequence[Lod]) -> Lod:
    """The LoD of several tensors concatenated; () unless all have as many levels, and at least one."""
    if len({len(lod) for lod in levels}) != 1:
        return ()
    together = []
    for level in zip(*levels, strict=True):
        ends = np.cumsum([0, *(offsets[-1] for offsets in level)])
        parts = [offsets[1:] + end for offsets, end in zip(level, ends, strict=False)]
        together.append(freeze(np.concatenate([[0], *parts]).astype(np.int64)))
    return tuple(together)


def as_lists(levels: Lod) -> list[list[int]]:
    """Levels of detail as Fluid shows them."""
    return [level.tolist() for level in levels]


def lengths(levels: Lod) -> list[list[int]]:
    """The lengths of the sequences of each level."""
    return [np.diff(level).tolist() for level in levels]


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two tensors have the same levels of detail."""
    return len(one) == len(other) and all(
        a is b or np.array_equal(a, b) for a, b in zip(one, other, strict=True)
    )


def problem(levels: Lod, rows: int | None) -> str | None:
    """The message if offsets are invalid for a tensor of `rows` rows (None: unknown); else None."""
    for depth, level in enumerate(levels):
        if len(level) < 2 or level[0] != 0:
            return f"level {depth} must begin with 0 and have an end, got {_brief(level)}"
        falls = np.flatnonzero(level[1:] < level[:-1])
        if len(falls):
            at = int(falls[0])
            return f"the offsets of level {depth} decrease from {level[at]} to {level[at + 1]} at position {at + 1}"
        if depth + 1 < len(levels):
            below = len(levels[depth + 1]) - 1
            if level[-1] != below:
                return f"level {depth} ends at {level[-1]} but level {depth + 1} has {below} sequences"
        elif rows is not None and level[-1] != rows:
            return f"the last level ends at {level[-1]} but the tensor has {rows} rows"
    return None


def _brief(level: np.ndarray) -> str:
    return f"{level.tolist()!r:.80}" if len(level) < 20 else f"{len(level)} offsets from {level[0]}"
