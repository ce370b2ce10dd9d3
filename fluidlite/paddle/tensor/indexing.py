"""Indexing of eager tensors as NumPy does it: lists, arrays, tensors, masks, None; and assignment to parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...eager import Tensor, is_recording, placing
from ...framework import tracing
from ..modes import constant, run
from .manipulation import in_place, reshape, scatter

_PLAIN = (int, np.integer, slice, type(Ellipsis))


def is_plain(index: Any) -> bool:
    """Whether `index` has only integers, slices, `...` and integer tensors of one element, which slicing does."""
    if isinstance(index, tuple):
        return all(_is_plain(item) for item in index)
    return _is_plain(index)


def _is_plain(item: Any) -> bool:
    if isinstance(item, Tensor):
        return item.array.size == 1 and item.array.dtype.kind in "iu"
    return isinstance(item, _PLAIN)


def _for_numpy(index: Any) -> Any:
    """`index` with arrays in place of tensors."""
    if isinstance(index, tuple):
        return tuple(_for_numpy(item) for item in index)
    return index._on_host if isinstance(index, Tensor) else index


def _flat_indices(x: Tensor, index: Any) -> np.ndarray:
    """The flat indices of the elements `x[index]`, in the shape of the result."""
    try:
        return np.asarray(np.arange(x.array.size).reshape(x.array.shape)[_for_numpy(index)])
    except IndexError as error:
        raise IndexError(f"tensor {x.name!r} of shape {x.shape}: {error}") from None


def gather_indexed(x: Tensor, index: Any) -> Any:
    """`x[index]` for what is not plain; gradients go to the elements that were picked, and add up."""
    rows = index._on_host if isinstance(index, Tensor) else index
    if isinstance(rows, list) and all(
        isinstance(number, int) and not isinstance(number, bool) for number in rows
    ):
        rows = np.asarray(rows, np.int64)
    if (
        isinstance(rows, np.ndarray)
        and rows.dtype.kind in "iu"
        and rows.ndim == 1
        and rows.size
        and x.array.ndim
    ):
        count = x.array.shape[0]
        if rows.min() < -count or rows.max() >= count:
            raise IndexError(f"tensor {x.name!r} of shape {x.shape}: index must be in [{-count}, {count})")
        numbers = constant(rows % count, x, "int64")
        return run("gather", {"X": x, "Index": numbers}, attrs={"overwrite": False})
    places = _flat_indices(x, index)
    shape = list(places.shape) or [1]
    if not places.size:
        return Tensor(placing.to_device_of(np.empty(shape, x.array.dtype), x.array))
    flat = reshape(x, [-1])
    numbers = constant(places.reshape(-1), x, "int64")
    return reshape(run("gather", {"X": flat, "Index": numbers}, attrs={"overwrite": False}), shape)


def assigned(x: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`, a number, array or tensor that broadcasts; gradients go to `value` and to what stays of `x`.

    Raises ValueError for a leaf tensor that needs its gradient, and for shapes that do not fit.
    """
    needed = isinstance(value, Tensor) and not value.stop_gradient
    by_operators = (
        tracing.record.get() is not None and not x.persistable and (x.stop_gradient or not x.is_leaf)
    )
    if not by_operators and (not is_recording() or (x.stop_gradient and not needed)):
        plain = value._on_host if isinstance(value, Tensor) else value
        if isinstance(plain, np.ndarray) and plain.size == 1:
            plain = plain.reshape(())  # NumPy assigns a single element from a 0-d array only
        if placing.on_device(x.array):
            elements = x.numpy()
            elements[_for_numpy(index)] = plain
            made = placing.to_device_of(elements, x.array)
            if x.persistable:
                placing.overwrite(x.array, made)
            else:
                x.array = made
            return
        # Operators that used the tensor before may still need its elements.
        array = x.array if x.persistable else x.array.copy()
        array[_for_numpy(index)] = plain
        x.array = array
        return
    places = _flat_indices(x, index)
    given = value if isinstance(value, Tensor) else constant(value, x)
    if given.array.dtype != x.array.dtype:
        given = given.astype(x.dtype)
    rows = np.arange(given.array.size)
    spread = np.broadcast_to(
        rows if rows.size == 1 else rows.reshape(given.array.shape), places.shape or (1,)
    ).reshape(-1)
    numbers = constant(spread, x, "int64")
    parts = run("gather", {"X": reshape(given, [-1]), "Index": numbers}, attrs={"overwrite": False})
    made = scatter(reshape(x, [-1]), constant(places.reshape(-1), x, "int64"), parts)
    in_place(x, reshape(made, x.shape))
