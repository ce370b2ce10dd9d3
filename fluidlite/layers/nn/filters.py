"""What convolutions of programs, of `fluid.dygraph` and of `paddle.nn` have in common: their filters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...base.errors import ArgumentError
from ...initializer import Initializer, NormalInitializer


def check_groups(groups: int, layer: str, sizes: dict[str, int]) -> None:
    """Raise ValueError unless `groups` divides all of `sizes`, which are named as the message shall name them."""
    for name, size in sizes.items():
        if size % groups:
            raise ArgumentError(f"{name} of {layer} must be divisible by groups = {groups}, got {size}")


def filter_shape(
    channels: int, filters: int, kernel: Sequence[int], groups: int, transposed: bool
) -> list[int]:
    """The shape of the filters that make `filters` channels of `channels`, as Fluid stores them."""
    if transposed:
        return [channels, filters // groups, *kernel]
    return [filters, channels // groups, *kernel]


def filter_initializer(channels: int, kernel: Sequence[int], transposed: bool) -> Initializer | None:
    """How filters start by default: normal with variance 2 / (channels * size of a filter); None, as any other
    parameter, for those of transposed convolutions.
    """
    return None if transposed else NormalInitializer(0.0, math.sqrt(2.0 / (channels * math.prod(kernel))), 0)


def operator_type(
    kind: str, channels: int, filters: int, groups: int, transposed: bool, use_cudnn: bool
) -> str:
    """The operator for a layer of operator `kind` ('conv2d', ...), which is depthwise where Fluid has it so."""
    if use_cudnn or not kind.startswith("conv2d") or channels != groups:
        return kind
    fits = filters == channels if transposed else filters % channels == 0
    return f"depthwise_{kind}" if fits else kind
