"""Convolutions, pooling, resized images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ..graph import Exported, exports
from .tensors import size_of, sizes


def _window(o: Exported, size: int, channels_first: bool = True) -> dict[str, Any]:
    """Strides and paddings as ONNX has them, for `size` dimensions."""
    if not channels_first:
        raise o.fail("has its channels last")
    strides, padding = list(o.attr("strides")), o.attr("padding_algorithm")
    if padding == "SAME":
        return {"strides": strides, "auto_pad": "SAME_UPPER"}
    pads = [0] * size if padding == "VALID" else list(o.attr("paddings"))
    if len(pads) == size:
        return {"strides": strides, "pads": pads * 2}
    return {"strides": strides, "pads": pads[::2] + pads[1::2]}


@exports("conv2d", "depthwise_conv2d", "conv3d")
def _convolution(o: Exported) -> None:
    window = _window(o, o.rank("Input") - 2, o.attr("data_format") not in ("NHWC", "NDHWC"))
    dilations = list(o.attr("dilations"))
    if "auto_pad" in window:
        dilations = [1] * len(dilations)
    operands = [o.input("Input"), o.input("Filter"), *o.inputs("Bias")]
    o.out("Output", o.node("Conv", *operands, group=o.attr("groups"), dilations=dilations, **window))


@exports("conv2d_transpose", "depthwise_conv2d_transpose")
def _transposed_convolution(o: Exported) -> None:
    window = _window(o, 2, o.attr("data_format") != "NHWC")
    if "auto_pad" in window:
        raise o.fail("has the padding SAME")
    kernel, dilations = o.static("Filter", 2, 3), list(o.attr("dilations"))
    wanted, more = list(o.attr("output_size") or []), [0, 0]
    if wanted:
        places = o.static("Input", 2, 3)
        for i in range(2):
            reached = (places[i] - 1) * window["strides"][i] + dilations[i] * (kernel[i] - 1) + 1
            more[i] = wanted[i] - (reached - window["pads"][i] - window["pads"][i + 2])
    operands = [o.input("Input"), o.input("Filter"), *o.inputs("Bias")]
    given = {"group": o.attr("groups"), "dilations": dilations, "output_padding": more}
    o.out("Output", o.node("ConvTranspose", *operands, **given, **window))


@exports("pool2d", "pool3d", "max_pool2d_with_index")
def _pool(o: Exported) -> None:
    count, x, kernel = o.rank("X") - 2, o.input("X"), list(o.attr("ksize"))
    window = _window(o, count, o.attr("data_format") not in ("NHWC", "NDHWC"))
    most = o.op.type == "max_pool2d_with_index" or o.attr("pooling_type") == "max"
    if o.wants("Mask") and o.op.outputs["Mask"][0] in o.read_later():
        raise o.fail("returns the indices of the maxima")
    if o.attr("global_pooling") or o.attr("adaptive") and kernel == [1] * count:
        o.out("Out", o.node("GlobalMaxPool" if most else "GlobalAveragePool", x))
        return
    if o.attr("adaptive"):
        places = o.static("X", *range(2, 2 + count))
        if any(n % k for n, k in zip(places, kernel, strict=True)):
            raise o.fail(f"pools {places} elements into {kernel} windows of different sizes")
        kernel = [n // k for n, k in zip(places, kernel, strict=True)]
        window = {"strides": kernel}
    shared: dict[str, Any] = {"kernel_shape": kernel, "ceil_mode": int(bool(o.attr("ceil_mode")))}
    if most:
        o.out("Out", o.node("MaxPool", x, **shared, **window))
    else:
        inside = int(not o.attr("exclusive") and not o.attr("adaptive"))
        o.out("Out", o.node("AveragePool", x, count_include_pad=inside, **shared, **window))


@exports("bilinear_interp", "nearest_interp")
def _resize(o: Exported) -> None:
    if o.attr("data_layout") == "NHWC" or o.has("Scale"):
        raise o.fail("has its channels last, or takes its scale from a tensor")
    x, scale = o.input("X"), o.attr("scale")
    if o.has("OutSize") or o.has("SizeTensor"):
        goal = sizes(o, "OutSize", "SizeTensor", "out_h")
    elif scale and scale > 0:
        places = o.node("Cast", o.node("Slice", o.node("Shape", x), o.ints(2), o.ints(4)), to=1)
        goal = o.cast(o.node("Floor", o.node("Mul", places, o.constant(scale, "float32"))), VarType.INT64)
    else:
        goal = o.ints(o.attr("out_h"), o.attr("out_w"))
    goal = o.node("Concat", o.node("Slice", o.node("Shape", x), o.ints(0), o.ints(2)), goal, axis=0)
    linear, corners = o.op.type == "bilinear_interp", o.attr("align_corners")
    if corners:
        how = "align_corners"
    else:
        how = "half_pixel" if linear and o.attr("align_mode") == 0 else "asymmetric"
    given: dict[str, Any] = {"coordinate_transformation_mode": how, "mode": "linear" if linear else "nearest"}
    if not linear:
        given["nearest_mode"] = "round_prefer_ceil" if corners else "floor"
    o.out("Out", o.node("Resize", x, "", "", goal, **given))


@exports("pixel_shuffle")
def _pixel_shuffle(o: Exported) -> None:
    if o.attr("data_format") == "NHWC":
        raise o.fail("has its channels last")
    o.out("Out", o.node("DepthToSpace", o.input("X"), blocksize=o.attr("upscale_factor"), mode="CRD"))


@exports("im2sequence")
def _im2sequence(o: Exported) -> None:
    """Windows of images as rows, by a convolution with one one-hot filter for each element of the window."""
    if o.has("Y"):
        raise o.fail("takes the sizes of images from a tensor")
    x, (channels,) = o.input("X"), o.static("X", 1)
    high, wide = o.attr("kernels")
    width, pads = channels * high * wide, list(o.attr("paddings"))
    taking = np.eye(width, dtype=to_numpy(o.dtype("X"))).reshape(width, channels, high, wide)
    rows = o.node("Conv", x, o.constant(taking), strides=list(o.attr("strides")), pads=pads)
    places = o.node("Slice", o.node("Shape", rows), o.ints(2), o.ints(4))
    lengths = o.node("Expand", o.node("ReduceProd", places, keepdims=1), size_of(o, x, 0))
    rows = o.node("Transpose", rows, perm=[0, 2, 3, 1])
    o.out("Out", o.node("Reshape", rows, o.ints(-1, width)), lengths)


@exports("maxout")
def _maxout(o: Exported) -> None:
    (channels,), groups = o.static("X", 1), o.attr("groups")
    places = o.node("Slice", o.node("Shape", o.input("X")), o.ints(2), o.ints(o.rank("X")))
    parts = o.node("Concat", o.ints(0, channels // groups, groups), places, axis=0)
    o.out("Out", o.node("ReduceMax", o.node("Reshape", o.input("X"), parts), axes=[2], keepdims=0))


@exports("prior_box")
def _prior_box(o: Exported) -> None:
    """Prior boxes depend on the sizes of the images only and are exported as constants."""
    given = {}
    for slot in ("Input", "Image"):
        height, width = o.static(slot, 2, 3)
        given[slot] = [np.zeros((1, 1, height, width), to_numpy(o.dtype(slot)))]
    boxes, variances = o.op.definition.call(np, given, {name: o.attr(name) for name in o.op.definition.attrs})
    o.out("Boxes", o.node("Identity", o.constant(boxes)))
    o.out("Variances", o.node("Identity", o.constant(variances)))


@exports("box_coder")
def _box_coder(o: Exported) -> None:
    """Boxes from their offsets to prior boxes, one set of them for each row."""
    if o.attr("code_type") != "decode_center_size" or o.attr("axis") != 0:
        raise o.fail("encodes boxes, or has its prior boxes along axis 1")
    one = 0 if o.attr("box_normalized") else 1
    number = lambda value: o.constant(value, to_numpy(o.dtype("TargetBox")))  # noqa: E731
    column = lambda value, i: o.node("Slice", value, o.ints(i), o.ints(i + 1), o.ints(-1))  # noqa: E731
    left, top, right, bottom = (column(o.input("PriorBox"), i) for i in range(4))
    offsets = o.input("TargetBox")
    if o.has("PriorBoxVar"):
        offsets = o.node("Mul", offsets, o.input("PriorBoxVar"))
    elif o.attr("variance"):
        offsets = o.node("Mul", offsets, o.constant(o.attr("variance"), to_numpy(o.dtype("TargetBox"))))
    starts, ends = [], []
    for i, (low, high) in enumerate(((left, right), (top, bottom))):
        size = o.node("Add", o.node("Sub", high, low), number(one))
        middle = o.node("Add", low, o.node("Mul", size, number(0.5)))
        middle = o.node("Add", o.node("Mul", column(offsets, i), size), middle)
        half = o.node("Mul", o.node("Mul", o.node("Exp", column(offsets, i + 2)), size), number(0.5))
        starts.append(o.node("Sub", middle, half))
        ends.append(o.node("Sub", o.node("Add", middle, half), number(one)))
    o.out("OutputBox", o.node("Concat", *starts, *ends, axis=-1))
