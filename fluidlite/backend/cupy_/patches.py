"""Convolutions as matrix products (im2col, and col2im for gradients).

Patches of all images of a batch are one matrix [C * K, N * L] (K elements of the kernel, L places of the output), so
that a convolution is one product for each group. Batches whose patches would take more than
`flags.convolution_workspace()` bytes are done in parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...base import flags
from ...base.windows import Geometry
from . import blas, launch
from .device import CudaDevice


def three(numbers: Sequence[int], missing: int) -> list[np.int32]:
    """Sizes along one to three axes as three C integers, `missing` in front."""
    return [np.int32(n) for n in (*[missing] * (3 - len(numbers)), *numbers)]


def geometry_arguments(g: Geometry) -> list[np.int32]:
    """A geometry as the kernels of `cuda/im2col.cu` take it."""
    return [
        *three(g.image, 1),
        *three(g.kernel, 1),
        *three(g.strides, 1),
        *three(g.dilations, 1),
        *three([before for before, _ in g.pads], 0),
        *three(g.out, 1),
    ]


def _parts(batch: int, channels: int, g: Geometry, itemsize: int) -> Iterator[tuple[int, int]]:
    """(first, end) of the images of each chunk."""
    each = channels * math.prod(g.kernel) * math.prod(g.out) * itemsize
    step = max(1, flags.convolution_workspace() // max(each, 1))
    for first in range(0, batch, step):
        yield first, min(first + step, batch)


def _im2col(device: CudaDevice, image: Any, g: Geometry, groups: int) -> Any:
    """Images [n, C, S...] as patches [groups, C / groups * K, n * L]."""
    batch, channels = image.shape[:2]
    columns, k = batch * math.prod(g.out), math.prod(g.kernel)
    patches = device.xp.empty((groups, channels // groups * k, columns), image.dtype)
    count = channels * columns
    launch.each(
        "im2col", "gather", image.dtype, count, image, patches, batch, channels, *geometry_arguments(g)
    )
    return patches


def _col2im(patches: Any, image: Any, g: Geometry) -> None:
    """Accumulate patches into `image` at the positions they were taken from (col2im)."""
    batch, channels = image.shape[:2]
    launch.each(
        "im2col", "scatter", image.dtype, image.size, patches, image, batch, channels, *geometry_arguments(g)
    )


def _grouped(device: CudaDevice, out: Any, groups: int) -> Any:
    """[n, M, O...] as [groups, M / groups, n * L]."""
    batch, maps = out.shape[:2]
    flat = out.reshape(batch, maps, -1).transpose(1, 0, 2)
    return device.xp.ascontiguousarray(flat).reshape(groups, maps // groups, -1)


def _weights(filters: Any, groups: int) -> Any:
    """[M, C / groups, K...] as [groups, M / groups, C / groups * K]."""
    return filters.reshape(groups, filters.shape[0] // groups, -1)


def _pointwise(g: Geometry) -> bool:
    """Whether the patches of images are the images themselves (1x1 filters)."""
    return g.image == g.out and math.prod(g.kernel) == 1 and not any(map(any, g.pads))


def correlate(device: CudaDevice, image: Any, filters: Any, g: Geometry, groups: int) -> Any:
    """The convolution of images [N, C, S...] with filters [M, C / groups, K...]: [N, M, O...]."""
    batch, channels = image.shape[:2]
    maps, places = filters.shape[0], math.prod(g.out)
    if groups == 1 and batch and _pointwise(g):
        made = blas.gemm_batched(
            device, filters.reshape(maps, channels), image.reshape(batch, channels, places)
        )
        return made.reshape(batch, maps, *g.out)
    out = device.xp.empty((batch, maps, places), image.dtype)
    for first, end in _parts(batch, channels, g, image.itemsize):
        patches = _im2col(device, image[first:end], g, groups)
        target = out[first:end].reshape(groups, maps // groups, places) if end - first == 1 else None
        made = blas.gemm_batched(device, _weights(filters, groups), patches, out=target)
        if target is None:
            out[first:end] = made.reshape(maps, end - first, places).transpose(1, 0, 2)
    return out.reshape(batch, maps, *g.out)


def spread(device: CudaDevice, out: Any, filters: Any, g: Geometry, groups: int) -> Any:
    """The gradient of `correlate` for the images from `out`, that of its result: [N, C, S...]."""
    batch, channels = out.shape[0], filters.shape[1] * groups
    if groups == 1 and batch and _pointwise(g):
        weights, rows = filters.reshape(-1, channels), out.reshape(batch, filters.shape[0], -1)
        return blas.gemm_batched(device, weights, rows, trans_a=True).reshape(batch, channels, *g.image)
    image = device.xp.empty((batch, channels, *g.image), out.dtype)
    for first, end in _parts(batch, channels, g, out.itemsize):
        rows = _grouped(device, out[first:end], groups)
        patches = blas.gemm_batched(device, _weights(filters, groups), rows, trans_a=True)
        _col2im(patches, image[first:end], g)
    return image


def filter_gradient(device: CudaDevice, image: Any, out: Any, g: Geometry, groups: int) -> Any:
    """The gradient of `correlate` for the filters from `out`, that of its result: [M, C / groups, K...]."""
    batch, channels = image.shape[:2]
    maps = out.shape[1]
    rows = channels // groups * math.prod(g.kernel)
    filters = device.xp.zeros((groups, maps // groups, rows), image.dtype)
    for first, end in _parts(batch, channels, g, image.itemsize):
        patches = _im2col(device, image[first:end], g, groups)
        dout = _grouped(device, out[first:end], groups)
        blas.gemm_batched(device, dout, patches, out=filters, trans_b=True, beta=float(first > 0))
    return filters.reshape(maps, channels // groups, *g.kernel)
