"""Memory pools: CuPy's for persistable variables, one for each plan that becomes a CUDA graph; limits on both."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
