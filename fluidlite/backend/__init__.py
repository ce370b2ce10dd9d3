"""Arrays of the host (NumPy) and of GPUs (CuPy) behind one small protocol.

An array is a `numpy.ndarray` (of the host) or a `cupy.ndarray` (of a device). `to_host`, `on_device` and `device_of`
are the interface for other packages; everything that imports CuPy is in `cupy_`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import place as places
from .cupy_ import library

if TYPE_CHECKING:
    from ..base.reports.profiling import Recorder
    from .cupy_.device import CudaDevice


places.set_probe(library.device_count, library.problem)


def on_device(array: Any) -> bool:
    """Whether `array` lives on a GPU."""
    kind = library.array_type
    return kind is not None and isinstance(array, kind)


def namespace(array: Any) -> Any:
    """The module of array functions (NumPy or CuPy) that works on `array`."""
    return library.load() if on_device(array) else np


def device_of(array: Any) -> CudaDevice | None:
    """The GPU that `array` lives on; None for the host."""
    if not on_device(array):
        return None
    from .cupy_.device import device

    return device(array.device.id)


def device_at(place: places.Place) -> CudaDevice | None:
    """The GPU that a place means here; None if work for it is done on the host (`place.resolve`).

    Raises RuntimeError if a GPU is required and none can be used, ValueError for a number that no GPU has.
    """
    real = places.resolve(place)
    if not isinstance(real, places.CUDAPlace):
        return None
    from .cupy_.device import device

    return device(real.device)


def to_host(array: Any) -> Any:
    """`array` as a NumPy array: itself if it is on the host already, otherwise a copy, once all work on it is done.

    Anything that is no array of a device (SelectedRows, None, ...) is returned as it is.
    """
    device = device_of(array)
    return array if device is None else device.get(array)


def moved(array: Any, device: CudaDevice | None) -> Any:
    """`array` where `device` (None: the host) can work on it: itself, or a copy."""
    return to_host(array) if device is None else device.put(array)


def record(recorder: Recorder, name: str, begin: int, end: int, device: CudaDevice | None) -> None:
    """Record that an operator ran in this thread from `begin` to `end`; waits for it if it is on a GPU."""
    there = None
    if device is not None and recorder.on_device:
        device.synchronize()
        there = begin, time.perf_counter_ns() - begin
    recorder.add(name, begin, end, device=there)
