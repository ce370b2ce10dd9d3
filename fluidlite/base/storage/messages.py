"""Protocol-buffer messages: how they are built, those of saved programs and tensors, and tensors as bytes."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, BinaryIO, ClassVar

import numpy as np

from .. import lod as lods
from ..dtypes import VarType, to_numpy, to_vartype
from ..errors import FormatError

# The protocol-buffer messages of saved programs and tensors (package `paddle.framework.proto`), built on first use.
#
# protobuf is imported only when a program or a tensor is written, read or printed.

PACKAGE = "paddle.framework.proto"

ATTR_TYPES = (
    "INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS",
    "BOOLEAN", "BOOLEANS", "BLOCK", "LONG", "BLOCKS", "LONGS",
)  # fmt: skip
"""Names of the types of attributes, in the order of their numbers."""

# Number, label, type, name, and the default where the format has one.
_MESSAGES: dict[str, tuple[str, ...]] = {
    "Version": ("1 optional int64 version 0",),
    "OpDesc.Var": ("1 required string parameter", "2 repeated string arguments"),
    "OpDesc.Attr": (
        "1 required string name",
        "2 required AttrType type",
        "3 optional int32 i",
        "4 optional float f",
        "5 optional string s",
        "6 repeated int32 ints",
        "7 repeated float floats",
        "8 repeated string strings",
        "10 optional bool b",
        "11 repeated bool bools",
        "12 optional int32 block_idx",
        "13 optional int64 l",
        "14 repeated int32 blocks_idx",
        "15 repeated int64 longs",
    ),
    "OpDesc": (
        "1 repeated OpDesc.Var inputs",
        "2 repeated OpDesc.Var outputs",
        "3 required string type",
        "4 repeated OpDesc.Attr attrs",
        "5 optional bool is_target false",
    ),
    "VarType.TensorDesc": ("1 required VarType.Type data_type", "2 repeated int64 dims"),
    "VarType.LoDTensorDesc": ("1 required VarType.TensorDesc tensor", "2 optional int32 lod_level 0"),
    "VarType.LoDTensorArrayDesc": ("1 required VarType.TensorDesc tensor", "2 optional int32 lod_level 0"),
    "VarType.ReaderDesc": ("1 repeated VarType.LoDTensorDesc lod_tensor",),
    "VarType": (
        "1 required VarType.Type type",
        "2 optional VarType.TensorDesc selected_rows",
        "3 optional VarType.LoDTensorDesc lod_tensor",
        "4 optional VarType.LoDTensorArrayDesc tensor_array",
        "5 optional VarType.ReaderDesc reader",
    ),
    "VarDesc": (
        "1 required string name",
        "2 required VarType type",
        "3 optional bool persistable false",
        "4 optional bool need_check_feed false",
    ),
    "BlockDesc": (
        "1 required int32 idx",
        "2 required int32 parent_idx",
        "3 repeated VarDesc vars",
        "4 repeated OpDesc ops",
        "5 optional int32 forward_block_idx -1",
    ),
    "ProgramDesc": ("1 repeated BlockDesc blocks", "4 optional Version version"),
    "OpProto.Var": (
        "1 required string name",
        "2 required string comment",
        "3 optional bool duplicable false",
        "4 optional bool intermediate false",
        "5 optional bool dispensable false",
    ),
    "OpProto.Attr": (
        "1 required string name",
        "2 required AttrType type",
        "3 required string comment",
        "4 optional bool generated false",
    ),
    "OpProto": (
        "1 required string type",
        "2 repeated OpProto.Var inputs",
        "3 repeated OpProto.Var outputs",
        "4 repeated OpProto.Attr attrs",
        "5 required string comment",
    ),
}

_ENUMS = {
    "AttrType": {name: number for number, name in enumerate(ATTR_TYPES)},
    "VarType.Type": {kind.name: int(kind) for kind in VarType},
}


@cache
def messages() -> SimpleNamespace:
    """The message classes by name; also `TensorDesc`, which is that of `VarType`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

    file = descriptor_pb2.FileDescriptorProto(
        name="fluidlite/framework.proto", package=PACKAGE, syntax="proto2"
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    made: dict[str, Any] = {}
    for full_name in sorted(_MESSAGES, key=lambda name: name.count(".")):
        outer, _, name = full_name.rpartition(".")
        made[full_name] = (
            made[outer].nested_type.add(name=name) if outer else file.message_type.add(name=name)
        )
    for full_name, values in _ENUMS.items():
        outer, _, name = full_name.rpartition(".")
        enum = made[outer].enum_type.add(name=name) if outer else file.enum_type.add(name=name)
        for value, number in values.items():
            enum.value.add(name=value, number=number)
    for full_name, fields in _MESSAGES.items():
        for text in fields:
            number_text, label, kind, name, *default = text.split()
            field = made[full_name].field.add(name=name, number=int(number_text))
            field.label = kinds.Label.Value(f"LABEL_{label.upper()}")
            if kind in _ENUMS or kind in _MESSAGES:
                field.type = kinds.TYPE_ENUM if kind in _ENUMS else kinds.TYPE_MESSAGE
                field.type_name = f".{PACKAGE}.{kind}"
            else:
                field.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
            if default:
                field.default_value = default[0]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)

    def message(name: str) -> Any:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))

    classes = {name: message(name) for name in _MESSAGES}
    for full_name, kind in classes.items():
        outer, _, name = full_name.rpartition(".")
        if outer and not hasattr(classes[outer], name):  # where protobuf is written in Python
            setattr(classes[outer], name, kind)
    top = {name: kind for name, kind in classes.items() if "." not in name}
    return SimpleNamespace(**top, TensorDesc=classes["VarType.TensorDesc"])


def parse(name: str, data: bytes, what: str) -> Any:
    """Parse `data` as message `name`; FormatError if `what` does not hold one."""
    from google.protobuf.message import DecodeError

    result = getattr(messages(), name)()
    try:
        result.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError) as error:  # the second where protobuf is written in Python
        raise FormatError(f"{what} is not a {name} as Fluid writes it: {error}") from None
    missing = result.FindInitializationErrors()
    if missing:
        raise FormatError(
            f"{what} is not a {name} as Fluid writes it: {', '.join(missing[:3])} missing or unknown"
        )
    return result


def as_text(message: Any) -> str:
    """The text form of a message, one field a line."""
    from google.protobuf import text_format

    return str(text_format.MessageToString(message))


def from_text(name: str, text: str, what: str) -> bytes:
    """Parse the text form of message `name` and return its bytes; FormatError if `what` does not hold one."""
    from google.protobuf import text_format

    try:
        message = text_format.Parse(text, getattr(messages(), name)(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise FormatError(f"{what} is not the text of a {name}: {error}") from None
    return bytes(message.SerializePartialToString())


Field = tuple[int, str, Any]
"""Number, name, and the default: its type is the field's; a list for a repeated one (of the type of its element), a
class for a message."""


class Message:
    """A message with its fields as attributes: unset ones have their defaults, and are not written."""

    fields: ClassVar[tuple[Field, ...]] = ()

    def __init__(self) -> None:
        for _, name, default in self.fields:
            if isinstance(default, list):
                setattr(self, name, [])

    def __getattr__(self, name: str) -> Any:
        for _, known, default in type(self).fields:
            if known == name:
                if isinstance(default, type):
                    setattr(self, name, default())
                    return self.__dict__[name]
                return default
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if all(name != known for _, known, _ in self.fields):
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        self.__dict__[name] = value

    def _set(self) -> list[tuple[int, str, Any]]:
        """The fields that were set, and their single values."""
        result = []
        for number, name, _ in sorted(self.fields):
            value = self.__dict__.get(name)
            if value is not None:
                result += [(number, name, each) for each in (value if isinstance(value, list) else [value])]
        return result

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> list[str]:
        """The text form."""
        result: list[str] = []
        for _, name, value in self._set():
            result += block(name, value.lines()) if isinstance(value, Message) else said(name, value)
        return result

    def serialized(self) -> bytes:
        """The wire form."""
        return b"".join(_wire(number, value) for number, _, value in self._set())


def said(name: str, value: Any) -> list[str]:
    """The line of a field in the text form; none for None."""
    if value is None:
        return []
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif isinstance(value, str):
        value = '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return [f"{name}: {value}"]


def block(name: str, lines: list[str]) -> list[str]:
    """The lines of a message inside of another."""
    return [f"{name} {{", *(f"  {line}" for line in lines), "}"]


def _wire(number: int, value: Any) -> bytes:
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value % 2**64)
    data = value.serialized() if isinstance(value, Message) else value.encode()
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


# Tensors as bytes, in the form that Fluid's `save` and `save_combine` operators write.
#
# One tensor is: format version 0 (uint32); the number of levels of detail (uint64) and for each its size in bytes
# (uint64) and its offsets (uint64 each); format version 0 (uint32); the size (int32) of a TensorDesc message with
# element type and dimensions; the elements in row-major order, little endian. A combined file is one tensor after the
# other.

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
