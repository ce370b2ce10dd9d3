"""`fluid.core.op_proto_and_checker_maker`: names of attributes common to all operators, and their roles."""

from __future__ import annotations

from enum import IntEnum

from ...framework import operator


class OpRole(IntEnum):
    """The phase of training that an operator belongs to, as saved programs number it."""

    Forward = operator.OpRole.Forward
    Backward = operator.OpRole.Backward
    Optimize = operator.OpRole.Optimize
    RPC = operator.OpRole.RPC
    Dist = operator.OpRole.Dist
    LRSched = operator.OpRole.LRSched
    Loss = operator.OpRole.Loss

    def __str__(self) -> str:
        return f"OpRole.{self.name}"


def kOpRoleAttrName() -> str:
    return "op_role"


def kOpRoleVarAttrName() -> str:
    return "op_role_var"


def kOpNameScopeAttrName() -> str:
    return "op_namescope"


def kOpCreationCallstackAttrName() -> str:
    return "op_callstack"


def kOpDeviceAttrName() -> str:
    return "op_device"
