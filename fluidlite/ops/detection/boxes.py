"""Boxes: how much two overlap, offsets from one to another and back, boxes within images.

A box is x and y of its upper left corner, x and y of its lower right one. Where boxes are not normalized these are
pixels that belong to it, so that it is one wider than their difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backend.functions import constant
from ...base.errors import OperatorError
from ..host_fallback import hosted
from ..registry import Levels, LodArray, OpView, Sequences, register
from ..sequence import Lods, Segments, deep, levels, set_rows


def areas(xp: Any, boxes: Any, normalized: bool = True) -> Any:
    """The areas of boxes [..., 4]; 0 where a corner is beyond the other."""
    wide, high = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    inside = (wide >= 0) & (high >= 0)
    more = 0 if normalized else 1
    return xp.where(inside, (wide + more) * (high + more), xp.zeros_like(wide))


def overlaps(
    xp: Any, first: Any, second: Any, normalized: bool = True, area: Callable[..., Any] = areas
) -> Any:
    """The intersection over the union of each of the boxes [n, 4] with each of [m, 4]: [n, m].

    `area`: of boxes, as `areas`.
    """
    a, b = first[:, None], second[None]
    more = 0 if normalized else 1
    lower, upper = xp.maximum(a[..., :2], b[..., :2]), xp.minimum(a[..., 2:], b[..., 2:])
    shared = xp.maximum(upper - lower + more, 0).prod(axis=-1)
    union = area(xp, first, normalized)[:, None] + area(xp, second, normalized)[None] - shared
    return xp.where(
        union > 0, shared / xp.where(union > 0, union, xp.ones_like(union)), xp.zeros_like(shared)
    )


def _signed_areas(xp: Any, boxes: Any, normalized: bool) -> Any:
    """The products of the extents of boxes [..., 4], also where a corner is beyond the other."""
    return middles(boxes, normalized)[1].prod(axis=-1)


def middles(boxes: Any, normalized: bool = True) -> tuple[Any, Any]:
    """Middle and extent, (x, y) and (width, height), of boxes [..., 4]."""
    extent = boxes[..., 2:] - boxes[..., :2] + (0 if normalized else 1)
    return boxes[..., :2] + extent / 2, extent


def encoded(xp: Any, boxes: Any, middle: Any, extent: Any) -> Any:
    """The offsets of `boxes`, given as middle and extent, to others: [..., 4]."""
    to, size = boxes
    return xp.concatenate([(to - middle) / extent, xp.log(abs(size / extent))], axis=-1)


def _check_boxes(op: OpView, *slots: str) -> None:
    for slot in slots:
        if op.shape(slot)[-1] not in (4, -1):
            raise op.fail(f"{slot} must be boxes of 4 numbers, got shape {list(op.shape(slot))}")


def _infer_iou(op: OpView) -> None:
    _check_boxes(op, "X", "Y")
    op.set("Out", (op.shape("X")[0], op.shape("Y")[0]), op.dtype("X"))


register(
    "iou_similarity",
    inputs=("X", "Y"),
    attrs={"box_normalized": True},
    infer=_infer_iou,
    kernel=lambda xp, X, Y, box_normalized: overlaps(xp, X, Y, box_normalized, _signed_areas),
    no_grad=("Out",),
    doc="The intersection over the union of each box of X with each box of Y.",
)


def _row(numbers: tuple[float, ...], dtype: np.dtype) -> np.ndarray:
    return np.array(numbers, dtype)


def _spread(xp: Any, PriorBoxVar: Any, variance: Any, axis: int, dtype: Any) -> Any:
    """The variances of the boxes, in a shape that broadcasts with [boxes, priors, 4]."""
    if PriorBoxVar is None:
        return constant(xp, _row, tuple(variance) or (1.0,) * 4, dtype)
    return xp.expand_dims(PriorBoxVar, axis)


def _box_coder(
    xp: Any,
    PriorBox: Any,
    PriorBoxVar: Any,
    TargetBox: Any,
    code_type: str,
    box_normalized: bool,
    axis: int,
    variance: Any,
) -> Any:
    middle, extent = middles(PriorBox, box_normalized)
    if code_type == "encode_center_size":
        corners = TargetBox[:, None]
        to, size = (corners[..., :2] + corners[..., 2:]) / 2, middles(corners, box_normalized)[1]
        made = encoded(xp, (to, size), middle[None], extent[None])
        return made / _spread(xp, PriorBoxVar, variance, 0, made.dtype)
    middle, extent = xp.expand_dims(middle, axis), xp.expand_dims(extent, axis)
    offsets = TargetBox * _spread(xp, PriorBoxVar, variance, axis, TargetBox.dtype)
    middle, half = offsets[..., :2] * extent + middle, xp.exp(offsets[..., 2:]) * extent / 2
    return xp.concatenate([middle - half, middle + half - (0 if box_normalized else 1)], axis=-1)


def _infer_box_coder(op: OpView) -> None:
    prior, target = op.shape("PriorBox"), op.shape("TargetBox")
    if len(prior) != 2:
        raise op.fail(f"PriorBox must be [boxes, 4], got {list(prior)}")
    _check_boxes(op, "PriorBox", "TargetBox")
    if op.has("PriorBoxVar") and len(op.shape("PriorBoxVar")) != 2:
        raise op.fail(f"PriorBoxVar must be [boxes, 4], got {list(op.shape('PriorBoxVar'))}")
    if op.attr("axis") not in (0, 1):
        raise op.fail(f"axis must be 0 or 1, got {op.attr('axis')}")
    if len(op.attr("variance")) not in (0, 4):
        raise op.fail(f"variance must be 4 numbers, got {list(op.attr('variance'))}")
    if op.attr("code_type") == "encode_center_size":
        if len(target) != 2:
            raise op.fail(f"TargetBox must be [boxes, 4] to be encoded, got {list(target)}")
        op.set("OutputBox", (target[0], prior[0], 4), op.dtype("TargetBox"))
        return
    if op.attr("code_type") != "decode_center_size":
        raise op.fail(
            f"code_type must be encode_center_size or decode_center_size, got {op.attr('code_type')!r}"
        )
    axis = op.attr("axis")
    if len(target) != 3 or (op.exact and target[1 - axis] != prior[0]):
        raise op.fail(
            f"dimension {1 - axis} of TargetBox must be that of the boxes of PriorBox, got {list(target)}"
        )
    op.set("OutputBox", target, op.dtype("TargetBox"))


def _coded(op: OpView) -> str:
    """The input whose LoD the result has: with axis 1 the rows are those of PriorBox (regions)."""
    decoded = op.attr("code_type") == "decode_center_size"
    return "PriorBox" if decoded and op.attr("axis") == 1 else "TargetBox"


register(
    "box_coder",
    inputs=("PriorBox", "PriorBoxVar?", "TargetBox"),
    outputs=("OutputBox",),
    attrs={"code_type": "encode_center_size", "box_normalized": True, "axis": 0, "variance": []},
    infer=_infer_box_coder,
    kernel=_box_coder,
    no_grad=("OutputBox",),
    sequences=Sequences(source=_coded),
    doc="The offsets of boxes to prior boxes, or boxes from such offsets.",
)


def _decode_and_assign(
    xp: Any, PriorBox: Any, PriorBoxVar: Any, TargetBox: Any, BoxScore: Any, box_clip: float
) -> Any:
    middle, extent = middles(PriorBox, False)
    classes = BoxScore.shape[1]
    offsets = TargetBox.reshape(-1, classes, 4)
    if PriorBoxVar is not None:
        offsets = offsets * PriorBoxVar
    middle = offsets[..., :2] * extent[:, None] + middle[:, None]
    half = xp.exp(xp.minimum(offsets[..., 2:], box_clip)) * extent[:, None] / 2
    boxes = xp.concatenate([middle - half, middle + half - 1], axis=-1).astype(TargetBox.dtype)
    if classes < 2:
        return boxes.reshape(TargetBox.shape), PriorBox.copy()
    best = BoxScore[:, 1:].argmax(axis=1) + 1
    rows = xp.arange(len(boxes))
    sure = BoxScore[rows, best] > -1
    return boxes.reshape(TargetBox.shape), xp.where(sure[:, None], boxes[rows, best], PriorBox)


def _infer_decode_and_assign(op: OpView) -> None:
    _check_boxes(op, "PriorBox")
    rows, wide, scores = *op.shape("TargetBox"), op.shape("BoxScore")
    if min(wide, scores[1]) >= 0 and wide != 4 * scores[1]:
        raise op.fail(f"TargetBox must have 4 numbers for each of the {scores[1]} scores, got {wide}")
    op.set("DecodeBox", (rows, wide), op.dtype("TargetBox"))
    op.set("OutputAssignBox", (rows, 4), op.dtype("TargetBox"))


register(
    "box_decoder_and_assign",
    inputs=("PriorBox", "PriorBoxVar?", "TargetBox", "BoxScore"),
    outputs=("DecodeBox", "OutputAssignBox"),
    attrs={"box_clip": 4.135},
    infer=_infer_decode_and_assign,
    kernel=_decode_and_assign,
    no_grad=("DecodeBox", "OutputAssignBox"),
    sequences=Sequences(source={"DecodeBox": "TargetBox", "OutputAssignBox": "PriorBox"}),
    doc="Boxes of each class from offsets, and for each box that of its best class but the background.",
)


def clipped(boxes: Any, edges: Any) -> Any:
    """The boxes between 0 and `edges`; at 0 in an image without pixels."""
    return np.maximum(np.minimum(boxes, edges), 0)


def image_edges(xp: Any, info: Any) -> Any:
    """[n, 2]: the last pixel, x and y, of images given as [height, width, scale]."""
    sizes = xp.floor(info[:, :2] / info[:, 2:3] + 0.5)
    return sizes[:, ::-1] - 1


@hosted
def _box_clip(xp: Any, Input: Any, ImInfo: Any, lod: Lods) -> Any:
    known = levels("box_clip", lod, "Input")
    images = Segments(known[-1])
    if len(images) > len(ImInfo):
        raise OperatorError(
            f"operator box_clip: ImInfo must have a row for each of the {len(images)} sequences of Input, "
            f"got {len(ImInfo)}"
        )
    most = image_edges(np, ImInfo)[images.of_row]
    shape = (len(Input), *[1] * (Input.ndim - 2), 4)
    return LodArray(clipped(Input, np.concatenate([most, most], 1).reshape(shape)).astype(Input.dtype), known)


def _infer_box_clip(op: OpView) -> None:
    _check_boxes(op, "Input")
    if op.shape("ImInfo")[-1] not in (3, -1):
        raise op.fail(f"ImInfo must be [images, 3], got {list(op.shape('ImInfo'))}")
    set_rows(op, "Output", op.shape("Input"), op.dtype("Input"), deep(op, "Input"))


register(
    "box_clip",
    inputs=("Input", "ImInfo"),
    outputs=("Output",),
    infer=_infer_box_clip,
    kernel=_box_clip,
    no_grad=("Output",),
    sequences=Sequences(takes_lod=True, inferred=True, levels=Levels("Input")),
    doc="The boxes of each sequence within the image of the same number, at its size before scaling.",
)


def _polygon(xp: Any, Input: Any) -> Any:
    high, wide = Input.shape[2:]
    x = 4 * xp.arange(wide, dtype=Input.dtype)
    y = 4 * xp.arange(high, dtype=Input.dtype)[:, None]
    out = xp.empty_like(Input)
    out[:, 0::2] = x - Input[:, 0::2]
    out[:, 1::2] = y - Input[:, 1::2]
    return out


def _infer_polygon(op: OpView) -> None:
    shape = op.shape("Input")
    if len(shape) != 4 or shape[1] % 2:
        raise op.fail(f"Input must be [batch, an even number, height, width], got {list(shape)}")
    op.set("Output", shape, op.dtype("Input"))


register(
    "polygon_box_transform",
    inputs=("Input",),
    outputs=("Output",),
    infer=_infer_polygon,
    kernel=_polygon,
    no_grad=("Output",),
    sequences=Sequences(source=None),
    doc="Corners from their distances to a grid of every 4th pixel: x in even channels, y in odd ones.",
)

Array = np.ndarray


def _area(corners: Array) -> float:
    """The area of a polygon [n, 2]; clockwise and counterclockwise loops cancel."""
    x, y = corners.T
    return abs(float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2))


def _heights(begin: Array, end: Array) -> Array:
    """The heights, from below, between which the edges from `begin` to `end` [n, 2] do not cross."""
    edges, distances = end - begin, begin[None] - begin[:, None]
    x, y = edges.T
    with np.errstate(divide="ignore", invalid="ignore"):
        part = (distances[..., 0] * y - distances[..., 1] * x) / (x[:, None] * y - y[:, None] * x)
    crossing = (0 <= part) & (part <= 1)
    return np.unique(begin[:, None, 1] + np.where(crossing & crossing.T, part, 0) * y[:, None])


def _inside(begin: Array, end: Array, heights: Array, beyond: float) -> tuple[Array, Array]:
    """The left and right ends of the polygon's parts at each of `heights`: twice [heights, parts].

    Missing parts are at `beyond`.
    """
    (x, y), (after, above) = begin.T, end.T
    crossed = (y <= heights[:, None]) != (above <= heights[:, None])
    places = x + (heights[:, None] - y) * (after - x) / np.where(above == y, 1, above - y)
    found = np.sort(np.where(crossed, places, beyond), axis=1)
    found = found[:, : len(x) // 2 * 2]
    return found[:, ::2], found[:, 1::2]


def _shared(first: Array, second: Array) -> float:
    """The area of the intersection of two polygons [n, 2], by the even-odd rule."""
    edges = [(corners, np.roll(corners, -1, axis=0)) for corners in (first, second)]
    begins, ends = (np.concatenate(points) for points in zip(*edges, strict=True))
    heights = _heights(begins, ends)
    middles = (heights[1:] + heights[:-1]) / 2
    (a, b), (c, d) = (_inside(*own, middles, begins[:, 0].max()) for own in edges)
    widths = np.minimum(b[:, :, None], d[:, None]) - np.maximum(a[:, :, None], c[:, None])
    return float(np.diff(heights) @ np.maximum(widths, 0).sum(axis=(1, 2)))


def polygon_overlap(first: Array, second: Array) -> float:
    """The intersection over the union of two polygons [n, 2]; 0 if one of them has no area."""
    areas = _area(first), _area(second)
    if not all(areas):
        return 0.0
    shared = _shared(first, second)
    union = sum(areas) - shared
    return shared / union if union else 0.0


def polygon_overlaps(polygons: Array) -> Array:
    """The intersection over the union of polygons [n, 2 corners] with one another: [n, n]."""
    corners = polygons.astype(np.float64).reshape(len(polygons), -1, 2)
    low, high = corners.min(axis=1), corners.max(axis=1)
    near = (low[:, None] < high[None]).all(axis=2)
    result = np.eye(len(corners))
    for k, other in np.argwhere(np.tril(near & near.T, -1)):
        result[k, other] = result[other, k] = polygon_overlap(corners[k], corners[other])
    return result
