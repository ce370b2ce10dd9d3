"""Regions that may hold something (Ren et al. 2015), the feature maps that they are taken from (Lin et al. 2017), and
target masks of regions (He et al. 2017).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..registry import Levels, LodArray, OpView, Sequences, register
from ..sequence import Lods, levels, offsets_of
from .boxes import areas, clipped, middles, overlaps
from .nms import suppressed
from .proposal_targets import parts

Array = np.ndarray

_MOST = math.log(1000 / 16)
"""The greatest logarithm of the ratio of two sides."""


def decoded(anchors: Array, deltas: Array) -> Array:
    """Boxes in pixels from their offsets to anchors, [n, 4] both."""
    middle, extent = middles(anchors, False)
    half = np.exp(np.minimum(deltas[:, 2:], anchors.dtype.type(_MOST))) * extent / 2
    middle = deltas[:, :2] * extent + middle
    return np.concatenate([middle - half, middle + half - 1], axis=1)


def _proposed(
    scores: Array, deltas: Array, info: Array, anchors: Array, variances: Array, attrs: dict[str, Any]
) -> tuple[Array, Array]:
    """Boxes and scores of one image, best first."""
    before, after = attrs["pre_nms_topN"], attrs["post_nms_topN"]
    order = np.argsort(-scores, kind="stable")
    order = order[:before] if 0 < before < len(order) else order
    boxes = decoded(anchors[order], deltas[order] * variances[order])
    edges = np.tile(info[1::-1] - 1, 2)
    boxes = clipped(boxes, edges).astype(scores.dtype)
    # Sides are measured before scaling; those below one pixel are always removed.
    sides = (boxes[:, 2:] - boxes[:, :2]) / info[2] + 1
    middle = boxes[:, :2] + (boxes[:, 2:] - boxes[:, :2] + 1) / 2
    large = (sides >= max(attrs["min_size"], 1.0)).all(axis=1) & (middle <= info[1::-1]).all(axis=1)
    boxes, order = boxes[large], order[large]
    if attrs["nms_thresh"] > 0:
        left = suppressed(boxes, attrs["nms_thresh"], attrs["eta"], False, after if after > 0 else -1)
        boxes, order = boxes[left], order[left]
    return boxes, scores[order]


@hosted
def _generate_proposals(
    xp: Any, Scores: Any, BboxDeltas: Any, ImInfo: Any, Anchors: Any, Variances: Any, lod: Lods, **attrs: Any
) -> Any:
    boxes, values = [], []
    for image, scores in enumerate(Scores):
        deltas = BboxDeltas[image].transpose(1, 2, 0).reshape(-1, 4)
        flat = scores.transpose(1, 2, 0).reshape(-1)
        own = _proposed(flat, deltas, ImInfo[image], Anchors.reshape(-1, 4), Variances.reshape(-1, 4), attrs)
        boxes.append(own[0])
        values.append(own[1])
    offsets = offsets_of(np.array([len(part) for part in boxes], np.int64))
    rois = np.concatenate([*boxes, np.zeros((0, 4), Scores.dtype)])
    probs = np.concatenate([*values, np.zeros(0, Scores.dtype)]).reshape(-1, 1)
    return LodArray(rois, (offsets,)), LodArray(probs, (offsets,)), LodArray(offsets[1:].copy(), ())


def _infer_proposals(op: OpView) -> None:
    scores, deltas = op.shape("Scores"), op.shape("BboxDeltas")
    if (
        len(scores) != 4
        or len(deltas) != 4
        or (min(scores[1], deltas[1]) >= 0 and deltas[1] != 4 * scores[1])
    ):
        raise op.fail(
            f"Scores must be [batch, anchors, height, width] and BboxDeltas have 4 times as many channels, got "
            f"{list(scores)} and {list(deltas)}"
        )
    if len(op.shape("ImInfo")) != 2 or op.shape("ImInfo")[1] not in (3, -1):
        raise op.fail(f"ImInfo must be [batch, 3], got {list(op.shape('ImInfo'))}")
    op.set("RpnRois", (-1, 4), op.dtype("Anchors"))
    op.set("RpnRoiProbs", (-1, 1), op.dtype("Scores"))
    op.set("RpnRoisLod", *(((), VarType.INT32) if op.building else ((scores[0],), VarType.INT64)))


register(
    "generate_proposals",
    inputs=("Scores", "BboxDeltas", "ImInfo", "Anchors", "Variances"),
    outputs=("RpnRois", "RpnRoiProbs", "RpnRoisLod?"),
    attrs={"pre_nms_topN": 6000, "post_nms_topN": 1000, "nms_thresh": 0.5, "min_size": 0.1, "eta": 1.0},
    infer=_infer_proposals,
    kernel=_generate_proposals,
    no_grad=("RpnRois", "RpnRoiProbs", "RpnRoisLod"),
    sequences=Sequences(takes_lod=True),
    doc="The boxes of each image that score best and do not overlap, their scores, and where each image's end.",
)


@hosted
def _distribute(
    xp: Any, FpnRois: Any, min_level: int, max_level: int, refer_level: int, refer_scale: int, lod: Lods
) -> Any:
    offsets = levels("distribute_fpn_proposals", lod, "FpnRois")[-1]
    image = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    size = np.sqrt(areas(np, FpnRois, False))
    level = np.floor(np.log2(size / refer_scale + 1e-6) + refer_level)
    level = np.clip(level, min_level, max_level)
    made, places = [], []
    for k in range(min_level, max_level + 1):
        own = np.flatnonzero(level == k)
        counts = np.bincount(image[own], minlength=len(offsets) - 1)
        made.append(LodArray(FpnRois[own], (offsets_of(counts),)))
        places.append(own)
    restore = np.argsort(np.concatenate(places), kind="stable").astype(np.int32)
    return made, LodArray(restore.reshape(-1, 1), ())


def _infer_distribute(op: OpView) -> None:
    least, most = op.attr("min_level"), op.attr("max_level")
    shape = op.shape("FpnRois")
    if len(shape) != 2 or shape[1] not in (4, -1):
        raise op.fail(f"FpnRois must be [regions, 4], got {list(shape)}")
    if most < least or op.count("MultiFpnRois") != most - least + 1:
        raise op.fail(
            f"there must be a result for each level from {least} to {most}, got {op.count('MultiFpnRois')}"
        )
    for k in range(most - least + 1):
        op.set("MultiFpnRois", (-1, 4), op.dtype("FpnRois"), k)
    op.set("RestoreIndex", (-1 if op.building else shape[0], 1), VarType.INT32)


register(
    "distribute_fpn_proposals",
    inputs=("FpnRois",),
    outputs=("MultiFpnRois*", "RestoreIndex"),
    attrs={"min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 224},
    infer=_infer_distribute,
    kernel=_distribute,
    no_grad=("MultiFpnRois", "RestoreIndex"),
    sequences=Sequences(takes_lod=True, levels=Levels("FpnRois", outs=("MultiFpnRois",))),
    doc="The regions for each of several feature maps, by their size, and where each region has gone.",
)


@hosted
def _collect(xp: Any, MultiLevelRois: Any, MultiLevelScores: Any, post_nms_topN: int, lod: Lods) -> Any:
    image = []
    for k in range(len(MultiLevelRois)):
        offsets = lod["MultiLevelRois"][k]
        if not offsets:
            levels("collect_fpn_proposals", lod, "MultiLevelRois", k)
        image.append(np.repeat(np.arange(len(offsets[-1]) - 1), np.diff(offsets[-1])))
    images = max((len(offsets[-1]) - 1 for offsets in lod["MultiLevelRois"]), default=0)
    of_image, scores = np.concatenate(image), np.concatenate([part.reshape(-1) for part in MultiLevelScores])
    best = np.argsort(-scores, kind="stable")[:post_nms_topN]
    best = best[np.argsort(of_image[best], kind="stable")]
    counts = np.bincount(of_image[best], minlength=images)
    return LodArray(np.concatenate(MultiLevelRois)[best], (offsets_of(counts),))


def _infer_collect(op: OpView) -> None:
    for k in range(op.count("MultiLevelRois")):
        if len(op.shape("MultiLevelRois", k)) != 2 or op.shape("MultiLevelRois", k)[1] not in (4, -1):
            raise op.fail(f"MultiLevelRois must be [regions, 4], got {list(op.shape('MultiLevelRois', k))}")
    if op.count("MultiLevelRois") != op.count("MultiLevelScores"):
        raise op.fail(
            f"there must be scores for each of the {op.count('MultiLevelRois')} levels, got "
            f"{op.count('MultiLevelScores')}"
        )
    op.set("FpnRois", (op.attr("post_nms_topN") if op.building else -1, 4), op.dtype("MultiLevelRois"))


register(
    "collect_fpn_proposals",
    inputs=("MultiLevelRois*", "MultiLevelScores*"),
    outputs=("FpnRois",),
    attrs={"post_nms_topN": 1},
    infer=_infer_collect,
    kernel=_collect,
    no_grad=("FpnRois",),
    sequences=Sequences(takes_lod=True, levels=Levels("MultiLevelRois")),
    doc="The regions of several feature maps that score best, image by image.",
)

_FINE = 5
"""Outlines are followed in steps of so small a part of a pixel."""


def _steps(polygon: Array) -> tuple[Array, Array]:
    """The fine points that an outline passes, edge by edge, x and y."""
    points = (_FINE * polygon.astype("float64") + 0.5).astype("int64")
    xs, ys = [], []
    for (x0, y0), (x1, y1) in zip(points, np.roll(points, -1, axis=0), strict=True):
        wide, high = abs(x1 - x0), abs(y1 - y0)
        back = (wide >= high and x0 > x1) or (wide < high and y0 > y1)
        if back:  # an edge is the same line in both directions
            x0, y0, x1, y1 = x1, y1, x0, y0
        along = np.arange(max(wide, high) + 1)[:: -1 if back else 1]
        if wide >= high:
            xs.append(x0 + along)
            ys.append((y0 + ((y1 - y0) / wide if wide else 0.0) * along + 0.5).astype("int64"))
        else:
            xs.append((x0 + (x1 - x0) / high * along + 0.5).astype("int64"))
            ys.append(y0 + along)
    return np.concatenate(xs), np.concatenate(ys)


def filled(polygon: Array, size: int) -> Array:
    """The mask [size, size] of pixels inside of an outline [points, 2], which is in pixels.

    As the masks of COCO: columns change sides where the outline crosses their middles.
    """
    x, y = _steps(polygon)
    at = np.flatnonzero(x[1:] != x[:-1]) + 1
    left = np.where(x[at] < x[at - 1], x[at], x[at] - 1)
    column = (left + 0.5) / _FINE - 0.5
    crossed = (column == np.floor(column)) & (column >= 0) & (column <= size - 1)
    row = (np.minimum(y[at], y[at - 1]) + 0.5) / _FINE - 0.5
    row = np.ceil(np.clip(row, 0, size))
    places = (column * size + row)[crossed].astype("int64")
    crossings = np.bincount(places, minlength=size * size + 1)[: size * size]
    return (np.cumsum(crossings) % 2).astype(bool).reshape(size, size).T


def _mask(outlines: Sequence[Array], region: Array, size: int) -> Array:
    """The mask [size, size] of an object, the union of outlines, inside of a region."""
    wide, high = np.maximum(region[2:] - region[:2], 1)
    scale = np.array([size / wide, size / high], "float32")
    result = np.zeros((size, size), bool)
    for outline in outlines:
        result |= filled((outline - region[:2]) * scale, size)
    return result


def _bounds(outlines: Sequence[Array]) -> Array:
    points = np.concatenate(outlines)
    return np.concatenate([points.min(axis=0), points.max(axis=0)])


def _of_image(
    objects: Sequence[Sequence[Array]], regions: Array, labels: Array, scale: Any, classes: int, size: int
) -> tuple[Array, Array, Array]:
    """The regions with an object, their places among all, and their masks, -1 where a class does not count."""
    there = np.flatnonzero(labels > 0)
    if not len(there) or not objects:
        first = np.flatnonzero(labels == 0)[:1]
        return regions[first], first, np.full((len(first), classes * size * size), -1, np.int32)
    bounds = np.stack([_bounds(outlines) for outlines in objects])
    mine = regions[there] / scale
    nearest = overlaps(np, mine, bounds.astype(mine.dtype), False).argmax(axis=1)
    masks = np.full((len(there), classes, size * size), -1, np.int32)
    for place, (region, which) in enumerate(zip(mine, nearest, strict=True)):
        masks[place, labels[there[place]]] = _mask(objects[which], region, size).reshape(-1)
    return regions[there], there, masks.reshape(len(there), -1)


@hosted
def _mask_labels(
    xp: Any,
    ImInfo: Any,
    GtClasses: Any,
    IsCrowd: Any,
    GtSegms: Any,
    Rois: Any,
    LabelsInt32: Any,
    lod: Lods,
    num_classes: int,
    resolution: int,
) -> Any:
    op_type = "generate_mask_labels"
    images = len(ImInfo)
    rois, objects = (parts(op_type, lod, slot, images) for slot in ("Rois", "GtClasses"))
    _, of_object, of_outline = (np.asarray(level) for level in lod["GtSegms"][0])
    found = []
    for image in range(images):
        outlines = [
            [
                GtSegms[of_outline[one] : of_outline[one + 1]]
                for one in range(of_object[which], of_object[which + 1])
            ]
            for which in range(objects[image].start, objects[image].stop)
            if GtClasses[which] > 0 and not IsCrowd[which]
        ]
        labels = LabelsInt32[rois[image]].reshape(-1)
        found.append(
            _of_image(outlines, Rois[rois[image]], labels, ImInfo[image][2], num_classes, resolution)
        )
    regions, places, masks = (np.concatenate(part) for part in zip(*found, strict=True))
    offsets = offsets_of(np.array([len(part[0]) for part in found], np.int64))
    results = regions, places.astype(np.int32).reshape(-1, 1), masks
    return tuple(LodArray(part, (offsets,)) for part in results)


def _infer(op: OpView) -> None:
    op.set("MaskRois", (-1, 4), op.dtype("Rois"))
    op.set("RoiHasMaskInt32", (-1, 1), VarType.INT32)
    op.set("MaskInt32", (-1, op.attr("num_classes") * op.attr("resolution") ** 2), VarType.INT32)


register(
    "generate_mask_labels",
    ("ImInfo", "GtClasses", "IsCrowd", "GtSegms", "Rois", "LabelsInt32"),
    ("MaskRois", "RoiHasMaskInt32", "MaskInt32"),
    {"num_classes": 1, "resolution": 1},
    infer=_infer,
    kernel=_mask_labels,
    no_grad=("MaskRois", "RoiHasMaskInt32", "MaskInt32"),
    sequences=Sequences(takes_lod=True),
    doc="The regions with an object, and what of the object is in each, pixel by pixel, in the place of its class.",
)
