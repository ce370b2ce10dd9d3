"""Polygons of any shape: how much two of them overlap."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def _area(corners: Array) -> float:
    """The area of a polygon [n, 2]; clockwise and counterclockwise loops cancel."""
    x, y = corners.T
    return abs(float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2))


def _heights(begin: Array, end: Array) -> Array:
    """The heights, from below, between which the edges from `begin` to `end` [n, 2] do not cross."""
    edges, distances = end - begin, begin[None] - begin[:, None]
    x, y = edges.T
    with np.errstate(divide="ignore", invalid="ignore"):
        part = (distances[..., 0] * y - distances[..., 1] * x) / (x[:, None] * y - y[:, None] * x)
    crossing = (0 <= part) & (part <= 1)
    return np.unique(begin[:, None, 1] + np.where(crossing & crossing.T, part, 0) * y[:, None])


def _inside(begin: Array, end: Array, heights: Array, beyond: float) -> tuple[Array, Array]:
    """The left and right ends of the polygon's parts at each of `heights`: twice [heights, parts].

    Missing parts are at `beyond`.
    """
    (x, y), (after, above) = begin.T, end.T
    crossed = (y <= heights[:, None]) != (above <= heights[:, None])
    places = x + (heights[:, None] - y) * (after - x) / np.where(above == y, 1, above - y)
    found = np.sort(np.where(crossed, places, beyond), axis=1)
    found = found[:, : len(x) // 2 * 2]
    return found[:, ::2], found[:, 1::2]


def _shared(first: Array, second: Array) -> float:
    """The area of the intersection of two polygons [n, 2], by the even-odd rule."""
    edges = [(corners, np.roll(corners, -1, axis=0)) for corners in (first, second)]
    begins, ends = (np.concatenate(points) for points in zip(*edges, strict=True))
    heights = _heights(begins, ends)
    middles = (heights[1:] + heights[:-1]) / 2
    (a, b), (c, d) = (_inside(*own, middles, begins[:, 0].max()) for own in edges)
    widths = np.minimum(b[:, :, None], d[:, None]) - np.maximum(a[:, :, None], c[:, None])
    return float(np.diff(heights) @ np.maximum(widths, 0).sum(axis=(1, 2)))


def polygon_overlap(first: Array, second: Array) -> float:
    """The intersection over the union of two polygons [n, 2]; 0 if one of them has no area."""
    areas = _area(first), _area(second)
    if not all(areas):
        return 0.0
    shared = _shared(first, second)
    union = sum(areas) - shared
    return shared / union if union else 0.0


def polygon_overlaps(polygons: Array) -> Array:
    """The intersection over the union of polygons [n, 2 corners] with one another: [n, n]."""
    corners = polygons.astype(np.float64).reshape(len(polygons), -1, 2)
    low, high = corners.min(axis=1), corners.max(axis=1)
    near = (low[:, None] < high[None]).all(axis=2)
    result = np.eye(len(corners))
    for k, other in np.argwhere(np.tril(near & near.T, -1)):
        result[k, other] = result[other, k] = polygon_overlap(corners[k], corners[other])
    return result
