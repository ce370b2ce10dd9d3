"""Tensors as bytes, in the form that Fluid's `save` and `save_combine` operators write.

One tensor is: format version 0 (uint32); the number of levels of detail (uint64) and for each its size in
bytes (uint64) and its offsets (uint64 each); format version 0 (uint32); the size (int32) of a TensorDesc
message with element type and dimensions; the elements in row-major order, little endian. A combined file is
one tensor after the other.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from .. import lod as lods
from ..dtypes import to_numpy, to_vartype
from ..errors import FormatError
from .messages import messages, parse

_MAX_DESC = 1 << 16
_MAX_LEVELS = 64


def write(file: BinaryIO, array: np.ndarray, lod: Sequence[np.ndarray]) -> None:
    """Append a tensor, its elements and the offsets of each level of detail, to a binary file.

    A tensor without dimensions is written with shape [1], as Fluid has none. Raises TypeError for an element type that
    Fluid cannot hold.
    """
    array = np.atleast_1d(np.ascontiguousarray(array))
    desc = messages().TensorDesc(data_type=int(to_vartype(array.dtype)), dims=array.shape).SerializeToString()
    head = [struct.pack("<IQ", 0, len(lod))]
    for level in lod:
        offsets = np.asarray(level).astype("<u8").tobytes()
        head += [struct.pack("<Q", len(offsets)), offsets]
    file.write(b"".join([*head, struct.pack("<Ii", 0, len(desc)), desc]))
    if sys.byteorder == "big":
        array = array.byteswap()
    file.write(array.reshape(-1).view(np.uint8).data)


class Reader:
    """Reads tensors from a binary file.

    `what`: its name in errors, all of them FormatError. `left`: the number of bytes left.
    """

    def __init__(self, file: BinaryIO, what: str) -> None:
        self._file = file
        self._what = what
        start = file.tell()
        self._size = file.seek(0, os.SEEK_END) - start
        file.seek(start)
        self.left = self._size

    def tensor(self, name: str) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """The elements and levels of detail of the next tensor, which errors call `name`."""
        part = f"variable {name!r}"
        self._version(part)
        (count,) = self._unpack("<Q", f"the number of levels of detail of {part}")
        if count > _MAX_LEVELS:
            raise self._foreign(f"{part} would have {count} levels of detail")
        levels = [self._level(part) for _ in range(count)]
        self._version(part)
        (size,) = self._unpack("<i", f"the size of the description of {part}")
        if not 0 < size <= _MAX_DESC:
            raise self._foreign(f"the description of {part} would have {size} bytes")
        desc = parse("TensorDesc", self._take(size, f"the description of {part}"), f"{self._what}: {part}")
        try:
            dtype = to_numpy(desc.data_type)
        except TypeError:
            raise self._foreign(f"{part} has element type {desc.data_type}, which no tensor has") from None
        dims = list(desc.dims)
        if any(n < 0 for n in dims):
            raise self._foreign(f"{part} has shape {dims}")
        array = self._elements(dims, dtype, f"the {dtype} elements of {part} with shape {dims}")
        offsets = tuple([lods.frozen_offsets(level) for level in levels])
        problem = lods.problem(offsets, dims[0] if dims else 1)
        if problem:
            raise self._foreign(f"{part} has an invalid LoD {lods.as_lists(offsets)!r:.200}: {problem}")
        return array, offsets

    def _level(self, part: str) -> np.ndarray:
        (size,) = self._unpack("<Q", f"the size of a level of detail of {part}")
        if size % 8:
            raise self._foreign(
                f"a level of detail of {part} would have {size} bytes, which is not a multiple of 8"
            )
        return np.frombuffer(self._take(size, f"a level of detail of {part}"), "<u8").astype(np.uint64)

    def _elements(self, dims: list[int], dtype: np.dtype, part: str) -> np.ndarray:
        size = dtype.itemsize
        for n in dims:
            size *= n
        self._need(size, part)
        try:
            array = np.empty(dims, dtype.newbyteorder("<"))
        except ValueError as error:
            raise self._foreign(f"{part}: {error}") from None
        if size and self._file.readinto(array.reshape(-1).view(np.uint8)) != size:  # type: ignore[attr-defined]
            raise FormatError(f"{self._what} changed while it was read")
        self.left -= size
        return array.astype(dtype, copy=False)

    def _version(self, part: str) -> None:
        (version,) = self._unpack("<I", f"the format version of {part}")
        if version != 0:
            raise self._foreign(f"at {part} the format version should be 0 but is {version}")

    def _unpack(self, form: str, part: str) -> tuple[int, ...]:
        return struct.unpack(form, self._take(struct.calcsize(form), part))

    def _take(self, size: int, part: str) -> bytes:
        self._need(size, part)
        data = self._file.read(size)
        self.left -= size
        return data

    def _need(self, size: int, part: str) -> None:
        if size > self.left:
            raise FormatError(
                f"{self._what} is cut off, or is not a file of tensors as Fluid writes them: expected {size} "
                "bytes for "
                f"{part} at offset {self._size - self.left}, found {self.left}"
            )

    def _foreign(self, problem: str) -> FormatError:
        return FormatError(f"{self._what} is not a file of tensors as Fluid writes them: {problem}")
