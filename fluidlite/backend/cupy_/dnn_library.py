"""cuDNN 9 as a C library: opened when first needed, its functions with their types, its errors as exceptions."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_void_p
from typing import Any

from ...base.errors import EnforceNotMet
from . import library
from .shared_library import open_first

NAMES = ("libcudnn.so.9",)
PACKAGES = ("nvidia.cudnn", "torch")
VARIABLE = "FLUIDLITE_CUDNN"

FLOAT, DOUBLE = 0, 1  # cudnnDataType_t
NCHW = 0  # cudnnTensorFormat_t
CROSS_CORRELATION = 1  # cudnnConvolutionMode_t
DEFAULT_MATH, TENSOR_MATH, TENSOR_MATH_CONVERTING, FMA_MATH = 0, 1, 2, 3  # cudnnMathType_t
DETERMINISTIC = 1  # cudnnDeterminism_t

OLDEST = 90000
"""The oldest supported version."""


class Performance(ctypes.Structure):
    """The properties of an algorithm (cudnnConvolutionFwdAlgoPerf_t and those for the gradients)."""

    _fields_ = [
        ("algorithm", c_int),
        ("status", c_int),
        ("time", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    ]


_INTS = POINTER(c_int)
_NEW = (POINTER(c_void_p),)
_OLD = (c_void_p,)
_FOUR = (c_void_p,) * 4
_CHOICE = (c_void_p, *_FOUR, c_int, _INTS, POINTER(Performance))
_ROOM = (c_void_p, *_FOUR, c_int, POINTER(c_size_t))
_RUN = (c_void_p, c_void_p, *_FOUR, c_void_p, c_int, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p)

SIGNATURES: Mapping[str, Sequence[Any]] = {
    "cudnnCreate": _NEW,
    "cudnnDestroy": _OLD,
    "cudnnSetStream": (c_void_p, c_void_p),
    "cudnnCreateTensorDescriptor": _NEW,
    "cudnnDestroyTensorDescriptor": _OLD,
    "cudnnSetTensorNdDescriptor": (c_void_p, c_int, c_int, _INTS, _INTS),
    "cudnnCreateFilterDescriptor": _NEW,
    "cudnnDestroyFilterDescriptor": _OLD,
    "cudnnSetFilterNdDescriptor": (c_void_p, c_int, c_int, c_int, _INTS),
    "cudnnCreateConvolutionDescriptor": _NEW,
    "cudnnDestroyConvolutionDescriptor": _OLD,
    "cudnnSetConvolutionNdDescriptor": (c_void_p, c_int, _INTS, _INTS, _INTS, c_int, c_int),
    "cudnnSetConvolutionGroupCount": (c_void_p, c_int),
    "cudnnSetConvolutionMathType": (c_void_p, c_int),
    "cudnnGetConvolutionForwardAlgorithm_v7": _CHOICE,
    "cudnnGetConvolutionBackwardDataAlgorithm_v7": _CHOICE,
    "cudnnGetConvolutionBackwardFilterAlgorithm_v7": _CHOICE,
    "cudnnGetConvolutionForwardWorkspaceSize": _ROOM,
    "cudnnGetConvolutionBackwardDataWorkspaceSize": _ROOM,
    "cudnnGetConvolutionBackwardFilterWorkspaceSize": _ROOM,
    "cudnnConvolutionForward": _RUN,
    "cudnnConvolutionBackwardData": _RUN,
    "cudnnConvolutionBackwardFilter": _RUN,
}
"""The functions that are used, with the types of their arguments; all of them return a cudnnStatus_t."""


class Unsupported(Exception):
    """cuDNN has no algorithm for a case, or none within the limits."""


def open_library() -> Any:
    """cuDNN without signatures; OSError if it cannot be found or opened."""
    return open_first(NAMES, PACKAGES, VARIABLE)


def cudnn() -> Any | None:
    """cuDNN; None if it cannot be used, see `problem`."""
    return _found()[0]


def problem() -> str:
    """The reason why cuDNN cannot be used, for a message; empty if it can."""
    return _found()[1]


@functools.cache
def _found() -> tuple[Any | None, str]:
    try:
        lib = open_library()
        lib.cudnnGetVersion.argtypes, lib.cudnnGetVersion.restype = (), c_size_t
        lib.cudnnGetErrorString.argtypes, lib.cudnnGetErrorString.restype = (c_int,), c_char_p
        version = int(lib.cudnnGetVersion())
        if version < OLDEST:
            return None, f"cuDNN 9 is needed, found version number {version}"
        for name, arguments in SIGNATURES.items():
            function = getattr(lib, name)
            function.argtypes, function.restype = arguments, c_int
    except (OSError, AttributeError) as error:
        return None, f"cuDNN cannot be used: {error}"
    return lib, ""


def call(name: str, *arguments: Any) -> None:
    """Call a function of cuDNN.

    Raises Unsupported for its statuses NOT_SUPPORTED, EnforceNotMet for any other that is not success.
    """
    lib = cudnn()
    assert lib is not None, problem()
    status = getattr(lib, name)(*arguments)
    if not status:
        return
    said = lib.cudnnGetErrorString(status)
    text = f"{name} reports {said.decode() if said else 'status'} ({status})"
    if 3000 <= status < 4000:
        raise Unsupported(text)
    raise EnforceNotMet(text)


def integers(numbers: Sequence[int]) -> Any:
    """An array of C integers."""
    return (c_int * len(numbers))(*numbers)


def created(kind: str) -> c_void_p:
    """A new object of cuDNN: cudnnCreate<kind>."""
    made = c_void_p()
    call(f"cudnnCreate{kind}", ctypes.byref(made))
    return made


library.on_forget(_found.cache_clear)
