"""Reading and writing parts of arrays, with CuPy's differences: indices out of range wrap around, masks wait."""

from typing import TYPE_CHECKING, Any

import numpy as np

from . import calls

if TYPE_CHECKING:
    from .array import ndarray

SCATTER_ADD = frozenset(map(np.dtype, "iIefdFDLQ"))
SCATTER_EXTREME = frozenset(map(np.dtype, "iIfdLQ"))


def checked_key(key: Any) -> tuple[Any, ...]:
    """An index as a tuple; raises for what CuPy does not take as one."""
    parts = key if isinstance(key, tuple) else (key,)
    found: list[Any] = []
    for part in parts:
        if isinstance(part, np.ndarray):
            raise IndexError(
                "arrays used as indices must be device arrays: NumPy arrays are copied to the device on every use"
            )
        if isinstance(part, (list, range)):
            part = list(part)
        elif calls.is_array(part):
            if part.dtype.kind not in "biu":
                raise IndexError(
                    f"arrays used as indices must be of integer or boolean type. (actual: {part.dtype})"
                )
        elif not (part is None or part is Ellipsis or isinstance(part, (slice, bool, np.bool_))):
            if not hasattr(part, "__index__"):
                raise IndexError(f"Indices must be integers, slices or arrays: {part!r}")
        found.append(part)
    return tuple(found)


def has_mask(key: tuple[Any, ...]) -> bool:
    return any(
        (calls.is_array(part) and part.dtype.kind == "b")
        or isinstance(part, (bool, np.bool_))
        or (isinstance(part, list) and np.asarray(part).dtype.kind == "b")
        for part in key
    )


def wrapped(shape: tuple[int, ...], key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A NumPy index with index arrays brought into range, as the kernels of CuPy do without a word."""
    taken = sum(
        1 if not _is_mask(part) else part.ndim for part in key if part is not None and part is not Ellipsis
    )
    axis, found = 0, []
    for part in key:
        if part is Ellipsis:
            axis += len(shape) - taken
        elif part is not None:
            if isinstance(part, np.ndarray) and part.dtype.kind in "iu":
                n = shape[axis] if axis < len(shape) else 1
                part = part % n if n else part
            axis += part.ndim if _is_mask(part) else 1
        found.append(part)
    return tuple(found)


def _is_mask(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.kind == "b"


def getitem(array: "ndarray", key: Any) -> "ndarray":
    """`array[key]`: a view for slices and integers, a copy for arrays."""
    parts = checked_key(key)
    if any(isinstance(part, list) for part in parts):
        from .transfer import from_host

        parts = tuple(
            from_host(np.asarray(part, None if part else np.int64)) if isinstance(part, list) else part
            for part in parts
        )

    def read(a: np.ndarray, index: tuple[Any, ...]) -> np.ndarray:
        found = a[wrapped(a.shape, index)]
        # An element of NumPy's would be a scalar without memory of its own; here it is a view like any other.
        if not isinstance(found, np.ndarray):
            found = a[(*wrapped(a.shape, index), Ellipsis)] if Ellipsis not in index else np.asarray(found)
        return found

    plain = not any(calls.is_array(part) for part in parts)
    return calls.call(read, array, parts, waits=has_mask(parts), view=plain)


def setitem(array: "ndarray", key: Any, value: Any) -> None:
    """`array[key] = value`."""
    parts = checked_key(key)
    if isinstance(value, np.ndarray):
        if value.shape != ():
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        value = value.item()
    if isinstance(value, (list, tuple)):
        raise TypeError(f"Unsupported type {type(value)}")
    if has_mask(parts) and calls.is_array(value) and value.ndim:
        raise ValueError(
            "only numbers and 0-d arrays can be assigned through a mask without waiting for the device"
        )
    if any(isinstance(part, list) for part in parts):
        from .transfer import from_host

        parts = tuple(from_host(np.asarray(part)) if isinstance(part, list) else part for part in parts)

    def write(a: np.ndarray, index: tuple[Any, ...], new: Any) -> None:
        if isinstance(new, np.ndarray):
            new = new.astype(a.dtype)
        a[wrapped(a.shape, index)] = new

    if not has_mask(parts):
        plain = calls.unwrapped(parts)
        part = np.broadcast_to(np.empty((), array.dtype), array.shape)[_in_range(plain)]
        new = calls.unwrapped(value)
        if isinstance(new, np.ndarray):
            shape = new.shape
            while len(shape) > part.ndim and shape[0] == 1:
                shape = shape[1:]
            np.broadcast_to(np.empty(shape), part.shape)
    calls.change(write, array, parts, value)


def _in_range(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index that has the shape of another whose values may not be there yet."""
    return tuple(np.zeros_like(part) if isinstance(part, np.ndarray) else part for part in key)


def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str | None = None) -> Any:
    """`take`, whose indices wrap around."""
    if not calls.is_array(a):
        raise TypeError(f"take() wants an array of the device, not {type(a).__name__}")
    calls.refuse_numpy(indices)
    if isinstance(indices, (list, tuple)):
        from .transfer import from_host

        indices = from_host(np.asarray(indices, np.int64))

    def read(values: np.ndarray, where: Any) -> np.ndarray:
        n = values.size if axis is None else values.shape[axis]
        return np.take(values, np.asarray(where) % n if n else where, axis)

    if out is None:
        return calls.call(read, a, indices)
    calls.call_into(out, read, a, indices)
    return out


def scatter(name: str, array: "ndarray", key: Any, value: Any) -> None:
    """`add.at`, `maximum.at` and `minimum.at`, for the dtypes that CuPy has atomic operations of."""
    if not calls.is_array(array):
        raise AttributeError(f"'{type(array).__name__}' object has no attribute '_scatter_op'")
    allowed = SCATTER_ADD if name == "add" else SCATTER_EXTREME
    if array.dtype not in allowed:
        kinds = ", ".join(sorted(str(each) for each in allowed))
        raise TypeError(f"cupyx.scatter_{name} only supports {kinds} as data type, not {array.dtype}")
    calls.refuse_numpy(value)
    parts = checked_key(key)
    function = {"add": np.add, "max": np.maximum, "min": np.minimum}[name]

    def update(a: np.ndarray, index: tuple[Any, ...], new: Any) -> None:
        where = wrapped(a.shape, index)
        function.at(a, where, np.asarray(new).astype(a.dtype))

    calls.change(update, array, parts, value)


def take_along_axis(a: Any, indices: Any, axis: int | None) -> Any:
    """`take_along_axis`, whose indices wrap around."""
    if not (calls.is_array(a) and calls.is_array(indices)):
        raise TypeError("take_along_axis() wants arrays of the device")
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")

    def read(values: np.ndarray, where: np.ndarray) -> np.ndarray:
        n = values.size if axis is None else values.shape[axis]
        return np.take_along_axis(values, where % n if n else where, axis)

    return calls.call(read, a, indices)
