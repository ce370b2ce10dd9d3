"""Images sampled at computed positions: spatial transformers and deformable convolutions; `affine_channel`.

Jaderberg et al. 2015; Dai et al. 2017, with a factor for each position Zhu et al. 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.functions import constant, matmul
from ...base.windows import channels_last, window_count
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..infer import declared_numbers, may_equal, require_same_dtype
from ..nn.batch_norm import channel_axes
from ..registry import OpView, Sequences, Shape, grad_name

DX, DTHETA, DOUTPUT = (grad_name(slot) for slot in ("X", "Theta", "Output"))


def _base(xp: Any, size: Shape, dtype: Any) -> Any:
    """[height, width, 3]: x and y of each pixel, from -1 to 1, and 1."""
    _, _, high, wide = size
    x = xp.broadcast_to(xp.linspace(-1, 1, wide), (high, wide))
    y = xp.broadcast_to(xp.linspace(-1, 1, high)[:, None], (high, wide))
    return xp.stack([x, y, xp.ones((high, wide))], axis=-1).astype(dtype)


def _size(OutputShape: Any, output_shape: Any) -> Shape:
    given = output_shape if OutputShape is None else OutputShape.reshape(-1)
    return tuple(int(n) for n in given)


def _affine_grid(xp: Any, Theta: Any, OutputShape: Any, output_shape: Any) -> Any:
    base = _base(xp, _size(OutputShape, output_shape), Theta.dtype)
    flat = matmul(xp, base.reshape(-1, 3), Theta.swapaxes(1, 2))
    return flat.reshape(len(Theta), *base.shape[:2], 2)


def _affine_grid_grad(xp: Any, OutputShape: Any, Output_grad: Any, output_shape: Any) -> Any:
    base = _base(xp, _size(OutputShape, output_shape), Output_grad.dtype)
    flat = Output_grad.reshape(len(Output_grad), -1, 2)
    return matmul(xp, flat.swapaxes(1, 2), base.reshape(-1, 3))


def _infer_affine_grid(op: OpView) -> None:
    theta = op.shape("Theta")
    if len(theta) != 3 or theta[1:] != (2, 3):
        raise op.fail(f"Theta must be of shape [batch, 2, 3], got {list(theta)}")
    size = declared_numbers(op, "output_shape", "OutputShape")
    if size is not None and len(size) != 4:
        raise op.fail(f"the output shape must be [batch, channels, height, width], got {size}")
    known = size[2:] if size and not op.building else (-1, -1)  # as Fluid declares it
    op.set("Output", (theta[0], *known, 2), op.dtype("Theta"))


def _infer_affine_grid_grad(op: OpView) -> None:
    op.set(DTHETA, (op.shape(DOUTPUT)[0], 2, 3), op.dtype(DOUTPUT))


_GRID: dict[str, Any] = {"use_cudnn": False, "output_shape": []}

register_pair(
    "affine_grid",
    ("Theta", "OutputShape?"),
    _affine_grid,
    _affine_grid_grad,
    _infer_affine_grid,
    "Where each pixel of an image comes from when it is moved by Theta; x and y from -1 to 1.",
    outputs=("Output",),
    attrs=_GRID,
    keep=("OutputShape",),
    no_grad=("OutputShape",),
    infer_back=_infer_affine_grid_grad,
)


def _corners(xp: Any, X: Any, Grid: Any) -> tuple[list[tuple[Any, Any, Any]], Any, Any]:
    """For the four pixels around each place: what selects them, whether they exist, and how much each axis counts.

    The last two results are the distances from the pixel at the left and at the top.
    """
    high, wide = X.shape[2:]
    at_x, at_y = (0.5 * (n - 1) * (Grid[..., k] + 1) for k, n in ((0, wide), (1, high)))
    left, top = xp.floor(at_x), xp.floor(at_y)
    rows = xp.arange(len(X)).reshape(-1, 1, 1)
    found = []
    for down in (0, 1):
        for right in (0, 1):
            y, x = (top + down).astype("int64"), (left + right).astype("int64")
            inside = ((y >= 0) & (y < high) & (x >= 0) & (x < wide)).astype(X.dtype)
            where = (rows, slice(None), xp.clip(y, 0, high - 1), xp.clip(x, 0, wide - 1))
            found.append((where, inside, (down, right)))
    return found, at_x - left, at_y - top


def _share(distance: Any, step: int) -> Any:
    return distance if step else 1 - distance


def _half_sizes(wide: int, high: int, dtype: Any) -> Any:
    return np.asarray([0.5 * (wide - 1), 0.5 * (high - 1)], dtype)


def _grid_sampler(xp: Any, X: Any, Grid: Any) -> Any:
    corners, dx, dy = _corners(xp, X, Grid)
    total = xp.zeros((len(X), *Grid.shape[1:3], X.shape[1]), X.dtype)
    for where, inside, (down, right) in corners:
        total += X[where] * (inside * _share(dy, down) * _share(dx, right))[..., None]
    return xp.ascontiguousarray(xp.moveaxis(total, -1, 1))


def _grid_sampler_grad(xp: Any, X: Any, Grid: Any, Output_grad: Any) -> Any:
    corners, dx, dy = _corners(xp, X, Grid)
    dout = xp.moveaxis(Output_grad, 1, -1)
    image, grid = xp.zeros_like(X), xp.zeros_like(Grid)
    for where, inside, (down, right) in corners:
        weight_y, weight_x = _share(dy, down), _share(dx, right)
        xp.add.at(image, where, dout * (inside * weight_y * weight_x)[..., None])
        slope = (X[where] * dout).sum(axis=-1) * inside
        grid[..., 0] += slope * weight_y * (1 if right else -1)
        grid[..., 1] += slope * weight_x * (1 if down else -1)
    high, wide = X.shape[2:]
    return image, grid * constant(xp, _half_sizes, wide, high, Grid.dtype)


def _infer_grid_sampler(op: OpView) -> None:
    x, grid = op.shape("X"), op.shape("Grid")
    if len(x) != 4 or len(grid) != 4 or grid[3] != 2:
        raise op.fail(
            f"X must be [batch, channels, height, width] and Grid [batch, height, width, 2], "
            f"got {list(x)} and {list(grid)}"
        )
    # As in Fluid, unknown sizes are declared as the image's, so that later layers have sizes.
    sizes = [own if size < 0 and op.building else size for size, own in zip(grid[1:3], x[2:], strict=True)]
    op.set("Output", (*x[:2], *sizes), require_same_dtype(op, "X", "Grid"))


register_pair(
    "grid_sampler",
    ("X", "Grid"),
    _grid_sampler,
    _grid_sampler_grad,
    _infer_grid_sampler,
    "The pixels of X at the places that Grid names, between pixels by linear interpolation; 0 outside.",
    outputs=("Output",),
    attrs={"use_cudnn": False},
)


def _layout(data_layout: str) -> str:
    """The layout of the operator: channels last by default, as in Fluid (its layer always passes one)."""
    return "NCHW" if data_layout == "NCHW" else "NHWC"


def _affine_channel(xp: Any, X: Any, Scale: Any, Bias: Any, data_layout: str) -> Any:
    _, shape = channel_axes(X.ndim, _layout(data_layout))
    return X * Scale.reshape(shape) + Bias.reshape(shape)


def _affine_channel_grad(xp: Any, X: Any, Scale: Any, Out_grad: Any, data_layout: str) -> Any:
    axes, shape = channel_axes(X.ndim, _layout(data_layout))
    return Out_grad * Scale.reshape(shape), (Out_grad * X).sum(axis=axes), Out_grad.sum(axis=axes)


def _infer_affine_channel(op: OpView) -> None:
    shape = op.shape("X")
    channels = shape[-1] if channels_last(_layout(op.attr("data_layout"))) else shape[1]
    for slot in ("Scale", "Bias"):
        if len(op.shape(slot)) != 1 or (
            op.shape(slot)[0] != channels and min(op.shape(slot)[0], channels) >= 0
        ):
            raise op.fail(f"{slot} must be of shape [{channels}], got {list(op.shape(slot))}")
    op.set("Out", shape, require_same_dtype(op, "X", "Scale", "Bias"))


def _infer_affine_channel_grad(op: OpView) -> None:
    op.set(DX, op.shape("X"), op.dtype("X"))
    for slot in ("Scale", "Bias"):
        op.set(grad_name(slot), op.shape("Scale"), op.dtype("Scale"))


register_pair(
    "affine_channel",
    ("X", "Scale", "Bias"),
    _affine_channel,
    _affine_channel_grad,
    _infer_affine_channel,
    "Each channel of X times its Scale plus its Bias.",
    attrs={"data_layout": "AnyLayout"},
    keep=("X", "Scale"),
    infer_back=_infer_affine_channel_grad,
)


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
