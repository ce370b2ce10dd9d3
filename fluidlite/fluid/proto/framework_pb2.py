"""The messages of saved programs and tensors as classes of protobuf (`fluid.proto.framework_pb2`).

For scripts that read Fluid's files themselves: `VarType.TensorDesc().ParseFromString(data)`.
"""

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper  # type: ignore[import-untyped]

from ...base.storage.messages import ATTR_TYPES, messages

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
