"""Target masks of regions, from the outlines of objects (He et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..registry import LodArray, OpDef, OpView, Sequences, register
from ..sequence import Lods, offsets_of
from .boxes import overlaps
from .proposal_targets import parts

Array = np.ndarray

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
    OpDef(
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
)
