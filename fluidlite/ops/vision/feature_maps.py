"""Channels and pixels of images in another order, patches as sequences, and how the channels of maps go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backend import to_host
from ...backend.functions import matmul
from ...base.windows import Geometry, forward_geometry, window_count
from ..grad_pairs import linear_double_grad, register_pair
from ..host_fallback import hosted
from ..infer import grads_like_inputs, may_equal, product, same_as
from ..native import typed
from ..nn.conv import gather_patches, scatter_patches
from ..registry import (
    FIRST,
    Call,
    Levels,
    LodArray,
    LodFrom,
    OperatorError,
    OpView,
    Sequences,
    Shape,
    grad_name,
    register,
)
from ..sequence import Lods, grads_keep_sequences, has_lod, offsets_of

# Channels and pixels of images put in another order: pixel_shuffle, space_to_depth, shuffle_channel, temporal_shift,
# unfold.

DX, DOUT = grad_name("X"), grad_name("Out")


_like_out = same_as(DOUT, DX)


def _register(
    op_type: str,
    attrs: dict[str, Any],
    infer: Callable[[OpView], Shape],
    forward: Callable[..., Any],
    back: Callable[..., Any],
    doc: str,
    source: LodFrom = FIRST,
    keep: tuple[str, ...] = (),
    infer_back: Callable[[OpView], None] = _like_out,
) -> None:
    """Declare `op_type` and its gradient; `forward(xp, x, ...)` and `back(xp, dout, ...)` take the attributes.

    `keep`, `infer_back`: see `register_pair`; by default X is as large as the gradient that arrives.
    """

    def infer_out(op: OpView) -> None:
        if len(op.shape("X")) != 4:
            raise op.fail(f"X must be [batch, channels, height, width], got shape {list(op.shape('X'))}")
        op.set("Out", infer(op), op.dtype("X"))

    register_pair(
        op_type,
        ("X",),
        forward,
        back,
        infer_out,
        doc,
        attrs=attrs,
        keep=keep,
        infer_back=infer_back,
        grad_grad=linear_double_grad(op_type),
        sequences=Sequences(source=source),
    )


def _divided(op: OpView, axis: int, by: int, what: str) -> int:
    """A dimension divided by `by`, which must be positive and divide it; -1 if it is unknown."""
    size = op.shape("X")[axis]
    if by < 1 or (size >= 0 and size % by):
        raise op.fail(f"{what} must divide dimension {axis} of X, {size}, got {by}")
    return size // by if size >= 0 else -1


def _permuted(
    xp: Any, x: Any, shape: tuple[int, ...], order: tuple[int, ...], result: tuple[int, ...]
) -> Any:
    return xp.ascontiguousarray(x.reshape(shape).transpose(order)).reshape(result)


def _pixel_shuffle(xp: Any, X: Any, upscale_factor: int) -> Any:
    n, c, h, w = X.shape
    r = upscale_factor
    return _permuted(
        xp, X, (n, c // (r * r), r, r, h, w), (0, 1, 4, 2, 5, 3), (n, c // (r * r), h * r, w * r)
    )


def _pixel_shuffle_grad(xp: Any, Out_grad: Any, upscale_factor: int) -> Any:
    n, c, h, w = Out_grad.shape
    r = upscale_factor
    split = (n, c, h // r, r, w // r, r)
    return _permuted(xp, Out_grad, split, (0, 1, 3, 5, 2, 4), (n, c * r * r, h // r, w // r))


def _infer_pixel_shuffle(op: OpView) -> Shape:
    n, _, h, w = op.shape("X")
    factor = op.attr("upscale_factor")
    channels = _divided(op, 1, factor * factor, "the square of upscale_factor")
    return n, channels, h * factor if h >= 0 else -1, w * factor if w >= 0 else -1


def _infer_pixel_shuffle_grad(op: OpView) -> None:
    factor, (n, c, h, w) = op.attr("upscale_factor"), op.shape(DOUT)
    known = [size if size < 0 else size // factor for size in (h, w)]
    op.set(DX, (n, c if c < 0 else c * factor * factor, *known), op.dtype(DOUT))


_register(
    "pixel_shuffle",
    {"upscale_factor": 1},
    _infer_pixel_shuffle,
    _pixel_shuffle,
    _pixel_shuffle_grad,
    "Images upscale_factor times as high and wide, made of the square of it fewer channels.",
    source=None,
    infer_back=_infer_pixel_shuffle_grad,
)


# As in Fluid, blocks are not those of the image: its memory is reinterpreted as an image with fewer, larger channels,
# which is split along rows and columns.
def _space_to_depth(xp: Any, X: Any, blocksize: int) -> Any:
    n, c, h, w = X.shape
    b = blocksize
    split = (n, b, b, c // (b * b), h, w)
    return _permuted(xp, X, split, (0, 3, 4, 1, 5, 2), (n, c * b * b, h // b, w // b))


def _space_to_depth_grad(xp: Any, X: Any, Out_grad: Any, blocksize: int) -> Any:
    n, c, h, w = X.shape
    b = blocksize
    return _permuted(xp, Out_grad, (n, c // (b * b), h, b, w, b), (0, 3, 5, 1, 2, 4), X.shape)


def _infer_space_to_depth(op: OpView) -> Shape:
    n, c, _, _ = op.shape("X")
    block = op.attr("blocksize")
    high, wide = _divided(op, 2, block, "blocksize"), _divided(op, 3, block, "blocksize")
    _divided(op, 1, block * block, "the square of blocksize")
    return n, c * block * block if c >= 0 else -1, high, wide


_register(
    "space_to_depth",
    {"blocksize": 2},
    _infer_space_to_depth,
    _space_to_depth,
    _space_to_depth_grad,
    "Images blocksize times lower and narrower, with as many times more channels.",
    keep=("X#",),
    infer_back=grads_like_inputs,
)


def _shuffled(xp: Any, x: Any, group: int) -> Any:
    n, c, h, w = x.shape
    return _permuted(xp, x, (n, group, c // group, h, w), (0, 2, 1, 3, 4), x.shape)


def _infer_shuffle_channel(op: OpView) -> Shape:
    _divided(op, 1, op.attr("group"), "group")
    return op.shape("X")


_register(
    "shuffle_channel",
    {"group": 1},
    _infer_shuffle_channel,
    lambda xp, X, group: _shuffled(xp, X, group),
    # Fluid 1.8 repeats the shuffle, which is the gradient only if there are as many groups as channels in one;
    # models were trained with it.
    lambda xp, Out_grad, group: _shuffled(xp, Out_grad, group),
    "X with the first channels of all groups in front, then the second ones, and so on.",
    source=None,
)


def _shifted(xp: Any, x: Any, seg_num: int, shift_ratio: float, back: bool) -> Any:
    """Some channels shifted one step forward in time, as many one step back, padded with zeros; `back`: the inverse."""
    frames = x.reshape(-1, seg_num, *x.shape[1:])
    first = int(x.shape[1] * shift_ratio)
    second = int(x.shape[1] * 2 * shift_ratio)
    out = frames.copy()
    later, earlier = (slice(1, None), slice(None, -1)) if not back else (slice(None, -1), slice(1, None))
    out[:, :, :second] = 0
    out[:, later, :first] = frames[:, earlier, :first]
    out[:, earlier, first:second] = frames[:, later, first:second]
    return out.reshape(x.shape)


def _infer_temporal_shift(op: OpView) -> Shape:
    if not 0 < op.attr("shift_ratio") < 0.5:
        raise op.fail(f"shift_ratio must be greater than 0 and less than 0.5, got {op.attr('shift_ratio')}")
    _divided(op, 0, op.attr("seg_num"), "seg_num")
    return op.shape("X")


_register(
    "temporal_shift",
    {"seg_num": 1, "shift_ratio": 0.25},
    _infer_temporal_shift,
    lambda xp, X, seg_num, shift_ratio: _shifted(xp, X, seg_num, shift_ratio, False),
    lambda xp, Out_grad, seg_num, shift_ratio: _shifted(xp, Out_grad, seg_num, shift_ratio, True),
    "Frames of videos with part of the channels from the frame before and part from the one after.",
)


def _unfold_geometry(size: Shape, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any) -> Geometry:
    # Paddings are top, left, bottom, right.
    top, left, bottom, right = paddings
    pads = (top, bottom, left, right)
    return forward_geometry(size, kernel_sizes, strides, pads, dilations, "EXPLICIT")


def _unfold(xp: Any, X: Any, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any) -> Any:
    g = _unfold_geometry(X.shape[2:], kernel_sizes, strides, paddings, dilations)
    return gather_patches(xp, X, g, 1)[:, 0]


def _unfold_grad(
    xp: Any, X: Any, Y_grad: Any, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any
) -> Any:
    g = _unfold_geometry(X.shape[2:], kernel_sizes, strides, paddings, dilations)
    return xp.ascontiguousarray(scatter_patches(xp, Y_grad[:, None], g))


def _infer_unfold(op: OpView) -> None:
    shape, kernel = op.shape("X"), op.attr("kernel_sizes")
    if len(shape) != 4 or len(kernel) != 2 or len(op.attr("paddings")) != 4:
        raise op.fail(
            f"X must have 4 dimensions, kernel_sizes 2 numbers and paddings 4, got {list(shape)}, "
            f"{list(kernel)} and {list(op.attr('paddings'))}"
        )
    g = _unfold_geometry(shape[2:], kernel, op.attr("strides"), op.attr("paddings"), op.attr("dilations"))
    if any(n == 0 or n < -1 for n in g.out):
        raise op.fail(f"images of size {list(shape[2:])} are smaller than the blocks: no block fits")
    rows = shape[1] * product(tuple(kernel)) if shape[1] >= 0 else -1
    op.set("Y", (shape[0], rows, product(g.out)), op.dtype("X"))


_UNFOLD = {"kernel_sizes": [1, 1], "strides": [1, 1], "paddings": [0, 0, 0, 0], "dilations": [1, 1]}

register_pair(
    "unfold",
    ("X",),
    _unfold,
    _unfold_grad,
    _infer_unfold,
    "The blocks that a convolution would look at, as columns: [batch, channels * block, blocks].",
    outputs=("Y",),
    attrs=_UNFOLD,
    keep=("X#",),
    grad_grad=linear_double_grad("unfold", out="Y"),
    sequences=Sequences(source=None),
)


def _flat(x: Any) -> Any:
    """[batch, channels, height * width]."""
    return x.reshape(*x.shape[:2], -1)


def _fsp(xp: Any, X: Any, Y: Any) -> Any:
    return matmul(xp, _flat(X), _flat(Y).swapaxes(1, 2)) / (X.shape[2] * X.shape[3])


def _fsp_grad(xp: Any, X: Any, Y: Any, Out_grad: Any) -> Any:
    scaled = Out_grad / (X.shape[2] * X.shape[3])
    return (
        matmul(xp, scaled, _flat(Y)).reshape(X.shape),
        matmul(xp, scaled.swapaxes(1, 2), _flat(X)).reshape(Y.shape),
    )


def _infer(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) != 4 or len(y) != 4 or not may_equal((x[0], *x[2:]), (y[0], *y[2:])):
        raise op.fail(
            "X and Y must be [batch, channels, height, width] and differ in channels only, got "
            f"{list(x)} and {list(y)}"
        )
    op.set("Out", (x[0], x[1], y[1]), op.dtype("X"))


register_pair("fsp", ("X", "Y"), _fsp, _fsp_grad, _infer, "The mean product of each pair of channels.")


def _focus(scores: Any) -> Any:
    """The mask [batch, height, width] of a greedy choice: each time the largest element in an unused row and column."""
    count, height, width = scores.shape
    mask, free = np.zeros(scores.shape, bool), np.ones(scores.shape, bool)
    batch = np.arange(count)
    for _ in range(min(height, width)):
        best = np.where(free, scores, -np.inf).reshape(count, -1).argmax(axis=1)
        row, column = best // width, best % width
        mask[batch, row, column] = True
        free[batch, row] = False
        free[batch, :, column] = False
    return mask


@hosted
def _similarity_focus(xp: Any, X: Any, axis: int, indexes: list[int]) -> Any:
    masks = [_focus(X.take(index, axis=axis)) for index in indexes]
    whole = np.expand_dims(np.logical_or.reduce(masks), axis)
    return xp.asarray(np.broadcast_to(whole, X.shape), dtype=X.dtype)


def _similarity_focus_infer(op: OpView) -> None:
    shape, axis = op.shape("X"), op.attr("axis")
    if len(shape) != 4 or axis not in (1, 2, 3):
        raise op.fail(f"X must have four dimensions and axis be 1, 2 or 3, got {list(shape)} and {axis}")
    for index in op.attr("indexes"):
        if index < 0 or (index >= shape[axis] and shape[axis] >= 0):
            raise op.fail(f"indexes must be in [0, {shape[axis]}), got {index}")
    op.set("Out", shape, op.dtype("X"))


register(
    "similarity_focus",
    inputs=("X",),
    attrs={"axis": 1, "indexes": []},
    infer=_similarity_focus_infer,
    kernel=_similarity_focus,
    no_grad=("Out",),
    doc="Ones at the largest elements of some slices along axis, one for each row and column, zeros elsewhere.",
)


def _sizes(
    image: Sequence[int], kernels: list[int], strides: list[int], paddings: list[int]
) -> tuple[int, int]:
    """The numbers of patches in an image, down and across; `paddings` are up, left, down, right."""
    high, wide = (
        window_count(image[k] + paddings[k] + paddings[k + 2] - kernels[k], strides[k]) for k in range(2)
    )
    return high, wide


def _grids(X: Any, Y: Any, attrs: dict[str, Any]) -> list[tuple[int, int]]:
    """The patches of each image; with Y, which holds real sizes, of so much as out_stride makes of these."""
    windows = (attrs["kernels"], attrs["strides"], attrs["paddings"])
    if Y is None:
        grids = [_sizes(X.shape[2:], *windows)] * len(X)
    else:
        stride = attrs["out_stride"]
        real = np.asarray(to_host(Y)).astype(np.int64)
        grids = [_sizes((-(-int(h) // stride[0]), -(-int(w) // stride[1])), *windows) for h, w in real]
    for k, grid in enumerate(grids):
        if min(grid) < 1:
            raise OperatorError(f"operator im2sequence: image {k} would have {grid[0]} x {grid[1]} patches")
    return grids


def _geometry(X: Any, grids: list[tuple[int, int]], attrs: dict[str, Any]) -> Geometry:
    """The geometry with the maximum numbers of patches down and across of all images; zeros beyond an image."""
    kernels, strides, paddings = attrs["kernels"], attrs["strides"], attrs["paddings"]
    pads = ((paddings[0], paddings[2]), (paddings[1], paddings[3]))
    out = (max((high for high, _ in grids), default=0), max((wide for _, wide in grids), default=0))
    return Geometry(X.shape[2:], tuple(kernels), tuple(strides), (1, 1), pads, out)


def _rows(grids: list[tuple[int, int]], g: Geometry) -> np.ndarray:
    """The indices of the patches that belong to sequences, among all patches of all images."""
    each = g.out[0] * g.out[1]
    return np.concatenate(
        [
            (k * each + np.arange(high)[:, None] * g.out[1] + np.arange(wide)).reshape(-1)
            for k, (high, wide) in enumerate(grids)
        ]
        or [np.zeros(0, np.int64)]
    )


def _im2sequence(xp: Any, X: Any, Y: Any, lod: Lods, **attrs: Any) -> Any:
    grids = _grids(X, Y, attrs)
    g = _geometry(X, grids, attrs)
    patches = gather_patches(xp, X, g, 1)[:, 0].swapaxes(1, 2)
    out = patches.reshape(-1, patches.shape[2])
    if Y is not None:
        out = out[xp.asarray(_rows(grids, g))]
    return LodArray(xp.ascontiguousarray(out), [offsets_of(np.array([h * w for h, w in grids], np.int64))])


def _im2sequence_grad(xp: Any, X: Any, Y: Any, Out_grad: Any, lod: Lods, **attrs: Any) -> Any:
    grids = _grids(X, Y, attrs)
    g = _geometry(X, grids, attrs)
    patches = xp.zeros((len(X) * g.out[0] * g.out[1], Out_grad.shape[1]), X.dtype)
    patches[xp.asarray(_rows(grids, g))] = Out_grad
    patches = patches.reshape(len(X), 1, g.out[0] * g.out[1], Out_grad.shape[1]).swapaxes(2, 3)
    return LodArray(scatter_patches(xp, patches, g), [])


def _infer_patches(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 4:
        raise op.fail(f"X must be images [batch, channels, height, width], got {list(shape)}")
    kernels = op.attr("kernels")
    high, wide = _sizes(shape[2:], kernels, op.attr("strides"), op.attr("paddings"))
    known = not op.has("Y") and min(shape) >= 0
    if known and min(high, wide) < 1:
        op.refuse(f"an image would have {high} x {wide} patches")
    known = known and (has_lod(op) or not op.exact)
    rows = shape[0] * high * wide if known else -1
    if op.building:
        rows = shape[0]  # as Fluid declares it
    op.set("Out", (rows, shape[1] * kernels[0] * kernels[1]), op.dtype("X"))
    if known and op.exact:
        op.carry("Out", (op.offsets("Out", shape[0]),))


def _ints(op: OpView) -> list[int]:
    shape, kernels, strides, paddings = (
        op.shape("X"),
        *(op.attr(a) for a in ("kernels", "strides", "paddings")),
    )
    return [*shape, *kernels, *strides, *paddings[:2], *_sizes(shape[2:], kernels, strides, paddings)]


def _native(op: OpView) -> Call | None:
    name, made = typed(op, "im2sequence", ("X",)), op.lod("Out")
    return Call(name, [op.name("X"), op.name("Out"), *made], _ints(op)) if name and made else None


def _native_grad(op: OpView) -> Call | None:
    name = typed(op, "im2sequence_grad", ("X", DOUT))
    return Call(name, [op.name(DOUT), op.name(DX)], _ints(op)) if name and not op.has("Y") else None


register_pair(
    "im2sequence",
    ("X", "Y?"),
    _im2sequence,
    _im2sequence_grad,
    _infer_patches,
    "For each image the sequence of its patches, row by row, each flattened.",
    attrs={"kernels": [1, 1], "strides": [1, 1], "paddings": [0, 0, 0, 0], "out_stride": [1, 1]},
    no_grad=("Y",),
    sequences=Sequences(levels=Levels(least=1), takes_lod=True),
    infer_back=grads_keep_sequences,
    native=(_native, _native_grad),
)
