"""Device placement of eager tensors and of operators on them.

Operators follow their arguments: if any is on a GPU, the others are copied there. Tensors that are made without
arguments (parameters, constants, converted arrays) go to the device of `dygraph.guard(place)` or `paddle.set_device`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backend
from .._ext import eager as core
from ..backend import on_device as on_device
from ..backend.cupy_ import library
from ..base.place import CPUPlace, CUDAPinnedPlace, Place
from ..base.selected_rows import SelectedRows
from ..executor.lod_tensor import LoDTensor
from ..executor.lod_tensor import overwrite as overwrite
from ..framework import mode
from ..ops.registry import OperatorError

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice


def default_device() -> CudaDevice | None:
    """The GPU where tensors without arguments are made; None for the host."""
    place = mode._current_expected_place()
    return None if type(place) is CPUPlace else backend.device_at(place)


def to_default_device(array: np.ndarray) -> Any:
    """An array of the host, copied to the device where tensors are made."""
    device = default_device()
    return array if device is None else device.put(array)


def adopt(array: Any) -> Any:
    """A copy, on the same GPU, of a user's CuPy array."""
    device = backend.device_of(array)
    assert device is not None
    return device.adopt(array)


def colocate(form: core.Form | None, arrays: list[Any]) -> CudaDevice | None:
    """Move `arrays`, in place, to the GPU of those that are on one; returns it, None if all are on the host.

    The arrays become contiguous. `form`: the call signature, for messages. Raises OperatorError if they are on several
    GPUs.
    """
    kind = library.array_type
    if kind is None:
        return None
    first = number = -1
    loose = False
    for k, item in enumerate(arrays):
        array = item.values if type(item) is SelectedRows else item
        if not isinstance(array, kind):
            loose = True
            continue
        on = array.device.id  # type: ignore[attr-defined]
        loose = loose or not array.flags.c_contiguous  # type: ignore[attr-defined]
        if number < 0:
            first, number = k, on
        elif on != number:
            raise _two_devices(form, first, number, k, on)
    if number < 0:
        return None
    from ..backend.cupy_.device import device as cuda_device

    device = cuda_device(number)
    if loose:
        for k, item in enumerate(arrays):
            arrays[k] = to_device(item, device)
    return device


def _two_devices(form: core.Form | None, first: int, number: int, other: int, on: int) -> OperatorError:
    names = form.names_in if form is not None else ("the first", "the second")
    what = f"operator {form.definition.type}" if form is not None else "two tensors"
    slots = [names[k].partition(":")[0] if k < len(names) else f"tensor {k}" for k in (first, other)]
    return OperatorError(
        f"{what}: {slots[0]} is on CUDAPlace({number}) and {slots[1]} on CUDAPlace({on}); move one of them with "
        f"tensor.cuda({number})"
    )


def to_device(value: Any, device: CudaDevice | None) -> Any:
    """An array or SelectedRows, contiguous, on `device` (None: the host): itself, or a copy."""
    if type(value) is SelectedRows:
        rows, values = to_device(value.rows, device), to_device(value.values, device)
        return value if values is value.values else SelectedRows(rows, values, value.height)
    if device is None:
        return backend.to_host(value)
    array = device.put(value)
    if array is value and not array.flags.c_contiguous:
        with device.active():
            array = device.xp.ascontiguousarray(array)
    return array


def host(value: Any) -> Any:
    """An array or SelectedRows on the host: itself, or a copy."""
    return value if type(value) is np.ndarray else to_device(value, None)


def read(array: Any) -> np.ndarray:
    """The elements of an array of a GPU, once they are computed. Raises errors that kernels have reported there."""
    device = backend.device_of(array)
    if device is None:
        return np.asarray(array)
    from ..backend.cupy_ import faults

    elements = device.get(array)
    faults.raise_pending(device)
    return elements


def as_copy(array: Any) -> np.ndarray:
    """A copy of an array on the host."""
    return array.copy() if type(array) is np.ndarray else np.array(read(array))


def dense(value: Any) -> Any:
    """SelectedRows as an array on the same device; anything else as it is."""
    if type(value) is not SelectedRows:
        return value
    with computing(value) as xp:
        return value.dense(xp)


def device_of(value: Any) -> CudaDevice | None:
    """The GPU of an array or of SelectedRows; None for the host."""
    if type(value) is np.ndarray:
        return None
    return backend.device_of(value.values if type(value) is SelectedRows else value)


def to_device_of(value: Any, array: Any) -> Any:
    """`value` moved to the device of `array`."""
    if type(value) is np.ndarray and type(array) is np.ndarray:
        return value
    return to_device(value, device_of(array))


def zeros(device: CudaDevice | None, shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros on a device, or on the host."""
    if device is None:
        return np.zeros(shape, dtype)
    with device.active(), library.errors(f"allocating memory on GPU {device.number}"):
        return device.xp.zeros(shape, dtype)


@contextmanager
def computing(value: Any) -> Iterator[Any]:
    """Context manager: activates the device of `value`, an array or SelectedRows; yields NumPy or CuPy."""
    device = device_of(value)
    if device is None:
        yield np
    else:
        with device.active(), library.errors(f"computing on GPU {device.number}"):
            yield device.xp


def ones_like(array: Any) -> Any:
    """Ones of an array's shape and dtype, on its device."""
    if type(array) is np.ndarray:
        return np.ones(array.shape, array.dtype)
    with computing(array) as xp:
        return xp.ones(array.shape, array.dtype)


def duplicate(array: Any) -> Any:
    """A copy of an array on its device."""
    if type(array) is np.ndarray:
        return array.copy()
    with computing(array):
        return array.copy()


def place_of(array: Any) -> Place:
    """The place of an array."""
    return LoDTensor.wrap(array)._place()


def at(array: Any, place: Place) -> Any:
    """`array` at `place`: itself if it is there already, otherwise a copy.

    Without a usable GPU, all places mean the CPU (`base.place.resolve`). Raises errors that kernels have reported when
    a copy leaves the GPU.
    """
    device = backend.device_at(place)
    if device is not None:
        return device.put(array)
    if backend.on_device(array):
        array = read(array)
    if isinstance(place, CUDAPinnedPlace) and place_of(array) != place:
        tensor = LoDTensor()
        tensor.set(array, place)
        return tensor.array
    return array


core.setup_devices(colocate, default_device, zeros, duplicate)
