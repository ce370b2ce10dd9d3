"""The protocol-buffer messages of saved programs and tensors (package `paddle.framework.proto`), built on
first use.

protobuf is imported only when a program or a tensor is written, read or printed.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from ..dtypes import VarType
from ..errors import FormatError

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
