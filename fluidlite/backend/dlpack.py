"""Arrays to and from other libraries without copying, by the DLPack protocol.

The protocol also orders work on GPUs: the consumer passes the stream that it will use the array on, and the producer
makes that stream wait for pending computations. The host does not wait.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from . import device_of, on_device
from .cupy_ import library

CPU, CUDA = 1, 2
_ON_HOST = (CPU, 3, 13)  # 3: page-locked, 13: managed memory, both readable from the host
_VERSIONED_TENSOR = 32  # bytes in front of the tensor in a versioned capsule


def capsule(
    array: Any,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A PyCapsule over the memory of `array`, as `__dlpack__` returns it.

    Args:
        array: of the host or of a GPU.
        stream: the consumer's stream for an array of a GPU (None: CUDA's default stream, -1: no waiting).
        max_version, dl_device, copy: the consumer's requests; see the array API standard.

    Raises BufferError for what cannot be exported, as NumPy and CuPy do.
    """
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    given = {name: value for name, value in options.items() if value is not None}
    device = device_of(array)
    if device is None:
        return array.__dlpack__(**given)
    with device.active(), library.errors("giving an array to another library"):
        return array.__dlpack__(**given)


def device_code(array: Any) -> tuple[int, int]:
    """The kind and number of an array's device, as `__dlpack_device__` returns them."""
    return (CUDA, array.device.id) if on_device(array) else (CPU, 0)


class _Wrapped:
    """A capsule as an object of the protocol."""

    def __init__(self, held: Any, code: tuple[int, int]) -> None:
        self._held, self._code = held, code

    def __dlpack__(self, **options: Any) -> Any:
        return self._held

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._code


def from_external(source: Any) -> Any:
    """An array over the memory of `source`, of the host or of the GPU where that is; a copy if it is not C-contiguous.

    `source`: anything with `__dlpack__` and `__dlpack_device__`, or a PyCapsule, which can be taken once. Capsules do
    not say on which stream their elements are computed; that must be done, or on its way on CUDA's default stream. The
    array may be read-only. Raises TypeError for anything else, ValueError for a capsule taken before and for devices
    that are no GPUs.
    """
    if type(source).__name__ == "PyCapsule":
        source = _Wrapped(source, _code(source))
        raw = True
    elif not (hasattr(source, "__dlpack__") and hasattr(source, "__dlpack_device__")):
        raise TypeError(
            f"from_dlpack takes a DLPack capsule, or an array or tensor with __dlpack__, got {type(source).__name__}"
        )
    else:
        raw = False
    kind, number = source.__dlpack_device__()
    if kind in _ON_HOST:
        return np.asarray(np.from_dlpack(source), order="C")
    if kind != CUDA:
        raise ValueError(
            f"from_dlpack takes memory of the host and of CUDA GPUs, got DLPack device type {int(kind)}"
        )
    from .cupy_.device import device

    here = device(int(number))
    cuda = here.xp.cuda
    with cuda.Device(here.number), library.errors("taking an array from another library"):
        # CuPy's arrays synchronize with the current stream, which changes below.
        here.chain(cuda.Stream.null if raw else cuda.get_current_stream(here.number), here.compute)
    with here.active(), library.errors("taking an array from another library"):
        return here.xp.ascontiguousarray(here.xp.from_dlpack(source))


def _code(held: Any) -> tuple[int, int]:
    """The device of the tensor in a capsule."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = api.PyCapsule_GetName(held)
    if name not in (b"dltensor", b"dltensor_versioned"):
        used = name is not None and name.startswith(b"used_")
        raise ValueError(
            "this DLPack capsule was taken before: make another with to_dlpack"
            if used
            else f"from_dlpack takes capsules called 'dltensor', got {name!r}"
        )
    at = api.PyCapsule_GetPointer(held, name) + (_VERSIONED_TENSOR if name.endswith(b"versioned") else 0)
    kind, number = (ctypes.c_int32 * 2).from_address(at + ctypes.sizeof(ctypes.c_void_p))
    return kind, number
