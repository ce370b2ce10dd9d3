"""Memory pools: of a GPU, with limits, one for each plan that becomes a CUDA graph; of page-locked host memory.

GPUs copy asynchronously from page-locked memory, NumPy arrays here. Locking pages takes about as long as copying
them, so blocks are cached: a block is handed out as an array and returns to the cache when the last array on it
is garbage.
"""

from __future__ import annotations

import bisect
import gc
import math
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import library

if TYPE_CHECKING:
    from .device import CudaDevice


class PlanPool:
    """A pool for the temporaries of one plan, within the part of the limit that other pools have not taken.

    While a CUDA graph is recorded, the pool frees no memory: CuPy's own pools free unused memory when the GPU is full,
    although the graph uses it.
    """

    def __init__(self, device: CudaDevice) -> None:
        self.number = device.number
        with device.active():
            self.pool: Any = device.xp.cuda.MemoryPool(_allocator(device))
            allowed = limit(device.xp.cuda.runtime.memGetInfo()[1])
            if allowed is not None:
                self.pool.set_limit(size=max(allowed - bytes_held(device), 1))
        _plans.add(self)

    def lift_limit(self) -> None:
        """Remove the limit on the current device: without it CuPy frees unused memory before it fails."""
        self.pool.set_limit(size=0)


def _allocator(device: CudaDevice) -> Callable[[int], Any]:
    """The allocator of a pool. Without memory for a recording it raises MemoryError, which CuPy's pools pass on."""
    cuda = device.xp.cuda

    def allocate(size: int) -> Any:
        try:
            return cuda.MemoryPointer(cuda.Memory(size), 0)
        except cuda.runtime.CUDARuntimeError as error:
            if device.recording is None:
                raise
            raise MemoryError(f"no {size} bytes are left on GPU {device.number} for a CUDA graph") from error

    return allocate


_plans: weakref.WeakSet[PlanPool] = weakref.WeakSet()


def limit(total: int) -> int | None:
    """The limit on allocated bytes of a GPU with `total` bytes; None without a limit.

    FLAGS_gpu_memory_limit_mb counts MiB, FLAGS_fraction_of_gpu_memory_to_use is a part of the whole. Raises ValueError
    if one of them is no such number.
    """
    text = os.environ.get("FLAGS_gpu_memory_limit_mb", "")
    if text and text != "0":
        if not text.isdecimal():
            raise ValueError(f"FLAGS_gpu_memory_limit_mb must be a number of MiB, got {text!r}")
        return int(text) << 20
    text = os.environ.get("FLAGS_fraction_of_gpu_memory_to_use", "")
    if not text:
        return None
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction <= 1:
        raise ValueError(f"FLAGS_fraction_of_gpu_memory_to_use must be above 0 and at most 1, got {text!r}")
    return int(total * fraction)


def set_limit(device: CudaDevice) -> None:
    """Set the limit of CuPy's default pool; once for each device."""
    with device.active():
        allowed = limit(device.xp.cuda.runtime.memGetInfo()[1])
        if allowed is not None:
            device.xp.get_default_memory_pool().set_limit(size=allowed)


def bytes_held(device: CudaDevice) -> int:
    """The bytes of a device that the pools hold, in use or not."""
    with device.active():
        own = [plan.pool for plan in list(_plans) if plan.number == device.number]
        return sum(int(pool.total_bytes()) for pool in (device.xp.get_default_memory_pool(), *own))


_relievers: list[Callable[[CudaDevice], None]] = []


def on_shortage(relieve: Callable[[CudaDevice], None]) -> Callable[[CudaDevice], None]:
    """Register `relieve`, called when a device is out of memory to free what can be recomputed."""
    _relievers.append(relieve)
    return relieve


def allocated(device: CudaDevice, allocate: Callable[[], Any]) -> Any:
    """Return `allocate()`; when out of memory, retry once after `relieve`."""
    try:
        return allocate()
    except device.xp.cuda.memory.OutOfMemoryError:
        relieve(device)
        return allocate()


def relieve(device: CudaDevice) -> None:
    """Free memory of a device: of garbage, of caches that can be recomputed, and unused memory of CuPy's default pool.

    The frames of a caught error may be such garbage, and hold all arrays of a step.
    """
    gc.collect()
    for give in _relievers:
        give(device)
    with device.active():
        device.xp.get_default_memory_pool().free_all_blocks()


KEPT = 1 << 30
"""The most unused bytes that are cached."""

_SMALLEST = 1 << 12
_STEPS = 8  # sizes of blocks for each power of two


def block_size(size: int) -> int:
    """The size of the block for `size` bytes: at most an eighth more, so that few sizes come up."""
    if size <= _SMALLEST:
        return _SMALLEST
    step = 1 << max((size - 1).bit_length() - _STEPS.bit_length(), 0)
    return -(-size // step) * step


class PinnedPool:
    """Blocks of page-locked memory of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._unused: dict[int, list[Any]] = {}
        # Finalizers may run anywhere, also under the lock: they only append here.
        self._returned: deque[tuple[int, Any]] = deque()
        self._held: dict[int, int] = {}  # size of each block in use, by address
        self._batches: set[int] = set()  # addresses of those that hold batches
        self._starts: list[int] = []  # of all blocks, in order; replaced, never changed
        self._ends: dict[int, int] = {}
        self._inherited: list[Any] = []
        self.cached = 0

    def block(self, size: int, device: CudaDevice | None = None, batch: bool = False) -> np.ndarray:
        """See `pinned_block`."""
        whole = block_size(size)
        with self._lock:
            self._settle()
            unused = self._unused.get(whole)
            if unused:
                pointer = unused.pop()
                self.cached -= whole
            else:
                pointer = self._allocate(whole, device)
            self._held[pointer.ptr] = whole
            if batch:
                self._batches.add(pointer.ptr)
        array = np.frombuffer(pointer, np.uint8, whole)
        weakref.finalize(array, self._give_back, whole, pointer).atexit = False
        return array

    def _give_back(self, size: int, pointer: Any) -> None:
        self._held.pop(pointer.ptr, None)
        self._batches.discard(pointer.ptr)
        self._returned.append((size, pointer))

    def _settle(self) -> None:
        """Process returned blocks: cache up to `KEPT` bytes of them, and free the rest."""
        while self._returned:
            size, pointer = self._returned.popleft()
            if self.cached + size > KEPT:
                self._forget(pointer)
            else:
                self._unused.setdefault(size, []).append(pointer)
                self.cached += size

    def _allocate(self, size: int, device: CudaDevice | None) -> Any:
        library.refuse_inherited()
        cuda = library.load().cuda
        with cuda.Device(None if device is None else device.number):
            try:
                memory = cuda.PinnedMemory(size)
            except cuda.runtime.CUDARuntimeError:
                self.trim()
                try:
                    memory = cuda.PinnedMemory(size)
                except cuda.runtime.CUDARuntimeError as error:
                    raise MemoryError(
                        f"{size} bytes of page-locked host memory cannot be had ({error}); {self.held_bytes()} bytes "
                        "are in use. Let fewer batches wait (capacity), or use smaller ones"
                    ) from error
        pointer = cuda.PinnedMemoryPointer(memory, 0)
        self._ends[pointer.ptr] = pointer.ptr + size
        self._starts = sorted(self._ends)
        return pointer

    def _forget(self, pointer: Any) -> None:
        del self._ends[pointer.ptr]
        self._starts = sorted(self._ends)

    def trim(self) -> None:
        """Free the cached memory."""
        with self._lock:
            self._settle()
            for pointers in self._unused.values():
                for pointer in pointers:
                    self._forget(pointer)
            self._unused.clear()
            self.cached = 0

    def contains(self, address: int) -> bool:
        """Whether the address is in page-locked memory of this pool."""
        starts = self._starts
        index = bisect.bisect_right(starts, address) - 1
        return index >= 0 and address < self._ends.get(starts[index], 0)

    def counters(self) -> dict[str, int]:
        """See the function."""
        return {
            "blocks": len(self._held),
            "batches": len(self._batches),
            "bytes": self.held_bytes(),
            "cached": self.cached,
        }

    def held_bytes(self) -> int:
        """The size of the blocks in use, in bytes."""
        return sum(list(self._held.values()))

    def abandon(self) -> None:
        """In the child of a fork: CUDA cannot be used there, not even to free memory, so that all stays as it is."""
        self._lock = threading.RLock()
        self._inherited += [self._unused, list(self._returned)]
        self._unused, self._returned = {}, deque()
        self._held, self._batches, self._starts, self._ends, self.cached = {}, set(), [], {}, 0


_pool = PinnedPool()


def pinned_block(size: int, device: CudaDevice | None = None, batch: bool = False) -> np.ndarray:
    """At least `size` bytes of page-locked memory (uint8), which go back to a pool when the last array on them is gone.

    `device`: the GPU that is initialised for it if none is yet. `batch`: it is for a batch of a loader, and
    counted as such. Raises MemoryError if the system gives no more,
    RuntimeError without CuPy.
    """
    return _pool.block(size, device, batch)


def pinned_array(shape: tuple[int, ...], dtype: Any, device: CudaDevice | None = None) -> np.ndarray:
    """An uninitialised, C-contiguous array in page-locked memory; otherwise as `pinned_block`.

    Copies from it to a GPU read it later than they are asked for: it must not be written, nor let go, before they are
    done.
    """
    kind = np.dtype(dtype)
    return np.ndarray(shape, kind, pinned_block(math.prod(shape) * kind.itemsize, device))  # type: ignore[arg-type]


def is_pinned(array: np.ndarray) -> bool:
    """Whether the elements of `array` are in page-locked memory of this module."""
    return _pool.contains(array.__array_interface__["data"][0])


def counters() -> dict[str, int]:
    """`blocks` in use (`batches` of loaders among them), their `bytes`, the bytes `cached` for later."""
    return _pool.counters()


def trim() -> None:
    """Free the page-locked memory that is not in use."""
    _pool.trim()


@library.on_forget
def _forget() -> None:
    global _pool
    _pool = PinnedPool()


os.register_at_fork(after_in_child=lambda: _pool.abandon())
