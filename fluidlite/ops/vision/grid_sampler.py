"""Spatial transformers (Jaderberg et al. 2015): `affine_grid`, `grid_sampler`; and `affine_channel`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.constants import constant
from ...backend.functions import matmul
from ...base.windows import channels_last
from ..grad_pairs import register_pair
from ..infer import declared_numbers, require_same_dtype
from ..nn.batch_norm import channel_axes
from ..registry import OpView, Shape, grad_name

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
