"""Polygons: how much two convex ones overlap."""

from __future__ import annotations

import numpy as np


def _area(corners: np.ndarray) -> float:
    """The area of a polygon [n, 2]; negative if its corners go clockwise."""
    x, y = corners.T
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2) if len(corners) > 2 else 0.0


def _clipped(corners: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """What of a polygon lies to the left of the line from `begin` to `end` (Sutherland and Hodgman 1974)."""
    along = end - begin
    side = along[0] * (corners[:, 1] - begin[1]) - along[1] * (corners[:, 0] - begin[0])
    made = []
    for k in range(len(corners)):
        after = (k + 1) % len(corners)
        if side[k] >= 0:
            made.append(corners[k])
        if side[k] * side[after] < 0:
            part = side[k] / (side[k] - side[after])
            made.append(corners[k] + part * (corners[after] - corners[k]))
    return np.array(made).reshape(-1, 2)


def polygon_overlap(first: np.ndarray, second: np.ndarray) -> float:
    """The intersection over the union of two convex polygons [n, 2]; 0 if one of them has no area."""
    a, b = (poly[::-1] if _area(poly) < 0 else poly for poly in (first, second))
    shared = a
    for k in range(len(b)):
        if not len(shared):
            break
        shared = _clipped(shared, b[k], b[(k + 1) % len(b)])
    common = _area(shared)
    union = _area(a) + _area(b) - common
    return common / union if union > 0 else 0.0


def polygon_overlaps(polygons: np.ndarray) -> np.ndarray:
    """The intersection over the union of convex polygons [n, 2 corners] with one another: [n, n]."""
    corners = polygons.astype(np.float64).reshape(len(polygons), -1, 2)
    made = np.eye(len(corners))
    for k in range(len(corners)):
        for other in range(k):
            made[k, other] = made[other, k] = polygon_overlap(corners[k], corners[other])
    return made
