"""Boxes."""

from __future__ import annotations

from ...base.dtypes import VarType
from ...framework import Variable
from .values import Node, Size, imports


@imports("NonMaxSuppression")
def _non_max_suppression(n: Node) -> None:
    """By multiclass_nms2: its Index gives image and box, the first column of its Out the class of each box kept."""
    boxes, scores = _corners(n), n.var(1)
    count = n.ints(2)[0] if n.has(2) else 0
    most = {"nms_top_k": -1, "keep_top_k": -1, "background_label": -1, "nms_eta": 1.0, "normalized": True}
    ends = {name: float(n.array(i).item()) if n.has(i) else default
            for i, name, default in ((3, "nms_threshold", 0.0), (4, "score_threshold", -3e38))}  # fmt: skip
    index = n.op(
        "multiclass_nms2", {"BBoxes": boxes, "Scores": scores}, "Index", more=["Out"], **most, **ends
    )
    found = n.maker.block.var(n.maker.block.ops[-1].output("Out")[0])
    boxes_of_each = _size(n, 0, 1)
    index = n.op("cast", {"X": _plain(n, index)}, in_dtype=VarType.INT32, out_dtype=VarType.INT64)
    label = n.op("slice", {"Input": found}, axes=[1], starts=[0], ends=[1])
    label = n.cast(_plain(n, label), VarType.INT64)
    image = n.pair("floordiv", index, boxes_of_each)
    box = n.pair("sub", index, n.pair("mul", image, boxes_of_each))
    rows = n.op("concat", {"X": [image, label, box]}, axis=1)
    # Keep at most `count` boxes of each class of an image: count the earlier ones of the same class.
    classes = _size(n, 1, 1)
    key = n.pair("add", n.pair("mul", image, classes), label)
    stretch = n.op("reduce_max", {"X": scores}, dim=[2], keep_dim=False, reduce_all=False)
    stretch = n.op("reshape2", {"X": stretch}, more=["XShape"], shape=[-1])
    none = n.filled(stretch, 0.0, VarType.INT64)
    ones = n.op("reshape2", {"X": n.filled(index, 1.0, VarType.INT64)}, more=["XShape"], shape=[-1])
    counts = n.op("scatter_nd_add", {"X": none, "Index": key, "Updates": ones})
    before = n.op("cumsum", {"X": counts}, axis=0, exclusive=True)
    place = n.op("cumsum", {"X": ones}, axis=0, exclusive=True)
    rank = n.pair("sub", place, n.op("gather_nd", {"X": before, "Index": key}))
    kept = n.op("where_index", {"Condition": n.pair("less_than", rank, n.number(count, VarType.INT64))})
    kept = n.op("reshape2", {"X": kept}, more=["XShape"], shape=[-1])
    n.out(n.op("gather", {"X": rows, "Index": kept}))


def _corners(n: Node) -> Variable:
    """Boxes as two corners, the smaller coordinates first."""
    first, second = (n.op("slice", {"Input": n.var()}, axes=[2], starts=[k], ends=[k + 2]) for k in (0, 2))
    if n.attr("center_point_box", 0):
        half = n.scaled(second, 0.5)
        first, second = n.pair("sub", first, half), n.pair("add", first, half)
    ends = [n.pair("min", first, second), n.pair("max", first, second)]
    return n.op("concat", {"X": ends}, axis=2)


def _size(n: Node, index: int, axis: int) -> Variable:
    size = n.shape(index)[axis]
    return n.maker.size(size if size >= 0 else Size(n.var(index).name, axis), "int64")


def _plain(n: Node, x: Variable) -> Variable:
    """`x` without its LoD."""
    return n.op("reshape2", {"X": x}, more=["XShape"], shape=[-1, 1])


@imports("RoiAlign")
def _roi_align(n: Node) -> None:
    """Sort regions by image, as Fluid needs them, and restore the order afterwards."""
    if (
        n.attr("mode", "avg") != "avg"
        or n.attr("coordinate_transformation_mode", "half_pixel") != "output_half_pixel"
    ):
        raise n.fail(
            "has another mode than avg, or another coordinate_transformation_mode than output_half_pixel"
        )
    picture = n.cast(n.var(2), VarType.INT64)
    _, order = n.ordered(picture)
    _, back = n.ordered(order)
    each = n.op(
        "slice",
        {"Input": n.filled(n.var(), 0.0, VarType.INT64)},
        axes=[1, 2, 3],
        starts=[0] * 3,
        ends=[1] * 3,
    )
    none = n.op("reshape2", {"X": each}, more=["XShape"], shape=[-1])
    rows = n.op("unsqueeze2", {"X": picture}, more=["XShape"], axes=[1])
    ones = n.filled(picture, 1.0, VarType.INT64)
    counts = n.op("scatter_nd_add", {"X": none, "Index": rows, "Updates": ones})
    ends = n.op("cumsum", {"X": counts}, axis=0)
    offsets = n.op("concat", {"X": [n.number(0, VarType.INT64), ends]}, axis=0)
    attrs = {
        "spatial_scale": n.attr("spatial_scale", 1.0),
        "pooled_height": n.attr("output_height", 1),
        "pooled_width": n.attr("output_width", 1),
        "sampling_ratio": n.attr("sampling_ratio", 0) or -1,
    }
    regions = n.op("gather", {"X": n.var(1), "Index": order})
    out = n.op("roi_align", {"X": n.var(), "ROIs": regions, "RoisLod": offsets}, **attrs)
    n.out(n.op("gather", {"X": out, "Index": back}))
