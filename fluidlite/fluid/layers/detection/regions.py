"""Regions of feature maps, and convolutions of bent windows."""

from __future__ import annotations

import math
from types import NoneType
from typing import Any

from ....base.dtypes import VarType
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer
from ..checks import check_dtypes, numbers
from ..nn.convolution import Convolution

__all__ = [
    "deformable_conv",
    "deformable_roi_pooling",
    "prroi_pool",
    "psroi_pool",
    "roi_align",
    "roi_perspective_transform",
    "roi_pool",
]

_REAL = (VarType.FP32, VarType.FP64)


_SIZES = ("pooled_height", "pooled_width", "transformed_height", "transformed_width", "output_channels")


def _pooled(op_type: str, arguments: dict[str, Any]) -> Any:
    for what in _SIZES:
        if not isinstance(arguments.get(what), (int, NoneType)):
            raise TypeError(f"'{what}' of {op_type} must be an integer, got {arguments[what]!r}")
    if not isinstance(arguments["spatial_scale"], (int, float, NoneType)):
        raise TypeError(f"'spatial_scale' of {op_type} must be a float, got {arguments['spatial_scale']!r}")
    return run_layer(op_type, arguments, X="input")


def _check_pairs(layer: str, **given: Any) -> None:
    for name, pair in given.items():
        if pair is not None and not isinstance(pair, (list, tuple)):
            raise TypeError(f"'{name}' of {layer} must be a list or tuple, got {pair!r}")


def roi_align(
    input: Variable,
    rois: Variable,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    name: str | None = None,
    rois_lod: Variable | None = None,
) -> Variable:
    """The means of interpolated features in a grid of bins of each region (`fluid.layers.roi_align`; He et al. 2017).

    Args:
        input: feature maps [N, C, H, W], floats.
        rois: regions [R, 4], x and y of two corners, a sequence for each of N images.
        pooled_height, pooled_width: how many bins there are.
        spatial_scale: the size of the features in parts of that of the image.
        sampling_ratio: how many places of a bin count in each direction; -1: one for each place of the features.
        name: the name of the result.
        rois_lod: int64 [N + 1]: where the regions of each image begin and end, for `rois` without sequences.

    Returns:
        [R, C, pooled_height, pooled_width].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return _pooled("roi_align", locals())


def roi_pool(
    input: Variable,
    rois: Variable,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    rois_lod: Variable | None = None,
) -> Variable:
    """The greatest features in a grid of bins of each region (`fluid.layers.roi_pool`; Girshick 2015).

    The arguments and the result are those of `roi_align`; edges of bins are rounded to places of the features.
    """
    return _pooled("roi_pool", locals())[0]


def psroi_pool(
    input: Variable,
    rois: Variable,
    output_channels: int,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    name: str | None = None,
) -> Variable:
    """The means of features in a grid of bins of each region, of other channels in each (`fluid.layers.psroi_pool`).

    `input` is [N, output_channels * pooled_height * pooled_width, H, W]; the other arguments are those of `roi_align`.
    The result is [R, output_channels, pooled_height, pooled_width]. Follows Dai et al. (2016).
    """
    return _pooled("psroi_pool", locals())


def prroi_pool(
    input: Variable,
    rois: Variable,
    spatial_scale: float = 1.0,
    pooled_height: int = 1,
    pooled_width: int = 1,
    batch_roi_nums: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """The means of interpolated features over bins of each region, taken exactly (`fluid.layers.prroi_pool`).

    The arguments are those of `roi_align`; `batch_roi_nums`, int64 [N], says how many regions each image has, for
    `rois` without sequences. Regions have gradients, too. Follows Jiang et al. (2018).
    """
    return _pooled("prroi_pool", locals())


def roi_perspective_transform(
    input: Variable,
    rois: Variable,
    transformed_height: int,
    transformed_width: int,
    spatial_scale: float = 1.0,
    name: str | None = None,
) -> tuple[Variable, Variable, Variable]:
    """Quadrilaterals of feature maps seen as rectangles (`fluid.layers.roi_perspective_transform`).

    Args:
        input: feature maps [N, C, H, W], floats.
        rois: regions [R, 8], x and y of four corners clockwise from the upper left one, a sequence for each of N
            images.
        transformed_height, transformed_width: the size of the rectangles; those of regions that are narrower are
            empty on the right.
        spatial_scale: the size of the features in parts of that of the image.
        name: the prefix of the results' names.

    Returns:
        [R, C, transformed_height, transformed_width]; int32 of the same size with one channel: 1 for places within the
        region; [R, 9]: how places of the rectangle are mapped to the features.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    out, mask, matrix, _, _ = _pooled("roi_perspective_transform", locals())
    return out, mask, matrix


def deformable_conv(
    input: Variable,
    offset: Variable,
    mask: Variable | None,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    deformable_groups: int | None = None,
    im2col_step: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    modulated: bool = True,
    name: str | None = None,
) -> Variable:
    """A convolution whose windows are bent by offsets (`fluid.layers.deformable_conv`; Zhu et al. 2019).

    Args:
        input: images [N, C, H, W], floats.
        offset: [N, 2 * deformable_groups * elements of a window, H', W']: how far, y and x, each is moved.
        mask: [N, deformable_groups * elements of a window, H', W']: factors; None with `modulated=False`.
        num_filters: channels of the result.
        filter_size, stride, padding, dilation: integers or pairs, as those of `conv2d`.
        groups: into how many parts the channels are cut; 1 by default.
        deformable_groups: how many parts of the channels have offsets of their own.
        im2col_step: accepted; the result does not depend on it.
        param_attr, bias_attr: of the filter [num_filters, C / groups, height, width] and of the bias [num_filters].
        modulated: with factors (version 2) or without (version 1; Dai et al. 2017).
        name: the prefix of the names of the result and the parameters.

    Returns:
        [N, num_filters, H', W'].

    Raises:
        TypeError, ValueError, OperatorError: for arguments that do not fit.
    """
    layer = "deformable_conv"
    check_dtypes(layer, *_REAL, input=input, offset=offset)
    if mask is not None:
        check_dtypes(layer, *_REAL, mask=mask)
    helper = LayerHelper(layer, name=name, param_attr=param_attr, bias_attr=bias_attr)
    channels, pads = input.shape[1], numbers(padding, 2, "padding", layer)
    conv = Convolution("conv2d", stride, pads, dilation, groups, layer=layer)
    conv.check_groups({"the channels of 'input'": channels})
    size, attr = conv.numbers(filter_size, "filter_size"), helper.param_attr
    filters = conv.create_filters(helper.create_parameter, channels, num_filters, size, attr, input.dtype)
    inputs = {"Input": input, "Filter": filters, "Offset": offset}
    if modulated:
        check_variable(mask, "mask", layer)
        inputs["Mask"] = mask
    out = helper.run(
        "deformable_conv" if modulated else "deformable_conv_v1",
        inputs,
        ("Output",),
        attrs={
            "strides": conv.stride,
            "paddings": conv.padding,
            "dilations": conv.dilation,
            "groups": conv.groups,
            "deformable_groups": 1 if deformable_groups is None else deformable_groups,
            "im2col_step": 64 if im2col_step is None else im2col_step,
        },
    )
    return helper.append_bias_op(out, dim_start=1, dim_end=2)


def deformable_roi_pooling(
    input: Variable,
    rois: Variable,
    trans: Variable,
    no_trans: bool = False,
    spatial_scale: float = 1.0,
    group_size: Any = (1, 1),
    pooled_height: int = 1,
    pooled_width: int = 1,
    part_size: Any = None,
    sample_per_part: int = 1,
    trans_std: float = 0.1,
    position_sensitive: bool = False,
    name: str | None = None,
) -> Variable:
    """The means of interpolated features in bins that are moved by offsets (`fluid.layers.deformable_roi_pooling`).

    Follows Dai et al. (2017).

    Args:
        input: feature maps [N, C, H, W], floats.
        rois: regions [R, 4], x and y of two corners, a sequence for each of N images.
        trans: [R, 2 * classes, parts down, parts across]: how far, x and y, bins are moved, in parts of the region.
        no_trans: whether they stay where they are.
        spatial_scale: the size of the features in parts of that of the image.
        group_size: how many groups of bins, down and across, have channels of their own.
        pooled_height, pooled_width: how many bins there are.
        part_size: how many parts there are, down and across; by default as many as bins.
        sample_per_part: how many places of a bin count in each direction.
        trans_std: what offsets are multiplied by.
        position_sensitive: whether the result has C / (groups down and across) channels instead of C.
        name: the name of the result.

    Returns:
        [R, channels, pooled_height, pooled_width].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    check_dtypes("deformable_roi_pooling", *_REAL, input=input, rois=rois, trans=trans)
    _check_pairs("deformable_roi_pooling", group_size=group_size, part_size=part_size)
    output_dim = input.shape[1] // (math.prod(group_size[:2]) if position_sensitive else 1)
    part_size = (pooled_height, pooled_width) if part_size is None else part_size
    return run_layer(
        "deformable_psroi_pooling", locals(), ("Output", "TopCount"), without=("position_sensitive",)
    )[0]
