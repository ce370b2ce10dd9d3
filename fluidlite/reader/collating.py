"""Collation of lists of samples, of any structure, to batches of stacked arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .. import backend
from .._ext.collate import empty, fill_rows
from ..eager import Tensor
from ..executor.lod_tensor import LoDTensor

Allocate = Callable[[tuple[int, ...], Any], np.ndarray]
"""Allocates an uninitialized array of a shape and a dtype."""

_PLAIN = {float: np.dtype(np.float64), int: np.dtype(np.int64), bool: np.dtype(np.bool_)}


def default_collate_fn(batch: list[Any]) -> list[Any]:
    """The batch of a list of samples: a list with one stacked array for each field of a sample.

    Fields are arrays, numbers or nested lists of numbers, which become arrays with the batch in front: ints int64,
    floats float64. Strings stay a list, dicts become dicts of stacked arrays. A sample that is no tuple or list is its
    only field. Raises ValueError for samples that are not alike, naming sample and field. Follows
    `fluid.io.default_collate_fn`.
    """
    made = collate(batch, nested=False)
    return made if isinstance(made, list) and isinstance(batch[0], (tuple, list)) else [made]


def nested_collate_fn(batch: list[Any]) -> Any:
    """The batch of a list of samples, in the structure of a sample.

    Arrays and numbers become arrays with the batch in front; tuples and lists become lists of what their items
    become, dicts dicts. Strings stay a list. Raises ValueError for samples that are not alike, naming sample and field.
    Follows `paddle.io`'s default `collate_fn`.
    """
    return collate(batch, nested=True)


def collate(samples: list[Any], nested: bool, allocate: Allocate = empty, source: str = "") -> Any:
    """See `nested_collate_fn`; without `nested`, lists inside of a sample are rows of numbers.

    Arrays are made by `allocate`, so that they can be put together where they are needed. `source`: the origin of the
    samples, for messages.
    """
    try:
        if not samples:
            raise ValueError("a batch needs samples, got an empty list (no samples)")
        return _collate(samples, "", True if nested else None, allocate)
    except (ValueError, TypeError) as error:
        if source and type(error) in (ValueError, TypeError):
            error.args = (f"{source}: {error}",)
        raise


def _collate(samples: list[Any], where: str, nested: bool | None, allocate: Allocate) -> Any:
    """`where`: the path of the field in a sample, for messages. `nested` None: lists are fields at this level only."""
    first = samples[0]
    if isinstance(first, (tuple, list)) and nested is not False:
        return _fields(samples, where, nested, allocate)
    if isinstance(first, Mapping):
        return _mapping(samples, where, nested, allocate)
    if isinstance(first, (str, bytes)):
        return samples
    return _stacked(samples, -1, 0, where, allocate)


def _fields(samples: list[Any], where: str, nested: bool | None, allocate: Allocate) -> list[Any]:
    first = samples[0]
    count = len(first)
    below = nested or False
    columns: list[Any] = []
    for i, item in enumerate(first):
        if isinstance(item, (np.ndarray, np.generic)) or type(item) in _PLAIN:
            columns.append(_stacked(samples, i, count, where, allocate))
        else:
            column = _column(samples, i, count, where)
            columns.append(_collate(column, f"{where}[{i}]", below, allocate))
    return columns


def _column(samples: list[Any], field: int, count: int, where: str) -> list[Any]:
    """Item `field` of all samples."""
    for number, sample in enumerate(samples):
        if not isinstance(sample, (tuple, list)) or len(sample) != count:
            raise ValueError(
                f"sample {number} of the batch does not match sample 0: {_named(where)} has {count} fields there, "
                f"and here it is {_brief(sample)}"
            )
    return [sample[field] for sample in samples]


def _mapping(samples: list[Any], where: str, nested: bool | None, allocate: Allocate) -> dict[Any, Any]:
    keys = list(samples[0])
    for number, sample in enumerate(samples):
        if (
            not isinstance(sample, Mapping)
            or len(sample) != len(keys)
            or any(key not in sample for key in keys)
        ):
            raise ValueError(
                f"sample {number} of the batch does not match sample 0: {_named(where)} has the keys {keys} there, "
                f"and here it is {_brief(sample)}"
            )
    below = nested or False
    return {
        key: _collate([sample[key] for sample in samples], f"{where}[{key!r}]", below, allocate)
        for key in keys
    }


def _stacked(samples: list[Any], field: int, count: int, where: str, allocate: Allocate) -> np.ndarray:
    """Field number `field` of samples with `count` fields as one array; the samples themselves if it is -1."""
    first = samples[0] if field < 0 else samples[0][field]
    dtype: np.dtype | None = None
    shape: tuple[int, ...] = ()
    if isinstance(first, (np.ndarray, np.generic)):
        dtype, shape = first.dtype, first.shape
    else:
        dtype = _PLAIN.get(type(first))
    if dtype is not None and dtype.isnative and dtype.kind in "biufc":
        out = allocate((len(samples), *shape), dtype)
        if fill_rows(samples, field, count, out) == len(samples):
            return out
    column = samples if field < 0 else _column(samples, field, count, where)
    return _mixed_types(column, where if field < 0 else f"{where}[{field}]", allocate)


def _mixed_types(column: list[Any], where: str, allocate: Allocate) -> np.ndarray:
    """Items of different types as one array of their common type."""
    rows: list[np.ndarray] = []
    for number, item in enumerate(column):
        try:
            row = np.asarray(getattr(item, "array", item))
        except ValueError:
            raise ValueError(
                f"{_place(where, number)} is a ragged list, which cannot be stacked: {_brief(item)}; pad it where it "
                "is read, or in a collate_fn"
            ) from None
        if row.dtype == object:
            raise TypeError(
                f"{_place(where, number)} is {_brief(item)}; samples hold arrays, numbers, strings, and tuples, lists "
                "or dicts of these; a collate_fn of a data set can take others"
            )
        if rows and row.shape != rows[0].shape:
            raise ValueError(
                f"the samples of a batch need the same shape: {_named(where)} has shape {list(rows[0].shape)} in "
                f"sample 0 and {list(row.shape)} in sample {number}; pad or crop them where they are read, or in a "
                "collate_fn"
            )
        rows.append(row)
    dtype = np.result_type(*rows)
    if dtype.kind not in "biufc":
        return np.stack(rows)
    out = allocate((len(rows), *rows[0].shape), dtype)
    return np.stack(rows, out=out)


def _named(where: str) -> str:
    return f"field {where}" if where else "the sample"


def _place(where: str, number: int) -> str:
    return f"field {where} of sample {number}" if where else f"sample {number}"


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        kind = "of Python objects " if value.dtype.hasobject else ""
        return f"an array {kind}of shape {list(value.shape)}"
    return "None" if value is None else f"{value!r:.80} ({type(value).__name__})"


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
