"""Sizes of convolutions and pooling; images taken apart into patches and put together again (im2col)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .infer import product

Pads = list[tuple[int, int]]


def explicit_pads(paddings: Sequence[int], dims: int) -> Pads:
    """Pairs (before, after) for each spatial dimension, from one number a dimension or two."""
    if len(paddings) == dims:
        return [(int(p), int(p)) for p in paddings]
    if len(paddings) == 2 * dims:
        return [(int(paddings[2 * k]), int(paddings[2 * k + 1])) for k in range(dims)]
    raise ValueError(f"paddings must have {dims} or {2 * dims} elements, got {list(paddings)}")


def resolve_pads(
    algorithm: str,
    paddings: Sequence[int],
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
) -> Pads:
    """Pairs (before, after) for each spatial dimension under `padding_algorithm` EXPLICIT, SAME or VALID."""
    if algorithm == "VALID":
        return [(0, 0)] * len(sizes)
    if algorithm != "SAME":
        return explicit_pads(paddings, len(sizes))
    pads = []
    for size, k, stride in zip(sizes, kernel, strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + k - size, 0) if size >= 0 else 0
        pads.append((total // 2, total - total // 2))
    return pads


@dataclass(frozen=True)
class Geometry:
    """Sizes of a convolution: `image` is the side with patches, `out` has one place for each patch."""

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    out: tuple[int, ...]


def forward_geometry(
    image: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
    algorithm: str,
) -> Geometry:
    """The geometry of a convolution of images of size `image` (-1: not known, gives -1)."""
    if algorithm == "SAME":
        dilations = [1] * len(image)  # as in Fluid, SAME leaves out the dilation
    pads = resolve_pads(algorithm, paddings, image, kernel, strides)
    out = []
    for size, k, stride, dilation, (before, after) in zip(
        image, kernel, strides, dilations, pads, strict=True
    ):
        if size < 0:
            out.append(-1)
        elif algorithm == "SAME":
            out.append(-(-size // stride))
        else:
            out.append((size + before + after - (dilation * (k - 1) + 1)) // stride + 1)
    return Geometry(tuple(image), tuple(kernel), tuple(strides), tuple(dilations), tuple(pads), tuple(out))


def transposed_geometry(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
    algorithm: str,
    output_size: Sequence[int] | None,
) -> Geometry:
    """The geometry of a transposed convolution of images of size `size`: its results are the `image` side."""
    if algorithm == "SAME":
        dilations = [1] * len(size)
    pads = resolve_pads(algorithm, paddings, size, kernel, strides)
    image = []
    for axis, (n, k, stride, dilation) in enumerate(zip(size, kernel, strides, dilations, strict=True)):
        if n < 0:
            image.append(-1)
            continue
        smallest = (n - 1) * stride - sum(pads[axis]) + dilation * (k - 1) + 1
        wanted = int(output_size[axis]) if output_size else smallest
        if not smallest <= wanted < smallest + stride:
            raise ValueError(
                f"output_size must be in [{smallest}, {smallest + stride}) along spatial axis {axis}, got "
                f"{wanted}"
            )
        image.append(wanted)
    return Geometry(tuple(image), tuple(kernel), tuple(strides), tuple(dilations), tuple(pads), tuple(size))


def _places(g: Geometry) -> list[tuple[slice, ...]]:
    """For each element of the kernel, where in a padded image it meets the patches."""
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
    patches = xp.stack([x[(slice(None), slice(None), *place)] for place in _places(g)], axis=2)
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
            padded[(slice(None), slice(None), *place)] += patches[:, :, index]
    inner = tuple(slice(before, before + size) for (before, _), size in zip(g.pads, g.image, strict=True))
    return padded[(slice(None), slice(None), *inner)]


def channels_last(data_format: str) -> bool:
    """Whether a data format (NCHW, NHWC, NCDHW, NDHWC, AnyLayout) has the channels at the end."""
    return data_format in ("NHWC", "NDHWC")
