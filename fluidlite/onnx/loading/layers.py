"""Convolutions, pooling, normalisation, pictures in other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .values import Node, imports


def _pads(n: Node, count: int) -> dict[str, Any]:
    """Paddings as Fluid has them: two numbers for each dimension."""
    kind = n.attr("auto_pad", "NOTSET")
    if kind == "SAME_LOWER":
        raise n.fail("has auto_pad SAME_LOWER")
    if kind != "NOTSET":
        return {"padding_algorithm": "SAME" if kind == "SAME_UPPER" else "VALID", "paddings": [0] * count}
    pads = list(n.attr("pads") or [0] * (2 * count))
    return {"paddings": [pads[k // 2 + (k % 2) * count] for k in range(2 * count)]}


@imports("Conv", "ConvTranspose")
def _convolution(n: Node) -> None:
    count = n.rank() - 2
    turned = n.kind == "ConvTranspose"
    if count not in (2, 3) or turned and count != 2:
        raise n.fail(f"has {count} dimensions")
    window = {
        "strides": list(n.attr("strides") or [1] * count),
        "dilations": list(n.attr("dilations") or [1] * count),
        "groups": n.attr("group", 1),
        **_pads(n, count),
    }
    if turned and (n.attr("output_shape") or any(n.attr("output_padding") or [])):
        raise n.fail("has output_shape or output_padding")
    kind = "conv2d_transpose" if turned else f"conv{count}d"
    out = n.op(kind, {"Input": n.var(), "Filter": n.var(1)}, "Output", **window)
    if n.has(2):
        out = n.op("elementwise_add", {"X": out, "Y": n.var(2)}, axis=1)
    n.out(out)


@imports("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool")
def _pool(n: Node) -> None:
    count, most = n.rank() - 2, "Max" in n.kind
    if count not in (2, 3) or len(n.node.output) > 1 and n.node.output[1]:
        raise n.fail(f"has {count} dimensions, or says where the largest numbers are")
    attrs: dict[str, Any] = {"pooling_type": "max" if most else "avg"}
    if n.kind.startswith("Global"):
        n.out(n.op(f"pool{count}d", {"X": n.var()}, ksize=[1] * count, global_pooling=True, **attrs))
        return
    if any(k != 1 for k in n.attr("dilations") or []):
        raise n.fail("has dilations")
    attrs["strides"] = list(n.attr("strides") or [1] * count)
    attrs["ceil_mode"] = bool(n.attr("ceil_mode", 0))
    attrs["exclusive"] = not n.attr("count_include_pad", 0)
    n.out(
        n.op(f"pool{count}d", {"X": n.var()}, ksize=list(n.attr("kernel_shape")), **attrs, **_pads(n, count))
    )


@imports("BatchNormalization")
def _batch_norm(n: Node) -> None:
    if n.attr("training_mode", 0):
        raise n.fail("counts statistics of batches")
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
            inputs[slot] = n.op("reshape2", {"X": given}, more=["XShape"], shape=[-1]) if flat else given
    attrs = {"begin_norm_axis": axis, "epsilon": n.attr("epsilon", 1e-5)}
    n.out(n.op("layer_norm", inputs, "Y", more=["Mean", "Variance"], **attrs))


@imports("InstanceNormalization")
def _instance_norm(n: Node) -> None:
    """Any number of dimensions behind the channels."""
    x, rank = n.var(), n.rank()
    if rank == 3:
        x = n.op("unsqueeze2", {"X": x}, more=["XShape"], axes=[3])
    inputs = {"X": x, "Scale": n.var(1), "Bias": n.var(2)}
    saved = ["SavedMean", "SavedVariance"]
    y = n.op("instance_norm", inputs, "Y", more=saved, epsilon=n.attr("epsilon", 1e-5))
    n.out(n.op("squeeze2", {"X": y}, more=["XShape"], axes=[3]) if rank == 3 else y)


@imports("GroupNormalization")
def _group_norm(n: Node) -> None:
    """Of opset 21; before that scale and bias belonged to groups."""
    inputs = {"X": n.var(), "Scale": n.var(1), "Bias": n.var(2)}
    if n.maker.opset < 21:
        raise n.fail("has a scale for each group, as opsets before 21 have it")
    attrs = {"epsilon": n.attr("epsilon", 1e-5), "groups": n.attr("num_groups")}
    n.out(n.op("group_norm", inputs, "Y", more=["Mean", "Variance"], **attrs))


@imports("PRelu")
def _prelu(n: Node) -> None:
    slope = n.var(1)
    below = n.op("elementwise_mul", {"X": n.op("scale", {"X": n.op("relu", {"X": n.op(
        "scale", {"X": n.var()}, scale=-1.0)})}, scale=-1.0), "Y": slope}, axis=-1)  # fmt: skip
    n.out(n.op("elementwise_add", {"X": n.op("relu", {"X": n.var()}), "Y": below}, axis=-1))


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


@imports("DepthToSpace")
def _depth_to_space(n: Node) -> None:
    if n.attr("mode", "DCR") != "CRD":
        raise n.fail("has mode DCR")
    n.out(n.op("pixel_shuffle", {"X": n.var()}, upscale_factor=n.attr("blocksize")))


@imports("Resize")
def _resize(n: Node) -> None:
    how, mode = n.attr("coordinate_transformation_mode", "half_pixel"), n.attr("mode", "nearest")
    near = n.attr("nearest_mode", "round_prefer_floor")
    if n.attr("antialias", 0) or n.attr("axes") or n.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise n.fail("has antialias, axes or keep_aspect_ratio_policy")
    table: dict[tuple[str, str], dict[str, Any] | None] = {
        ("linear", "align_corners"): {"align_corners": True},
        ("linear", "half_pixel"): {"align_corners": False, "align_mode": 0},
        ("linear", "pytorch_half_pixel"): {"align_corners": False, "align_mode": 0},
        ("linear", "asymmetric"): {"align_corners": False, "align_mode": 1},
        ("nearest", "align_corners"): {"align_corners": True} if near == "round_prefer_ceil" else None,
        ("nearest", "asymmetric"): {"align_corners": False} if near == "floor" else None,
    }
    known = table.get((mode, how))
    if known is None or n.rank() != 4:
        raise n.fail(f"has mode {mode} with {how} and {near}, for {n.rank()} dimensions")
    attrs = dict(known)
    if n.has(3):
        sizes = n.value(3).sizes or n.ints(3)
        if not all(isinstance(size, int) for size in sizes[2:]):
            raise n.fail("computes the sizes of pictures")
        attrs["out_h"], attrs["out_w"] = sizes[2:]
    else:
        scales = n.array(2)
        if not np.allclose(scales[:2], 1) or scales[2] != scales[3]:
            raise n.fail(f"has scales {scales.tolist()}")
        attrs["scale"] = float(scales[2])
    kind = "bilinear" if mode == "linear" else "nearest"
    n.out(n.op(f"{kind}_interp", {"X": n.var()}, interp_method=kind, data_layout="NCHW", **attrs))
