"""What variables are in each turn of a loop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..._ext import engine
from ..._ext.engine import address
from ...framework import Block
from ..blocks.environment import Environment, World
from ..plan.kept_branches import with_environments


class Stack:
    """The values of a variable in all turns, by *place*: the number of a step, or the index in an array.

    They differ in their first dimension at most: `rows` says what it is, int64 [places]; `tail` is the rest.
    """

    __slots__ = ("_bounds", "dtype", "rows", "tail")

    def __init__(
        self, rows: np.ndarray, tail: tuple[int, ...], dtype: np.dtype, bounds: np.ndarray | None = None
    ) -> None:
        self.rows = rows
        self.tail = tail
        self.dtype = dtype
        self._bounds = bounds

    @property
    def bounds(self) -> np.ndarray:
        """Where each value would begin, and the last one end, if they stood one behind the other: in rows."""
        if self._bounds is None:
            self._bounds = bounds_of(self.rows)
        return self._bounds

    def __len__(self) -> int:
        return len(self.rows)

    def addresses(self) -> np.ndarray:
        """Where the values begin: int64 [places]. What owns the memory is the stack, or was given to it."""
        raise NotImplementedError

    def element(self, place: int) -> np.ndarray:
        """The value at a place; nobody may write into it."""
        raise NotImplementedError

    def packed(self) -> np.ndarray:
        """All values, one behind the other along their first dimension."""
        made = np.empty((int(self.bounds[-1]), *self.tail), self.dtype)
        engine.gather(self.addresses(), self.rows * self.bytes_of_row(), made)
        return made

    def bytes_of_row(self) -> int:
        return math.prod(self.tail) * self.dtype.itemsize


class Packed(Stack):
    """Values that stand one behind the other in one array, in the order of their places."""

    __slots__ = ("_array",)

    def __init__(self, array: np.ndarray, rows: np.ndarray, bounds: np.ndarray | None = None) -> None:
        super().__init__(rows, array.shape[1:], array.dtype, bounds)
        self._array = array

    def addresses(self) -> np.ndarray:
        return self.bounds[:-1] * self.bytes_of_row() + address(self._array)

    def element(self, place: int) -> np.ndarray:
        found: np.ndarray = self._array[self.bounds[place] : self.bounds[place + 1]]
        return found

    def packed(self) -> np.ndarray:
        return self._array


class Alternating(Stack):
    """Values of which only that of the turn before is looked at, and in the end the last one: memory for two."""

    __slots__ = ("_memory",)

    def __init__(self, rows: np.ndarray, tail: tuple[int, ...], dtype: np.dtype) -> None:
        super().__init__(rows, tail, dtype)
        self._memory = np.empty((2, int(rows.max()), *tail), dtype)

    def addresses(self) -> np.ndarray:
        return np.arange(len(self)) % 2 * self._memory[0].nbytes + address(self._memory)

    def element(self, place: int) -> np.ndarray:
        found: np.ndarray = self._memory[place % 2, : self.rows[place]]
        return found


class Listed(Stack):
    """Values that are arrays of their own, all of them contiguous."""

    __slots__ = ("_arrays",)

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        super().__init__(
            np.array([len(array) for array in arrays], np.int64), arrays[0].shape[1:], arrays[0].dtype
        )
        self._arrays = arrays

    def addresses(self) -> np.ndarray:
        return np.array([address(array) for array in self._arrays], np.int64)

    def element(self, place: int) -> np.ndarray:
        return self._arrays[place]


class Shifted(Stack):
    """What the turn before has left: `first` in the first turn, which is that of the last place if turns go `back`."""

    __slots__ = ("_after", "_back", "_first")

    def __init__(self, first: np.ndarray, after: Stack, back: bool) -> None:
        own = np.array([len(first)])
        rows = np.concatenate([after.rows[1:], own] if back else [own, after.rows[:-1]])
        super().__init__(rows, after.tail, after.dtype)
        self._first = first
        self._after = after
        self._back = back

    def addresses(self) -> np.ndarray:
        own, after = np.array([address(self._first)]), self._after.addresses()
        return np.concatenate([after[1:], own] if self._back else [own, after[:-1]])

    def element(self, place: int) -> np.ndarray:
        before = place + 1 if self._back else place - 1
        return self._after.element(before) if 0 <= before < len(self) else self._first


class Prefix(Stack):
    """The first rows of other values."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Stack, rows: np.ndarray) -> None:
        super().__init__(rows, whole.tail, whole.dtype)
        self._whole = whole

    def addresses(self) -> np.ndarray:
        return self._whole.addresses()

    def element(self, place: int) -> np.ndarray:
        return self._whole.element(place)[: self.rows[place]]


def listed(arrays: Iterable[object]) -> Stack | None:
    """Arrays as a stack; None if one is no array, or differs in more than its first dimension."""
    found = list(arrays)
    first = found[0]
    if not isinstance(first, np.ndarray) or not first.ndim:
        return None
    for array in found:
        if not isinstance(array, np.ndarray) or array.dtype != first.dtype:
            return None
        if array.shape[1:] != first.shape[1:] or not array.flags.carray:
            return None
    return Listed(found)  # type: ignore[arg-type]


def steps_of(array: np.ndarray) -> Stack | None:
    """The steps of an array, along its first axis."""
    if array.ndim < 2 or not array.flags.carray:
        return None
    count, rows, *tail = array.shape
    return Packed(array.reshape(count * rows, *tail), same_rows(count, rows))


@lru_cache(256)
def same_rows(count: int, rows: int) -> np.ndarray:
    """As many rows at each of `count` places."""
    made = np.full(count, rows, np.int64)
    made.flags.writeable = False
    return made


def bounds_of(rows: np.ndarray) -> np.ndarray:
    """Where each of so many rows begins, and the last ones end."""
    bounds = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(rows, out=bounds[1:])
    return bounds


def alike(one: Stack, other: Stack) -> bool:
    """Whether two stacks have equally many rows at each place."""
    return one.rows is other.rows or np.array_equal(one.rows, other.rows)


class Turned(Sequence[Environment]):
    """What is kept of the turns of a loop, in the order in which they were taken, as stacks.

    `back`: whether they went from the last place to the first one.
    """

    def __init__(
        self, block: Block, world: World, stacks: Mapping[str, Stack], count: int, back: bool = False
    ) -> None:
        self.stacks = stacks
        self.back = back
        self._block = block
        self._world = world
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> Environment:  # type: ignore[override]
        turn = range(self._count)[number]
        place = self._count - 1 - turn if self.back else turn
        kept = Environment(self._block, None, self._world)
        values = {name: stack.element(place) for name, stack in self.stacks.items()}
        kept.values = with_environments(self._block, values, self._environment)
        return kept

    def _environment(self, block: Block, values: dict[str, Any]) -> Environment:
        made = Environment(block, None, self._world)
        made.values = values
        return made


__all__ = [
    "Alternating",
    "Listed",
    "Packed",
    "Prefix",
    "Shifted",
    "Stack",
    "Turned",
    "alike",
    "listed",
    "same_rows",
    "steps_of",
]
