"""Recording what a stream is given as a CUDA graph, and running that again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from . import library

if TYPE_CHECKING:
    from .device import CudaDevice


class NotCapturable(RuntimeError):
    """Work that cannot be part of a CUDA graph: it needs the host. The message says why, as a part of a sentence."""


class Recording:
    """A CUDA graph of a device, and the memory of the constants in it.

    Args:
        device: where it runs.
        work: called once; what it gives to `device.compute` is recorded, and not executed.
        stream: records; nobody else may use it meanwhile.

    Raises NotCapturable when `work` copies between host and device or waits for it, and whatever else `work` raises;
    the stream has stopped to record then and nothing has been executed.
    """

    def __init__(self, device: CudaDevice, work: Callable[[], None], stream: Any) -> None:
        self._device = device
        self._constants: list[Any] = []
        cuda_error = device.xp.cuda.runtime.CUDARuntimeError
        with device.diverted(stream, self), _copies_refused(device.xp):
            stream.begin_capture()
            try:
                work()
            except BaseException:
                with suppress(cuda_error):  # an invalid graph is an error at its end as well
                    stream.end_capture()
                raise
            try:
                self._graph = stream.end_capture()
            except cuda_error as error:
                raise NotCapturable(f"CUDA reports {error}") from error

    def launch(self) -> None:
        """Run it once, after what the compute stream has been given so far; its device must be current."""
        self._graph.launch(self._device.main)

    def constant(self, array: np.ndarray) -> Any:
        """A device array with the elements of `array`, for the life of the graph; while recording only.

        It is copied at once, on a stream that does not record, into memory that no temporary of the graph has had.
        """
        device = self._device
        made = device.empty_persistent(array.shape, array.dtype)
        with device.diverted(device.copying), library.errors("copying a constant to the GPU"):
            device.chain(device.main, device.copying)  # whoever had the memory before may still be read there
            made.set(array, stream=device.copying)
            device.copying.synchronize()
        self._constants.append(made)
        return made


_recording = threading.local()
_hooked = 0
_lock = threading.Lock()


@contextmanager
def _copies_refused(xp: Any) -> Iterator[None]:
    """Have CuPy's copies of host arrays in this thread raise NotCapturable inside.

    They go through page-locked memory that CuPy uses again afterwards: a replay would copy whatever is in it then.
    """
    global _hooked
    default = xp.get_default_pinned_memory_pool().malloc

    def allocate(size: int) -> Any:
        if getattr(_recording, "active", False):
            raise NotCapturable("it copies numbers of the host to the GPU")
        return default(size)

    with _lock:
        _hooked += 1
        xp.cuda.set_pinned_memory_allocator(allocate)
    _recording.active = True
    try:
        yield
    finally:
        _recording.active = False
        with _lock:
            _hooked -= 1
            if not _hooked:
                xp.cuda.set_pinned_memory_allocator(default)
