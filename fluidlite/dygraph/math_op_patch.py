"""Names of the module in which Fluid gives eager tensors their operators (`fluid.dygraph.math_op_patch`)."""

from __future__ import annotations

from ..base import missing
from ..base.dtypes import VarType
from ..eager.tracer import _varbase_creator

__all__ = ["_varbase_creator"]

_supported_int_dtype_ = [VarType.UINT8, VarType.INT8, VarType.INT16, VarType.INT32, VarType.INT64]


def monkey_patch_math_varbase() -> None:
    """Without effect: eager tensors are born with their operators."""


__getattr__ = missing.reporter(__name__)
