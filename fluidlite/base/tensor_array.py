"""`TensorArray`: what a variable of type LOD_TENSOR_ARRAY holds while a program runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .lod import Lod


class TensorArray:
    """Tensors by index, each with its levels of detail; indices that were never written hold None.

    Elements are replaced, never written into: whoever has read one keeps what he has read. `like`: shape (-1 where it
    is not known) and dtype of the elements, for an array that may stay empty. `whole`: all elements one behind the
    other, if they are parts of one array.
    """

    __slots__ = ("arrays", "like", "lods", "whole")

    def __init__(self, like: tuple[tuple[int, ...], Any] | None = None) -> None:
        self.like = like
        self.arrays: list[Any] = []
        self.lods: list[Lod] = []
        self.whole: Any = None

    @classmethod
    def cut(cls, whole: Any, bounds: Sequence[int], lods: Sequence[Lod] | None = None) -> TensorArray:
        """The parts of an array along its first dimension, which begin at `bounds`, where also the last one ends."""
        made = cls()
        made.arrays = [whole[first:last] for first, last in zip(bounds, bounds[1:], strict=False)]
        made.lods = [()] * len(made.arrays) if lods is None else list(lods)
        made.whole = whole if bounds[-1] == len(whole) and not bounds[0] else None
        return made

    def write(self, index: int, array: Any, lod: Lod = ()) -> None:
        """Put `array` at `index`, which may be beyond the end."""
        while len(self.arrays) <= index:
            self.arrays.append(None)
            self.lods.append(())
        self.arrays[index] = array
        self.whole = None
        self.lods[index] = lod

    def copy(self) -> TensorArray:
        """Another array with the same elements."""
        twin = TensorArray(self.like)
        twin.arrays, twin.lods, twin.whole = list(self.arrays), list(self.lods), self.whole
        return twin

    def __len__(self) -> int:
        return len(self.arrays)

    def __iter__(self) -> Iterator[tuple[Any, Lod]]:
        return zip(self.arrays, self.lods, strict=True)

    def __repr__(self) -> str:
        shapes = [None if array is None else list(array.shape) for array in self.arrays]
        return f"TensorArray of {len(self)}: {shapes}"
