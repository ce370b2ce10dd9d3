"""Arrays between device and host, each of them explicit."""

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from . import calls, errors, memory, streams
from .errors import CUDARuntimeError
from .machine import machine

if TYPE_CHECKING:
    from .array import ndarray


class Transfers:
    """The methods of arrays that bring values to the host or get them from there."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
            "explicitly."
        )

    def get(
        self: Any, stream: Any = None, order: str = "C", out: np.ndarray | None = None, blocking: bool = True
    ) -> np.ndarray:
        """A copy on the host."""
        queue = (stream or streams.get_current_stream())._queue
        if queue.capture is not None:
            queue.capture.invalid = True
            raise CUDARuntimeError(errors.CAPTURE_UNSUPPORTED, "an array is copied to the host")
        if out is not None:
            if not isinstance(out, np.ndarray):
                raise TypeError(f"Only numpy.ndarray can be obtained fromcupy.ndarray, not {type(out)}")
            if out.dtype != self.dtype:
                raise TypeError(f"{out.dtype} array cannot be obtained from {self.dtype} array")
            if out.shape != self.shape:
                raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}")
            if not (out.flags.c_contiguous and self.flags.c_contiguous) and not (
                out.flags.f_contiguous and self.flags.f_contiguous
            ):
                if not out.flags.c_contiguous:
                    raise RuntimeError("`out` cannot be specified when copying to non-contiguous ndarray")
        if self.size == 0:
            return np.empty(self.shape, self.dtype) if out is None else out
        source, keep = self, "C"
        if order == "F" or (out is not None and not out.flags.c_contiguous):
            keep = "F"
        elif order in ("A", "K") and self.flags.f_contiguous and not self.flags.c_contiguous:
            keep = "F"
        if not self.flags[f"{keep}_CONTIGUOUS"]:
            source = self.copy(keep)
        target = np.empty(self.shape, self.dtype, keep) if out is None else out
        memory.copy_async(
            target.ctypes.data, source.data.ptr, self.nbytes, memory.DEVICE_TO_HOST, queue.pointer
        )
        if blocking and machine().is_pinned(target.ctypes.data):
            streams.synchronize_queue(queue)
        return target

    def set(self: Any, arr: np.ndarray, stream: Any = None) -> None:
        """Copy a host array of the same shape and dtype here."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self.dtype != arr.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if self.shape != arr.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if self.flags.c_contiguous:
            source = np.ascontiguousarray(arr)
        elif self.flags.f_contiguous:
            source = np.asfortranarray(arr)
        else:
            raise RuntimeError("Cannot set to non-contiguous array")
        if self.size:
            queue = (stream or streams.get_current_stream())._queue
            memory.copy_async(
                self.data.ptr, source.ctypes.data, self.nbytes, memory.HOST_TO_DEVICE, queue.pointer
            )

    def item(self: Any) -> Any:
        """The value of an array with one element."""
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.get().item()

    def tolist(self: Any) -> Any:
        return self.get().tolist()

    def tobytes(self: Any, order: str = "C") -> bytes:
        return self.get().tobytes(order)

    def dumps(self: Any) -> bytes:
        return pickle.dumps(self)

    def __reduce__(self: Any) -> tuple:
        return from_host, (self.get(),)

    def __repr__(self: Any) -> str:
        return repr(self.get())

    def __str__(self: Any) -> str:
        return str(self.get())

    def __format__(self: Any, spec: str) -> str:
        return format(self.get(), spec)

    def __float__(self: Any) -> float:
        return float(self.get())

    def __int__(self: Any) -> int:
        return int(self.get())

    def __complex__(self: Any) -> complex:
        return complex(self.get())


def from_host(value: np.ndarray, dtype: Any = None, order: str = "C") -> "ndarray":
    """A device array of a host array's values, which may change as soon as this returns."""
    from .array import check_dtype, ndarray

    kind = check_dtype(value.dtype if dtype is None else dtype)
    queue = streams.current_queue()
    if queue.capture is not None:
        from .pools import alloc_pinned_memory

        alloc_pinned_memory(max(value.nbytes, 1))  # where CuPy stages it: an allocator may refuse
        queue.capture.invalid = True
        raise CUDARuntimeError(errors.CAPTURE_UNSUPPORTED, "an array is made from host memory")
    if order in ("K", "A"):
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    staged = np.array(value, kind, order=order, copy=True)  # type: ignore[call-overload]
    array = ndarray(staged.shape, kind, order=order)
    if staged.size:
        memory.copy_async(
            array.data.ptr, staged.ctypes.data, staged.nbytes, memory.HOST_TO_DEVICE, queue.pointer
        )
    return array


def asnumpy(
    a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True
) -> np.ndarray:
    """A host array of anything."""
    if calls.is_array(a):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    found = np.asarray(a, order=order)  # type: ignore[call-overload]
    if out is not None:
        out[...] = found
        return out
    return found
