"""`fluid.data_feeder.DataToLoDTensorConverter`: one field of samples, one sample after another, to a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.dtypes import to_numpy
from ..base.place import Place
from ..executor.tensors.lod_tensor import LoDTensor


class DataToLoDTensorConverter:
    """Collects values of `dtype`, nested `lod_level` deep, and makes them one tensor.

    `shape`: that of the tensor, -1 for what is unknown; taken where it fits. Follows
    `fluid.data_feeder.DataToLoDTensorConverter`.
    """

    def __init__(self, place: Place, lod_level: int, shape: Sequence[int], dtype: Any) -> None:
        self.place, self.lod_level = place, lod_level
        self.shape = [-1 if n is None or n < 0 else int(n) for n in shape]
        self.dtype = to_numpy(dtype).name
        self._reset()

    def _reset(self) -> None:
        self.data: list[Any] = []
        self.lod: list[list[int]] = [[] for _ in range(self.lod_level)]

    def feed(self, data: Any) -> None:
        """Add the value of one sample; with levels of detail, a list of values (of lists, ...)."""
        self._add(data, 0)

    def _add(self, data: Any, level: int) -> None:
        if level == self.lod_level:
            self.data.append(data)
            return
        self.lod[level].append(len(data))
        for item in data:
            self._add(item, level + 1)

    def done(self) -> LoDTensor:
        """The tensor of the values fed since the last call; ValueError if there are none, or their shapes differ."""
        if not self.data:
            raise ValueError("done() makes a tensor of what was fed, but nothing was")
        array = np.array(self.data, dtype=self.dtype)
        rest = [n for n in self.shape[1:] if n >= 0]
        if len(rest) == len(self.shape) - 1 and array.size == len(self.data) * int(np.prod(rest)):
            array = array.reshape([len(self.data), *rest])
        elif -1 not in self.shape and array.size == int(np.prod(self.shape)):
            array = array.reshape(self.shape)
        tensor = LoDTensor()
        tensor.set(array, self.place)
        tensor.set_recursive_sequence_lengths(self.lod)
        self._reset()
        return tensor
