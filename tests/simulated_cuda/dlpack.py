"""DLPack of the simulated device: capsules that say that their memory is CUDA's, and arrays over such memory."""

import ctypes
import itertools
from typing import Any

import numpy as np

from . import memory, streams
from .machine import machine

CUDA = 2
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
KINDS = {code: kind for kind, code in CODES.items()}

_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))


class Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """`DLManagedTensor`."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", Deleter),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"
_TAKEN = {name: b"used_" + name for name in (PLAIN, VERSIONED)}  # capsules do not copy their names
STRUCTURES: dict[bytes, Any] = {PLAIN: Managed, VERSIONED: Versioned}

_numbers = itertools.count(1)
_kept: dict[int, Any] = {}  # what exported tensors stand on, until somebody calls their deleter


def _delete(address: int | None) -> None:
    _kept.pop(address or 0, None)


_deleter = Deleter(_delete)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _unused(capsule: int) -> None:
    """The capsule goes: what nobody has taken goes with it."""
    held = ctypes.cast(capsule, ctypes.py_object)
    name = _name(held)
    if name in STRUCTURES:
        _delete(_pointer(held, name))


def export(array: Any, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """The capsule of an array; the consumer's stream waits for what the current one has got to do."""
    if dl_device is not None and tuple(dl_device) != (CUDA, array.data.device_id):
        raise BufferError(f"an array of CUDA device {array.data.device_id} is not exported to {dl_device}")
    if copy:
        array = array.copy()
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be an integer")
    if stream == 0:
        raise ValueError("stream 0 is ambiguous: 1 is the legacy stream, 2 that of the thread")
    if stream != -1:
        event = streams.Event(disable_timing=True)
        event.record()
        streams.ExternalStream(streams.LEGACY if stream is None else stream).wait_event(event)
    name = VERSIONED if max_version is not None and max_version[0] >= 1 else PLAIN
    made = STRUCTURES[name]()
    tensor, n = made.tensor, array.ndim
    shape = (ctypes.c_int64 * max(n, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(n, 1))(*(step // array.itemsize for step in array.strides))
    tensor.data, tensor.device_type, tensor.device_id = array.data.ptr, CUDA, array.data.device_id
    tensor.ndim, tensor.code, tensor.bits, tensor.lanes = n, CODES[array.dtype.kind], array.itemsize * 8, 1
    tensor.shape, tensor.strides = shape, strides
    made.deleter = _deleter
    if name is VERSIONED:
        made.major, made.minor = 1, 0
    address = ctypes.addressof(made)
    _kept[address] = (made, shape, strides, array)
    return _new(address, name, ctypes.cast(_unused, ctypes.c_void_p))


class Taken:
    """Calls the deleter of a tensor that was taken, when nothing stands on it any more."""

    def __init__(self, address: int, deleter: Any) -> None:
        self._address, self._deleter = address, deleter

    def __del__(self) -> None:
        if self._deleter:
            self._deleter(self._address)


def from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> Any:
    """An array over the memory of another library's tensor, which must be a GPU's."""
    from .array import ndarray

    if not hasattr(array, "__dlpack_device__"):
        raise TypeError("Input array must have __dlpack__ and __dlpack_device__ methods")
    kind, number = array.__dlpack_device__()
    if kind != CUDA:
        raise TypeError(
            "CPU arrays cannot be directly imported to CuPy. Use `cupy.array(numpy.from_dlpack(input))` instead."
        )
    m = machine()
    here, m.device = m.device, number
    try:
        stream = streams.get_current_stream().ptr or streams.LEGACY
        try:
            capsule = array.__dlpack__(stream=stream, max_version=(1, 0))
        except TypeError:
            capsule = array.__dlpack__(stream=stream)
    finally:
        m.device = here
    name = _name(capsule)
    if name not in STRUCTURES:
        raise ValueError("A DLPack tensor object cannot be consumed multiple times")
    address = _pointer(capsule, name)
    made = STRUCTURES[name].from_address(address)
    tensor = made.tensor
    _rename(capsule, _TAKEN[name])
    owner = Taken(address, made.deleter)
    dtype = np.dtype(f"{KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(n * dtype.itemsize for n in tensor.strides[: tensor.ndim]) if tensor.strides else None
    size = sum((n - 1) * step for n, step in zip(shape, strides or (), strict=False)) + dtype.itemsize
    if strides is None:
        size = int(np.prod(shape)) * dtype.itemsize
    block = memory.UnownedMemory(tensor.data or 0, max(size, 1), owner, number)
    found = ndarray(shape, dtype, memory.MemoryPointer(block, tensor.byte_offset), strides)
    return found.copy() if copy else found
