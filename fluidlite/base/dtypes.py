"""`VarType`, the data and variable types of Fluid programs, and its conversions to and from NumPy."""

from __future__ import annotations

from ctypes import c_float
from enum import IntEnum
from typing import Any

import numpy as np

from .errors import DataTypeError


class VarType(IntEnum):
    """`fluid.core.VarDesc.VarType`: element types and kinds of variables, with the numbers saved programs use."""

    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    TUPLE = 18
    SIZE_T = 19
    UINT8 = 20
    INT8 = 21

    def __str__(self) -> str:
        return f"VarType.{self.name}"

    __repr__ = __str__


_NUMBERED = {int(kind): kind for kind in VarType}
_NUMPY = {
    VarType.BOOL: "bool",
    VarType.INT16: "int16",
    VarType.INT32: "int32",
    VarType.INT64: "int64",
    VarType.FP16: "float16",
    VarType.FP32: "float32",
    VarType.FP64: "float64",
    VarType.UINT8: "uint8",
    VarType.INT8: "int8",
}
_TO_NUMPY = {kind: np.dtype(name) for kind, name in _NUMPY.items()}
ITEM_BYTES = {kind: dtype.itemsize for kind, dtype in _TO_NUMPY.items()}
"""The bytes of an element."""
ELEMENT_TYPES = frozenset(_TO_NUMPY)
"""The kinds that elements can have."""
_FROM_NUMPY = {dtype: kind for kind, dtype in _TO_NUMPY.items()}

FLOATS = frozenset({VarType.FP16, VarType.FP32, VarType.FP64})
INTEGERS = frozenset({VarType.INT8, VarType.UINT8, VarType.INT16, VarType.INT32, VarType.INT64})
"""Element types that have gradients."""


def element_types() -> list[np.dtype]:
    """The NumPy dtypes of all types that elements can have."""
    return list(_TO_NUMPY.values())


def to_vartype(dtype: object) -> VarType:
    """The `VarType` of a dtype name, NumPy dtype (in any byte order) or type, number or `VarType`.

    Raises TypeError naming the value and the types that exist.
    """
    if isinstance(dtype, VarType):
        return dtype
    if isinstance(dtype, (int, np.integer)) and not isinstance(dtype, bool):
        result = _NUMBERED.get(int(dtype))
        if result is not None:
            return result
    else:
        try:
            return _FROM_NUMPY[np.dtype(dtype).newbyteorder("=")]  # type: ignore[call-overload]
        except (TypeError, KeyError):
            pass
    names = ", ".join(_NUMPY.values())
    raise DataTypeError(f"unknown data type {dtype!r}: expected one of {names}")


def to_numpy(dtype: object) -> np.dtype:
    """The NumPy dtype of anything `to_vartype` understands.

    Raises TypeError for kinds of variables that hold no elements (READER, ...).
    """
    if isinstance(dtype, np.dtype):
        return dtype
    kind = dtype if type(dtype) is VarType else to_vartype(dtype)
    try:
        return _TO_NUMPY[kind]
    except KeyError:
        raise TypeError(f"{kind} has no element type") from None


_DOUBLE = {float, np.float64}


def attribute(value: Any) -> Any:
    """A value as operators hold it in an attribute: floats, also in lists, in single precision, as in Fluid."""
    if isinstance(value, float):
        return c_float(value).value
    if isinstance(value, (list, tuple)) and not {*map(type, value)}.isdisjoint(_DOUBLE):
        return type(value)(attribute(item) for item in value)
    return value
