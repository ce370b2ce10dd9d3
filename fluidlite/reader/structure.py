"""Batches as nested structures: lists, tuples and dicts of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .. import backend
from ..eager import Tensor
from ..executor.tensors.lod_tensor import LoDTensor


def transform(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """`value` with every item that is no list, tuple or mapping replaced by `leaf(item)`; tuples become lists."""
    if isinstance(value, (list, tuple)):
        return [transform(item, leaf) for item in value]
    if isinstance(value, Mapping):
        return {key: transform(item, leaf) for key, item in value.items()}
    return leaf(value)


def plain(value: Any) -> Any:
    """`value` with eager Tensors as arrays, so that it can be sent to another process."""
    return transform(value, lambda leaf: leaf.array if isinstance(leaf, Tensor) else leaf)


def as_tensors(value: Any) -> Any:
    """`value` with arrays as eager Tensors on the same memory."""
    return transform(value, _tensor_leaf)


def _tensor_leaf(value: Any) -> Any:
    if backend.on_device(value):
        return Tensor(value)
    if isinstance(value, np.ndarray):
        return Tensor(np.ascontiguousarray(value)) if value.dtype.kind in "biuf" else value
    if isinstance(value, LoDTensor):
        array = value.array
        return Tensor(array if backend.on_device(array) else np.ascontiguousarray(array))
    return Tensor(np.asarray(value)) if isinstance(value, np.generic) else value


def as_lod_tensors(value: Any) -> Any:
    """`value` with arrays as LoDTensors on the same memory."""
    return transform(value, _lod_tensor_leaf)


def _lod_tensor_leaf(value: Any) -> Any:
    if backend.on_device(value):
        return LoDTensor.wrap(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return LoDTensor.wrap(np.ascontiguousarray(value))
    return LoDTensor.wrap(value.array) if isinstance(value, Tensor) else value


def rows_of(value: Any) -> int:
    """How many samples batches hold, alone or in lists and dicts: rows, or sequences, of the first tensor of each."""
    items = _items(value)
    if items is None:
        return _rows(value.array, getattr(value, "offsets", None))
    count = 0
    for item in items:
        if type(item) is LoDTensor:  # here too, to spare most batches a call
            return count + _rows(item.array, item.offsets)
        count += rows_of(item)
        if _items(item) is None:
            break
    return count


def _rows(array: Any, lod: Any) -> int:
    if lod:
        return len(lod[0]) - 1
    return len(array) if array.shape else 1


def size_of(value: Any) -> int:
    """How many bytes the arrays and tensors in `value` hold."""
    items = _items(value)
    if items is None:
        array = getattr(value, "array", value)
        return getattr(array, "nbytes", 0)
    size = 0
    for item in items:
        size += item.array.nbytes if type(item) is LoDTensor else size_of(item)  # type: ignore[union-attr]
    return size


def _items(value: Any) -> Iterable[Any] | None:
    """The items of a list, tuple or mapping; None for other things."""
    kind = type(value)  # checked first: it decides for nearly every batch, and is cheaper than isinstance
    if kind is list or kind is tuple:
        return value
    if kind is dict:
        return value.values()
    if kind is LoDTensor or kind is Tensor or kind is np.ndarray:
        return None
    if isinstance(value, (list, tuple)):
        return value
    return value.values() if isinstance(value, Mapping) else None
