"""Helpers of launchers over images: sizes as arguments of kernels of three spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.sizes.windows import Geometry


def three(numbers: Sequence[int], missing: int) -> list[np.int32]:
    """Sizes along one to three axes as three C integers, `missing` in front."""
    return [np.int32(n) for n in (*[missing] * (3 - len(numbers)), *numbers)]


def geometry_arguments(g: Geometry) -> list[np.int32]:
    """A geometry as the kernels of `cuda/im2col.cu` take it."""
    return [
        *three(g.image, 1),
        *three(g.kernel, 1),
        *three(g.strides, 1),
        *three(g.dilations, 1),
        *three([before for before, _ in g.pads], 0),
        *three(g.out, 1),
    ]
