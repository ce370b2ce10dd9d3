"""Images whose pixels and channels are put in another order, moved, or scaled channel by channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentError
from ...framework import Variable
from ...layer_helper import run_op
from ...op_functions import run_layer
from ..checks import check_choice, check_dtype, numbers

__all__ = [
    "im2sequence",
    "affine_channel",
    "affine_grid",
    "grid_sampler",
    "lrn",
    "pixel_shuffle",
    "shuffle_channel",
    "space_to_depth",
    "temporal_shift",
    "unfold",
]


def _check_integer(value: Any, name: str, layer: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"'{name}' of {layer} must be an integer, got {value!r}")


def pixel_shuffle(x: Variable, upscale_factor: int) -> Variable:
    """Images [N, C, H, W] as [N, C / r², H r, W r] for r = `upscale_factor` (`fluid.layers.pixel_shuffle`).

    Follows Shi et al. (2016).
    """
    _check_integer(upscale_factor, "upscale_factor", "pixel_shuffle")
    return run_layer("pixel_shuffle", locals())


def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Variable:
    """Images [N, C, H, W] as [N, C b², H / b, W / b] for b = `blocksize` (`fluid.layers.space_to_depth`)."""
    if not isinstance(blocksize, int):
        raise ArgumentError(f"'blocksize' of space_to_depth must be an integer, got {blocksize!r}")
    return run_layer("space_to_depth", locals())


def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Variable:
    """The channels of `x` [N, C, H, W], interleaved from `group` groups (`fluid.layers.shuffle_channel`)."""
    _check_integer(group, "group", "shuffle_channel")
    return run_layer("shuffle_channel", locals())


def temporal_shift(x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None) -> Variable:
    """Frames with channels from the frames before and after them (`fluid.layers.temporal_shift`).

    Args:
        x: floats [videos * seg_num, C, H, W].
        seg_num: how many frames a video has.
        shift_ratio: the part of the channels that comes from the frame before, and as large a part from the one after.
    """
    _check_integer(seg_num, "seg_num", "temporal_shift")
    return run_layer("temporal_shift", locals())


def im2sequence(
    input: Variable,
    filter_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] | None = 1,
    padding: int | Sequence[int] = 0,
    input_image_size: Variable | None = None,
    out_stride: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """The patches of each image of `input` [N, C, H, W] as a sequence (`fluid.layers.im2sequence`).

    Args:
        filter_size, stride: of the patches, one number or two (height and width).
        padding: one number, two (height and width) or four (top, left, bottom, right).
        input_image_size: the real sizes [N, 2] of the images; only so many patches are taken as an image of that size,
            divided by `out_stride` and rounded up, would have.

    Returns:
        Rows [patches, C * height * width], a sequence for each image.
    """
    check_dtype(input, "input", "im2sequence")
    pads = padding if isinstance(padding, (list, tuple)) and len(padding) == 4 else None
    attrs = {
        "kernels": numbers(filter_size, 2, "filter_size", "im2sequence"),
        "strides": None if stride is None else numbers(stride, 2, "stride", "im2sequence"),
        "paddings": list(pads) if pads else numbers(padding, 2, "padding", "im2sequence") * 2,
    }
    if input_image_size is not None:
        attrs["out_stride"] = numbers(out_stride, 2, "out_stride", "im2sequence")
    inputs = {"X": input, "Y": input_image_size}
    return run_op("im2sequence", inputs, attrs=attrs, name=name)


def unfold(
    x: Variable,
    kernel_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    paddings: int | Sequence[int] = 0,
    dilations: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """The windows of a convolution of `x` [N, C, H, W] (im2col; `fluid.layers.unfold`).

    `paddings` is one number, two (for height and width) or four (top, left, bottom, right). Returns
    [N, C * block, blocks].
    """
    if isinstance(paddings, (list, tuple)) and len(paddings) not in (1, 2, 4):
        raise ArgumentError(f"'paddings' of unfold must be an integer or 2 or 4 of them, got {paddings!r}")
    sides = len(paddings) if isinstance(paddings, (list, tuple)) else 4
    paddings = (numbers(paddings, sides, "paddings", "unfold") * 4)[:4]
    kernel_sizes = numbers(kernel_sizes, 2, "kernel_sizes", "unfold")
    strides = numbers(strides, 2, "strides", "unfold")
    dilations = numbers(dilations, 2, "dilations", "unfold")
    return run_layer("unfold", locals(), without=("sides",))


def affine_channel(
    x: Variable,
    scale: Variable | None = None,
    bias: Variable | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    act: str | None = None,
) -> Variable:
    """Each channel of `x` times its `scale` plus its `bias`, both of shape [C] (`fluid.layers.affine_channel`)."""
    check_choice(data_layout, "data_layout", ("NCHW", "NHWC"), "affine_channel")
    return run_layer("affine_channel", locals())


def affine_grid(theta: Variable, out_shape: Variable | Sequence[int], name: str | None = None) -> Variable:
    """Where the pixels of an image moved by `theta` come from (`fluid.layers.affine_grid`).

    Args:
        theta: floats [N, 2, 3].
        out_shape: [N, C, H, W] of the image: integers, or an int32 variable.

    Returns:
        [N, H, W, 2]: x and y of each pixel; the image reaches from -1 to 1.
    """
    if not isinstance(out_shape, (list, tuple, Variable)):
        raise ArgumentError("The 'out_shape' of affine_grid should be a list, a tuple or a Variable")
    given = {**locals(), "use_cudnn": True, "name": None}  # the name is ignored, as in Fluid
    return run_layer("affine_grid", given, OutputShape="out_shape", output_shape="out_shape")


def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Variable:
    """The pixels of `x` at the places that `grid` names (`fluid.layers.grid_sampler`).

    Args:
        x: floats [N, C, H, W].
        grid: floats [N, height, width, 2]: x and y of each place; the image reaches from -1 to 1. Between pixels
            values are interpolated, outside of the image they are 0.

    Returns:
        [N, C, height, width].
    """
    return run_layer("grid_sampler", {**locals(), "use_cudnn": True})


def lrn(
    input: Variable,
    n: int = 5,
    k: float = 1.0,
    alpha: float = 1e-4,
    beta: float = 0.75,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """input / (k + alpha * sum of squares of n neighbouring channels) ** beta (`fluid.layers.lrn`).

    `input` is [N, C, H, W] ([N, H, W, C] with `data_format='NHWC'`), `n` odd.
    """
    check_choice(data_format, "data_format", ("NCHW", "NHWC"), "lrn")
    return run_layer("lrn", locals(), ("MidOut", "Out"), stop_gradient=("MidOut",), X="input")[1]
