"""Metrics of click predictions, from counts of samples by score."""

from __future__ import annotations

import numpy as np

__all__ = ["area_under_curve", "bucket_error"]


def area_under_curve(pos: np.ndarray, neg: np.ndarray) -> float:
    """The area under the curve of the counts of positive and negative samples by score; 0.5 without either."""
    rising, others = np.cumsum(pos[::-1], dtype="float64"), neg[::-1].astype("float64")
    if not rising[-1] or not others.sum():
        return 0.5
    before = rising - pos[::-1]
    return float((others * (rising + before)).sum() / 2 / (rising[-1] * others.sum()))


def bucket_error(pos: np.ndarray, neg: np.ndarray) -> float:
    """The relative error of predicted click rates, in buckets of scores with enough samples."""
    error = counted = 0.0
    last, shown, predicted, clicked = -1.0, 0.0, 0.0, 0.0
    for index, (clicks, rest) in enumerate(zip(pos.tolist(), neg.tolist(), strict=True)):
        rate = index / len(pos)
        if abs(rate - last) > 0.01:
            last, shown, predicted, clicked = rate, 0.0, 0.0, 0.0
        shown += clicks + rest
        predicted += rate * (clicks + rest)
        clicked += clicks
        if not predicted:
            continue
        mean = predicted / shown
        if ((1 - mean) / (mean * shown)) ** 0.5 < 0.05:
            error += abs(clicked / shown / mean - 1) * shown
            counted += shown
            last = -1.0
    return error / counted if counted else 0.0
