"""Non-maximum suppression, for all operators that choose among overlapping boxes."""

from __future__ import annotations

import numpy as np

from .boxes import areas, overlaps
from .polygons import polygon_overlaps


def pairwise(boxes: np.ndarray, normalized: bool) -> np.ndarray:
    """The intersection over the union of boxes [n, 4], or polygons [n, 2 corners], with one another: [n, n]."""
    if boxes.shape[1] != 4:
        return polygon_overlaps(boxes)
    similar = overlaps(np, boxes, boxes, normalized)
    if not normalized:  # neighbouring pixels are not shared
        a, b = boxes[:, None], boxes[None]
        similar[((a[..., :2] > b[..., 2:]) | (b[..., :2] > a[..., 2:])).any(axis=-1)] = 0
    return similar


def best_first(scores: np.ndarray, threshold: float, top_k: int) -> np.ndarray:
    """The places of the scores above the threshold, greatest first; no more than `top_k` of them unless it is -1."""
    above = np.flatnonzero(scores > np.float32(threshold))
    order = above[np.argsort(-scores[above], kind="stable")]
    return order[:top_k] if top_k > -1 else order


def suppressed(
    boxes: np.ndarray, threshold: float, eta: float, normalized: bool, most: int = -1
) -> np.ndarray:
    """The places of those boxes, given best first, that do not overlap one kept before by more than `threshold`.

    With `eta` below 1 the threshold is multiplied by it after each box that is kept, as long as it is above 0.5.
    `most`: how many are kept at most, unless it is -1.
    """
    if boxes.shape[1] == 4 and boxes.dtype.kind == "f" and boxes.itemsize > 2 and np.isfinite(boxes).all():
        from ..._ext import kernels  # brings SciPy

        n = len(boxes)
        places, found = np.empty(n, np.int64), np.empty(1, np.int64)
        operands = [np.ascontiguousarray(boxes), areas(np, boxes, normalized), places, found]
        numbers = [n, 4, int(not normalized), n if most == -1 else most]
        kernels.call(f"suppress.f{8 * boxes.itemsize}", operands, numbers, [threshold, eta])
        return places[: found[0]]
    return _by_pairs(boxes, threshold, eta, normalized, most)


def _by_pairs(boxes: np.ndarray, threshold: float, eta: float, normalized: bool, most: int) -> np.ndarray:
    """`suppressed` for polygons, and for numbers that are not finite."""
    similar = pairwise(boxes, normalized)
    limit = np.float32(threshold)
    kept: list[int] = []
    adaptive = eta < 1 and limit > 0.5
    if not adaptive:
        left = np.ones(len(boxes), bool)
        for place in range(len(boxes)):
            if len(kept) == most:
                break
            if left[place]:
                kept.append(place)
                left &= similar[place] <= limit
        return np.array(kept, np.int64)
    for place in range(len(boxes)):
        if len(kept) == most:
            break
        if (similar[place, kept] <= limit).all():
            kept.append(place)
            if limit > 0.5:
                limit = np.float32(limit * eta)
    return np.array(kept, np.int64)
