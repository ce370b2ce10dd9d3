"""`CudaDevice`: one GPU with its streams, and copies between it and the host."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.place import CUDAPlace, usable_gpus
from . import library
from .pools import allocated, is_pinned, set_limit
from .recording import NotCapturable

if TYPE_CHECKING:
    from .recording import Recording


class CudaDevice:
    """GPU number `number`.

    Everything that fluidlite computes there runs on the one stream `main`, so that operators and steps of all threads
    are in order; `copying` is the stream of asynchronous copies from the host. Neither waits for CuPy's default stream.
    `compute` is `main`, except in a thread that is just recording a CUDA graph on a stream of its own.

    `xp`: the module `cupy`. Raises ValueError if there is no GPU of this number.
    """

    def __init__(self, number: int) -> None:
        count = library.device_count()
        if not 0 <= number < count:
            raise ValueError(f"CUDAPlace({number}) does not exist: {usable_gpus()}")
        self.number = number
        self.place = CUDAPlace(number)
        self.xp: Any = library.load()
        self.lock = threading.RLock()
        with self.selected, library.errors(f"setting up GPU {number}"):
            self.main: Any = self.xp.cuda.Stream(non_blocking=True)
            self.copying: Any = self.xp.cuda.Stream(non_blocking=True)
        self._thread = threading.local()
        set_limit(self)

    def __repr__(self) -> str:
        return f"CudaDevice({self.number})"

    @property
    def compute(self) -> Any:
        """The stream on which this thread currently computes."""
        return getattr(self._thread, "stream", self.main)

    @property
    def selected(self) -> Any:
        """A context in which this device is the current one of CUDA, whatever the stream.

        Raises RuntimeError in the child of a fork, where CUDA cannot be used.
        """
        if library.inherited:
            library.refuse_inherited()
        return self.xp.cuda.Device(
            self.number
        )  # a new one: CuPy's store the previous device, shared by all threads

    @property
    def recording(self) -> Recording | None:
        """The CUDA graph that this thread is recording, if any."""
        return getattr(self._thread, "recording", None)

    @property
    def aside(self) -> bool:
        """Whether this thread computes concurrently on another stream than `main`, without shared scratch memory."""
        return self.recording is None and self.compute is not self.main

    @contextmanager
    def diverted(self, stream: Any, recording: Recording | None = None) -> Iterator[None]:
        """A context in which this thread computes on `stream`, as a part of `recording` if it is given."""
        thread = self._thread
        before = thread.__dict__.copy()
        thread.stream, thread.recording = stream, recording
        try:
            with self.active():
                yield
        finally:
            thread.__dict__.clear()
            thread.__dict__.update(before)

    @contextmanager
    def active(self) -> Iterator[None]:
        """A context in which CuPy works on this device and its compute stream."""
        with self.selected, self.compute:
            yield

    def put(self, array: Any) -> Any:
        """`array` on this device, contiguous: itself if it is here already, otherwise a copy.

        Takes NumPy arrays, scalars, and arrays of other devices; anything else is returned as it is. Later work on the
        compute stream sees the elements.
        """
        if _is_array(array):
            if array.device.id == self.number:
                return array
            with library.errors(f"copying an array from GPU {array.device.id} to GPU {self.number}"):
                return self.put(device(array.device.id).get(array))
        if not isinstance(array, (np.ndarray, np.generic)):
            return array
        source = np.asarray(array, order="C")
        if self.recording is not None:
            return self.recording.constant(source)
        made = self.empty_persistent(source.shape, source.dtype)
        with self.active(), library.errors(f"copying an array of {source.nbytes} bytes to GPU {self.number}"):
            made.set(source, stream=self.compute)
            if is_pinned(source):
                self.compute.synchronize()  # the copy would read it after this returns
        return made

    def adopt(self, array: Any, into: Any = None) -> Any:
        """Copy a CuPy array made by other code on its own stream to this device; into the memory of `into` if given.

        The copy waits for the work on the calling thread's current CuPy stream, and that stream waits for the copy, so
        that the caller may reuse the memory at once.
        """
        cuda = self.xp.cuda
        if array.device.id != self.number:
            with cuda.Device(array.device.id), library.errors("copying an array from another GPU"):
                source = self.put(array.get())
            if into is None:
                return source
            self.overwrite(into, source)
            return into
        theirs = cuda.get_current_stream(self.number)
        with self.active(), library.errors(f"copying an array of {array.nbytes} bytes on GPU {self.number}"):
            stream = self.compute
            self.chain(theirs, stream)
            made = self.xp.empty(array.shape, array.dtype) if into is None else into
            made[...] = array
            self.chain(stream, theirs)
        return made

    def get(self, array: Any) -> np.ndarray:
        """A copy of an array of this device in host memory, once all work on the compute stream is done."""
        self._may_wait()
        with (
            self.active(),
            library.errors(f"copying an array of {array.nbytes} bytes from GPU {self.number}"),
        ):
            out: np.ndarray = array.get(stream=self.compute)
            self.compute.synchronize()
        return out

    def empty_persistent(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Uninitialised memory that may outlive a step: not from the pool of a plan, which reuses it."""
        pool = self.xp.get_default_memory_pool()
        with self.xp.cuda.using_allocator(pool.malloc):
            return self.empty(shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Uninitialised memory for an array."""
        with self.active(), library.errors(f"allocating memory on GPU {self.number}"):
            return allocated(self, lambda: self.xp.empty(shape, dtype))

    def overwrite(self, target: Any, source: Any) -> None:
        """Copy `source` (of the host, or of any device; same shape and dtype) into the memory of `target`."""
        here = self.put(source)
        with self.active(), library.errors(f"copying an array on GPU {self.number}"):
            target[...] = here

    def chain(self, first: Any, then: Any) -> None:
        """Make stream `then` wait for all work enqueued on stream `first`; the device must be current."""
        if first.ptr != then.ptr:
            event = self.xp.cuda.Event(disable_timing=True)
            event.record(first)
            then.wait_event(event)

    def synchronize(self) -> None:
        """Wait until all work on the compute stream is done."""
        self._may_wait()
        with library.errors(f"waiting for GPU {self.number}"):
            self.compute.synchronize()

    def _may_wait(self) -> None:
        if self.recording is not None:
            raise NotCapturable("it needs values of the GPU on the host")


def _is_array(value: Any) -> bool:
    return library.array_type is not None and isinstance(value, library.array_type)


_devices: dict[int, CudaDevice] = {}
_lock = threading.Lock()


def device(number: int) -> CudaDevice:
    """GPU `number`; always the same object."""
    found = _devices.get(number)
    if found is None:
        with _lock:
            found = _devices.get(number)
            if found is None:
                found = _devices[number] = CudaDevice(number)
    return found


@library.on_forget
def _forget() -> None:
    _devices.clear()
