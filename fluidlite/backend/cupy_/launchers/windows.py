"""Launchers of convolutions, of their transposes and second derivatives, and of pooling.

Pooling uses no atomics: results are deterministic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ....base.windows import (
    Geometry,
    channels_last,
    forward_geometry,
    resolve_pads,
    transposed_geometry,
    window_spans,
)
from .. import blas, dnn, launch
from ..blas import geometry_arguments, three
from ..device import CudaDevice
from ..launch import dense, real


def _sizes(batch: int, filters: int, groups: int, g: Geometry) -> tuple[Any, ...]:
    return batch, groups, filters // groups, *geometry_arguments(g)


def correlate(device: CudaDevice, image: Any, filters: Any, g: Geometry, groups: int) -> Any:
    """The convolution of images [N, groups, S...] with filters [M, 1, K...]: [N, M, O...]."""
    maps = filters.shape[0]
    out = device.xp.empty((image.shape[0], maps, *g.out), image.dtype)
    sizes = _sizes(image.shape[0], maps, groups, g)
    launch.each("im2col", "depthwise", image.dtype, out.size, image, filters, out, *sizes)
    return out


def spread(device: CudaDevice, out: Any, filters: Any, g: Geometry, groups: int) -> Any:
    """The gradient of `correlate` for the images from `out`, that of its result: [N, groups, S...]."""
    image = device.xp.empty((out.shape[0], groups, *g.image), out.dtype)
    sizes = _sizes(out.shape[0], filters.shape[0], groups, g)
    launch.each("im2col", "depthwise_spread", out.dtype, image.size, out, filters, image, *sizes)
    return image


def filter_gradient(device: CudaDevice, image: Any, out: Any, g: Geometry, groups: int) -> Any:
    """The gradient of `correlate` for the filters from `out`, that of its result: [M, 1, K...]."""
    batch, maps = out.shape[:2]
    filters = device.xp.empty((maps, 1, *g.kernel), image.dtype)
    blocks = launch.blocks_for(filters.size, 1)
    arguments = (image, out, filters, *_sizes(batch, maps, groups, g))
    launch.grid("im2col", "depthwise_filters", image.dtype, blocks, launch.THREADS, *arguments)
    return filters


_DEPTHWISE = {function.__name__: function for function in (correlate, spread, filter_gradient)}

# Launchers of convolutions and of their transposes, with their gradients.
#
# A convolution, its gradient for the images and that for the filters are all there is: transposes are the same three,
# with the parts of images and results exchanged. Each comes from kernels of our own where every channel has its own
# filters, else from cuDNN, and where that is missing or has no algorithm from products of matrices.

_EVERYTHING = ("Input@GRAD", "Filter@GRAD", "Bias@GRAD")


def _computed(
    device: CudaDevice, what: str, first: Any, second: Any, channels: int, g: Geometry, groups: int
) -> Any:
    """`what` ('correlate', 'spread', 'filter_gradient') of two arrays, by the fastest available implementation.

    `channels`: those of the image for each group.
    """
    if channels == 1 and groups > 1:
        return _DEPTHWISE[what](device, first, second, g, groups)
    if first.size and second.size:
        try:
            return getattr(dnn, what)(device, first, second, g, groups)
        except dnn.Unsupported:
            pass
    return getattr(blas, what)(device, first, second, g, groups)


def _first(device: CudaDevice, image: Any, last: bool) -> Any:
    """An image with the channels in front, contiguous."""
    return dense(device, device.xp.moveaxis(image, -1, 1) if last else image)


def _as_given(device: CudaDevice, image: Any, last: bool) -> Any:
    return device.xp.ascontiguousarray(device.xp.moveaxis(image, 1, -1)) if last else image


def _with_bias(device: CudaDevice, out: Any, bias: Any) -> Any:
    """Add the bias of each channel to `out`, in place."""
    if bias is not None:
        device.xp.add(out, bias.reshape(1, -1, *[1] * (out.ndim - 2)), out=out)
    return out


def _bias_gradient(bias: Any, dout: Any, wanted: Collection[str]) -> Any:
    if bias is None or _EVERYTHING[2] not in wanted:
        return None
    return dout.sum(axis=(0, *range(2, dout.ndim))).reshape(bias.shape)


def _geometry(x: Any, filters: Any, attrs: Mapping[str, Any]) -> Geometry:
    """The sizes of a convolution with these attributes, or of a transposed one: those have `output_size`."""
    given = (attrs["strides"], attrs["paddings"], attrs["dilations"], attrs["padding_algorithm"])
    sizes = (x.shape[2:], filters.shape[2:])
    if "output_size" in attrs:
        return transposed_geometry(*sizes, *given, attrs["output_size"])
    return forward_geometry(*sizes, *given)


def _unusual(attrs: Mapping[str, Any]) -> bool:
    """Whether windows have a dilation below 1 or a negative padding, which cuDNN and `cuda/im2col.cu` do not take."""
    return min(attrs["dilations"]) < 1 or min(attrs["paddings"]) < 0


def forward(what: str) -> Callable[..., Any]:
    """The launcher of convolutions ("correlate") or of their transposes ("spread")."""

    def launcher(device: CudaDevice, Input: Any, Filter: Any, Bias: Any, **attrs: Any) -> Any:
        groups = attrs["groups"]
        if not real(Input, Filter, Bias) or Filter.shape[0] % groups or _unusual(attrs):
            return NotImplemented
        last = channels_last(attrs["data_format"])
        x, filters = _first(device, Input, last), dense(device, Filter)
        out = _computed(device, what, x, filters, filters.shape[1], _geometry(x, filters, attrs), groups)
        return _as_given(device, _with_bias(device, out, Bias), last)

    return launcher


def gradient(what: str) -> Callable[..., Any]:
    """The launcher of the gradients of `forward` for images, filters and bias; None for those that are not wanted."""
    back = "correlate" if what == "spread" else "spread"

    def launcher(
        device: CudaDevice,
        Input: Any,
        Filter: Any,
        Bias: Any,
        Output_grad: Any,
        wanted: Collection[str] | None = None,
        **attrs: Any,
    ) -> Any:
        if not real(Input, Filter, Bias, Output_grad) or Filter.shape[0] % attrs["groups"] or _unusual(attrs):
            return NotImplemented
        wanted = _EVERYTHING if wanted is None else wanted
        last, groups = channels_last(attrs["data_format"]), attrs["groups"]
        x, dout = _first(device, Input, last), _first(device, Output_grad, last)
        filters = dense(device, Filter)
        g, channels = _geometry(x, filters, attrs), filters.shape[1]
        dx = dfilter = None
        if _EVERYTHING[0] in wanted:
            dx = _as_given(device, _computed(device, back, dout, filters, channels, g, groups), last)
        if _EVERYTHING[1] in wanted:
            image, out = (x, dout) if back == "spread" else (dout, x)
            dfilter = _computed(device, "filter_gradient", image, out, channels, g, groups)
        return dx, dfilter, _bias_gradient(Bias, dout, wanted)

    return launcher


def double_grad(what: str) -> Callable[..., Any]:
    """The launcher of the second derivatives of `ops/nn/conv.py`, without terms that are zero or not wanted."""
    ahead, back = forward(what), gradient(what)

    def launcher(
        device: CudaDevice,
        Input: Any,
        Filter: Any,
        DOutput: Any,
        DDInput: Any,
        DDFilter: Any,
        DDBias: Any,
        wanted: Collection[str] | None = None,
        **attrs: Any,
    ) -> Any:
        if not real(Input, Filter, DOutput, DDInput, DDFilter, DDBias) or _unusual(attrs):
            return NotImplemented
        if DDInput is None and (DDFilter is None or DDBias is not None):
            return NotImplemented
        xp = device.xp
        for_images = for_filters = for_dout = None
        if wanted is None or "DInput" in wanted:
            if DDFilter is None:
                for_images = xp.zeros_like(Input)
            else:
                for_images = back(device, Input, DDFilter, None, DOutput, wanted=("Input@GRAD",), **attrs)[0]
        if wanted is None or "DFilter" in wanted:
            if DDInput is None:
                for_filters = xp.zeros_like(Filter)
            else:
                for_filters = back(device, DDInput, Filter, None, DOutput, wanted=("Filter@GRAD",), **attrs)[
                    1
                ]
        if wanted is None or "DDOutput" in wanted:
            parts = []
            if DDInput is not None:
                parts.append(ahead(device, DDInput, Filter, DDBias, **attrs))
            if DDFilter is not None:
                parts.append(ahead(device, Input, DDFilter, None, **attrs))
            for_dout = parts[0] if len(parts) == 1 else xp.add(*parts, out=parts[0])
        return for_images, for_filters, for_dout

    return launcher


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
