"""The attributes of batch normalisation, interpreted for all its kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .sizes.windows import channels_last


def uses_moving_statistics(is_test: bool, use_global_stats: bool, trainable_statistics: bool) -> bool:
    """Whether batch_norm uses its moving statistics instead of those of the batch."""
    return use_global_stats or (is_test and not trainable_statistics)


def extents(shape: Sequence[int], layout: str) -> tuple[int, int, int]:
    """The axes of an image before its channels, the channels, and those behind: [n, c, hw], where hw is 1 if `layout`
    has the channels at the end.
    """
    if channels_last(layout):
        return math.prod(shape[:-1]), shape[-1], 1
    return shape[0], shape[1], math.prod(shape[2:])
