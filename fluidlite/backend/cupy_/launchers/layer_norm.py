"""Layer normalisation."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ....base.sizes.shapes import product
from .. import launch
from .reductions import parts, reduced, team

if TYPE_CHECKING:
    from ..device import CudaDevice


def layer_norm(
    device: CudaDevice, X: Any, Scale: Any, Bias: Any, epsilon: float, begin_norm_axis: int
) -> Any:
    """Launcher of `layer_norm`."""
    if not launch.real(X, Scale, Bias) or not X.size:
        return NotImplemented
    rows = product(X.shape[:begin_norm_axis])
    n = X.size // rows
    y = device.xp.empty(X.shape, X.dtype)
    mean, variance = (device.xp.empty((rows,), X.dtype) for _ in range(2))
    x, scale, bias = (launch.dense(device, array) for array in (X, Scale, Bias))
    name, blocks, threads = team(rows, n)
    args = (x, scale, bias, y, mean, variance, rows, n, float(epsilon))
    launch.grid("layer_norm", f"forward{name}", X.dtype, blocks, threads, *args)
    return y, mean, variance


def layer_norm_grad(
    device: CudaDevice,
    X: Any,
    Scale: Any,
    Bias: Any,
    Mean: Any,
    Variance: Any,
    Y_grad: Any,
    epsilon: float,
    begin_norm_axis: int,
    wanted: Collection[str] | None = None,
) -> Any:
    """Launcher of `layer_norm_grad`."""
    if not launch.real(X, Scale, Bias, Mean, Variance, Y_grad) or not X.size:
        return NotImplemented
    rows = product(X.shape[:begin_norm_axis])
    n = X.size // rows
    x, scale, g = (launch.dense(device, array) for array in (X, Scale, Y_grad))
    statistics = (launch.dense(device, Mean), launch.dense(device, Variance))
    dx = None
    if wanted is None or "X@GRAD" in wanted:
        dx = device.xp.empty(X.shape, X.dtype)
        name, blocks, threads = team(rows, n)
        args = (x, scale, *statistics, g, dx, rows, n, float(epsilon))
        launch.grid("layer_norm", f"grad{name}", X.dtype, blocks, threads, *args)
    tiles = -(-n // 32)
    splits = parts(tiles, rows)
    sums = [
        device.xp.empty((splits, n), X.dtype)
        if like is not None and (wanted is None or f"{slot}@GRAD" in wanted)
        else None
        for slot, like in (("Scale", Scale), ("Bias", Bias))
    ]
    if any(found is not None for found in sums):
        args = (x, *statistics, g, *sums, rows, n, splits, float(epsilon))
        blocks = launch.blocks_for(tiles * splits, 1)
        launch.grid("layer_norm", "parameter_grads", X.dtype, blocks, launch.THREADS, *args)
    totals = (
        found if found is None or splits == 1 else reduced(device, found, "sum", (1, splits, n))
        for found in sums
    )
    return dx, *(found if found is None else found.reshape(n) for found in totals)
