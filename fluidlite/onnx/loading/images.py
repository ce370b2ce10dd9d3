"""Images: resizing, depth to space, sampling at the positions of a grid, boxes."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...framework import Variable
from .elementwise import half_to_even
from .indexing import axis_indices, gathered
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
    index = n.unary("cast", _plain(n, index), in_dtype=VarType.INT32, out_dtype=VarType.INT64)
    label = n.sliced(found, [1], [0], [1])
    label = n.cast(_plain(n, label), VarType.INT64)
    image = n.pair("floordiv", index, boxes_of_each)
    box = n.pair("sub", index, n.pair("mul", image, boxes_of_each))
    rows = n.op("concat", {"X": [image, label, box]}, axis=1)
    # Keep at most `count` boxes of each class of an image: count the earlier ones of the same class.
    classes = _size(n, 1, 1)
    key = n.pair("add", n.pair("mul", image, classes), label)
    stretch = n.flat(n.unary("reduce_max", scores, dim=[2], keep_dim=False, reduce_all=False))
    none = n.filled(stretch, 0.0, VarType.INT64)
    ones = n.flat(n.filled(index, 1.0, VarType.INT64))
    counts = n.op("scatter_nd_add", {"X": none, "Index": key, "Updates": ones})
    before = n.unary("cumsum", counts, axis=0, exclusive=True)
    place = n.unary("cumsum", ones, axis=0, exclusive=True)
    rank = n.pair("sub", place, n.op("gather_nd", {"X": before, "Index": key}))
    kept = n.op("where_index", {"Condition": n.pair("less_than", rank, n.number(count, VarType.INT64))})
    kept = n.flat(kept)
    n.out(n.op("gather", {"X": rows, "Index": kept}))


def _corners(n: Node) -> Variable:
    """Boxes as two corners, the smaller coordinates first."""
    first, second = (n.sliced(n.var(), [2], [k], [k + 2]) for k in (0, 2))
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
    return n.shaped(x, [-1, 1])


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
    each = n.sliced(n.filled(n.var(), 0.0, VarType.INT64), [1, 2, 3], [0] * 3, [1] * 3)
    none = n.flat(each)
    rows = n.unsqueezed(picture, [1])
    ones = n.filled(picture, 1.0, VarType.INT64)
    counts = n.op("scatter_nd_add", {"X": none, "Index": rows, "Updates": ones})
    ends = n.unary("cumsum", counts, axis=0)
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


_CUBIC = -0.75


@imports("GridSample")
def _grid_sample(n: Node) -> None:
    mode, outside = n.attr("mode", "linear").removeprefix("bi"), n.attr("padding_mode", "zeros")
    sizes, corners = n.shape()[2:], bool(n.attr("align_corners", 0))
    if -1 in sizes or mode not in ("linear", "nearest", "cubic"):
        raise n.fail(f"has mode {mode} and samples axes of sizes {list(sizes)}, expected known ones")
    if mode != "cubic" and outside != "reflection" and len(sizes) == 2 and 1 not in sizes:
        _by_grid_sampler(n, mode, outside, corners)
        return
    if mode == "cubic" and len(sizes) != 2:
        raise n.fail(f"is cubic over {len(sizes)} axes, expected 2")
    # Axes are in the order of the image; the grid has them reversed.
    places = []
    for k, size in enumerate(sizes):
        column = len(sizes) - 1 - k
        at = n.sliced(n.var(1), [n.rank(1) - 1], [column], [column + 1])
        at = n.squeezed(at, [n.rank(1) - 1])
        at = n.scaled(at, (size - corners) / 2, (size - 1) / 2)
        places.append(half_to_even(n, at) if mode == "nearest" else at)
    if (
        mode != "cubic" or outside != "border"
    ):  # there the elements are brought in, not the place between them
        places = _in_range(n, places, sizes, outside, corners)
    shares = [_interpolation_weights(n, at, mode) for at in places]
    x = n.transposed(n.var(), [0, *range(2, n.rank()), 1])
    parts = []
    for combination in itertools.product(*shares):
        here = [place for place, _ in combination]
        weights = [weight for _, weight in combination if weight is not None]
        inside = [_inside(n, place, size) for place, size in zip(here, sizes, strict=True)]
        if outside == "zeros":
            weights += inside
        else:
            here = _in_range(n, here, sizes, outside, corners)
        index = [n.cast(n.unary("clip", place, min=0.0, max=float(size - 1)), VarType.INT64)
                 for place, size in zip(here, sizes, strict=True)]  # fmt: skip
        index = [axis_indices(n, index[0], 0), *index]
        found = n.op("gather_nd", {"X": x, "Index": n.op("stack", {"X": index}, "Y", axis=n.rank(1) - 1)})
        if weights:
            weight = reduce(lambda a, b: n.pair("mul", a, b), weights)
            weight = n.unsqueezed(weight, [n.rank(1) - 1])
            found = n.pair("mul", found, weight)
        parts.append(found)
    total = reduce(lambda a, b: n.pair("add", a, b), parts)
    n.out(n.transposed(total, [0, n.rank() - 1, *range(1, n.rank() - 1)]))


def _by_grid_sampler(n: Node, mode: str, outside: str, corners: bool) -> None:
    """By `grid_sampler`, which has align_corners=True: -1 and 1 are the centres of the outermost elements."""
    grid, sizes = n.var(1), n.shape()[2:]
    if not corners:
        wider = np.array([size / (size - 1) for size in reversed(sizes)], "float32")
        grid = n.pair("mul", grid, n.maker.constant(wider))
    if outside == "border":
        grid = n.unary("clip", grid, min=-1.0, max=1.0)
    if mode == "nearest":
        half = n.maker.constant(np.array([(size - 1) / 2 for size in reversed(sizes)], "float32"))
        place = half_to_even(n, n.pair("add", n.pair("mul", grid, half), half))
        grid = n.pair("div", n.pair("sub", place, half), half)
    n.out(n.op("grid_sampler", {"X": n.var(), "Grid": grid}, "Output"))


def _in_range(
    n: Node, places: list[Variable], sizes: tuple[int, ...], outside: str, corners: bool
) -> list[Variable]:
    """Positions outside the image clamped to the border or reflected; unchanged with zero padding."""
    if outside == "zeros":
        return places
    if outside == "border":
        return [
            n.unary("clip", at, min=0.0, max=float(size - 1)) for at, size in zip(places, sizes, strict=True)
        ]
    made = []
    for at, size in zip(places, sizes, strict=True):
        low, wide = (0.0, float(size - 1)) if corners else (-0.5, float(size))
        far = n.unary("abs", n.scaled(at, 1.0, -low))
        phase = n.pair("mod", far, n.number(max(2 * wide, 1.0), at.dtype))
        back = n.scaled(n.unary("abs", n.scaled(phase, 1.0, -wide)), -1.0, wide + low)
        made.append(back)
    return made


def _inside(n: Node, at: Variable, size: int) -> Variable:
    """1 where a position is within an axis, else 0."""
    both = [
        n.pair("greater_equal", at, n.number(0, at.dtype)),
        n.pair("less_than", at, n.number(size, at.dtype)),
    ]
    return n.cast(n.pair("logical_and", *both), at.dtype)


def _interpolation_weights(n: Node, at: Variable, mode: str) -> list[tuple[Variable, Variable | None]]:
    """The elements of an axis that contribute to a position, and their interpolation weights."""
    if mode == "nearest":
        return [(at, None)]
    below = n.unary("floor", at)
    part = n.pair("sub", at, below)
    if mode == "linear":
        return [(below, n.scaled(part, -1.0, 1.0)), (n.scaled(below, 1.0, 1.0), part)]
    made: list[tuple[Variable, Variable | None]] = []
    for offset in (-1, 0, 1, 2):
        t = n.scaled(part, 1.0 if offset < 1 else -1.0, -offset if offset < 1 else offset)
        a = _CUBIC
        factors = [a + 2, -(a + 3), 0.0, 1.0] if offset in (0, 1) else [a, -5 * a, 8 * a, -4 * a]
        total = n.filled(t, factors[0], t.dtype)
        for factor in factors[1:]:
            total = n.scaled(n.pair("mul", total, t), 1.0, factor)
        made.append((n.scaled(below, 1.0, offset), total))
    return made


@imports("DepthToSpace")
def _depth_to_space(n: Node) -> None:
    x, size = n.var(), n.attr("blocksize")
    if n.attr("mode", "DCR") != "CRD":
        channels = n.shape()[1]
        if channels < 0:
            raise n.fail("has mode DCR and a number of channels that is unknown until run time")
        order = np.arange(channels).reshape(size, size, -1).transpose(2, 0, 1).ravel()
        x = gathered(n, x, n.maker.constant(order), 1)
    n.out(n.unary("pixel_shuffle", x, upscale_factor=size))


@imports("SpaceToDepth")
def _space_to_depth(n: Node) -> None:
    """Strided slices of rows and columns, one for each offset within a block."""
    size, far = n.attr("blocksize"), 2**31 - 1
    attrs: dict[str, Any] = {"axes": [2, 3], "ends": [far, far], "strides": [size, size]}
    parts = [
        n.op("strided_slice", {"Input": n.var()}, starts=[row, column], **attrs)
        for row in range(size)
        for column in range(size)
    ]
    n.out(n.op("concat", {"X": parts}, axis=1))


@imports("Resize", "Upsample")
def _resize(n: Node) -> None:
    """By Fluid's interpolation where it is equivalent, else one axis at a time by a product with a matrix."""
    if n.maker.opset < 11:
        # Upsample and opset 10 have scales only, and asymmetric coordinates.
        n.attrs |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if n.attr("antialias", 0) or n.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise n.fail("has antialias or keep_aspect_ratio_policy")
    axes = [axis % n.rank() for axis in n.attr("axes") or range(n.rank())]
    scales: list[float | None] = [1.0] * n.rank()
    sizes = [*n.shape()]
    if n.has(3):
        given = n.value(3).sizes or n.ints(3)
        for axis, size in zip(axes, given, strict=True):
            if size == Size(n.var().name, axis):
                continue
            if not isinstance(size, int):
                raise n.fail("computes the sizes of images")
            sizes[axis], known = size, n.shape()[axis] > 0
            scales[axis] = size / n.shape()[axis] if known else None
    else:
        for axis, times in zip(axes, _scales(n), strict=True):
            scales[axis] = times
            sizes[axis] = int(np.floor(n.shape()[axis] * times)) if n.shape()[axis] > 0 else -1
    changed = [axis for axis in range(n.rank()) if scales[axis] != 1]
    if _by_fluid(n, changed, scales, sizes):
        return
    x = n.var()
    for axis in changed:
        size, scale = n.shape()[axis], scales[axis]
        if size < 0 or scale is None:
            raise n.fail(
                f"changes axis {axis}, whose size is unknown until run time, in a way that Fluid has not"
            )
        n.table(sizes[axis] * (1 if n.attr("mode", "nearest") == "nearest" else size))
        at = _sources(n, size, sizes[axis], scale)
        if n.attr("mode", "nearest") == "nearest":
            x = gathered(n, x, n.maker.constant(_nearest(n, at, size, scale)), axis)
        else:
            matrix = _weights(n, at, size).astype("float32")
            order = [*(k for k in range(n.rank()) if k != axis), axis]
            out = n.op("mul", {"X": n.transposed(x, order), "Y": n.maker.constant(matrix.T)},
                       x_num_col_dims=n.rank() - 1, y_num_col_dims=1)  # fmt: skip
            x = n.transposed(out, np.argsort(order).tolist())
    n.out(x)


def _scales(n: Node) -> list[float]:
    """Input 2; an attribute before opset 9, and input 1 before 11."""
    given = n.attr("scales") if n.maker.opset < 9 else n.array(2 if n.maker.opset > 10 else 1)
    return [float(scale) for scale in np.asarray(given, float)]


def _by_fluid(n: Node, changed: list[int], scales: list[float | None], sizes: list[int]) -> bool:
    """Append Fluid's interpolation of height and width if its scales, ratios of sizes, are those of the node."""
    how, mode = n.attr("coordinate_transformation_mode", "half_pixel"), n.attr("mode", "nearest")
    near = n.attr("nearest_mode", "round_prefer_floor")
    times = all(scale is not None and scale == int(scale) for scale in scales)
    linear: dict[str, dict[str, Any]] = {
        "align_corners": {"align_corners": True},
        "half_pixel": {"align_corners": False, "align_mode": 0},
        "asymmetric": {"align_corners": False, "align_mode": 1},
    }
    if n.maker.opset < 11 and mode == "nearest" and not times:
        return False
    whole = times and "half_pixel" in how and near.startswith("round")
    if mode == "linear":
        attrs = linear.get(how)
    elif mode == "nearest" and (whole or how == "asymmetric" and near == "floor"):
        attrs = {"align_corners": False}
    else:
        attrs = None
    if attrs is None or n.rank() != 4 or not changed or min(changed) < 2:
        return False
    attrs = dict(attrs)
    own = [n.shape()[axis] for axis in (2, 3)]
    if min(sizes[2:]) > 0:
        ratios = [size * (scales[axis] or 1) == sizes[axis] for axis, size in zip((2, 3), own, strict=True)]
        if min(own) > 0 and not all(ratios):
            return False
        attrs["out_h"], attrs["out_w"] = sizes[2:]
    elif times and scales[2] == scales[3]:
        attrs["scale"] = scales[2]
    else:
        return False
    kind = "bilinear" if mode == "linear" else "nearest"
    n.out(n.unary(f"{kind}_interp", n.var(), interp_method=kind, data_layout="NCHW", **attrs))
    return True


def _sources(n: Node, size: int, out: int, scale: float) -> np.ndarray:
    """The source coordinate of each element, in float32, whose rounding decides between neighbours."""
    how, place = n.attr("coordinate_transformation_mode", "half_pixel"), np.arange(out, dtype="float32")
    if how == "asymmetric":
        return place / np.float32(scale)
    if how == "align_corners":
        return place * np.float32((size - 1) / (out - 1) if out > 1 else 0.0)
    if how == "half_pixel" or how == "pytorch_half_pixel" and out > 1:
        return (place + np.float32(0.5)) / np.float32(scale) - np.float32(0.5)
    if how == "pytorch_half_pixel":
        return np.zeros(out, "float32")
    raise n.fail(f"has coordinate_transformation_mode {how!r}")


def _nearest(n: Node, at: np.ndarray, size: int, scale: float) -> np.ndarray:
    near = n.attr("nearest_mode", "round_prefer_floor")
    if n.maker.opset < 11 and scale < 1:
        near = "ceil"
    found = {
        "round_prefer_floor": np.ceil(at - 0.5),
        "round_prefer_ceil": np.floor(at + 0.5),
        "floor": np.floor(at),
        "ceil": np.ceil(at),
    }[near]
    return np.clip(found, 0, size - 1).astype("int64")


def _weights(n: Node, at: np.ndarray, size: int) -> np.ndarray:
    """Interpolation weights [out, size]; the first and last elements continue beyond the ends."""
    matrix = np.zeros([len(at), size])
    below = np.floor(at).astype("int64")
    part = at - below
    if n.attr("mode") == "linear":
        shares = {0: 1 - part, 1: part}
    else:
        if n.attr("exclude_outside", 0):
            raise n.fail("has exclude_outside=1")
        a = n.attr("cubic_coeff_a", -0.75)

        def near(t: np.ndarray) -> np.ndarray:
            return ((a + 2) * t - (a + 3)) * t * t + 1

        def far(t: np.ndarray) -> np.ndarray:
            return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

        shares = {-1: far(part + 1), 0: near(part), 1: near(1 - part), 2: far(2 - part)}
    for offset, share in shares.items():
        np.add.at(matrix, (np.arange(len(at)), np.clip(below + offset, 0, size - 1)), share)
    return matrix
