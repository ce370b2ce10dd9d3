"""Deformable convolutions, with offsets (Dai et al. 2017) and a factor for each position (Zhu et al. 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.windows import window_count
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..infer import may_equal
from ..registry import OpView, Sequences

Array = np.ndarray


class _Bent:
    """The places of the image that each element of a window is taken from.

    Arrays are [batch, deformable groups, elements of a window, places of the result]: `corners` four (index, weight,
    derivative for y, derivative for x), `there`: whether the place is within the image.
    """

    def __init__(self, Input: Array, Offset: Array, Filter: Array, attrs: dict[str, Any]) -> None:
        batch, _, self.high, self.wide = Input.shape
        groups, (down, across) = attrs["deformable_groups"], Filter.shape[2:]
        rows, columns = Offset.shape[2:]
        offsets = Offset.reshape(batch, groups, down * across, 2, rows * columns)
        window = np.divmod(np.arange(down * across)[:, None], across)
        place = np.divmod(np.arange(rows * columns)[None], columns)
        self.at = [
            (place[k] * attrs["strides"][k] - attrs["paddings"][k] + window[k] * attrs["dilations"][k])
            + offsets[:, :, :, k]
            for k in range(2)
        ]
        y, x = self.at = [axis.astype(Input.dtype) for axis in self.at]
        self.there = (y > -1) & (x > -1) & (y < self.high) & (x < self.wide)
        top, left = np.floor(y), np.floor(x)
        self.corners = []
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            row, column = (top + i).astype(np.int64), (left + j).astype(np.int64)
            fits = self.there & (row >= 0) & (row < self.high) & (column >= 0) & (column < self.wide)
            tall, broad = (y - top if i else top + 1 - y), (x - left if j else left + 1 - x)
            index = np.where(fits, row * self.wide + column, 0)
            self.corners.append(
                (index, fits * tall * broad, fits * broad * (1 if i else -1), fits * tall * (1 if j else -1))
            )


def _channels(array: Array, groups: int) -> Array:
    """[batch, deformable groups, channels of each, H W]."""
    return array.reshape(len(array), groups, -1, array.shape[2] * array.shape[3])


def _take_flat(flat: Array, index: Array) -> Array:
    """[batch, groups, channels, elements, positions]: the elements of [batch, groups, channels, H W] at each index."""
    batch, groups, channels, _ = flat.shape
    return np.take_along_axis(flat, index.reshape(batch, groups, 1, -1), axis=3).reshape(
        batch, groups, channels, *index.shape[2:]
    )


def _sampled(flat: Array, bent: _Bent) -> Array:
    """The interpolated features of every element of every window, without the factors of the mask."""
    out: Array = sum(_take_flat(flat, index) * weight[:, :, None] for index, weight, _, _ in bent.corners)
    return out


def _factors(Mask: Array | None, bent: _Bent) -> Array | None:
    return None if Mask is None else Mask.reshape(bent.there.shape)


def _matrix(Filter: Array, groups: int) -> Array:
    return Filter.reshape(groups, len(Filter) // groups, -1)


def _windows(sampled: Array, Mask: Array | None, bent: _Bent, groups: int) -> Array:
    """[batch, groups, channels of each times elements of a window, places]."""
    factors = _factors(Mask, bent)
    whole = sampled if factors is None else sampled * factors[:, :, None]
    return whole.reshape(len(whole), groups, -1, whole.shape[-1])


def _forward(Input: Array, Offset: Array, Mask: Array | None, Filter: Array, attrs: dict[str, Any]) -> Array:
    bent = _Bent(Input, Offset, Filter, attrs)
    sampled = _sampled(_channels(Input, attrs["deformable_groups"]), bent)
    out = _matrix(Filter, attrs["groups"]) @ _windows(sampled, Mask, bent, attrs["groups"])
    return out.reshape(len(Input), len(Filter), *Offset.shape[2:])


def _back(
    Input: Array, Offset: Array, Mask: Array | None, Filter: Array, d_out: Array, attrs: dict[str, Any]
) -> tuple[Array, Array, Array | None, Array]:
    groups = attrs["groups"]
    bent = _Bent(Input, Offset, Filter, attrs)
    flat = _channels(Input, attrs["deformable_groups"])
    sampled = _sampled(flat, bent)
    windows = _windows(sampled, Mask, bent, groups)
    given = d_out.reshape(len(Input), groups, -1, d_out.shape[2] * d_out.shape[3])
    d_filter = (given @ windows.swapaxes(2, 3)).sum(axis=0).reshape(Filter.shape)
    d_windows = (_matrix(Filter, groups).swapaxes(1, 2) @ given).reshape(sampled.shape)
    d_mask = None
    factors = _factors(Mask, bent)
    if Mask is not None and factors is not None:
        d_mask = (d_windows * sampled).sum(axis=2).reshape(Mask.shape)
        d_windows = d_windows * factors[:, :, None]
    d_input = np.zeros(flat.shape, d_out.dtype)
    first = np.arange(d_input[..., 0].size).reshape(*flat.shape[:3], 1, 1) * flat.shape[3]
    d_at = [np.zeros(bent.there.shape, d_out.dtype) for _ in range(2)]
    for index, weight, by_y, by_x in bent.corners:
        np.add.at(d_input.reshape(-1), first + index[:, :, None], d_windows * weight[:, :, None])
        moved = (d_windows * _take_flat(flat, index)).sum(axis=2)
        d_at[0] += moved * by_y
        d_at[1] += moved * by_x
    d_offset = np.stack(d_at, axis=3).reshape(Offset.shape)
    return d_input.reshape(Input.shape), d_offset, d_mask, d_filter


@hosted
def _conv(xp: Any, Input: Any, Offset: Any, Mask: Any, Filter: Any, **attrs: Any) -> Any:
    return _forward(Input, Offset, Mask, Filter, attrs)


@hosted
def _conv_grad(
    xp: Any, Input: Any, Offset: Any, Mask: Any, Filter: Any, Output_grad: Any, **attrs: Any
) -> Any:
    return _back(Input, Offset, Mask, Filter, Output_grad, attrs)


@hosted
def _conv_v1(xp: Any, Input: Any, Offset: Any, Filter: Any, **attrs: Any) -> Any:
    return _forward(Input, Offset, None, Filter, attrs)


@hosted
def _conv_v1_grad(xp: Any, Input: Any, Offset: Any, Filter: Any, Output_grad: Any, **attrs: Any) -> Any:
    d_input, d_offset, _, d_filter = _back(Input, Offset, None, Filter, Output_grad, attrs)
    return d_input, d_offset, d_filter


def _infer(op: OpView) -> None:
    image, offset, filter_ = (op.shape(slot) for slot in ("Input", "Offset", "Filter"))
    if any(len(shape) != 4 for shape in (image, offset, filter_)):
        raise op.fail(
            f"Input, Offset and Filter must have 4 dimensions, got {list(image)}, {list(offset)} and {list(filter_)}"
        )
    groups, own = op.attr("groups"), op.attr("deformable_groups")
    if image[1] >= 0 and (image[1] != filter_[1] * groups or filter_[0] % groups or image[1] % own):
        raise op.fail(
            f"{image[1]} channels do not match Filter {list(filter_)}, {groups} groups and {own} deformable groups"
        )
    strides, paddings, dilations = (op.attr(name) for name in ("strides", "paddings", "dilations"))
    size = [
        window_count(n + 2 * paddings[k] - dilations[k] * (filter_[2 + k] - 1) - 1, strides[k])
        if n >= 0
        else -1
        for k, n in enumerate(image[2:])
    ]
    if 0 in size:
        raise op.fail(
            f"images of size {list(image[2:])} are smaller than the filter: the output would be {size}"
        )
    each = own * filter_[2] * filter_[3]
    for slot, channels in (("Offset", 2 * each), ("Mask", each)):
        shape = op.shape(slot) if op.has(slot) else (-1, channels, *size)
        if not may_equal(shape[1:], (channels, *size)):
            raise op.fail(f"{slot} must be [batch, {channels}, {size[0]}, {size[1]}], got {list(shape)}")
    op.set("Output", (image[0], filter_[0], *size), op.dtype("Input"))


_ATTRS: dict[str, Any] = {
    "strides": [1, 1],
    "paddings": [0, 0],
    "dilations": [1, 1],
    "groups": 1,
    "deformable_groups": 1,
    "im2col_step": 64,
}

register_pair(
    "deformable_conv",
    ("Input", "Offset", "Mask", "Filter"),
    _conv,
    _conv_grad,
    _infer,
    "The convolution of windows whose elements are moved by Offset and multiplied by Mask.",
    outputs=("Output",),
    attrs=_ATTRS,
    sequences=Sequences(source=None),
)
register_pair(
    "deformable_conv_v1",
    ("Input", "Offset", "Filter"),
    _conv_v1,
    _conv_v1_grad,
    _infer,
    "The convolution of windows whose elements are moved by Offset.",
    outputs=("Output",),
    attrs=_ATTRS,
    sequences=Sequences(source=None),
)
