"""Copying batches to a GPU: staging memory, asynchronous copies, memory freed in stream order.

Copies run on the stream `copying` of a device. Its events say when the host memory may be written again (the host
waits for it, in a thread of the loader) and when the compute stream may read the copy (that stream waits, not the
host). Memory on the device comes from CuPy's pool in the name of `copying`; when the last array on it is gone, an
event on the compute stream is recorded and `copying` waits for it before the pool may give the memory to a later
copy. So memory that a step may still read is never overwritten, without a wait for the step.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...base import callsite
from . import library
from .device import CudaDevice
from .pools import allocated, is_pinned, pinned_block
from .pools import counters as pinned_counters

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

SMALL = 1 << 16
"""Arrays of fewer bytes share one block and one copy."""

PINNED_LIMIT = 4 << 30
"""Batches are collated in page-locked memory as long as less than this is in use."""

_ALIGNMENT = 256
_CHUNK = 4 << 20  # larger copies are split over several threads
_THREADS = 8  # enough to copy as fast as a GPU can read

_forks = 0
_live: set[int] = set()
_leaked: list[Any] = []  # memory that can no longer be freed


class Carrier(Protocol):
    """The interface of objects that copy arrays to a device."""

    def copy(self, arrays: Sequence[np.ndarray]) -> Copied:
        """Arrays on the device with the elements of `arrays`, which must not be written before `Copied.finish`."""

    def close(self) -> None:
        """Release the resources for later copies."""


class Copied:
    """Arrays on a device, or being copied to it.

    `arrays`: in the order they were given; `size`: bytes copied; `staged`: seconds spent on copying them to
    page-locked memory.
    """

    __slots__ = ("_begin", "_device", "_end", "_sources", "arrays", "size", "staged")

    def __init__(self, arrays: list[Any], size: int) -> None:
        self.arrays = arrays
        self.size = size
        self.staged = 0.0
        self._device: CudaDevice | None = None
        self._begin: Any = None
        self._end: Any = None
        self._sources: list[np.ndarray] = []  # host memory that is still being read

    def join(self) -> None:
        """Make later work on the compute stream wait for the copies. The host does not wait."""
        device = self._device
        if device is not None:
            with library.errors(f"waiting for a batch on GPU {device.number}"):
                device.main.wait_event(self._end)

    def finish(self) -> float:
        """Wait until the copies are done, and their sources may be written again; returns how many seconds they took.

        The second call does nothing and returns 0.
        """
        if not self._sources:
            return 0.0
        assert self._device is not None
        try:
            with library.errors(f"copying a batch of {self.size} bytes to GPU {self._device.number}"):
                self._end.synchronize()
                return 1e-3 * library.load().cuda.get_elapsed_time(self._begin, self._end)
        finally:
            self._sources = []


class Immediate:
    """Copies arrays to `device` on its compute stream when they are asked for."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device

    def copy(self, arrays: Sequence[np.ndarray]) -> Copied:
        here = [self._device.put(array.astype(_native(array.dtype), copy=False)) for array in arrays]
        return Copied(here, sum(array.nbytes for array in arrays))

    def close(self) -> None:
        pass


class Staging:
    """Copies arrays to `device` asynchronously, on its stream `copying`. For one thread."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._threads: ThreadPoolExecutor | None = None

    def copy(self, arrays: Sequence[np.ndarray]) -> Copied:
        """See `Carrier`. Raises MemoryError if the device has no memory left."""
        device, cuda = self._device, library.load().cuda
        big = [i for i, array in enumerate(arrays) if array.nbytes >= SMALL]
        small = [i for i, array in enumerate(arrays) if array.nbytes < SMALL]
        made: list[Any] = [None] * len(arrays)
        copied = Copied(made, sum(array.nbytes for array in arrays))
        copied._device = device
        with (
            device.selected,
            device.copying,
            library.errors(f"copying a batch of {copied.size} bytes to GPU {device.number}"),
        ):
            copied._begin, copied._end = cuda.Event(), cuda.Event(block=True)
            copied._begin.record(device.copying)
            try:
                for group in ([small] if small else []) + [[i] for i in big]:
                    self._copy_group([arrays[i] for i in group], group, copied)
            except BaseException:
                device.copying.synchronize()  # copies under way read memory that is released now
                raise
            copied._end.record(device.copying)
        return copied

    def _copy_group(self, arrays: list[np.ndarray], numbers: list[int], copied: Copied) -> None:
        """Copy arrays into one block of device memory."""
        device, xp = self._device, library.load()
        starts, size = _layout(arrays)
        begin = time.perf_counter()
        source = self._staged(arrays, starts, size)
        copied.staged += time.perf_counter() - begin
        block = allocated(device, lambda: xp.cuda.alloc(max(size, 1)))
        owner = _Owner(device, block)
        runtime = xp.cuda.runtime
        copied._sources.append(source)
        if size:
            address = source.__array_interface__["data"][0]
            runtime.memcpyAsync(block.ptr, address, size, runtime.memcpyHostToDevice, device.copying.ptr)
        memory = xp.cuda.UnownedMemory(block.ptr, max(size, 1), owner, device.number)
        for number, array, start in zip(numbers, arrays, starts, strict=True):
            place = xp.cuda.MemoryPointer(memory, start)
            copied.arrays[number] = xp.ndarray(array.shape, _native(array.dtype), place)

    def _staged(self, arrays: list[np.ndarray], starts: list[int], size: int) -> np.ndarray:
        """Page-locked memory with the arrays at `starts`: that of a single array that is page-locked already."""
        first = arrays[0]
        plain = len(arrays) == 1 and first.flags.c_contiguous and first.dtype.isnative
        if plain and is_pinned(first):
            return first
        try:
            block = pinned_block(size, self._device, batch=True)
        except MemoryError as error:
            _warn_once(str(error))
            if plain:
                return first  # the driver copies it in chunks
            block = np.empty(size, np.uint8)
        for array, start in zip(arrays, starts, strict=True):
            target = np.ndarray(array.shape, _native(array.dtype), block, start)  # type: ignore[arg-type]
            self._fill(target, array)
        return block

    def _fill(self, target: np.ndarray, array: np.ndarray) -> None:
        if array.nbytes < 2 * _CHUNK or not array.flags.c_contiguous or target.dtype != array.dtype:
            np.copyto(target, array)
            return
        to, source = target.reshape(-1), array.reshape(-1)
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor  # slow to import

            self._threads = ThreadPoolExecutor(min(_THREADS, _cores()), "fluidlite-staging")
        length = max(len(to) // (2 * _THREADS), _CHUNK // to.itemsize)
        parts = [slice(start, start + length) for start in range(0, len(to), length)]
        for done in [self._threads.submit(np.copyto, to[part], source[part]) for part in parts]:
            done.result()

    def close(self) -> None:
        """End the threads that helped to copy."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()


class StagingMemory:
    """Page-locked memory in which batches for `device` are collated, so that they need no staging copy.

    For `Collator(memory=...)` and `collate(allocate=memory.empty)`.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._device = device

    def block(self, size: int) -> np.ndarray | None:
        """At least `size` bytes of page-locked memory; None for a few bytes, or if there is no more of it."""
        if size < SMALL or pinned_counters()["bytes"] + size > PINNED_LIMIT:
            return None
        try:
            return pinned_block(size, self._device, batch=True)
        except MemoryError as error:
            _warn_once(str(error))
            return None

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An uninitialised array."""
        kind = np.dtype(dtype)
        block = None if kind.hasobject else self.block(int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
        return np.empty(shape, kind) if block is None else np.ndarray(shape, kind, block)  # type: ignore[arg-type]


class _Owner:
    """Keeps a block of device memory alive as long as arrays use it."""

    __slots__ = ("_block", "_device", "_fork")

    def __init__(self, device: CudaDevice, block: Any) -> None:
        self._device, self._block, self._fork = device, block, _forks
        _live.add(id(self))

    def __del__(self) -> None:
        if sys is None or sys.is_finalizing():
            return
        if self._fork != _forks:
            _leaked.append(self._block)  # CUDA cannot be used in the child of a fork
            return
        _live.discard(id(self))
        _release(self._device, self._block)


def _release(device: CudaDevice, block: Any) -> None:
    """Make later copies wait until the work queued on the compute stream is done with a block of the pool.

    Called by finalizers, anywhere: the host waits for nothing.
    """
    cuda = device.xp.cuda
    try:
        with cuda.Device(device.number):
            gone = cuda.Event(disable_timing=True)
        gone.record(device.main)
        device.copying.wait_event(gone)
    except cuda.runtime.CUDARuntimeError:
        _leaked.append(block)  # the device is in an error state, which its next use reports


def _layout(arrays: Sequence[np.ndarray]) -> tuple[list[int], int]:
    """The offsets of arrays in one block, and its size."""
    starts, end = [], 0
    for array in arrays:
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        starts.append(start)
        end = start + array.nbytes
    return starts, end


def _native(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_warned = False


def _warn_once(problem: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        callsite.warn(f"{problem}. Batches are copied from ordinary memory, which is slower", RuntimeWarning)


def counters() -> dict[str, int]:
    """The number of `blocks` of device memory in use by batches."""
    return {"blocks": len(_live)}


def _forked() -> None:
    global _forks
    _forks += 1
    _live.clear()


os.register_at_fork(after_in_child=_forked)
library.on_forget(_leaked.clear)
