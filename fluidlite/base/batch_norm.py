"""The attributes of batch normalisation, interpreted for all its kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .sizes.windows import channels_last


def uses_moving_statistics(is_test: bool, use_global_stats: bool, trainable_statistics: bool) -> bool:
    """Whether batch_norm uses its moving statistics instead of those of the batch."""
    return use_global_stats or (is_test and not trainable_statistics)


def extents(shape: Sequence[int], layout: str) -> tuple[int, int, int]:
    """An image's sizes as [n, c, hw]: the axes before the channels, the channels, and the axes after them. hw is 1 if
    `layout` has the channels last.
    """
    if channels_last(layout):
        return math.prod(shape[:-1]), shape[-1], 1
    return shape[0], shape[1], math.prod(shape[2:])
