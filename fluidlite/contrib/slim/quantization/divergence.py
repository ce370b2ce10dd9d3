"""The clipping threshold of magnitudes for quantization, by the Kullback-Leibler divergence."""

from __future__ import annotations

import numpy as np

_BINS = 2048
_FIRST = 0.7


def kl_threshold(magnitudes: np.ndarray, steps: int) -> float:
    """The threshold with which `steps` integers tell most about the histogram of `magnitudes` (Migacz 2017).

    Candidates are the ends of the upper bins of 2048; magnitudes beyond count with the last bin.
    """
    magnitudes = magnitudes.astype(float)
    counts, edges = np.histogram(
        magnitudes, bins=_BINS, range=(float(magnitudes.min()), float(magnitudes.max()))
    )
    first = int((_BINS - 1) * _FIRST)
    best, lowest = None, 0.0
    for end in range(first, _BINS):
        if counts[end - 1] == 0:
            continue
        reference = counts[:end].astype(float)
        reference[-1] += counts[end:].sum()
        divergence = _divergence(reference, _quantized(counts[:end], reference, steps))
        if best is None or lowest == 0 or divergence < lowest:
            best, lowest = end, divergence
    if best is None:
        held = np.flatnonzero(counts[: first + 1])
        best = int(held[-1]) if held.size else 0
    return float((best + 0.5) * (edges[1] - edges[0]))


def _quantized(counts: np.ndarray, reference: np.ndarray, steps: int) -> np.ndarray:
    """`counts` summed in `steps` groups of bins, each spread evenly over its bins that are not empty in `reference`."""
    width = len(counts) // steps
    group = np.minimum(np.arange(len(counts)) // width, steps - 1)
    total = np.bincount(group, counts, steps)
    present = np.bincount(group, reference > 0, steps)
    mean = np.divide(total, present, out=np.zeros(steps), where=present > 0)
    return np.where(reference > 0, mean[group], 0.0)


def _divergence(reference: np.ndarray, candidate: np.ndarray) -> float:
    held = (reference > 0) & (candidate > 0)
    p, q = reference[held], candidate[held]
    total = reference.sum()
    return float((p * np.log(candidate.sum() * p / (total * q))).sum() / total)
