"""The messages of Fluid's files, as classes of protobuf (`fluid.proto`)."""

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper  # type: ignore[import-untyped]

from ..base.storage.messages import ATTR_TYPES, messages

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = [
    "AttrType",
    "BlockDesc",
    "OpDesc",
    "OpProto",
    "ProgramDesc",
    "VarDesc",
    "VarType",
    "Version",
    *ATTR_TYPES,
]

_made = messages()

BlockDesc = _made.BlockDesc
OpDesc = _made.OpDesc
OpProto = _made.OpProto
ProgramDesc = _made.ProgramDesc
VarDesc = _made.VarDesc
VarType = _made.VarType
Version = _made.Version

AttrType = EnumTypeWrapper(OpProto.Attr.DESCRIPTOR.fields_by_name["type"].enum_type)
globals().update(AttrType.items())
