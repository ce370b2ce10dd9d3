"""Element types by the names that Paddle 2.0 gives them, and the default one."""

from __future__ import annotations

from typing import Any

from ..base import context
from ..base.dtypes import VarType, to_numpy, to_vartype

__all__ = [
    "bool",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "int16",
    "int32",
    "int64",
    "int8",
    "set_default_dtype",
    "uint8",
]

bool = VarType.BOOL  # noqa: A001 - Paddle's name
uint8, int8, int16, int32, int64 = VarType.UINT8, VarType.INT8, VarType.INT16, VarType.INT32, VarType.INT64
float16, float32, float64 = VarType.FP16, VarType.FP32, VarType.FP64

_default: context.Slot[VarType] = context.Slot("default_dtype", VarType.FP32)


def set_default_dtype(d: Any) -> None:
    """Have floats be `d` where nothing else is said: 'float16', 'float32' (as at first) or 'float64'.

    Raises TypeError for another type. Follows `paddle.set_default_dtype`.
    """
    kind = to_vartype(d)
    if kind not in (float16, float32, float64):
        raise TypeError(f"the default dtype must be float16, float32 or float64, got {d!r}")
    _default.set(kind)


def get_default_dtype() -> str:
    """The name of the default type of floats (`paddle.get_default_dtype`)."""
    return to_numpy(_default.get()).name
