"""What a plan has on its GPU besides arrays: a stream, a memory pool and a CUDA graph."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ...backend.cupy_ import library, pools
from ...backend.cupy_.recording import Recording

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice
    from ..plan.locking import PlanLock

_live: weakref.WeakSet[Resources] = weakref.WeakSet()


class Resources:
    """Stream, memory pool and graph of a plan on `device`, made when needed.

    `lock`: whoever runs the plan holds it. `warm`: whether a step has run with this pool, so that its memory is there
    and everything is compiled. `busy`: whether a step may be under way, and with it copies from the plan's page-locked
    memory.
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
        """The stream that records, and that the first step runs on, so that the pool has memory for it then."""
        if self._stream is None:
            self._stream = self._device.xp.cuda.Stream(non_blocking=True)
        return self._stream

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Have what is allocated inside come from the pool of the plan."""
        if self._pool is None:
            self._pool = pools.PlanPool(self._device)
        if self._device.recording is not None:
            self._pool.lift_limit()
        with self._device.xp.cuda.using_allocator(self._pool.pool.malloc):
            yield

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Compute on `stream` inside, after what the device has been given, and before what it will be given.

        One thread at a time: kernels aside of the main stream share workspaces and tickets.
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
        """Let the graph go, once it has run for the last time."""
        if self.busy:
            with suppress(self._device.xp.cuda.runtime.CUDARuntimeError):  # whoever waits next will say so
                self._device.main.synchronize()
            self.busy = False
        self.graph = None

    def release(self) -> None:
        """Let everything go; the next step will be the first again."""
        self.forget_graph()
        self._pool = self._stream = None
        self.warm = False


@pools.on_shortage
def _give_up(device: CudaDevice) -> None:
    """Let go what the plans have that are not running."""
    for resources in list(_live):
        if resources._device is device and resources._lock.acquire(blocking=False):
            try:
                resources.release()
            finally:
                resources._lock.release()


@library.on_forget
def _forget() -> None:
    for resources in list(_live):
        resources.release()
