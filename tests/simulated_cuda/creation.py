"""Making arrays: from host values, from other arrays, and without any."""

from typing import Any

import numpy as np

from . import calls, memory
from .machine import machine
from .transfer import from_host


def array(
    obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", subok: bool = False, ndmin: int = 0, *,
    blocking: bool = False,
) -> Any:  # fmt: skip
    """An array of the device with the values of anything: a copy, unless `copy` is false and none is needed."""
    if subok:
        raise NotImplementedError("subok=True is not supported")
    if isinstance(obj, (list, tuple)) and any(True for _ in calls.arrays_in(obj)):
        found = _stacked(obj)
        found = found if dtype is None else found.astype(dtype, copy=False)
    elif calls.is_array(obj):
        kind = obj.dtype if dtype is None else np.dtype(dtype)
        keep = order in ("K", "A", None) or obj.flags[f"{order}_CONTIGUOUS"]
        found = obj if not copy and kind == obj.dtype and keep else obj.astype(kind, order=order or "K")
    elif hasattr(obj, "__cuda_array_interface__"):
        found = from_interface(obj)
        if copy or (dtype is not None and np.dtype(dtype) != found.dtype):
            found = found.astype(dtype or found.dtype)
    else:
        host = np.asarray(obj, dtype)
        if host.dtype.kind not in calls.KINDS:
            raise ValueError(f"Unsupported dtype {host.dtype}")
        found = from_host(host, dtype, order or "K")
    if found.ndim < ndmin:
        found = found.reshape((1,) * (ndmin - found.ndim) + found.shape)
    return found


def _stacked(parts: Any) -> Any:
    """Nested lists of arrays as one array; CuPy takes no numbers or NumPy arrays among them."""
    made = []
    for part in parts:
        if isinstance(part, (list, tuple)):
            part = _stacked(part)
        if not calls.is_array(part):
            raise TypeError(f"Unsupported type {type(part)} in a list of arrays of the device")
        made.append(part)
    return calls.call(np.stack, made)


def from_interface(obj: Any) -> Any:
    """The array of an object that shows its device memory through `__cuda_array_interface__`."""
    from .array import ndarray

    facts = obj.__cuda_array_interface__
    pointer, shape = facts["data"][0], facts["shape"]
    kind = np.dtype(facts["typestr"])
    size = max(int(np.prod(shape)) * kind.itemsize, 1)
    block = memory.UnownedMemory(pointer, size, obj) if pointer else memory.Memory(0)
    return ndarray(shape, kind, memory.MemoryPointer(block, 0), facts.get("strides"))


def asarray(a: Any, dtype: Any = None, order: str | None = None, *, blocking: bool = False) -> Any:
    """The array itself if it is one of the device, or else a copy there."""
    return array(a, dtype, copy=False, order=order or "K", blocking=blocking)


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """The array with its elements in C order and at least one dimension."""
    return _ordered(a, dtype, "C")


def asfortranarray(a: Any, dtype: Any = None) -> Any:
    """The array with its elements in Fortran's order and at least one dimension."""
    return _ordered(a, dtype, "F")


def _ordered(a: Any, dtype: Any, order: str) -> Any:
    found = array(a, dtype, copy=False, order=order)
    return found.reshape(1) if not found.ndim else found


def empty(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    """An array of garbage."""
    from .array import ndarray

    machine().check_driver()
    calls.refuse_numpy(shape)
    return ndarray(shape, float if dtype is None else dtype, order=order)


def empty_like(
    prototype: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> Any:
    """An array of garbage, like another."""
    from .array import ndarray

    if subok is not None:
        raise TypeError("subok is not supported yet")
    if not calls.is_array(prototype) and not isinstance(prototype, np.ndarray):
        raise TypeError(f"Unsupported type {type(prototype)}")
    if order in ("K", "A"):
        flags = prototype.flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    return ndarray(prototype.shape if shape is None else shape, dtype or prototype.dtype, order=order)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> Any:
    """An array of one value, like another."""
    made = empty_like(a, dtype, order, subok, shape)
    made.fill(fill_value)
    return made
