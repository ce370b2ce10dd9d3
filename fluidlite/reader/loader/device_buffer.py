"""Copying batches from the host to GPUs: ahead of time in a thread, or when they are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import backend
from ..._ext.queue import QueueClosed
from ...backend.cupy_ import library
from ...backend.cupy_.staging import Carrier, Copied, Immediate, Staging, StagingMemory
from ...base.place import Place
from ...eager import Tensor
from ...executor.lod_tensor import LoDTensor
from ..collating import transform
from ..threaded import Stream
from .source import ORDINARY, FetchedBatch, Memory, Prefetcher
from .stats import Meter

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

Devices = tuple["CudaDevice | None", ...]
"""GPUs that receive batches round-robin; None stands for the host."""


def devices_at(places: Sequence[Place]) -> Devices:
    """The GPUs that places mean here, none if all of them mean the host."""
    devices = tuple(backend.device_at(place) for place in places)
    return devices if any(devices) else ()


def delivered(batch: list[LoDTensor], device: CudaDevice | None) -> list[LoDTensor]:
    """`batch` with all arrays on `device` (None: the host): arrays on other devices are replaced in the list."""
    if device is None and library.array_type is None:
        return batch  # nothing can be on a GPU yet
    for number, tensor in enumerate(batch):
        if backend.device_of(tensor.array) is not device:
            batch[number] = LoDTensor.wrap(backend.moved(tensor.array, device), tensor.offsets)
    return batch


def memory_for(devices: Devices, ahead: bool) -> Memory:
    """The memory in which batches for these devices are collated; page-locked if they are copied `ahead` of time."""
    for device in devices:
        if device is not None and ahead:
            staging = StagingMemory(device)
            return Memory(staging.empty, staging)
    return ORDINARY


class Moved:
    """A batch whose arrays are on a device, or being copied there."""

    __slots__ = ("_made", "copies")

    def __init__(self, made: FetchedBatch, copies: list[Copied]) -> None:
        self._made: FetchedBatch | None = made
        self.copies = copies

    def take(self) -> FetchedBatch:
        """The batch, which is released here; computations enqueued on its device from now on wait for its copies."""
        for copied in self.copies:
            copied.join()
        made, self._made = self._made, None
        assert made is not None
        return made


class Mover:
    """Copies batches to `devices`, round-robin.

    `ahead`: asynchronously, so that they can be used while the next ones are copied. `meter`: where that is counted.
    """

    def __init__(self, devices: Devices, ahead: bool, meter: Meter) -> None:
        make: type[Staging] | type[Immediate] = Staging if ahead else Immediate
        self._carriers: list[Carrier | None] = [
            None if device is None else make(device) for device in devices
        ]
        self._meter = meter
        self._next_carrier = 0

    def move(self, made: FetchedBatch) -> Moved:
        """Start copying the arrays of a batch to the next device; other items are passed through."""
        copies: list[Copied] = []
        carrier = self._carriers[self._next_carrier]
        self._next_carrier = (self._next_carrier + 1) % len(self._carriers)
        return Moved(made._replace(batch=self._move(made.batch, carrier, copies)), copies)

    def _move(self, batch: Any, carrier: Carrier | None, copies: list[Copied]) -> Any:
        if carrier is None:
            return batch
        found: list[np.ndarray] = []
        transform(batch, lambda leaf: _collect(leaf, found))
        copied = carrier.copy(found)
        copies.append(copied)
        self._meter.staging += copied.staged
        self._meter.copied += copied.size
        arrays, copied.arrays = iter(copied.arrays), []
        return transform(batch, lambda leaf: _replaced(leaf, arrays))

    def finish(self, copies: list[Copied]) -> None:
        """Wait until these copies are done, so that the host's memory may be used again."""
        for copied in copies:
            self._meter.copying += copied.finish()

    def close(self) -> None:
        """Release the resources for copying."""
        for carrier in self._carriers:
            if carrier is not None:
                carrier.close()


def _movable(leaf: Any) -> np.ndarray | None:
    """The host array of a leaf of a batch; None for a leaf that is not moved."""
    array = leaf.array if isinstance(leaf, (LoDTensor, Tensor)) else leaf
    if isinstance(array, np.generic):
        array = np.asarray(array)
    return array if isinstance(array, np.ndarray) and array.dtype.kind in "biufc" else None


def _collect(leaf: Any, found: list[np.ndarray]) -> None:
    array = _movable(leaf)
    if array is not None:
        found.append(array)


def _replaced(leaf: Any, arrays: Iterator[Any]) -> Any:
    if _movable(leaf) is None:
        return leaf
    array = next(arrays)
    if isinstance(leaf, LoDTensor):
        return LoDTensor.wrap(array, leaf.offsets)
    if isinstance(leaf, Tensor):
        tensor = Tensor(array)
        tensor.stop_gradient = leaf.stop_gradient
        return tensor
    return array


def ahead_of(get: Callable[[], FetchedBatch], mover: Mover) -> Iterator[Moved]:
    """Yield the batches of `get` while their copies to the devices are under way."""
    under_way: list[Copied] = []
    try:
        while True:
            try:
                made = get()
            except QueueClosed:
                return
            moved = mover.move(made)
            del made
            before, under_way = under_way, under_way + moved.copies
            yield moved
            # The batch is handed on; wait for the copies of the one before.
            mover.finish(before)
            under_way = under_way[len(before) :]
    finally:
        try:
            mover.finish(under_way)
        finally:
            mover.close()


class DevicePrefetcher(Prefetcher):
    """Batches of another prefetcher on their devices: copied two batches ahead of the consumer, or when taken.

    `devices` get batches round-robin. `meter`: records the copies. `name`: that of the source, for the thread.
    """

    def __init__(
        self, prefetcher: Prefetcher, devices: Devices, ahead: bool, meter: Meter, name: str
    ) -> None:
        self._prefetcher = prefetcher
        mover = Mover(devices, ahead, meter)
        self._mover = mover
        self._stream: Stream | None = None
        if ahead:
            # One item waits in the queue and one in the thread.
            get = prefetcher.get
            self._stream = Stream(lambda: ahead_of(get, mover), 1, f"copies for {name}", frames=2)

    def get(self) -> FetchedBatch:
        made: FetchedBatch
        if self._stream is None:
            made = self._mover.move(self._prefetcher.get()).take()
        else:
            made = self._stream.get().take()
        return made

    def failed(self, error: BaseException) -> bool:
        return (self._prefetcher if self._stream is None else self._stream).failed(error)

    def waiting(self) -> int:
        return self._prefetcher.waiting() + (0 if self._stream is None else len(self._stream.queue))

    def idle(self) -> float:
        return self._prefetcher.idle()

    def interrupt(self) -> None:
        self._prefetcher.interrupt()

    def stop(self, finished: bool) -> None:
        stream = self._stream
        if stream is not None:
            stream.queue.kill()
            # The thread has to leave the prefetcher before it is stopped. With kept workers it may get a moment.
            if not finished and not (self._prefetcher.patient and stream.left()):
                self._prefetcher.interrupt()
            stream.stop()
        self._prefetcher.stop(finished)

    @property
    def queue(self) -> Any:
        return self._prefetcher.queue
