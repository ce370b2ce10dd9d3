"""Normalisation, and parameters by channel."""

from __future__ import annotations

import numpy as np

from ...base.batch_norm import uses_moving_statistics
from ...base.dtypes import to_numpy
from ..graph import Exported, exports
from .math import scalar
from .tensors import like


def _one_each(o: Exported, slot: str, count: int, default: float) -> str:
    """The parameter [count] of a slot, or a constant filled with `default`."""
    return o.input(slot) if o.has(slot) else o.constant(np.full(count, default, to_numpy(o.dtype("X"))))


@exports("batch_norm")
def _batch_norm(o: Exported) -> None:
    how = (o.attr(name) for name in ("is_test", "use_global_stats", "trainable_statistics"))
    if not uses_moving_statistics(*how):
        raise o.fail("uses batch statistics: export a program for tests (clone(for_test=True))")
    x, last = o.input("X"), o.attr("data_layout") == "NHWC" and o.rank("X") > 2
    rank = o.rank("X")
    if last:
        x = o.node("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])
    statistics = [o.input(slot) for slot in ("Scale", "Bias", "Mean", "Variance")]
    y = o.node("BatchNormalization", x, *statistics, epsilon=o.attr("epsilon"))
    if o.attr("fuse_with_relu"):
        y = o.node("Relu", y)
    o.out("Y", o.node("Transpose", y, perm=[0, *range(2, rank), 1]) if last else y)


@exports("layer_norm")
def _layer_norm(o: Exported) -> None:
    """Several normalised axes are flattened into one first."""
    x, axis = o.input("X"), o.attr("begin_norm_axis")
    width = int(np.prod(o.static("X", *range(axis, o.rank("X")))))
    flat = axis < o.rank("X") - 1
    rows = o.node("Flatten", x, axis=axis) if flat else x
    scale, bias = _one_each(o, "Scale", width, 1), _one_each(o, "Bias", width, 0)
    y = o.node("LayerNormalization", rows, scale, bias, axis=-1, epsilon=o.attr("epsilon"))
    o.out("Y", like(o, y, x) if flat else y)


@exports("group_norm")
def _group_norm(o: Exported) -> None:
    if o.attr("data_layout") == "NHWC":
        raise o.fail("has its channels last")
    x, groups, (channels,) = o.input("X"), o.attr("groups"), o.static("X", 1)
    rows = o.node("Reshape", x, o.ints(0, groups, -1))
    ends = [o.constant(np.full(groups, value, to_numpy(o.dtype("X")))) for value in (1, 0)]
    y = like(o, o.node("InstanceNormalization", rows, *ends, epsilon=o.attr("epsilon")), x)
    y = o.node("Mul", y, per_channel(o, _one_each(o, "Scale", channels, 1), o.rank("X")))
    o.out("Y", o.node("Add", y, per_channel(o, _one_each(o, "Bias", channels, 0), o.rank("X"))))


@exports("instance_norm")
def _instance_norm(o: Exported) -> None:
    o.out(
        "Y", o.node("InstanceNormalization", *map(o.input, ("X", "Scale", "Bias")), epsilon=o.attr("epsilon"))
    )


def per_channel(o: Exported, numbers: str, rank: int) -> str:
    """A number for each channel, in the shape that goes with [N, C, ...]."""
    return str(o.node("Reshape", numbers, o.ints(-1, *[1] * (rank - 2))))


@exports("affine_channel")
def _affine_channel(o: Exported) -> None:
    if o.attr("data_layout") != "NCHW":
        raise o.fail("has its channels last")
    y = o.node("Mul", o.input("X"), per_channel(o, o.input("Scale"), o.rank("X")))
    o.out("Out", o.node("Add", y, per_channel(o, o.input("Bias"), o.rank("X"))))


@exports("prelu")
def _prelu(o: Exported) -> None:
    slope = o.input("Alpha")
    if o.attr("mode") == "channel":
        slope = per_channel(o, slope, o.rank("X"))
    elif o.attr("mode") == "element":
        slope = o.node("Reshape", slope, o.ints(*o.static("X", *range(1, o.rank("X")))))
    o.out("Out", o.node("PRelu", o.input("X"), slope))


@exports("norm")
def _norm(o: Exported) -> None:
    """Divide by the L2 norm along an axis."""
    x = o.input("X")
    squares = o.node("ReduceSum", o.node("Mul", x, x), o.ints(o.attr("axis")), keepdims=1)
    length = o.node("Sqrt", o.node("Add", squares, scalar(o, o.attr("epsilon"))))
    o.out("Norm", length)
    o.out("Out", o.node("Div", x, length))


@exports("lrn")
def _lrn(o: Exported) -> None:
    size = o.attr("n")
    given = {"alpha": o.attr("alpha") * size, "beta": o.attr("beta"), "bias": o.attr("k")}
    o.out("Out", o.node("LRN", o.input("X"), size=size, **given))


@exports("cos_sim")
def _cos_sim(o: Exported) -> None:
    """The cosine between each row of X and that of Y, which may have one row for all."""
    x, y = (o.node("Flatten", o.input(slot), axis=1) for slot in ("X", "Y"))

    def summed(one: str, other: str) -> str:
        return str(o.node("ReduceSum", o.node("Mul", one, other), o.ints(1), keepdims=1))

    lengths = [o.node("Sqrt", summed(rows, rows)) for rows in (x, y)]
    o.out("XNorm", lengths[0])
    o.out("YNorm", lengths[1])
    o.out("Out", o.node("Div", o.node("Div", summed(x, y), lengths[0]), lengths[1]))
