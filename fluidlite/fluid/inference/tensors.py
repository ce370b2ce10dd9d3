"""Inputs and outputs of predictors: `PaddleTensor`, which owns its elements, and `ZeroCopyTensor`, which is
an input or output of the predictor.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from math import prod
from typing import Any

import numpy as np

from ...base.errors import EnforceNotMet
from ...executor import LoDTensor


class Named(IntEnum):
    """An enumeration whose `repr` is the name, as in Fluid."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __repr__ = __str__


class PaddleDType(Named):
    """The element types of predictors' tensors (`fluid.core.PaddleDType`)."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2


class PaddlePlace(Named):
    """The places of predictors' tensors (`fluid.core.PaddlePlace`)."""

    UNK = -1
    CPU = 0
    GPU = 1


DTYPES: dict[PaddleDType, np.dtype[Any]] = {
    PaddleDType.FLOAT32: np.dtype(np.float32),
    PaddleDType.INT64: np.dtype(np.int64),
    PaddleDType.INT32: np.dtype(np.int32),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def paddle_dtype_size(dtype: PaddleDType) -> int:
    """The bytes of an element (`fluid.core.paddle_dtype_size`)."""
    return DTYPES[dtype].itemsize


def dtype_name(array: np.ndarray) -> PaddleDType:
    """The `PaddleDType` of an array. Raises EnforceNotMet for types that predictors do not have."""
    if array.dtype not in _NAMES:
        raise EnforceNotMet(
            f"predictors have tensors of float32, int64 and int32, but this one holds {array.dtype}"
        )
    return _NAMES[array.dtype]


def as_elements(data: Any, copy: bool = True) -> np.ndarray:
    """`data` as an array in C's order of an element type that predictors have; lists and others become int32, as in
    Fluid.

    Raises TypeError for values that int32 cannot represent, such as fractions in float64.
    """
    array = np.asarray(data)
    if array.dtype not in _NAMES or not isinstance(data, np.ndarray):
        if array.dtype.kind not in "biuf":
            raise TypeError(f"a predictor takes float32, int64 and int32, got {array.dtype}")
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int32)
        if not np.array_equal(whole, array):
            raise TypeError(
                f"a predictor takes float32, int64 and int32, and these {array.dtype} are no whole numbers that int32 "
                "holds: convert them with astype('float32') or astype('int64')"
            )
        return whole
    return np.array(array, order="C") if copy else np.ascontiguousarray(array)


class PaddleBuf:
    """Bytes (`fluid.core.PaddleBuf`): as many as an integer says, or those of an array, or of a list as float32."""

    def __init__(self, data: Any = 0) -> None:
        if isinstance(data, (int, np.integer)):
            self._bytes: np.ndarray = np.zeros(int(data), np.uint8)
        else:
            self.reset(data)

    def resize(self, length: int) -> None:
        """Resize to `length` bytes; growing discards the contents."""
        if length > len(self._bytes):
            self._bytes = np.zeros(length, np.uint8)
        else:
            self._bytes = self._bytes[:length]

    def reset(self, data: Any) -> None:
        """Replace the contents by the elements of `data`."""
        array = np.asarray(data, np.float32) if isinstance(data, (list, tuple)) else as_elements(data)
        self._bytes = array.reshape(-1).view(np.uint8)

    def empty(self) -> bool:
        return not len(self._bytes)

    def length(self) -> int:
        """The number of bytes."""
        return len(self._bytes)

    def tolist(self, dtype: str) -> list[Any]:
        """The elements as 'int32', 'int64' or 'float32'; ValueError for another type."""
        if dtype not in ("int32", "int64", "float32"):
            raise ValueError(f"unsupported dtype {dtype!r}: 'int32', 'int64' and 'float32' are")
        return self.view(np.dtype(dtype)).tolist()

    def float_data(self) -> list[float]:
        return self.tolist("float32")

    def int32_data(self) -> list[int]:
        return self.tolist("int32")

    def int64_data(self) -> list[int]:
        return self.tolist("int64")

    def view(self, dtype: np.dtype[Any]) -> np.ndarray:
        """The bytes as an array of `dtype`, without a copy; an incomplete last element is dropped."""
        return self._bytes[: len(self._bytes) // dtype.itemsize * dtype.itemsize].view(dtype)


class PaddleTensor:
    """An array with a name and offsets of sequences (`fluid.core.PaddleTensor`).

    Args:
        data: an array of float32, int64 or int32, of any shape; whole numbers of other types become int32. None: no
            elements, shape [] and float32.
        name: of the variable that it is fed to; needed if the configuration says `switch_specify_input_names`.
        lod: for each level its offsets, such as [[0, 3, 4]].
        copy: False: later changes to `data` show, if it is in C's order.

    Attributes:
        name, lod, shape (list), dtype (`PaddleDType`), data (`PaddleBuf`): may be set.
    """

    def __init__(
        self, data: Any = None, name: str = "", lod: Sequence[Sequence[int]] = (), copy: bool = True
    ) -> None:
        self.name = name
        self.lod = [list(level) for level in lod]
        self._shape: list[int] = []
        self._dtype = PaddleDType.FLOAT32
        self._data = PaddleBuf()
        if data is not None:
            array = as_elements(data, copy)
            self._shape, self._dtype = list(array.shape), dtype_name(array)
            self._data._bytes = array.reshape(-1).view(np.uint8)

    @property
    def shape(self) -> list[int]:
        return self._shape

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        self._shape = [int(size) for size in shape]

    @property
    def dtype(self) -> PaddleDType:
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: PaddleDType) -> None:
        self._dtype = PaddleDType(dtype)

    @property
    def data(self) -> PaddleBuf:
        return self._data

    @data.setter
    def data(self, data: PaddleBuf) -> None:
        if not isinstance(data, PaddleBuf):
            raise TypeError(f"the data of a PaddleTensor is a PaddleBuf, got {type(data).__name__}")
        self._data = data

    def array(self) -> np.ndarray:
        """The elements, without a copy; EnforceNotMet if there are fewer bytes than shape and dtype need."""
        elements = self._data.view(DTYPES[self._dtype])
        if len(elements) < prod(self._shape):
            raise EnforceNotMet(
                f"PaddleTensor {self.name!r} of shape {self._shape} and {self._dtype} needs "
                f"{prod(self._shape)} elements, but its data have {len(elements)}"
            )
        return elements[: prod(self._shape)].reshape(self._shape)

    def as_ndarray(self) -> np.ndarray:
        """A copy of the elements; a zero for a tensor without any."""
        if not self._shape and self._data.empty():
            return np.zeros((), DTYPES[self._dtype])
        return self.array().copy()


def paddle_tensor_to_bytes(tensor: PaddleTensor) -> bytes:
    """Name, offsets, shape, element type and elements, as Fluid writes them (`fluid.core.paddle_tensor_to_bytes`)."""
    name, shape = tensor.name.encode(), tensor.shape
    elements = tensor.array().tobytes() if shape else b""
    parts = [struct.pack("<iQ", 0, len(name)), name, struct.pack("<Q", len(tensor.lod))]
    parts += [struct.pack(f"<Q{len(level)}Q", 8 * len(level), *level) for level in tensor.lod]
    parts.append(struct.pack(f"<Q{len(shape)}i", len(shape), *shape))
    return b"".join([*parts, struct.pack("<iQ", tensor.dtype, len(elements)), elements])


class ZeroCopyTensor:
    """An input or output of a predictor (`fluid.core.ZeroCopyTensor`), whatever it holds at the moment."""

    def __init__(self, name: str, find: Callable[[], LoDTensor]) -> None:
        self._name, self._find = name, find

    def _array(self) -> np.ndarray:
        array = self._find().array
        if array is None:
            raise EnforceNotMet(f"Tensor {self._name!r} not initialized yet: it holds no elements")
        return np.asarray(LoDTensor.wrap(array))

    def reshape(self, shape: Sequence[int]) -> None:
        """Set the shape of the next data; `copy_from_cpu` takes the shape of its argument instead."""
        tensor = self._find()
        held = tensor.array
        sizes = tuple(int(size) for size in shape)
        if held is not None and held.size == prod(sizes):
            tensor.array = held.reshape(sizes)
        else:
            tensor.array = np.zeros(sizes, DTYPES[PaddleDType.FLOAT32] if held is None else held.dtype)

    def copy_from_cpu(self, data: Any) -> None:
        """Copy an array with its shape and type into the tensor. Raises TypeError as `PaddleTensor`."""
        self._find().array = as_elements(data)

    def copy_to_cpu(self) -> np.ndarray:
        """A copy of the elements; EnforceNotMet if there are none, or for an element type without `PaddleDType`."""
        array = self._array()
        dtype_name(array)
        return array

    def shape(self) -> list[int]:
        """The shape; [0] before the first value."""
        array = self._find().array
        return [0] if array is None else list(array.shape)

    def type(self) -> PaddleDType:
        """The element type; EnforceNotMet if there are no elements."""
        return dtype_name(self._array())

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Offsets of sequences for each level; that they fit the rows is checked when the predictor runs."""
        levels = [np.array(level, np.int64) for level in lod]
        for level in levels:
            level.flags.writeable = False
        self._find()._lod = tuple(levels)

    def lod(self) -> list[list[int]]:
        return self._find().lod()
