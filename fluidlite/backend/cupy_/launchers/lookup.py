"""Lookup of rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.dtypes import to_numpy
from .. import faults, launch

if TYPE_CHECKING:
    from ..device import CudaDevice


def forward(op_type: str) -> Callable[..., Any]:
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


def grad(device: CudaDevice, W: Any, Ids: Any, Out_grad: Any, padding_idx: int, is_sparse: bool) -> Any:
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
