"""The stream, memory pool and CUDA graph of a plan for a GPU."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ...backend.cupy_ import library, pools
from ...backend.cupy_.recording import Recording

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice
    from ..ir.locking import PlanLock

_live: weakref.WeakSet[Resources] = weakref.WeakSet()


class Resources:
    """Stream, memory pool and graph of a plan on `device`, created on first use.

    `lock`: is held while the plan runs. `warm`: a step has run with this pool, so its memory is allocated and all
    kernels are compiled. `busy`: a step, and with it copies from the plan's page-locked memory, may be under way.
    """

    def __init__(self, device: CudaDevice, lock: PlanLock) -> None:
        self._device = device
        self._lock = lock
        self._pool: pools.PlanPool | None = None
        self._stream: Any = None
        self.graph: Recording | None = None
        self.warm = self.busy = False
        _live.add(self)

    @property
    def stream(self) -> Any:
        """The stream of the first step and of recording, so that the pool has allocated memory for it."""
        if self._stream is None:
            self._stream = self._device.xp.cuda.Stream(non_blocking=True)
        return self._stream

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Allocate from the pool of the plan inside the block."""
        if self._pool is None:
            self._pool = pools.PlanPool(self._device)
        if self._device.recording is not None:
            self._pool.lift_limit()
        with self._device.xp.cuda.using_allocator(self._pool.pool.malloc):
            yield

    @contextmanager
    def on_own_stream(self) -> Iterator[None]:
        """Compute on `stream` inside the block, ordered after earlier and before later work of the main stream.

        One thread at a time: kernels on other streams than the main one share workspaces and tickets.
        """
        device, stream = self._device, self.stream
        with device.lock:
            device.chain(device.main, stream)
            try:
                with device.diverted(stream):
                    yield
            finally:
                device.chain(stream, device.main)

    def forget_graph(self) -> None:
        """Free the graph after its last run has finished."""
        if self.busy:
            with suppress(self._device.xp.cuda.runtime.CUDARuntimeError):  # the next wait raises it
                self._device.main.synchronize()
            self.busy = False
        self.graph = None

    def release(self) -> None:
        """Free everything; the next step starts cold."""
        self.forget_graph()
        self._pool = self._stream = None
        self.warm = False


@pools.on_shortage
def _release_idle(device: CudaDevice) -> None:
    """Free the resources of plans that are not running."""
    for resources in list(_live):
        if resources._device is device and resources._lock.acquire(blocking=False):
            try:
                resources.release()
            finally:
                resources._lock.release()


@library.on_forget
def _release_all() -> None:
    for resources in list(_live):
        resources.release()
