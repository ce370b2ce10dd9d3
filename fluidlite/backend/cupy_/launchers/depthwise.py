"""Depthwise convolutions by direct kernels: they contain no matrix product."""

from __future__ import annotations

from typing import Any

from ....base.sizes.windows import Geometry
from .. import launch
from ..device import CudaDevice
from ..spatial import geometry_arguments


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
