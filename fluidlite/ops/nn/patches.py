"""im2col and col2im: patches of images, and sums of patches as images."""

from __future__ import annotations

import itertools
from typing import Any

from ...base.sizes.windows import Geometry
from ..infer import product


def _places(g: Geometry) -> list[tuple[slice, ...]]:
    """For each element of the kernel, the slices of a padded image that it is multiplied with."""
    steps = []
    for k, stride, dilation, out in zip(g.kernel, g.strides, g.dilations, g.out, strict=True):
        steps.append([slice(i * dilation, i * dilation + (out - 1) * stride + 1, stride) for i in range(k)])
    return list(itertools.product(*steps))


def _padded_size(g: Geometry) -> list[int]:
    """Image sizes with padding, at least as large as the patches reach."""
    sizes = []
    for axis, n in enumerate(g.image):
        reach = (g.out[axis] - 1) * g.strides[axis] + g.dilations[axis] * (g.kernel[axis] - 1) + 1
        sizes.append(max(n + sum(g.pads[axis]), reach))
    return sizes


def gather_patches(xp: Any, x: Any, g: Geometry, groups: int) -> Any:
    """[N, C, S...] to [N, groups, C / groups * K, L]: for each of the L places of `g.out`, the patch around
    it.
    """
    n, c = x.shape[:2]
    if min(g.out, default=1) <= 0 or n == 0:
        return xp.zeros((n, groups, c // groups * product(g.kernel), product(g.out)), x.dtype)
    room = _padded_size(g)
    widths = [(b, total - b - s) for (b, _), total, s in zip(g.pads, room, g.image, strict=True)]
    if any(low or high for low, high in widths):
        x = xp.pad(x, [(0, 0), (0, 0), *widths])
    patches = xp.stack([x[(slice(None),) * 2 + place] for place in _places(g)], axis=2)
    return patches.reshape(n, groups, c // groups * product(g.kernel), product(g.out))


def scatter_patches(xp: Any, patches: Any, g: Geometry) -> Any:
    """The adjoint of `gather_patches`: add up patches [N, groups, C / groups * K, L] to images [N, C,
    S...].
    """
    n, groups, rows, _ = patches.shape
    k = product(g.kernel)
    c = groups * (rows // k)
    padded = xp.zeros((n, c, *_padded_size(g)), patches.dtype)
    if n and min(g.out, default=1) > 0:
        patches = patches.reshape(n, c, k, *g.out)
        for index, place in enumerate(_places(g)):
            padded[(slice(None),) * 2 + place] += patches[:, :, index]
    inner = tuple(slice(before, before + size) for (before, _), size in zip(g.pads, g.image, strict=True))
    return padded[(slice(None),) * 2 + inner]
