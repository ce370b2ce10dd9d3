"""Images of another size, and those whose pixels and channels are put in another order, moved or compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base.errors import ArgumentAssertion, ArgumentError
from ....eager import as_number_list, as_numbers
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable, run_op
from ...op_functions import of_kind, run_layer
from ..checks import FORMATS, check_choice, check_dtype, numbers
from ..tensor.shapes import has_variables, one_by_one

__all__ = [
    "affine_channel",
    "affine_grid",
    "grid_sampler",
    "im2sequence",
    "image_resize",
    "image_resize_short",
    "interpolate",
    "lrn",
    "pixel_shuffle",
    "resize_bilinear",
    "resize_nearest",
    "resize_trilinear",
    "shuffle_channel",
    "similarity_focus",
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


OutShape = Variable | Sequence[int | Variable] | None

_METHODS = {"BILINEAR": "bilinear", "TRILINEAR": "trilinear", "NEAREST": "nearest", "BICUBIC": "bicubic"}
_SIZES = {4: ("out_h", "out_w"), 5: ("out_d", "out_h", "out_w")}


def _interpolate(
    kind: str,
    input: Variable,
    out_shape: OutShape = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    known = [name for name in _METHODS if name != "BICUBIC" or kind == "interpolate"]
    if resample not in known:
        listed = ", ".join(map(repr, known))
        raise ArgumentError(f"The 'resample' of {kind} can only be {listed}, got {resample!r}")
    check_variable(input, "input", kind)
    method, rank = _METHODS[resample], 5 if resample == "TRILINEAR" else 4
    if len(input.shape) != rank:
        raise ArgumentError(
            f"'input' of {kind} must have {rank} dimensions for {resample}, got {input.shape}"
        )
    check_choice(data_format, "data_format", FORMATS[rank - 2], kind)
    if not isinstance(align_corners, bool):
        raise TypeError(f"'align_corners' of {kind} must be True or False, got {align_corners!r}")
    check_choice(align_mode, "align_mode", (0, 1), kind)
    helper = LayerHelper(f"{method}_interp", name=name)
    attrs: dict[str, Any] = {
        "out_d": -1,
        "out_h": -1,
        "out_w": -1,
        "interp_method": method,
        "align_corners": align_corners,
        "align_mode": align_mode,
        "data_layout": "NHWC" if data_format.endswith("C") else "NCHW",
        "scale": 0.0,
    }
    inputs: dict[str, Any] = {"X": input}
    if out_shape is not None:
        inputs.update(_given_sizes(kind, out_shape, _SIZES[rank], attrs, helper))
    elif isinstance(scale, Variable):
        scale.stop_gradient = True
        inputs["Scale"] = scale
    elif scale is None:
        raise ArgumentError(f"One of 'out_shape' and 'scale' of {kind} must not be None")
    elif scale <= 0:
        raise ArgumentError(f"'scale' of {kind} must be greater than zero, got {scale}")
    else:
        attrs["scale"] = float(as_numbers(scale))
    if actual_shape is not None:
        actual_shape.stop_gradient = True
        inputs["OutSize"] = actual_shape
    return helper.run(f"{method}_interp", inputs, attrs=attrs)


def _given_sizes(
    kind: str, out_shape: OutShape, names: Sequence[str], attrs: dict[str, Any], helper: LayerHelper
) -> dict[str, Any]:
    """The inputs for sizes given as Variables; those given as numbers go into `attrs`."""
    out_shape = as_number_list(out_shape)
    if isinstance(out_shape, Variable):
        out_shape.stop_gradient = True
        return {"OutSize": out_shape}
    if not isinstance(out_shape, (list, tuple)):
        raise TypeError(f"'out_shape' of {kind} must be a list or a Variable, got {out_shape!r}")
    if len(out_shape) != len(names):
        raise ArgumentError(
            f"'out_shape' of {kind} must have {len(names)} elements for this input, got {list(out_shape)}"
        )
    for name, size in zip(names, out_shape, strict=True):
        if not isinstance(size, Variable):
            if int(size) <= 0:
                raise ArgumentAssertion(
                    f"the numbers in 'out_shape' of {kind} must be positive, got {list(out_shape)}"
                )
            attrs[name] = int(size)
    return {"SizeTensor": one_by_one(helper, out_shape)} if has_variables(out_shape) else {}


interpolate = of_kind(
    _interpolate,
    "interpolate",
    """Images or volumes of another size (`fluid.layers.interpolate`).

    Args:
        input: float images [N, C, H, W] ([N, H, W, C] with `data_format='NHWC'`), or for 'TRILINEAR' volumes
            [N, C, D, H, W] ('NDHWC': channels last).
        out_shape: the new height and width (depth, height and width): integers, variables of one element, or one int32
            variable that holds them all.
        scale: instead of it, by how much the sizes are multiplied; a number or a float32 variable of one element.
        name: the name of the result.
        resample: 'BILINEAR', 'BICUBIC' (Keys 1981), 'NEAREST', or 'TRILINEAR' for volumes.
        actual_shape: an int32 variable with the new sizes that goes before `out_shape`, which then only says what is
            known of them.
        align_corners: the corners of both images lie on one another; else their edges do.
        align_mode: without `align_corners`, 0: coordinates are those of elements' centres, 1: of their corners.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """,
)
image_resize = of_kind(
    _interpolate,
    "image_resize",
    "`interpolate`, which has the arguments, but for 'BICUBIC' (`fluid.layers.image_resize`).",
)


def _resize(
    kind: str,
    input: Variable,
    out_shape: OutShape = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    how = (kind.removeprefix("resize_").upper(), actual_shape, align_corners, align_mode, data_format)
    return image_resize(input, out_shape, scale, name, *how)


resize_bilinear = of_kind(
    _resize,
    "resize_bilinear",
    "`image_resize` by linear interpolation along both axes (`fluid.layers.resize_bilinear`).",
)
resize_trilinear = of_kind(
    _resize,
    "resize_trilinear",
    "`image_resize` of volumes by linear interpolation along all axes (`fluid.layers.resize_trilinear`).",
    data_format="NCDHW",
)


def resize_nearest(
    input: Variable,
    out_shape: OutShape = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """`image_resize` by the nearest element (`fluid.layers.resize_nearest`)."""
    return image_resize(input, out_shape, scale, name, "NEAREST", actual_shape, align_corners, 1, data_format)


def image_resize_short(input: Variable, out_short_len: int, resample: str = "BILINEAR") -> Variable:
    """Images [N, C, H, W] whose shorter side is `out_short_len`, in proportion (`fluid.layers.image_resize_short`).

    Height and width must be known.
    """
    check_variable(input, "input", "image_resize_short")
    if len(input.shape) != 4:
        raise ArgumentError(f"'input' of image_resize_short must have 4 dimensions, got {list(input.shape)}")
    sizes = list(input.shape[2:])
    short = sizes.index(min(sizes))
    other = 1 - short
    out_shape = list(sizes)
    out_shape[short] = out_short_len
    out_shape[other] = int(sizes[other] * (out_short_len / sizes[short]) + 0.5)
    return image_resize(input, out_shape=out_shape, resample=resample)


def similarity_focus(input: Variable, axis: int, indexes: Sequence[int], name: str | None = None) -> Variable:
    """A mask of the largest elements of some slices (`fluid.layers.similarity_focus`).

    Of each slice the largest element is taken, then the largest one in another row and column, and so on.

    Args:
        input: floats of four dimensions.
        axis: 1, 2 or 3, along which slices are taken.
        indexes: which ones.

    Returns:
        Ones and zeros of the shape of `input`, the same for all places along `axis`.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    if not isinstance(axis, int):
        raise TypeError("axis must be int type.")
    if not isinstance(indexes, list):
        raise TypeError("indexes must be list type.")
    if axis not in (1, 2, 3):
        raise ArgumentError("axis must be 1, 2 or 3.")
    if not indexes:
        raise ArgumentError("indexes can not be empty.")
    return run_layer("similarity_focus", locals(), X="input")
