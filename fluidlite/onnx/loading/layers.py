"""Convolutions, pooling, normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...framework import Variable
from .values import Node, imports
from .windows import max_pooled


def _pads(n: Node, count: int, window: Sequence[int]) -> dict[str, Any]:
    """The attributes `paddings`, two numbers for each dimension, or `padding_algorithm`."""
    kind = n.attr("auto_pad", "NOTSET")
    if kind in ("SAME_UPPER", "VALID"):
        return {"padding_algorithm": "SAME" if kind == "SAME_UPPER" else "VALID", "paddings": [0] * count}
    pads = list(n.attr("pads") or [0] * (2 * count))
    if kind == "SAME_LOWER":
        dilations, strides = n.attr("dilations") or [1] * count, n.attr("strides") or [1] * count
        for k, (size, long, stride) in enumerate(zip(n.shape()[2:], window, strides, strict=True)):
            if size < 0 and stride > 1:
                raise n.fail("has auto_pad SAME_LOWER and sizes that are unknown until run time")
            over = max((-(-size // stride) - 1) * stride + dilations[k] * (long - 1) + 1 - size, 0)
            over = dilations[k] * (long - 1) if stride == 1 else over
            pads[k], pads[k + count] = over - over // 2, over // 2
    return {"paddings": [pads[k // 2 + (k % 2) * count] for k in range(2 * count)]}


def _as_image(n: Node, x: Variable) -> Variable:
    """Insert an axis of size 1 after the channels, so that a 1D input is an image of height 1."""
    return n.unsqueezed(x, [2])


def _as_line(n: Node, x: Variable) -> Variable:
    return n.squeezed(x, [2])


def _attrs_2d(attrs: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a 1D operator for the 2D one."""
    neutral = {"strides": [1], "dilations": [1], "paddings": [0] * len(attrs["paddings"]), "ksize": [1]}
    return {name: [*neutral[name], *value] if name in neutral else value for name, value in attrs.items()}


def convolved(n: Node, x: Variable, weights: Variable, window: Sequence[int]) -> Variable:
    """Append the 1D, 2D or 3D convolution that the attributes of a node describe."""
    count = n.rank() - 2
    if count not in (1, 2, 3):
        raise n.fail(f"has {count} dimensions")
    attrs = {
        "strides": list(n.attr("strides") or [1] * count),
        "dilations": list(n.attr("dilations") or [1] * count),
        "groups": n.attr("group", 1),
        **_pads(n, count, window),
    }
    if count == 1:
        x, weights, attrs = _as_image(n, x), _as_image(n, weights), _attrs_2d(attrs)
    out = n.op(f"conv{max(count, 2)}d", {"Input": x, "Filter": weights}, "Output", **attrs)
    return _as_line(n, out) if count == 1 else out


@imports("Conv")
def _convolution(n: Node) -> None:
    _with_bias(n, convolved(n, n.var(), n.var(1), n.shape(1)[2:]))


@imports("DeformConv")
def _deformable_convolution(n: Node) -> None:
    """DeformConv: inputs are the image, weights, offsets, bias and mask."""
    pads = list(n.attr("pads") or [0] * 4)
    if n.rank() != 4 or pads[:2] != pads[2:]:
        raise n.fail(f"has {n.rank() - 2} dimensions and padding {pads}, expected two, alike on both sides")
    attrs = {
        "strides": list(n.attr("strides") or [1, 1]),
        "dilations": list(n.attr("dilations") or [1, 1]),
        "paddings": pads[:2],
        "groups": n.attr("group", 1),
        "deformable_groups": n.attr("offset_group", 1),
        "im2col_step": 1,
    }
    inputs = {"Input": n.var(), "Filter": n.var(1), "Offset": n.var(2)}
    if n.has(4):
        out = n.op("deformable_conv", {**inputs, "Mask": n.var(4)}, "Output", **attrs)
    else:
        out = n.op("deformable_conv_v1", inputs, "Output", **attrs)
    n.out(n.op("elementwise_add", {"X": out, "Y": n.var(3)}, axis=1) if n.has(3) else out)


def _with_bias(n: Node, out: Variable) -> None:
    n.out(n.op("elementwise_add", {"X": out, "Y": n.var(2)}, axis=1) if n.has(2) else out)


@imports("ConvTranspose")
def _transposed_convolution(n: Node) -> None:
    """ConvTranspose: output_padding reduces the padding at the ends, or appends zeros where there is none."""
    count, x, weights = n.rank() - 2, n.var(), n.var(1)
    if count not in (1, 2, 3):
        raise n.fail(f"has {count} dimensions")
    strides, dilations = (list(n.attr(name) or [1] * count) for name in ("strides", "dilations"))
    pads, more = list(n.attr("pads") or [0] * (2 * count)), list(n.attr("output_padding") or [0] * count)
    kind, wanted = n.attr("auto_pad", "NOTSET"), n.attr("output_shape")
    long = [dilations[k] * (size - 1) + 1 for k, size in enumerate(n.shape(1)[2:])]
    if wanted or kind.startswith("SAME"):
        for k, size in enumerate(n.shape()[2:]):
            if wanted and size < 0:
                raise n.fail("has output_shape, and sizes that are unknown until run time")
            less = (
                strides[k] * (size - 1)
                + more[k]
                + long[k]
                - (wanted[k - count] if wanted else size * strides[k])
            )
            if less < 0:
                raise n.fail("has an output_shape larger than the unpadded result")
            begins = less // 2 if kind == "SAME_UPPER" else less - less // 2
            pads[k], pads[k + count] = begins, less - begins
    zeros = []
    for k in range(count):
        zeros += [0, max(more[k] - pads[k + count], 0)]
        pads[k + count] = max(pads[k + count] - more[k], 0)
    attrs = {"strides": strides, "dilations": dilations, "groups": n.attr("group", 1)}
    attrs["paddings"] = [pads[k // 2 + (k % 2) * count] for k in range(2 * count)]
    if count == 1:
        x, weights, attrs = _as_image(n, x), _as_image(n, weights), _attrs_2d(attrs)
    name = f"conv{max(count, 2)}d_transpose"
    out = n.op(name, {"Input": x, "Filter": weights}, "Output", **attrs)
    out = _as_line(n, out) if count == 1 else out
    if any(zeros):
        out = n.unary("pad", out, paddings=[0, 0, 0, 0, *zeros], pad_value=0.0)
    _with_bias(n, out)


@imports("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool")
def _pool(n: Node) -> None:
    if n.kind == "MaxPool":
        wants_indices = len(n.node.output) > 1 and n.node.output[1]
        if wants_indices or any(k != 1 for k in n.attr("dilations") or []):
            max_pooled(n)
            return
    n.out(pooled(n, n.var()))


def pooled(n: Node, x: Variable) -> Variable:
    """Append the 1D, 2D or 3D pooling that the type and attributes of a node describe."""
    count, most = n.rank() - 2, "Max" in n.kind
    if count not in (1, 2, 3):
        raise n.fail(f"has {count} dimensions")
    kind = f"pool{max(count, 2)}d"
    attrs: dict[str, Any] = {"pooling_type": "max" if most else "avg"}
    x = _as_image(n, x) if count == 1 else x
    if "Global" in n.kind:
        out = n.unary(kind, x, ksize=[1] * max(count, 2), global_pooling=True, **attrs)
        return _as_line(n, out) if count == 1 else out
    if any(k != 1 for k in n.attr("dilations") or []):
        raise n.fail("has dilations")
    window = list(n.attr("kernel_shape"))
    attrs |= {"ksize": window, "strides": list(n.attr("strides") or [1] * count), **_pads(n, count, window)}
    attrs["ceil_mode"], counted = bool(n.attr("ceil_mode", 0)), bool(n.attr("count_include_pad", 0))
    attrs["exclusive"] = not counted
    ends = _window_counts(n, attrs) if attrs["ceil_mode"] and "padding_algorithm" not in attrs else []
    attrs = _attrs_2d(attrs) if count == 1 else attrs
    if counted and not most and attrs["ceil_mode"]:
        # Averages count elements in the padding, but not beyond it.
        padding = [0] * 4 + attrs["paddings"]
        x = n.unary("pad", x, paddings=padding, pad_value=0.0)
        attrs |= {"paddings": [0] * len(attrs["paddings"]), "exclusive": True}
    out = n.unary(kind, x, **attrs)
    out = _as_line(n, out) if count == 1 else out
    if ends:
        axes = list(range(2, 2 + count))
        out = n.sliced(out, axes, [0] * count, ends)
    return out


def _window_counts(n: Node, attrs: dict[str, Any]) -> list[int]:
    """The numbers of windows if Fluid's ceil_mode adds one that covers padding only; otherwise nothing."""
    ends, cut = [], False
    for k, size in enumerate(n.shape()[2:]):
        before, after = attrs["paddings"][2 * k : 2 * k + 2]
        window, stride = attrs["ksize"][k], attrs["strides"][k]
        if stride + after <= window:
            ends.append(2**31 - 1)
            continue
        if size < 0:
            raise n.fail("has ceil_mode, and sizes that are unknown until run time")
        count = -(-(size + before + after - window) // stride) + 1
        empty = (count - 1) * stride >= size + before
        cut |= empty
        ends.append(count - empty)
    return ends if cut else []


@imports("BatchNormalization")
def _batch_norm(n: Node) -> None:
    if n.attr("training_mode", 0) or not n.attr("spatial", 1):
        raise n.fail("uses batch statistics, or has statistics of each element")
    mean, variance = n.var(3), n.var(4)
    inputs = {"X": n.var(), "Scale": n.var(1), "Bias": n.var(2), "Mean": mean, "Variance": variance}
    made = {
        slot: n.maker.block.create_var(dtype=n.var().dtype) for slot in ("Y", "SavedMean", "SavedVariance")
    }
    attrs = {"epsilon": n.attr("epsilon", 1e-5), "is_test": True, "data_layout": "NCHW"}
    outputs = {**made, "MeanOut": mean, "VarianceOut": variance}
    n.maker.block.append_op(type="batch_norm", inputs=inputs, outputs=outputs, attrs=attrs)
    n.out(made["Y"])


@imports("LayerNormalization")
def _layer_norm(n: Node) -> None:
    axis = n.attr("axis", -1) % n.rank()
    inputs = {"X": n.var()}
    for slot, index in (("Scale", 1), ("Bias", 2)):
        if n.has(index):
            given = n.var(index)
            flat = len(given.shape) > 1
            inputs[slot] = n.flat(given) if flat else given
    attrs = {"begin_norm_axis": axis, "epsilon": n.attr("epsilon", 1e-5)}
    n.out(n.op("layer_norm", inputs, "Y", more=["Mean", "Variance"], **attrs))


@imports("InstanceNormalization")
def _instance_norm(n: Node) -> None:
    """InstanceNormalization over any number of spatial axes."""
    x, rank = n.var(), n.rank()
    if rank == 3:
        x = n.unsqueezed(x, [3])
    inputs = {"X": x, "Scale": n.var(1), "Bias": n.var(2)}
    saved = ["SavedMean", "SavedVariance"]
    y = n.op("instance_norm", inputs, "Y", more=saved, epsilon=n.attr("epsilon", 1e-5))
    n.out(n.squeezed(y, [3]) if rank == 3 else y)


@imports("GroupNormalization")
def _group_norm(n: Node) -> None:
    """GroupNormalization of opset 21, with a scale for each channel."""
    inputs = {"X": n.var(), "Scale": n.var(1), "Bias": n.var(2)}
    attrs = {"epsilon": n.attr("epsilon", 1e-5), "groups": n.attr("num_groups")}
    n.out(n.op("group_norm", inputs, "Y", more=["Mean", "Variance"], **attrs))


@imports("PRelu")
def _prelu(n: Node) -> None:
    slope = n.var(1)
    negative = n.unary("relu", n.unary("scale", n.var(), scale=-1.0))
    below = n.pair("mul", n.unary("scale", negative, scale=-1.0), slope)
    n.out(n.pair("add", n.unary("relu", n.var()), below))


@imports("LRN")
def _lrn(n: Node) -> None:
    size = n.attr("size")
    attrs = {
        "n": size,
        "k": n.attr("bias", 1.0),
        "alpha": n.attr("alpha", 1e-4) / size,
        "beta": n.attr("beta", 0.75),
    }
    n.out(n.op("lrn", {"X": n.var()}, more=["MidOut"], **attrs))
