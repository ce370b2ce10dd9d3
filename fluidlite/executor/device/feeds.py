"""What goes to a GPU and comes back with each step: slots for feeds, staging memory; how far steps may run ahead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.cupy_ import library
from ...backend.cupy_.pinned import pinned_array

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

Layout = tuple[tuple[int, ...], np.dtype]
"""Shape and dtype."""

AHEAD = 2
"""How many steps may wait on a GPU for their turn; whoever starts one more waits for the first of them."""

STAGED = 1 << 20
"""Fetched arrays of more bytes are copied to where they stay, not through page-locked memory."""

_ALIGN = 256


def _bytes(layout: Layout) -> int:
    return math.prod(layout[0]) * layout[1].itemsize


def _offsets(layouts: Sequence[Layout]) -> tuple[list[int], int]:
    """Where arrays of these layouts begin when they stand one after the other, and how many bytes there are in all."""
    offsets, total = [], 0
    for layout in layouts:
        offsets.append(total)
        total += -(-_bytes(layout) // _ALIGN) * _ALIGN
    return offsets, max(total, 1)


def _within(block: np.ndarray, offset: int, layout: Layout) -> np.ndarray:
    """The part of `block` (bytes) with an array of this layout in it."""
    return block[offset : offset + _bytes(layout)].view(layout[1]).reshape(layout[0])


class Pace:
    """Keeps the host at most `AHEAD` steps before a GPU."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        with device.active():
            make = device.xp.cuda.Event
            self._events = [make(block=True, disable_timing=True) for _ in range(AHEAD)]
        self._running = [False] * AHEAD
        self.turn = 0

    def begin(self) -> int:
        """Wait until there is room for another step; gives its number among those that wait."""
        turn = self.turn = (self.turn + 1) % AHEAD
        if self._running[turn]:
            self._events[turn].synchronize()
            self._running[turn] = False
        return turn

    def end(self) -> None:
        """The step that began last has been given to the GPU."""
        self._events[self.turn].record(self._device.main)
        self._running[self.turn] = True

    def caught_up(self) -> None:
        """Somebody has waited for the GPU."""
        self._running = [False] * AHEAD


class FeedSlots:
    """Memory of a device for feeds of fixed layouts, `arrays` by name, and page-locked memory on the way there.

    What is fed is in the page-locked memory of the step's turn when `fill` returns, and may be changed.
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

    def fill(self, values: Sequence[Any], turn: int) -> None:
        """Queue copies of `values`, arrays of the host and of devices in the order of the slots, to the slots."""
        if not values:
            return
        address, parts = self._staging[turn] or self._stage(turn)
        elsewhere = []
        for number, array in enumerate(values):
            if type(array) is np.ndarray:
                parts[number][...] = array
            else:
                elsewhere.append(number)
        if not elsewhere:
            self._copy(address, 0, self._total)
            return
        for number, array in enumerate(values):
            if number not in elsewhere:
                self._copy(address, self._offsets[number], array.nbytes)
        slots = list(self.arrays.values())
        runtime, stream = self._device.xp.cuda.runtime, self._device.main.ptr
        for number in elsewhere:
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

    def _stage(self, turn: int) -> tuple[int, list[np.ndarray]]:
        block = pinned_array((self._total,), np.uint8, self._device)
        places = zip(self._offsets, self._layouts, strict=True)
        made = self._staging[turn] = (block.ctypes.data, [_within(block, *place) for place in places])
        return made


class Fetcher:
    """Copies arrays of fixed layouts from a device to the host."""

    def __init__(self, device: CudaDevice, layouts: Sequence[Layout]) -> None:
        self._device = device
        small = [layout for layout in layouts if _bytes(layout) <= STAGED]
        offsets, total = _offsets(small)
        block = pinned_array((total,), np.uint8, device)
        places = iter(offsets)
        self._parts = [
            _within(block, next(places), layout) if _bytes(layout) <= STAGED else None for layout in layouts
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
                    large[number] = made = np.empty(array.shape, array.dtype)
                    runtime.memcpyAsync(made.ctypes.data, array.data.ptr, made.nbytes, kind, pointer)
            stream.synchronize()
        return [large[number] if part is None else part.copy() for number, part in enumerate(self._parts)]
