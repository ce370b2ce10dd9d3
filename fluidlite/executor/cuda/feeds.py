"""Copies of feeds to a GPU and of fetches back, through page-locked staging memory; the limit of queued steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.cupy_ import library
from ...backend.cupy_.pools import pinned_array

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

Layout = tuple[tuple[int, ...], np.dtype]
"""Shape and dtype."""

AHEAD = 2
"""The number of steps that may be queued on a GPU; starting one more waits for the first of them."""

STAGED = 1 << 20
"""Fetched arrays of more bytes than this are copied directly, not through page-locked memory."""

_ALIGN = 256


def _bytes(layout: Layout) -> int:
    return math.prod(layout[0]) * layout[1].itemsize


def _offsets(layouts: Sequence[Layout]) -> tuple[list[int], int]:
    """The offsets of arrays of these layouts in one block of memory, and its size in bytes."""
    offsets, total = [], 0
    for layout in layouts:
        offsets.append(total)
        total += -(-_bytes(layout) // _ALIGN) * _ALIGN
    return offsets, max(total, 1)


def _array_at(block: np.ndarray, offset: int, layout: Layout) -> np.ndarray:
    """An array of this layout in `block` (bytes)."""
    return block[offset : offset + _bytes(layout)].view(layout[1]).reshape(layout[0])


class Pace:
    """Keeps the host at most `AHEAD` steps ahead of a GPU."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        with device.active():
            make = device.xp.cuda.Event
            self._events = [make(block=True, disable_timing=True) for _ in range(AHEAD)]
        self._queued = [False] * AHEAD
        self.buffer = 0

    def begin(self) -> int:
        """Wait until another step may be queued; returns the number of its staging buffer."""
        buffer = self.buffer = (self.buffer + 1) % AHEAD
        if self._queued[buffer]:
            self._events[buffer].synchronize()
            self._queued[buffer] = False
        return buffer

    def end(self) -> None:
        """Note that the step of the last `begin` is queued on the GPU."""
        self._events[self.buffer].record(self._device.main)
        self._queued[self.buffer] = True

    def synchronized(self) -> None:
        """Note that all queued steps are done."""
        self._queued = [False] * AHEAD


class FeedSlots:
    """Memory of a device for feeds of fixed layouts, `arrays` by name, and page-locked memory on the way there.

    When `fill` returns, fed arrays are in the page-locked staging buffer of the step, and may be changed.
    """

    def __init__(self, device: CudaDevice, layouts: Mapping[str, Layout]) -> None:
        self._device = device
        self._layouts = list(layouts.values())
        self._offsets, self._total = _offsets(self._layouts)
        self._block = device.empty_persistent((self._total,), np.uint8)
        self._address = self._block.data.ptr
        with device.active():
            self.arrays: dict[str, Any] = {
                name: device.xp.ndarray(shape, dtype, self._block.data + offset)
                for (name, (shape, dtype)), offset in zip(layouts.items(), self._offsets, strict=True)
            }
        self._staging: list[tuple[int, list[np.ndarray]] | None] = [None] * AHEAD

    def fill(self, values: Sequence[Any], buffer: int) -> None:
        """Queue copies of `values`, arrays of the host and of devices in the order of the slots, to the slots."""
        if not values:
            return
        address, parts = self._staging[buffer] or self._stage(buffer)
        on_devices = []
        for number, array in enumerate(values):
            if type(array) is np.ndarray:
                parts[number][...] = array
            else:
                on_devices.append(number)
        if not on_devices:
            self._copy(address, 0, self._total)
            return
        for number, array in enumerate(values):
            if number not in on_devices:
                self._copy(address, self._offsets[number], array.nbytes)
        slots = list(self.arrays.values())
        runtime, stream = self._device.xp.cuda.runtime, self._device.main.ptr
        for number in on_devices:
            slot, array = slots[number], self._device.put(values[number])
            if not array.flags.c_contiguous:
                self._device.overwrite(slot, array)
            elif array.nbytes:
                runtime.memcpyAsync(
                    slot.data.ptr, array.data.ptr, array.nbytes, runtime.memcpyDeviceToDevice, stream
                )

    def _copy(self, staging: int, offset: int, size: int) -> None:
        if size:
            runtime = self._device.xp.cuda.runtime
            kind, stream = runtime.memcpyHostToDevice, self._device.main.ptr
            runtime.memcpyAsync(self._address + offset, staging + offset, size, kind, stream)

    def _stage(self, buffer: int) -> tuple[int, list[np.ndarray]]:
        block = pinned_array((self._total,), np.uint8, self._device)
        places = zip(self._offsets, self._layouts, strict=True)
        staging = self._staging[buffer] = (block.ctypes.data, [_array_at(block, *place) for place in places])
        return staging


class Fetcher:
    """Copies arrays of fixed layouts from a device to the host."""

    def __init__(self, device: CudaDevice, layouts: Sequence[Layout]) -> None:
        self._device = device
        small = [layout for layout in layouts if _bytes(layout) <= STAGED]
        offsets, total = _offsets(small)
        block = pinned_array((total,), np.uint8, device)
        places = iter(offsets)
        self._parts = [
            _array_at(block, next(places), layout) if _bytes(layout) <= STAGED else None for layout in layouts
        ]
        self._arrays: Sequence[Any] | None = None
        self._copies: list[tuple[int, int, int]] = []

    def get(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """Copies of C-contiguous `arrays`, once all work on the device's main stream is done."""
        device = self._device
        if arrays is not self._arrays:
            self._copies = [
                (part.ctypes.data, array.data.ptr, array.nbytes)
                for part, array in zip(self._parts, arrays, strict=True)
                if part is not None and part.nbytes
            ]
            self._arrays = arrays
        with library.errors(f"fetching from GPU {device.number}"):
            runtime, stream = device.xp.cuda.runtime, device.main
            pointer, kind = stream.ptr, runtime.memcpyDeviceToHost
            for target, source, size in self._copies:
                runtime.memcpyAsync(target, source, size, kind, pointer)
            large = {}
            for number, part in enumerate(self._parts):
                if part is None:
                    array = arrays[number]
                    large[number] = copy = np.empty(array.shape, array.dtype)
                    runtime.memcpyAsync(copy.ctypes.data, array.data.ptr, copy.nbytes, kind, pointer)
            stream.synchronize()
        return [large[number] if part is None else part.copy() for number, part in enumerate(self._parts)]
