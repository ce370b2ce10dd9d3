"""Device memory of the simulated CUDA: blocks, pointers into them, and copies."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import errors, streams
from .capture import forbid_in_capture
from .errors import CUDARuntimeError
from .machine import ALIGNMENT, GUARD, GUARD_BYTES, UNWRITTEN, Region, machine

HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, DEFAULT = range(5)
NAMES = {(False, True): "h2d", (True, False): "d2h", (True, True): "d2d", (False, False): "h2h"}


def device_view(
    ptr: int, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None
) -> np.ndarray:
    """A NumPy view of simulated device memory.

    Args:
        ptr: a device address.
        shape, dtype, strides: of the view; C order without strides (which are in bytes).

    Raises:
        CUDARuntimeError: the address is no device memory, or memory that nobody has allocated.
    """
    m = machine()
    device = m.device_of(ptr)
    if device is None:
        raise CUDARuntimeError(errors.ILLEGAL_ADDRESS, f"{ptr:#x} is not device memory")
    block = m.devices[device].block_of(ptr)
    view = m.devices[device].view(ptr, shape, dtype, strides)
    if block is None:
        raise CUDARuntimeError(errors.ILLEGAL_ADDRESS, f"{ptr:#x} is not allocated")
    low, high = np.lib.array_utils.byte_bounds(view)
    if view.size and (low < block[0] or high > block[0] + -(-block[1] // ALIGNMENT) * ALIGNMENT):
        raise CUDARuntimeError(
            errors.ILLEGAL_ADDRESS, f"{view.shape} at {ptr:#x} leaves its block of {block[1]} bytes"
        )
    return view


def malloc(size: int) -> int:
    """`cudaMalloc` on the current device."""
    m = machine()
    m.check_driver()
    forbid_in_capture("cudaMalloc")
    with m.lock:
        m.counters.mallocs += 1
        pointer = m.devices[m.device].allocate(size, m.options.memory)
    if pointer is None:
        raise CUDARuntimeError(errors.NO_MEMORY)
    mark(m.devices[m.device], pointer, size)
    return pointer


def free(pointer: int) -> None:
    """`cudaFree`, which waits for the device."""
    m = machine()
    device = m.device_of(pointer)
    if device is None or pointer not in m.devices[device].blocks:
        raise CUDARuntimeError(errors.INVALID_VALUE, f"{pointer:#x} was not allocated")
    forbid_in_capture("cudaFree")
    release(m, device, pointer)


def release(m: Any, device: int, pointer: int) -> None:
    """Give a block back once all queued work that may use it has been done."""
    with m.lock:
        for queue in list(m.queues.values()):
            if queue.device == device and queue.capture is None and not queue.busy:
                queue.drain()
        m.devices[device].release(pointer)


def mark(region: Region, pointer: int, size: int) -> None:
    """Make a block look as nobody has written it, with guard bytes behind."""
    region.raw(pointer, size)[...] = UNWRITTEN
    whole = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
    region.raw(pointer + size, whole - size + GUARD_BYTES)[...] = GUARD


def guard(region: Region, pointer: int, size: int) -> np.ndarray:
    """The bytes behind a block, which nobody may write."""
    whole = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
    return region.raw(pointer + size, whole - size + GUARD_BYTES)


def check_guard(region: Region, pointer: int, size: int, before: np.ndarray, what: str) -> None:
    """Raise if somebody wrote behind a block since its guard was `before`.

    It may have been something else before: a replayed graph uses memory as blocks of several sizes in turn.
    """
    behind = guard(region, pointer, size)
    bad = np.flatnonzero(behind != before)
    if bad.size:
        behind[...] = before
        raise CUDARuntimeError(
            errors.ILLEGAL_ADDRESS,
            f"{what} wrote {int(bad[0])} bytes behind the end of a block of {size} bytes",
        )


class BaseMemory:
    """A block of device memory."""

    ptr: int
    size: int
    device_id: int

    @property
    def device(self) -> Any:
        from .devices import Device

        return Device(self.device_id)

    def __int__(self) -> int:
        return self.ptr


class Memory(BaseMemory):
    """A block that `cudaMalloc` gave, until nobody holds it."""

    def __init__(self, size: int) -> None:
        self.size, self.device_id, self.ptr = size, machine().device, 0
        self.guarded = size
        if size > 0:
            self._machine = machine()
            self.ptr = malloc(size)

    def __del__(self) -> None:
        if self.ptr:
            release(self._machine, self.device_id, self.ptr)


class UnownedMemory(BaseMemory):
    """Memory of somebody else."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        m = machine()
        m.check_driver()
        if device_id < 0:
            found = m.device_of(ptr) if ptr else m.device
            if found is None:
                raise CUDARuntimeError(errors.INVALID_VALUE, f"{ptr:#x} is not device memory")
            device_id = found
        self.ptr, self.size, self.device_id, self._owner = ptr, size, device_id, owner


def host_address(mem: Any) -> int:
    if isinstance(mem, ctypes.c_void_p):
        return mem.value or 0
    if isinstance(mem, int):
        return mem
    raise TypeError(f"a host address is an int or a ctypes.c_void_p, not {type(mem).__name__}")


class MemoryPointer:
    """An address in a block of device memory."""

    def __init__(self, mem: BaseMemory, offset: int) -> None:
        if offset < 0:
            raise ValueError("offset must not be negative")
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id

    @property
    def device(self) -> Any:
        return self.mem.device

    def __int__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<MemoryPointer {self.ptr:#x} device={self.device_id} mem={self.mem!r}>"

    def __add__(self, offset: int) -> "MemoryPointer":
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> "MemoryPointer":
        return self + -offset

    def copy_from_device(self, src: "MemoryPointer", size: int) -> None:
        copy(self.ptr, src.ptr, size, DEVICE_TO_DEVICE)

    def copy_from_device_async(self, src: "MemoryPointer", size: int, stream: Any = None) -> None:
        copy_async(self.ptr, src.ptr, size, DEVICE_TO_DEVICE, _pointer(stream))

    def copy_from_host(self, mem: Any, size: int) -> None:
        copy(self.ptr, host_address(mem), size, HOST_TO_DEVICE)

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        copy_async(self.ptr, host_address(mem), size, HOST_TO_DEVICE, _pointer(stream))

    def copy_from(self, mem: Any, size: int) -> None:
        if isinstance(mem, MemoryPointer):
            self.copy_from_device(mem, size)
        else:
            self.copy_from_host(mem, size)

    def copy_from_async(self, mem: Any, size: int, stream: Any = None) -> None:
        if isinstance(mem, MemoryPointer):
            self.copy_from_device_async(mem, size, stream)
        else:
            self.copy_from_host_async(mem, size, stream)

    def copy_to_host(self, mem: Any, size: int) -> None:
        copy(host_address(mem), self.ptr, size, DEVICE_TO_HOST)

    def copy_to_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        copy_async(host_address(mem), self.ptr, size, DEVICE_TO_HOST, _pointer(stream))

    def memset(self, value: int, size: int) -> None:
        set_async(self.ptr, value, size, 0)
        streams.synchronize_queue(streams.legacy_queue(machine().device))

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        set_async(self.ptr, value, size, _pointer(stream))


def _pointer(stream: Any) -> int:
    return (streams.get_current_stream() if stream is None else stream).ptr


def span(pointer: int, size: int) -> np.ndarray:
    """The bytes at an address of the host or of a device."""
    m = machine()
    device = m.device_of(pointer)
    if device is not None:
        return m.devices[device].raw(pointer, size)
    if pointer in m.pinned:
        return m.pinned.raw(pointer, size)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(pointer))


def copy(dst: int, src: int, size: int, kind: int) -> None:
    """`cudaMemcpy`: on the legacy stream, and waits."""
    m = machine()
    m.check_driver()
    forbid_in_capture("cudaMemcpy")
    if size:
        copy_async(dst, src, size, kind, 0)
        m.counters.syncs += 1
        streams.legacy_queue(m.device).drain()


def copy_async(dst: int, src: int, size: int, kind: int, stream: int) -> None:
    """`cudaMemcpyAsync`: page-locked host memory is read and written when the copy happens; other host memory is read
    at once, and written before this returns."""
    m = machine()
    queue = streams.queue_of(stream)
    if not size:
        return
    to_device, from_device = m.device_of(dst) is not None, m.device_of(src) is not None
    name = NAMES[from_device, to_device]
    expected = {"h2h": HOST_TO_HOST, "h2d": HOST_TO_DEVICE, "d2h": DEVICE_TO_HOST, "d2d": DEVICE_TO_DEVICE}[
        name
    ]
    if kind not in (expected, DEFAULT):
        raise CUDARuntimeError(errors.INVALID_DIRECTION, f"kind {kind} for a copy {name}")
    if not dst or not src:
        raise CUDARuntimeError(errors.INVALID_VALUE, "copy from or to a null pointer")
    for pointer, on_device in ((dst, to_device), (src, from_device)):
        if on_device:
            device_view(pointer, (size,), np.uint8)
    pageable_source = not from_device and not m.is_pinned(src)
    pageable_target = not to_device and not m.is_pinned(dst)
    if queue.capture is not None and (pageable_source or pageable_target):
        queue.capture.invalid = True
        raise CUDARuntimeError(errors.CAPTURE_UNSUPPORTED, "copy of memory that is not page-locked")
    m.counters.copies[name] += 1
    m.counters.bytes[name] += size
    source, target = span(src, size), span(dst, size)
    if pageable_source:
        source = source.copy()

    def work() -> None:
        target[...] = source

    streams.push(queue, work)
    if pageable_target:
        m.counters.syncs += 1
        queue.drain()


def set_async(pointer: int, value: int, size: int, stream: int) -> None:
    """`cudaMemsetAsync`."""
    queue = streams.queue_of(stream)
    if size:
        target = device_view(pointer, (size,), np.uint8)

        def work() -> None:
            target[...] = value

        streams.push(queue, work)


def alloc(size: int) -> MemoryPointer:
    """Memory from the allocator in use."""
    from .pools import get_allocator

    return get_allocator()(size)
