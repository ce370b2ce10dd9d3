"""`TensorArray`: the value of a variable of type LOD_TENSOR_ARRAY in a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .lod import Lod


class TensorArray:
    """Tensors by index, each with its levels of detail; indices that were never written hold None.

    Elements are replaced, never written into, so readers may keep them. `like`: shape (-1 if unknown) and dtype of the
    elements, for an array that may stay empty. `whole`: all elements concatenated, if they are views of one array, in
    which they begin at `bounds`.
    """

    __slots__ = ("_arrays", "bounds", "like", "lods", "whole")

    def __init__(self, like: tuple[tuple[int, ...], Any] | None = None) -> None:
        self.like = like
        self.lods: list[Lod] = []
        self.whole: Any = None
        self.bounds: Sequence[int] = ()
        self._arrays: list[Any] | None = []

    @classmethod
    def cut(cls, whole: Any, bounds: Sequence[int], lods: Sequence[Lod] | None = None) -> TensorArray:
        """The parts of an array along its first dimension, which begin at `bounds`, where also the last one ends."""
        result = cls()
        result.lods = [()] * (len(bounds) - 1) if lods is None else list(lods)
        result._arrays = None
        result.whole, result.bounds = whole, bounds
        return result

    @property
    def arrays(self) -> list[Any]:
        """The tensors; not to be changed."""
        if self._arrays is None:
            bounds = self.bounds
            self._arrays = [self.whole[first:last] for first, last in zip(bounds, bounds[1:], strict=False)]
        return self._arrays

    def _changed(self) -> list[Any]:
        """The tensors, for replacing some."""
        arrays = self.arrays
        self.whole, self.bounds = None, ()
        return arrays

    def write(self, index: int, array: Any, lod: Lod = ()) -> None:
        """Write `array` at `index`, which may be beyond the end."""
        self.put(index, [array], [lod])

    def put(self, index: int, arrays: Sequence[Any], lods: Sequence[Lod] | None = None) -> None:
        """Write tensors at `index` and the following indices."""
        mine, end = self._changed(), index + len(arrays)
        missing = index - len(mine)
        if missing > 0:
            mine += [None] * missing
            self.lods += [()] * missing
        mine[index:end] = arrays
        self.lods[index:end] = [()] * len(arrays) if lods is None else lods

    def take_out(self, index: int, count: int) -> None:
        """Clear `count` elements from `index` on."""
        count = min(index + count, len(self)) - index
        if count > 0:
            self.put(index, [None] * count)

    def copy(self) -> TensorArray:
        """Another array with the same elements."""
        twin = TensorArray(self.like)
        twin._arrays, twin.lods = list(self.arrays), list(self.lods)
        return twin

    def __len__(self) -> int:
        return len(self.lods)

    def __iter__(self) -> Iterator[tuple[Any, Lod]]:
        return zip(self.arrays, self.lods, strict=True)

    def __repr__(self) -> str:
        shapes = [None if array is None else list(array.shape) for array in self.arrays]
        return f"TensorArray of {len(self)}: {shapes}"
