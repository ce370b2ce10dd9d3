"""Launchers of batch and layer normalisation, with their gradients."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....base.sizes import product
from ....base.windows import extents, uses_moving_statistics
from .. import launch
from ..device import CudaDevice
from ..launch import dense, real
from .elementwise import parts, reduced, team

_CHANNELS = 32
"""Channels of a block, if channels are the innermost axis."""

_ROUNDS = 16, 64
"""Elements of a part of a channel per thread: for spatial elements in a row, and for channels innermost."""

_PARTS = 32, 256
"""The most parts of a channel. Blocks of many channels are fewer, and so are their threads for each of these."""


@dataclass(frozen=True)
class _Grid:
    """The partition of [n, c, hw]: blocks, threads of each, elements of a channel for each block."""

    n: int
    c: int
    hw: int

    @property
    def threads(self) -> tuple[int, int]:
        return (1, launch.THREADS) if self.hw > 1 else (_CHANNELS, launch.THREADS // _CHANNELS)

    @property
    def parts(self) -> int:
        channels_innermost = self.hw == 1
        per_block = _ROUNDS[channels_innermost] * self.threads[1]
        return launch.blocks_for(self.n * self.hw, per_block, _PARTS[channels_innermost])

    @property
    def words(self) -> tuple[int, int, int, int]:
        """The last arguments of each kernel: n, c, hw, and the elements of a part."""
        return self.n, self.c, self.hw, -(-(self.n * self.hw) // self.parts)

    def run(self, name: str, dtype: Any, *arguments: Any) -> None:
        blocks = (-(-self.c // self.threads[0]), self.parts)
        launch.grid("batch_norm", name, dtype, blocks, self.threads, *arguments, *self.words)

    def partial_results(self, device: CudaDevice, name: str, numbers: int, *arrays: Any) -> tuple[Any, int]:
        """Partial results of kernel `name` for each part, `numbers` values a channel, and the number of parts.

        (None, 0) if there is only one: the kernel that needs it computes it then.
        """
        if self.parts == 1:
            return None, 0
        dtype = arrays[0].dtype
        parts = device.xp.empty((self.parts, self.c, numbers), dtype)
        self.run(name, dtype, *arrays, parts)
        return parts, self.parts


def forward(
    device: CudaDevice,
    X: Any,
    Scale: Any,
    Bias: Any,
    Mean: Any,
    Variance: Any,
    MomentumTensor: Any,
    other: Any = None,
    relu: bool = False,
    **attrs: Any,
) -> Any:
    """batch_norm. Moves the statistics in `Mean` and `Variance`, which are returned as MeanOut and VarianceOut.

    `other`: an image to add to the result, of its shape. `relu`: apply a relu at the end.
    """
    moving = uses_moving_statistics(attrs.get)
    own = (Scale, Bias, Mean, Variance)
    if not real(X, *own, MomentumTensor, other) or not X.size or (X.size == Scale.size and not moving):
        return NotImplemented
    if not all(array.flags.c_contiguous for array in own):
        return NotImplemented
    xp, x = device.xp, dense(device, X)
    end = (dense(device, other), relu)
    grid, epsilon = _Grid(*extents(x.shape, attrs["data_layout"])), np.float64(attrs["epsilon"])
    y, saved_mean, saved_inverse = xp.empty(x.shape, x.dtype), xp.empty_like(Scale), xp.empty_like(Scale)
    if moving:
        grid.run("normalize_moving", x.dtype, x, *own, y, saved_mean, saved_inverse, epsilon, *end)
    else:
        parts, count = grid.partial_results(device, "moments", 3, x)
        given = (x, Scale, Bias, parts, count, y, Mean, Variance, saved_mean, saved_inverse)
        words = (epsilon, np.float64(attrs["momentum"]), MomentumTensor)
        grid.run("normalize", x.dtype, *given, *words, *end)
    return y, Mean, Variance, saved_mean, saved_inverse, None


def gradient(
    device: CudaDevice,
    X: Any,
    Scale: Any,
    Mean: Any,
    Variance: Any,
    SavedMean: Any,
    SavedVariance: Any,
    Y_grad: Any,
    wanted: Collection[str] | None = None,
    relu_out: Any = None,
    **attrs: Any,
) -> Any:
    """The gradients of batch_norm for X, Scale and Bias; None for those that are not wanted.

    `relu_out`: the result of the fused relu; `Y_grad` is then the gradient for it.
    """
    moving = uses_moving_statistics(attrs.get)
    mean, spread = (Mean, Variance) if moving else (SavedMean, SavedVariance)
    if (
        not real(X, Scale, mean, spread, Y_grad, relu_out)
        or not X.size
        or (X.size == Scale.size and not moving)
    ):
        return NotImplemented
    xp, x, dy = device.xp, dense(device, X), dense(device, Y_grad)
    relu_out = dense(device, relu_out)
    scale, mean, spread = dense(device, Scale), dense(device, mean), dense(device, spread)
    grid, epsilon = _Grid(*extents(x.shape, attrs["data_layout"])), np.float64(attrs["epsilon"])
    dx, dscale, dbias = (
        xp.empty(like.shape, x.dtype) if wanted is None or slot in wanted else None
        for slot, like in (("X@GRAD", X), ("Scale@GRAD", Scale), ("Bias@GRAD", Scale))
    )
    parts, count = grid.partial_results(device, "slopes", 2, x, dy, relu_out, mean)
    given = (x, dy, relu_out, scale, mean, spread, parts, count, dx, dscale, dbias)
    grid.run("gradients", x.dtype, *given, epsilon, moving)
    return dx, dscale, dbias


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
