"""Samples of images kept as bytes, turned into floats while they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

_CHUNK = 256


def samples(
    images: np.ndarray, labels: Sequence[int], divisor: float, offset: float
) -> Iterator[tuple[np.ndarray, int]]:
    """Yield `(image / divisor + offset, label)`, float32, for images of shape [n, size] and type uint8.

    Images become floats a few hundred at a time, which is quick and leaves most of them at a byte a pixel;
    those that the caller has are views of such a chunk, which no one else changes.
    """
    scale, shift = np.float32(divisor), np.float32(offset)
    for start in range(0, len(images), _CHUNK):
        chunk = np.divide(images[start : start + _CHUNK], scale, dtype=np.float32)
        if offset:
            chunk += shift
        yield from zip(chunk, labels[start : start + _CHUNK], strict=True)
