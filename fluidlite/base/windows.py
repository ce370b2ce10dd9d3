"""Sizes of convolutions and pooling, the windows over an image, and the attributes of batch normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
            room = size + before + after - (dilation * (k - 1) + 1)
            if -stride < room < 0:  # one window larger than the image
                pads[len(out)] = (before, after - room)
            out.append(window_count(room, stride))
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


def channels_last(data_format: str) -> bool:
    """Whether a data format (NCHW, NHWC, NCDHW, NDHWC, AnyLayout) has the channels at the end."""
    return data_format in ("NHWC", "NDHWC")


def window_spans(
    sizes: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    global_pooling: bool,
    adaptive: bool,
    ceil_mode: bool,
) -> list[list[tuple[int, int]]]:
    """For each spatial dimension of an image the windows of pooling as (start, end), not clipped to the image."""
    if adaptive:
        return [
            [(i * n // k, -(-(i + 1) * n // k)) for i in range(k)] for n, k in zip(sizes, ksize, strict=True)
        ]
    if global_pooling:
        return [[(0, n)] for n in sizes]
    pads = resolve_pads(padding_algorithm, paddings, sizes, ksize, strides)
    spans = []
    for n, k, stride, (before, after) in zip(sizes, ksize, strides, pads, strict=True):
        count = window_count(n + before + after - k, stride, ceil_mode)
        spans.append([(i * stride - before, i * stride - before + k) for i in range(count)])
    return spans


def window_counts(
    sizes: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    ceil_mode: bool,
) -> list[int]:
    """The number of windows of `window_spans` in each spatial dimension, for pooling that is neither global nor
    adaptive.
    """
    pads = resolve_pads(padding_algorithm, paddings, sizes, ksize, strides)
    return [
        window_count(n + before + after - k, stride, ceil_mode)
        for n, k, stride, (before, after) in zip(sizes, ksize, strides, pads, strict=True)
    ]


def window_count(room: int, stride: int, ceil_mode: bool = False) -> int:
    """The number of windows if the last could begin at `room`."""
    if ceil_mode:
        room = room + stride - 1
    # As C divides: a window that is less than a stride larger than the image gives one result, of the whole image.
    return max((room // stride if room >= 0 else -(-room // stride)) + 1, 0)


def uses_moving_statistics(attr: Callable[[str], Any]) -> bool:
    """Whether batch_norm, with the attributes that `attr` has, uses its moving statistics instead of the batch's."""
    return bool(attr("use_global_stats") or (attr("is_test") and not attr("trainable_statistics")))


def extents(shape: Sequence[int], layout: str) -> tuple[int, int, int]:
    """An image's sizes as [n, c, hw]: the axes before the channels, the channels, and the axes after them. hw is 1 if
    `layout` has the channels last.
    """
    if channels_last(layout):
        return math.prod(shape[:-1]), shape[-1], 1
    return shape[0], shape[1], math.prod(shape[2:])
