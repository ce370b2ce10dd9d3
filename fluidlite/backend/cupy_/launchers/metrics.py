"""The largest elements of rows, and accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import launch
from .reductions import team

if TYPE_CHECKING:
    from ..device import CudaDevice

_FEW = 32
"""The largest k for the kernel, which scans a row once for each of its k elements; larger ones are sorted."""


def top_k(device: CudaDevice, X: Any, K: Any, k: int) -> Any:
    """Launcher of `top_k`."""
    if K is not None or not launch.real(X) or not 1 <= k <= min(_FEW, X.shape[-1]):
        return NotImplemented
    n = X.shape[-1]
    out = device.xp.empty((*X.shape[:-1], k), X.dtype)
    places = device.xp.empty(out.shape, "int64")
    if out.size:
        name, blocks, threads = team(X.size // n, n)
        args = (launch.dense(device, X), out, places, X.size // n, n, k)
        launch.grid("metrics", f"top_k{name}", X.dtype, blocks, threads, *args)
    return out, places


def accuracy(device: CudaDevice, Indices: Any, Label: Any) -> Any:
    """Launcher of `accuracy`."""
    if not launch.is_index(Indices) or not launch.is_index(Label):
        return NotImplemented
    share, correct, total = (device.xp.empty((1,), kind) for kind in ("float32", "int32", "int32"))
    indices, label = launch.dense(device, Indices), launch.dense(device, Label)
    args = (
        indices,
        launch.wide(Indices),
        label,
        launch.wide(Label),
        share,
        correct,
        total,
        *Indices.shape[:2],
    )
    launch.grid("metrics", "accuracy", "float32", 1, 1024, *args)
    return share, correct, total
