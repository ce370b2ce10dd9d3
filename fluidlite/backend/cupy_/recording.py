"""Recording the work on a stream as a CUDA graph, and replaying it."""

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
    """Work that needs the host and cannot be part of a CUDA graph; the message is the reason."""


class Recording:
    """A CUDA graph of a device, and the memory of the constants in it.

    Args:
        device: where it runs.
        work: called once; its work on `device.compute` is recorded, and not executed.
        stream: the recording stream, not to be used otherwise meanwhile.

    Raises NotCapturable when `work` copies between host and device or waits for it, and the errors of `work`; recording
    has stopped then and nothing has been executed.
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
        """Replay the graph once, after the work enqueued on the compute stream; its device must be current."""
        self._graph.launch(self._device.main)

    def constant(self, array: np.ndarray) -> Any:
        """A device array with the elements of `array`, for the life of the graph; while recording only.

        It is copied at once, on a stream that does not record, into memory that no temporary of the graph has had.
        """
        device = self._device
        made = device.empty_persistent(array.shape, array.dtype)
        with device.diverted(device.copying), library.errors("copying a constant to the GPU"):
            device.chain(
                device.main, device.copying
            )  # `copying` may still read the memory's previous contents
            made.set(array, stream=device.copying)
            device.copying.synchronize()
        self._constants.append(made)
        return made


_recording = threading.local()
_hooked = 0
_lock = threading.Lock()


@contextmanager
def _copies_refused(xp: Any) -> Iterator[None]:
    """Context: CuPy's copies of host arrays in this thread raise NotCapturable.

    They go through page-locked memory that CuPy reuses afterwards: a replay would copy its later contents.
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
