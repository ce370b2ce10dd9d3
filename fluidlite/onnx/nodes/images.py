"""Convolutions, pooling, resized images, normalisation, and parameters by channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.windows import uses_moving_statistics
from ..graph import Exported, exports
from .math import scalar
from .tensors import like, size_of, sizes


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
def _convolution(o: Exported) -> str:
    window = _window(o, o.rank("Input") - 2, o.attr("data_format") not in ("NHWC", "NDHWC"))
    dilations = list(o.attr("dilations"))
    if "auto_pad" in window:
        dilations = [1] * len(dilations)
    operands = [o.input("Input"), o.input("Filter"), *o.inputs("Bias")]
    return o.node("Conv", *operands, group=o.attr("groups"), dilations=dilations, **window)


@exports("conv2d_transpose", "depthwise_conv2d_transpose")
def _transposed_convolution(o: Exported) -> str:
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
    return o.node("ConvTranspose", *operands, **given, **window)


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
def _resize(o: Exported) -> str:
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
    return o.node("Resize", x, "", "", goal, **given)


@exports("pixel_shuffle")
def _pixel_shuffle(o: Exported) -> str:
    if o.attr("data_format") == "NHWC":
        raise o.fail("has its channels last")
    return o.node("DepthToSpace", o.input("X"), blocksize=o.attr("upscale_factor"), mode="CRD")


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
def _maxout(o: Exported) -> str:
    (channels,), groups = o.static("X", 1), o.attr("groups")
    places = o.node("Slice", o.node("Shape", o.input("X")), o.ints(2), o.ints(o.rank("X")))
    parts = o.node("Concat", o.ints(0, channels // groups, groups), places, axis=0)
    return o.node("ReduceMax", o.node("Reshape", o.input("X"), parts), axes=[2], keepdims=0)


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
def _box_coder(o: Exported) -> str:
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
    return o.node("Concat", *starts, *ends, axis=-1)


def _one_each(o: Exported, slot: str, count: int, default: float) -> str:
    """The parameter [count] of a slot, or a constant filled with `default`."""
    return o.input(slot) if o.has(slot) else o.constant(np.full(count, default, to_numpy(o.dtype("X"))))


@exports("batch_norm")
def _batch_norm(o: Exported) -> str:
    if not uses_moving_statistics(o.attr):
        raise o.fail("uses batch statistics: export a program for tests (clone(for_test=True))")
    x, last = o.input("X"), o.attr("data_layout") == "NHWC" and o.rank("X") > 2
    rank = o.rank("X")
    if last:
        x = o.node("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])
    statistics = [o.input(slot) for slot in ("Scale", "Bias", "Mean", "Variance")]
    y = o.node("BatchNormalization", x, *statistics, epsilon=o.attr("epsilon"))
    if o.attr("fuse_with_relu"):
        y = o.node("Relu", y)
    return o.node("Transpose", y, perm=[0, *range(2, rank), 1]) if last else y


@exports("layer_norm")
def _layer_norm(o: Exported) -> str:
    """Several normalised axes are flattened into one first."""
    x, axis = o.input("X"), o.attr("begin_norm_axis")
    width = int(np.prod(o.static("X", *range(axis, o.rank("X")))))
    flat = axis < o.rank("X") - 1
    rows = o.node("Flatten", x, axis=axis) if flat else x
    scale, bias = _one_each(o, "Scale", width, 1), _one_each(o, "Bias", width, 0)
    y = o.node("LayerNormalization", rows, scale, bias, axis=-1, epsilon=o.attr("epsilon"))
    return like(o, y, x) if flat else y


@exports("group_norm")
def _group_norm(o: Exported) -> str:
    if o.attr("data_layout") == "NHWC":
        raise o.fail("has its channels last")
    x, groups, (channels,) = o.input("X"), o.attr("groups"), o.static("X", 1)
    rows = o.node("Reshape", x, o.ints(0, groups, -1))
    ends = [o.constant(np.full(groups, value, to_numpy(o.dtype("X")))) for value in (1, 0)]
    y = like(o, o.node("InstanceNormalization", rows, *ends, epsilon=o.attr("epsilon")), x)
    y = o.node("Mul", y, per_channel(o, _one_each(o, "Scale", channels, 1), o.rank("X")))
    return o.node("Add", y, per_channel(o, _one_each(o, "Bias", channels, 0), o.rank("X")))


@exports("instance_norm")
def _instance_norm(o: Exported) -> str:
    return o.node("InstanceNormalization", *map(o.input, ("X", "Scale", "Bias")), epsilon=o.attr("epsilon"))


def per_channel(o: Exported, numbers: str, rank: int) -> str:
    """A number for each channel, in the shape that goes with [N, C, ...]."""
    return o.node("Reshape", numbers, o.ints(-1, *[1] * (rank - 2)))


@exports("affine_channel")
def _affine_channel(o: Exported) -> str:
    if o.attr("data_layout") != "NCHW":
        raise o.fail("has its channels last")
    y = o.node("Mul", o.input("X"), per_channel(o, o.input("Scale"), o.rank("X")))
    return o.node("Add", y, per_channel(o, o.input("Bias"), o.rank("X")))


@exports("prelu")
def _prelu(o: Exported) -> str:
    slope = o.input("Alpha")
    if o.attr("mode") == "channel":
        slope = per_channel(o, slope, o.rank("X"))
    elif o.attr("mode") == "element":
        slope = o.node("Reshape", slope, o.ints(*o.static("X", *range(1, o.rank("X")))))
    return o.node("PRelu", o.input("X"), slope)


@exports("norm")
def _norm(o: Exported) -> None:
    """Divide by the L2 norm along an axis."""
    x = o.input("X")
    squares = o.node("ReduceSum", o.node("Mul", x, x), o.ints(o.attr("axis")), keepdims=1)
    length = o.node("Sqrt", o.node("Add", squares, scalar(o, o.attr("epsilon"))))
    o.out("Norm", length)
    o.out("Out", o.node("Div", x, length))


@exports("lrn")
def _lrn(o: Exported) -> str:
    size = o.attr("n")
    given = {"alpha": o.attr("alpha") * size, "beta": o.attr("beta"), "bias": o.attr("k")}
    return o.node("LRN", o.input("X"), size=size, **given)


@exports("cos_sim")
def _cos_sim(o: Exported) -> None:
    """The cosine between each row of X and that of Y, which may have one row for all."""
    x, y = (o.node("Flatten", o.input(slot), axis=1) for slot in ("X", "Y"))

    def summed(one: str, other: str) -> str:
        return o.node("ReduceSum", o.node("Mul", one, other), o.ints(1), keepdims=1)

    lengths = [o.node("Sqrt", summed(rows, rows)) for rows in (x, y)]
    o.out("XNorm", lengths[0])
    o.out("YNorm", lengths[1])
    o.out("Out", o.node("Div", o.node("Div", summed(x, y), lengths[0]), lengths[1]))
