"""Batches from the host to the GPUs they are for: ahead of time in a thread, or when they are taken."""

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
from ..background import Stream, finalize
from ..fetcher import FetchedBatch
from ..structure import transform
from .stats import Meter

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice
    from ..worker.stream import WorkerStream

Devices = tuple["CudaDevice | None", ...]
"""GPUs that get batches in turn; None stands for the host."""


def devices_at(places: Sequence[Place]) -> Devices:
    """The GPUs that places mean here, none if all of them mean the host."""
    devices = tuple(backend.device_at(place) for place in places)
    return devices if any(devices) else ()


def delivered(batch: list[LoDTensor], device: CudaDevice | None) -> list[LoDTensor]:
    """`batch` with all arrays on `device` (None: the host): those that are elsewhere are replaced in the list."""
    if device is None and library.array_type is None:
        return batch  # nothing can be on a GPU yet
    for number, tensor in enumerate(batch):
        if backend.device_of(tensor.array) is not device:
            batch[number] = LoDTensor.wrap(backend.moved(tensor.array, device), tensor.offsets)
    return batch


def staging_memory(devices: Devices) -> StagingMemory | None:
    """Where batches for these devices are best put together; None for ordinary memory."""
    for device in devices:
        if device is not None:
            return StagingMemory(device)
    return None


class Moved:
    """An item whose arrays are on devices, or on their way there."""

    __slots__ = ("_item", "copies")

    def __init__(self, item: Any, copies: list[Copied]) -> None:
        self._item = item
        self.copies = copies

    def take(self) -> Any:
        """The item, which is not kept here; what is computed on its devices from now on sees the elements."""
        for copied in self.copies:
            copied.join()
        item, self._item = self._item, None
        return item


class Mover:
    """Brings batches to `devices`, in turn, or whole sets with a batch for each of them (`sets`).

    `ahead`: asynchronously, so that they can be used while the next ones are copied. `meter`: where that is counted.
    """

    def __init__(self, devices: Devices, sets: bool, ahead: bool, meter: Meter) -> None:
        make: type[Staging] | type[Immediate] = Staging if ahead else Immediate
        self._carriers: list[Carrier | None] = [
            None if device is None else make(device) for device in devices
        ]
        self._sets = sets
        self._meter = meter
        self._turn = 0

    def move(self, item: Any) -> Moved:
        """The same item with its arrays on the devices; what is no array of numbers stays as it is."""
        copies: list[Copied] = []
        if self._sets:
            parts = zip(item, self._carriers, strict=False)
            return Moved([self._move(part, carrier, copies) for part, carrier in parts], copies)
        carrier = self._carriers[self._turn]
        self._turn = (self._turn + 1) % len(self._carriers)
        if isinstance(item, FetchedBatch):
            return Moved(item._replace(batch=self._move(item.batch, carrier, copies)), copies)
        return Moved(self._move(item, carrier, copies), copies)

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
        """Release what is kept for copying."""
        for carrier in self._carriers:
            if carrier is not None:
                carrier.close()


def _movable(leaf: Any) -> np.ndarray | None:
    """The array of the host that a leaf of a batch stands for; None for what stays where it is."""
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


def ahead_of(get: Callable[[], Any], mover: Mover) -> Iterator[Moved]:
    """What `get` gives, with the copies to the devices under way."""
    under_way: list[Copied] = []
    try:
        while True:
            try:
                item = get()
            except QueueClosed:
                return
            moved = mover.move(item)
            del item
            before, under_way = under_way, under_way + moved.copies
            yield moved
            # The consumer has it, or it waits for him: time to wait for the copies of the one before.
            mover.finish(before)
            under_way = under_way[len(before) :]
    finally:
        try:
            mover.finish(under_way)
        finally:
            mover.close()


class MovedStream:
    """Items of another stream on their devices: two of them ahead of the consumer, or moved when he takes them.

    Has what pipelines use of a `background.Stream`, and looks after the other stream.
    """

    def __init__(
        self,
        source: Stream | WorkerStream,
        devices: Devices,
        sets: bool,
        ahead: bool,
        meter: Meter,
        name: str,
    ) -> None:
        self.source = source
        mover = Mover(devices, sets, ahead, meter)
        self._mover = mover
        self._stream: Stream | None = None
        if ahead:
            # One item waits in the queue and the thread has one in its hands.
            get = source.get
            self._stream = Stream(lambda: ahead_of(get, mover), 1, name, frames=2)

    def get(self) -> Any:
        """The next item; raises QueueClosed at the end, or the reader's error."""
        if self._stream is None:
            return self._mover.move(self.source.get()).take()
        return self._stream.get().take()

    def failed(self, error: BaseException) -> bool:
        """Whether `error`, raised by `get`, is the reader's."""
        if self._stream is None:
            return self.source.failed(error)
        return self._stream.failed(error)

    def stop(self) -> None:
        """Stop reading and copying; what waits is dropped."""
        if self._stream is not None:
            self._stream.queue.kill()
        self.source.stop()
        if self._stream is not None:
            self._stream.stop()

    def __del__(self) -> None:
        if getattr(self, "_stream", None) is not None:
            finalize(self.stop)

    @property
    def queue(self) -> MovedStream:
        """Itself: it stands for the queue that other streams have."""
        return self

    @property
    def capacity(self) -> int:
        return self.source.queue.capacity

    def __len__(self) -> int:
        waiting = 0 if self._stream is None else len(self._stream.queue)
        return len(self.source.queue) + waiting

    size = __len__

    def stats(self) -> dict[str, Any]:
        """As `Queue.stats`: whoever reads `put`, the consumer `got`."""
        found = dict(self.source.queue.stats())
        if self._stream is not None:
            mine = self._stream.queue.stats()
            found["got"], found["get_seconds"] = mine["got"], mine["get_seconds"]
        return found
