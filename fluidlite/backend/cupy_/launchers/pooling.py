"""Launchers of max and average pooling, with their gradients. No atomics: results are deterministic."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.windows import channels_last, resolve_pads, window_spans
from .. import launch
from ..device import CudaDevice
from ..launch import dense, real
from ..patches import three

_WIDE = 128
"""Windows of a whole image with at least so many elements get a block each instead of a thread."""

_Words = tuple[Any, ...]


@functools.lru_cache(maxsize=1024)
def _described(
    sizes: tuple[int, ...],
    ksize: tuple[int, ...],
    strides: tuple[int, ...],
    paddings: tuple[int, ...],
    padding_algorithm: str,
    global_pooling: bool,
    adaptive: bool,
    ceil_mode: bool,
) -> tuple[tuple[int, ...], _Words]:
    """The spatial sizes of the output, and the arguments of the kernels that say where the windows are."""
    spans = window_spans(
        sizes, ksize, strides, paddings, padding_algorithm, global_pooling, adaptive, ceil_mode
    )
    out = tuple(len(windows) for windows in spans)
    if global_pooling and not adaptive:
        ksize, strides, pads = sizes, (1,) * len(sizes), [(0, 0)] * len(sizes)
    elif adaptive:
        strides, pads = (1,) * len(sizes), [(0, 0)] * len(sizes)
    else:
        pads = resolve_pads(padding_algorithm, paddings, sizes, ksize, strides)
    before = [pair[0] for pair in pads]
    words = (*three(sizes, 1), *three(ksize, 1), *three(strides, 1), *three(before, 0), *three(out, 1))
    return out, (*words, np.int32(adaptive))


class _Windows:
    """An image as [outer, volume, inner], the windows, and the shape of the result.

    `others`: attributes without effect here.
    """

    def __init__(
        self,
        X: Any,
        ksize: Sequence[int],
        global_pooling: bool,
        strides: Sequence[int],
        paddings: Sequence[int],
        adaptive: bool,
        exclusive: bool = True,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
        padding_algorithm: str = "EXPLICIT",
        **others: Any,
    ) -> None:
        last = channels_last(data_format)
        shape: tuple[int, ...] = X.shape
        self.sizes = shape[1:-1] if last else shape[2:]
        self.outer, self.inner = (shape[0], shape[-1]) if last else (shape[0] * shape[1], 1)
        out, self.words = _described(
            self.sizes,
            tuple(ksize),
            tuple(strides),
            tuple(paddings),
            padding_algorithm,
            global_pooling,
            adaptive,
            ceil_mode,
        )
        self.shape = (shape[0], *out, shape[-1]) if last else (*shape[:2], *out)
        self.whole = math.prod(out) == 1 and global_pooling and self.inner == 1
        self.volume = math.prod(self.sizes)
        self.inside = np.int32(exclusive or adaptive or global_pooling)


def pool(device: CudaDevice, X: Any, pooling_type: str, **attrs: Any) -> Any:
    """pool2d, pool3d."""
    if not real(X):
        return NotImplemented
    x = dense(device, X)
    windows = _Windows(x, **attrs)
    out = device.xp.empty(windows.shape, x.dtype)
    if windows.whole and windows.volume >= _WIDE and windows.outer:
        name, blocks = f"pool_{pooling_type}_whole", launch.blocks_for(windows.outer, 1)
        launch.grid("pool", name, x.dtype, blocks, launch.THREADS, x, out, windows.outer, windows.volume)
    elif pooling_type == "max":
        arguments = (x, out, None, windows.outer, windows.inner, *windows.words)
        launch.each("pool", "pool_max", x.dtype, out.size, *arguments)
    else:
        arguments = (x, out, windows.outer, windows.inner, windows.inside, *windows.words)
        launch.each("pool", "pool_avg", x.dtype, out.size, *arguments)
    return out


def pool_gradient(
    device: CudaDevice, X: Any, Out: Any, Out_grad: Any, pooling_type: str, **attrs: Any
) -> Any:
    """The gradient of `pool`: to the first maximum of each window, or in equal shares."""
    if not real(X, Out, Out_grad):
        return NotImplemented
    x, dout = dense(device, X), dense(device, Out_grad)
    windows = _Windows(x, **attrs)
    dx = device.xp.empty(x.shape, x.dtype)
    if pooling_type == "max":
        arguments = (x, dense(device, Out), None, dout, dx, windows.outer, windows.inner, *windows.words)
        launch.each("pool", "pool_max_grad", x.dtype, dx.size, *arguments)
    else:
        arguments = (dout, dx, windows.outer, windows.inner, windows.inside, *windows.words)
        launch.each("pool", "pool_avg_grad", x.dtype, dx.size, *arguments)
    return dx


def pool_with_index(device: CudaDevice, X: Any, **attrs: Any) -> Any:
    """max_pool2d_with_index, max_pool3d_with_index."""
    if not real(X):
        return NotImplemented
    x = dense(device, X)
    windows = _Windows(x, **attrs)
    out, mask = device.xp.empty(windows.shape, x.dtype), device.xp.empty(windows.shape, np.int32)
    arguments = (x, out, mask, windows.outer, windows.inner, *windows.words)
    launch.each("pool", "pool_max", x.dtype, out.size, *arguments)
    return out, mask


def pool_with_index_gradient(device: CudaDevice, X: Any, Mask: Any, Out_grad: Any, **attrs: Any) -> Any:
    """The gradient of `pool_with_index`."""
    if not real(X, Out_grad) or str(Mask.dtype) != "int32":
        return NotImplemented
    dout, mask = dense(device, Out_grad), dense(device, Mask)
    windows = _Windows(X, **attrs)
    dx = device.xp.empty(X.shape, dout.dtype)
    arguments = (None, None, mask, dout, dx, windows.outer, windows.inner, *windows.words)
    launch.each("pool", "pool_max_grad", dout.dtype, dx.size, *arguments)
    return dx
