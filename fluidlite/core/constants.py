"""Constants and properties of the build in `fluid.core`."""

from __future__ import annotations

import os
import platform

from ..base.dtypes import VarType, to_numpy
from ..base.errors import EnforceNotMet
from ..ops.registry import grad_name

__all__ = [
    "avx_supported",
    "core_suffix",
    "current_path",
    "empty_var_name",
    "get_glibc_ver",
    "grad_var_suffix",
    "has_avx_core",
    "has_noavx_core",
    "is_compiled_with_brpc",
    "is_compiled_with_dist",
    "is_compiled_with_mkldnn",
    "kControlDepVarName",
    "kEmptyVarName",
    "kGradVarSuffix",
    "kNewGradSuffix",
    "kTempVarName",
    "kZeroVarSuffix",
    "less_than_ver",
    "load_noavx",
    "loaded_var_suffix",
    "size_of_dtype",
]

core_suffix = "so"
has_avx_core = True
has_noavx_core = True
load_noavx = False
current_path = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
legacy_core = os.path.join(current_path, f"core.{core_suffix}")
"""A file of Paddle before 1.6, which must not exist."""


def grad_var_suffix() -> str:
    return grad_name("")


def empty_var_name() -> str:
    return "@EMPTY@"


def loaded_var_suffix() -> str:
    return "@LOADED"


kGradVarSuffix = grad_var_suffix
kEmptyVarName = empty_var_name


def kTempVarName() -> str:
    return "@TEMP@"


def kZeroVarSuffix() -> str:
    return "@ZERO"


def kNewGradSuffix() -> str:
    return "@NEWGRAD@"


def kControlDepVarName() -> str:
    return "__control_var"


def size_of_dtype(dtype: VarType) -> int:
    """The bytes that an element takes; EnforceNotMet for kinds of variables that hold none (`fluid.core`)."""
    if not isinstance(dtype, VarType):
        raise TypeError(f"size_of_dtype takes a VarType, got {dtype!r}")
    try:
        return int(to_numpy(dtype).itemsize)
    except TypeError as error:
        raise EnforceNotMet(
            f"Not support proto::VarType::Type({int(dtype)}) as tensor type: {error}"
        ) from None


def is_compiled_with_brpc() -> bool:
    return False


def is_compiled_with_dist() -> bool:
    return False


def is_compiled_with_mkldnn() -> bool:
    """Whether convolutions can go through oneDNN, by its older name."""
    return True


def avx_supported() -> bool:
    """Whether Fluid's module with AVX could be loaded; here each kernel detects the processor's features."""
    return True


def get_glibc_ver() -> str:
    """The version of the C library."""
    return platform.libc_ver()[1]


def less_than_ver(a: str, b: str) -> bool:
    """Whether version `a`, such as '2.23', is lower than `b`."""
    return [int(part) for part in a.split(".")] < [int(part) for part in b.split(".")]


def _is_program_version_supported(version: int) -> bool:
    """Whether a saved program of this version can be read: any can."""
    return True
