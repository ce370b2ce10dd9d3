"""Precise pooling of regions (Jiang et al. 2018): means over bins with fractional edges, which have gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..host_fallback import hosted
from ..registry import LodArray
from ..sequence import Lods
from .roi import Array, _grouped, _infer_pooled, _spread, images_of, register_pooling


def _hat(at: Array) -> Array:
    """The weight of a pixel at distance `at`: linear interpolation."""
    return np.maximum(1 - abs(at), 0)


def _hat_up_to(at: Array) -> Array:
    """The integral of `_hat` from minus infinity."""
    near = np.clip(at, -1, 1)
    return np.where(near < 0, (1 + near) ** 2 / 2, 0.5 + near - near**2 / 2)


class _Axis:
    """The bins of each region along one axis: how much each takes of each place, and how that changes.

    `weights` [regions, bins, size]; `by_begin`, `by_end`: its derivatives for the edges of the region.
    """

    def __init__(self, begin: Array, end: Array, bins: int, size: int, kind: Any) -> None:
        extent = np.maximum(end - begin, 0).astype(np.float64) / bins
        share = np.arange(bins) / bins
        low = begin[:, None] + np.arange(bins) * extent[:, None]
        low, high = (edge[..., None] - np.arange(size) for edge in (low, low + extent[:, None]))
        self.there = extent > 0
        unit = np.where(self.there, extent, 1)[:, None, None]
        exact = (_hat_up_to(high) - _hat_up_to(low)) / unit * self.there[:, None, None]
        by_high, by_low = (_hat(high) - exact) / unit, (exact - _hat(low)) / unit
        after = (share + 1 / bins)[None, :, None]
        self.by_begin = by_low * (1 - share[None, :, None]) + by_high * (1 - after)
        self.by_end = by_low * share[None, :, None] + by_high * after
        self.weights = exact.astype(kind)


def _axes(X: Array, ROIs: Array, attrs: dict[str, Any]) -> tuple[_Axis, _Axis]:
    scaled = ROIs * ROIs.dtype.type(attrs["spatial_scale"])
    down, across = (
        _Axis(scaled[:, k], scaled[:, k + 2], attrs[bins], X.shape[3 - k], X.dtype)
        for k, bins in ((1, "pooled_height"), (0, "pooled_width"))
    )
    return down, across


def _images(op_type: str, X: Array, ROIs: Array, BatchRoINums: Array | None, lod: Lods) -> Array:
    offsets = None if BatchRoINums is None else np.concatenate([[0], np.cumsum(BatchRoINums)])
    return images_of(op_type, X, ROIs, lod, offsets)


@hosted
def _prroi_pool(xp: Any, X: Any, ROIs: Any, BatchRoINums: Any, lod: Lods, **attrs: Any) -> Any:
    images = _images("prroi_pool", X, ROIs, BatchRoINums, lod)
    down, across = _axes(X, ROIs, attrs)
    return LodArray(_grouped(X, images, down.weights, across.weights), ())


@hosted
def _prroi_pool_grad(
    xp: Any, X: Any, ROIs: Any, BatchRoINums: Any, Out_grad: Any, lod: Lods, **attrs: Any
) -> Any:
    images = _images("prroi_pool_grad", X, ROIs, BatchRoINums, lod)
    down, across = _axes(X, ROIs, attrs)
    dx = _spread(X, Out_grad, images, down.weights, across.weights)
    empty = ~(down.there & across.there)[:, None]
    edges = [
        (_grouped(X.astype(np.float64), images, rows, columns) * Out_grad).sum(axis=(1, 2, 3))
        for rows, columns in (
            (down.weights, across.by_begin),
            (down.by_begin, across.weights),
            (down.weights, across.by_end),
            (down.by_end, across.weights),
        )
    ]
    drois = np.where(empty, 0, np.stack(edges, axis=1) * attrs["spatial_scale"]).astype(ROIs.dtype)
    return LodArray(dx, ()), LodArray(drois, ())


register_pooling(
    "prroi_pool",
    _prroi_pool,
    _prroi_pool_grad,
    _infer_pooled,
    "For each region the means of interpolated features over a grid of bins, taken exactly.",
    {},
    inputs=("X", "ROIs", "BatchRoINums?"),
    keep=("X", "ROIs", "BatchRoINums"),
    keep_out=("Out#",),
    no_grad=("BatchRoINums",),
)
