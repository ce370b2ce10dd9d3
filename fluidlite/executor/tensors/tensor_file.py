"""Tensors as bytes, in the form that Fluid's `save` and `save_combine` operators write.

One tensor is: format version 0 (uint32); the number of levels of detail (uint64) and for each its size in
bytes (uint64) and its offsets (uint64 each); format version 0 (uint32); the size (int32) of a TensorDesc
message with element type and dimensions; the elements in row-major order, little endian. A combined file is
one tensor after the other.
"""

from __future__ import annotations

import io
import os
import struct
import sys
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from ...backend import to_host
from ...base.dtypes import to_numpy, to_vartype
from ...base.errors import EnforceNotMet, FormatError
from ...framework.serialization.messages import messages, parse
from ...ops.program import save_load
from .lod_tensor import LoDTensor

_MAX_DESC = 1 << 16
_MAX_LEVELS = 64


def write_tensor(file: BinaryIO, tensor: LoDTensor) -> None:
    """Append `tensor` (elements and levels of detail) to a binary file.

    A tensor without dimensions is written with shape [1], as Fluid has none. Raises ValueError if it was
    never set, TypeError for an element type that Fluid cannot hold.
    """
    if tensor.array is None:
        raise ValueError("a LoDTensor that has not been set cannot be written: it holds no elements")
    array = np.atleast_1d(np.ascontiguousarray(to_host(tensor.array)))
    desc = messages().TensorDesc(data_type=int(to_vartype(array.dtype)), dims=array.shape).SerializeToString()
    head = [struct.pack("<IQ", 0, len(tensor.offsets))]
    for level in tensor.offsets:
        offsets = level.astype("<u8").tobytes()
        head += [struct.pack("<Q", len(offsets)), offsets]
    file.write(b"".join([*head, struct.pack("<Ii", 0, len(desc)), desc]))
    if sys.byteorder == "big":
        array = array.byteswap()
    file.write(array.reshape(-1).view(np.uint8).data)


def read_tensors(file: BinaryIO, names: Sequence[str], what: str | os.PathLike[str]) -> dict[str, LoDTensor]:
    """The tensors of a binary file that holds exactly one for each of `names`, in that order.

    `what` names the file in errors. Raises FormatError if the file holds fewer or more, is cut off, or is no
    such file.
    """
    reader = _Reader(file, os.fspath(what))
    found = {}
    for number, name in enumerate(names):
        if number and reader.left == 0:
            raise FormatError(
                f"{what} ends after {number} tensors, expected {len(names)}: {name!r} and what follows are "
                "not in it. "
                "It was saved with fewer variables"
            )
        found[name] = reader.tensor(name)
    if reader.left:
        raise FormatError(
            f"{what} has {reader.left} bytes after its {len(names)} tensor{'s' if len(names) != 1 else ''}: "
            "expected "
            "its end. It was saved with more variables, or is not a file of tensors as Fluid writes them"
        )
    return found


def _bytes(array: np.ndarray, lod: Sequence[np.ndarray]) -> bytes:
    file = io.BytesIO()
    write_tensor(file, LoDTensor.wrap(array, lod))
    return file.getvalue()


def _all_of(path: str) -> list[tuple[np.ndarray, tuple[np.ndarray, ...]]]:
    with open(path, "rb") as file:
        reader = _Reader(file, path)
        found: list[tuple[np.ndarray, tuple[np.ndarray, ...]]] = []
        while reader.left:
            tensor = reader.tensor(f"number {len(found)}")
            found.append((np.asarray(tensor.array), tensor.offsets))
    return found


save_load.use_format(_bytes, _all_of)


class _Reader:
    """Takes parts off a file and says where and why it cannot."""

    def __init__(self, file: BinaryIO, what: str) -> None:
        self._file = file
        self._what = what
        start = file.tell()
        self._size = file.seek(0, os.SEEK_END) - start
        file.seek(start)
        self.left = self._size

    def tensor(self, name: str) -> LoDTensor:
        part = f"variable {name!r}"
        self._version(part)
        (count,) = self._unpack("<Q", f"the number of levels of detail of {part}")
        if count > _MAX_LEVELS:
            raise self._foreign(f"{part} would have {count} levels of detail")
        lod = [self._level(part) for _ in range(count)]
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
        tensor = LoDTensor.wrap(array)
        try:
            tensor.set_lod(lod)
        except EnforceNotMet as error:
            raise self._foreign(f"{part} has an {error}") from None
        return tensor

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
