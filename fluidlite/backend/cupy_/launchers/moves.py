"""Launchers that move rows and parts of arrays: concat, split, stack, unstack, lookup of rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.dtypes import to_numpy
from ....base.sizes import product
from .. import faults, launch

if TYPE_CHECKING:
    from ..device import CudaDevice

_MANY = 8
"""The number of parts that one launch takes."""

_BY_SIZE = {1: np.dtype("uint8"), 4: np.dtype("int32"), 8: np.dtype("int64")}
"""The type as which elements of a size are moved, as the kernels copy bytes."""


def _run(function: str, parts: Sequence[Any], widths: Sequence[int], whole: Any, rows: int) -> None:
    """Launch `join` or `cut` for parts of `widths` columns of the `rows` rows of `whole`."""
    columns, first = sum(widths), 0
    for start in range(0, len(parts), _MANY):
        chunk = list(parts[start : start + _MANY])
        ends = list(accumulate(widths[start : start + _MANY]))
        missing = _MANY - len(chunk)
        chunk += [None] * missing
        args = (*chunk, *ends, *[ends[-1]] * missing, whole, rows * ends[-1], ends[-1], columns, first)
        launch.each("pieces", function, _BY_SIZE[whole.dtype.itemsize], rows * ends[-1], *args)
        first += ends[-1]


def _supported(*arrays: Any) -> bool:
    """Whether the kernels take arrays of these types."""
    return len({array.dtype for array in arrays}) == 1 and arrays[0].dtype.itemsize in _BY_SIZE


def _joined_parts(device: CudaDevice, parts: Sequence[Any], axis: int, shape: tuple[int, ...]) -> Any:
    """The `parts`, whose dimensions before `axis` are those of `shape`, one after another as an array of `shape`."""
    out = device.xp.empty(shape, parts[0].dtype)
    rows = product(shape[:axis])
    if out.size:
        widths = [part.size // rows for part in parts]
        _run("join", [launch.dense(device, part) for part in parts], widths, out, rows)
    return out


def _split_parts(device: CudaDevice, whole: Any, shapes: Sequence[tuple[int, ...]], rows: int) -> list[Any]:
    """`whole`, seen as `rows` rows, split into arrays of these shapes."""
    found = [device.xp.empty(shape, whole.dtype) for shape in shapes]
    if whole.size:
        _run("cut", found, [part.size // rows for part in found], launch.dense(device, whole), rows)
    return found


def concat(device: CudaDevice, X: list[Any], AxisTensor: Any, axis: int) -> Any:
    """Launcher of `concat`."""
    if AxisTensor is not None or not _supported(*X):
        return NotImplemented
    axis %= X[0].ndim
    shape = X[0].shape
    size = sum(x.shape[axis] for x in X)
    return _joined_parts(device, X, axis, (*shape[:axis], size, *shape[axis + 1 :]))


def concat_grad(device: CudaDevice, X: list[Any], AxisTensor: Any, Out_grad: Any, axis: int) -> Any:
    """Launcher of `concat_grad`."""
    if AxisTensor is not None or not _supported(Out_grad):
        return NotImplemented
    axis %= Out_grad.ndim
    return _split_parts(device, Out_grad, [x.shape for x in X], product(Out_grad.shape[:axis]))


def split(
    device: CudaDevice,
    X: Any,
    AxisTensor: Any,
    SectionsTensorList: Any,
    sections: list[int],
    num: int,
    axis: int,
) -> Any:
    """Launcher of `split`."""
    if AxisTensor is not None or SectionsTensorList or not _supported(X):
        return NotImplemented
    axis %= X.ndim
    size = X.shape[axis]
    if not sections and (not num or size % num):
        return NotImplemented
    rest = size - sum(n for n in sections if n >= 0)
    sizes = [n if n >= 0 else rest for n in sections] or [size // num] * num
    shapes = [(*X.shape[:axis], n, *X.shape[axis + 1 :]) for n in sizes]
    return _split_parts(device, X, shapes, product(X.shape[:axis]))


def stack(device: CudaDevice, X: list[Any], axis: int) -> Any:
    """Launcher of `stack`."""
    if not _supported(*X):
        return NotImplemented
    shape = X[0].shape
    axis %= len(shape) + 1
    return _joined_parts(device, X, axis, (*shape[:axis], len(X), *shape[axis:]))


def stack_grad(device: CudaDevice, Y_grad: Any, axis: int) -> Any:
    """Launcher of `stack_grad`."""
    return unstack(device, Y_grad, axis)


def unstack(device: CudaDevice, X: Any, axis: int) -> Any:
    """Launcher of `unstack`."""
    if not _supported(X):
        return NotImplemented
    axis %= X.ndim
    shape = (*X.shape[:axis], *X.shape[axis + 1 :])
    return _split_parts(device, X, [shape] * X.shape[axis], product(X.shape[:axis]))


def unstack_grad(device: CudaDevice, Y_grad: list[Any], axis: int) -> Any:
    """Launcher of `unstack_grad`."""
    return stack(device, Y_grad, axis)


def lookup(op_type: str) -> Callable[..., Any]:
    """The launcher of `lookup_table` or `lookup_table_v2`; the older one drops the last dimension of Ids, a 1."""

    def launcher(device: CudaDevice, W: Any, Ids: Any, padding_idx: int, is_sparse: bool) -> Any:
        if not launch.real(W) or not launch.is_index(Ids):
            return NotImplemented
        height, width = W.shape
        places = Ids.shape if op_type.endswith("_v2") else Ids.shape[:-1]
        out = device.xp.empty((*places, width), W.dtype)
        if is_sparse and padding_idx >= height:  # a sparse gradient would have that row
            padding_idx = -1
        padding = padding_idx if padding_idx >= 0 else None
        mark = faults.mark(device, op_type, "Ids", height, "rows in W", padding)
        ids = (launch.dense(device, Ids), launch.wide(Ids))
        args = (launch.dense(device, W), *ids, out, out.size, height, width, padding_idx, *mark)
        launch.each("lookup", "lookup", W.dtype, out.size, *args)
        return out

    return launcher


def lookup_grad(
    device: CudaDevice, W: Any, Ids: Any, Out_grad: Any, padding_idx: int, is_sparse: bool
) -> Any:
    """Launcher of `lookup_table_grad` and `lookup_table_v2_grad`; sparse gradients are not made by kernels."""
    if is_sparse or not launch.real(W, Out_grad) or not launch.is_index(Ids):
        return NotImplemented
    table = device.xp.zeros(W.shape, W.dtype)
    add_rows(device, table, Ids, Out_grad, padding_idx)
    return table


def add_rows(device: CudaDevice, table: Any, ids: Any, rows: Any, padding: int) -> None:
    """Add each of `rows` (of the type of `table`) to the row of `table` that `ids` names, but for that of `padding`."""
    named = (launch.dense(device, ids), launch.wide(ids))
    args = (*named, launch.dense(device, rows), table, rows.size, *table.shape, padding)
    launch.each("lookup", "lookup_grad", table.dtype, rows.size, *args)


def one_hot(op_type: str) -> Callable[..., Any]:
    """The launcher of `one_hot` or `one_hot_v2`; the older one drops the last dimension of X, a 1."""

    def launcher(
        device: CudaDevice, X: Any, depth_tensor: Any, depth: int, dtype: int, allow_out_of_range: bool
    ) -> Any:
        element = np.dtype(to_numpy(dtype))
        if depth_tensor is not None or element not in launch.REAL or not launch.is_index(X):
            return NotImplemented
        places = X.shape if op_type.endswith("_v2") else X.shape[:-1]
        out = device.xp.empty((*places, depth), element)
        mark = faults.mark(device, op_type, "X", depth, "classes (depth)")
        args = (launch.dense(device, X), launch.wide(X), out, out.size, depth, allow_out_of_range, *mark)
        launch.each("lookup", "one_hot", element, out.size, *args)
        return out

    return launcher
