"""Quadrilaterals of feature maps seen as rectangles: `roi_perspective_transform`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..infer import grads_like
from ..registry import Levels, LodArray, OpDef, OpView, Sequences, grad_name, register, standard_grad
from ..sequence import Lods, input_lod
from .roi import Array, check_regions, images_of, pooled_size

_NEAR = 1e-4
"""Places that are as near to an edge as this are on it."""


def _matrices(corners: Array, high: int, wide: int) -> Array:
    """Transforms [regions, 3, 3] from coordinates of a result to those of features; `corners` are [regions, 4, 2].

    Results keep the aspect ratio of the quadrilateral; the rest of their width is empty.
    """
    p = corners
    sides = np.linalg.norm(p - np.roll(p, -1, axis=1), axis=2).astype(p.dtype)
    tall, broad = (sides[:, 1] + sides[:, 3]) / 2, (sides[:, 0] + sides[:, 2]) / 2
    rows = max(2, high)
    columns = np.floor(broad * (rows - 1) / tall + 0.5) + 1
    # Quadrilaterals without any extent have one of 2.
    columns = np.where(columns >= 2, np.minimum(columns, max(wide, 2)), 2).astype(p.dtype)
    a, b, c = p[:, 1] - p[:, 2], p[:, 3] - p[:, 2], p[:, 0] - p[:, 1] + p[:, 2] - p[:, 3]
    unit = a[:, 0] * b[:, 1] - b[:, 0] * a[:, 1] + p.dtype.type(1e-5)
    result = np.empty((len(p), 3, 3), p.dtype)
    result[:, 2, 0] = (c[:, 0] * b[:, 1] - b[:, 0] * c[:, 1]) / unit / (columns - 1)
    result[:, 2, 1] = (a[:, 0] * c[:, 1] - c[:, 0] * a[:, 1]) / unit / (rows - 1)
    result[:, 2, 2] = 1
    right = p[:, 1] - p[:, 0] + (result[:, 2, 0] * (columns - 1))[:, None] * p[:, 1]
    down = p[:, 3] - p[:, 0] + (result[:, 2, 1] * (rows - 1))[:, None] * p[:, 3]
    result[:, :2, 0] = right / (columns - 1)[:, None]
    result[:, :2, 1] = down / (rows - 1)
    result[:, :2, 2] = p[:, 0]
    return result


def _in_quadrilateral(at: Array, corners: Array) -> Array:
    """[regions, places]: which places [regions, places, 2] are in or on the edge of a quadrilateral."""
    x, y = at[..., 0, None], at[..., 1, None]
    begin, end = corners[:, None], np.roll(corners, -1, axis=1)[:, None]
    (x0, y0), (x1, y1) = ((part[..., 0], part[..., 1]) for part in (begin, end))
    flat = abs(y0 - y1) < _NEAR
    least, most = np.minimum(y0, y1), np.maximum(y0, y1)
    crossing = (y - y0) * (x1 - x0) / np.where(flat, 1, y1 - y0) + x0
    between = (x > np.minimum(x0, x1) - _NEAR) & (x < np.maximum(x0, x1) + _NEAR)
    on_flat = flat & (abs(y - y0) < _NEAR) & (abs(y - y1) < _NEAR) & between
    tall = (y > least - _NEAR) & (y < most + _NEAR)
    on_edge = on_flat | (~flat & tall & (abs(crossing - x) < _NEAR))
    passed = ~flat & (y > least + _NEAR) & (y < most + _NEAR) | (~flat & (abs(y - most) <= _NEAR))
    crossed = (passed & (crossing > x + _NEAR)).sum(axis=-1)
    return on_edge.any(axis=-1) | (crossed % 2 == 1)


class _Places:
    """For each pixel of the results the four pixels of the features that it interpolates, and their weights."""

    def __init__(self, X: Array, ROIs: Array, attrs: dict[str, Any]) -> None:
        high, wide = attrs["transformed_height"], attrs["transformed_width"]
        corners = (ROIs * ROIs.dtype.type(attrs["spatial_scale"])).reshape(-1, 4, 2)
        self.matrices = _matrices(corners, high, wide)
        row, column = np.divmod(np.arange(high * wide), wide)
        grid = np.stack([column, row, np.ones_like(row)]).astype(ROIs.dtype)
        from_ = self.matrices @ grid
        at = (from_[:, :2] / from_[:, 2:]).swapaxes(1, 2)
        size = np.array([X.shape[3], X.shape[2]], ROIs.dtype)
        inside = ((at >= -0.5 - _NEAR) & (at <= size - 0.5 + _NEAR)).all(axis=-1)
        self.mask = _in_quadrilateral(at, corners) & inside
        at = np.where(self.mask[..., None], np.clip(at, 0, size - 1), 0)
        low = np.floor(at).astype(np.int64)
        high_ = np.minimum(low + 1, size.astype(np.int64) - 1)
        part = at - low
        x, y = (np.stack([low[..., k], high_[..., k]], axis=-1) for k in range(2))
        shares = [np.stack([1 - part[..., k], part[..., k]], axis=-1) for k in range(2)]
        # Upper left, upper right, lower right, lower left.
        order = ((0, 0), (0, 1), (1, 1), (1, 0))
        self.index = np.stack([y[..., i] * X.shape[3] + x[..., j] for i, j in order], axis=-1)
        weight = np.stack([shares[1][..., i] * shares[0][..., j] for i, j in order], axis=-1)
        self.weight = np.where(self.mask[..., None], weight, 0).astype(X.dtype)


@hosted
def _transform(xp: Any, X: Any, ROIs: Any, lod: Lods, **attrs: Any) -> Any:
    images = images_of("roi_perspective_transform", X, ROIs, lod, all_images=False)
    places = _Places(X, ROIs, attrs)
    size = attrs["transformed_height"], attrs["transformed_width"]
    flat = X.reshape(*X.shape[:2], -1)
    out = np.empty((len(ROIs), X.shape[1], size[0] * size[1]), X.dtype)
    for region, image in enumerate(images):
        out[region] = (flat[image][:, places.index[region]] * places.weight[region]).sum(axis=-1)
    mask = places.mask.reshape(-1, 1, *size).astype(np.int32)
    matrices = places.matrices.reshape(-1, 9)
    index, weight = _sampling_weights(X, images, places)
    features = LodArray(out.reshape(-1, X.shape[1], *size), input_lod(lod, "ROIs"))
    return features, *(LodArray(part, ()) for part in (mask, matrices, index, weight))


def _sampling_weights(X: Array, images: Array, places: _Places) -> tuple[Array, Array]:
    """The places among all features, and their weights, of each element of the result."""
    channels, area = X.shape[1], X.shape[2] * X.shape[3]
    first = (images[:, None] * channels + np.arange(channels)) * area
    index = np.where(places.mask[:, None, :, None], places.index[:, None] + first[..., None, None], -1)
    weight = np.broadcast_to(places.weight[:, None], index.shape)
    return index.reshape(-1, 4).astype(np.int32), np.ascontiguousarray(weight.reshape(-1, 4))


@hosted
def _transform_grad(xp: Any, X: Any, Out2InIdx: Any, Out2InWeights: Any, Out_grad: Any) -> Any:
    dx = np.zeros(X.size, Out_grad.dtype)
    there = Out2InIdx[:, 0] >= 0
    added = Out2InWeights[there] * Out_grad.reshape(-1, 1)[there]
    np.add.at(dx, Out2InIdx[there], added)
    return dx.reshape(X.shape)


def _infer(op: OpView) -> None:
    check_regions(op, 8)
    high, wide = pooled_size(op, "transformed_height", "transformed_width")
    regions, channels = op.shape("ROIs")[0], op.shape("X")[1]
    op.set("Out", (regions, channels, high, wide), op.dtype("X"))
    op.carry("Out", op.lod("ROIs"))
    op.set("Mask", (regions, 1, high, wide), VarType.INT32)
    op.set("TransformMatrix", (regions, 9), op.dtype("X"))
    known = min(regions, channels) >= 0
    if op.building:  # as Fluid declares it
        for slot, kind in (("Out2InIdx", VarType.INT32), ("Out2InWeights", op.dtype("X"))):
            op.set(slot, (regions, channels, high, wide), kind)
    else:
        rows = regions * channels * high * wide if known else -1
        op.set("Out2InIdx", (rows, 4), VarType.INT32)
        op.set("Out2InWeights", (rows, 4), op.dtype("X"))


_ATTRS: dict[str, Any] = {"spatial_scale": 1.0, "transformed_height": 1, "transformed_width": 1}
_OUTPUTS = ("Mask", "TransformMatrix", "Out2InIdx", "Out2InWeights")

register(
    OpDef(
        "roi_perspective_transform",
        inputs=("X", "ROIs"),
        outputs=("Out", *_OUTPUTS),
        attrs=_ATTRS,
        infer=_infer,
        kernel=_transform,
        grad=standard_grad(("X", "ROIs"), ("Out2InIdx", "Out2InWeights")),
        no_grad=("ROIs", "Mask", "TransformMatrix", "Out2InIdx", "Out2InWeights"),
        sequences=Sequences(takes_lod=True, inferred=True, levels=Levels("ROIs", outs=("Out",))),
        doc="Quadrilaterals of features as rectangles, which places of these lie in them, and how they are mapped.",
    )
)
register(
    OpDef(
        "roi_perspective_transform_grad",
        inputs=("X#", "ROIs#", "Out2InIdx", "Out2InWeights", grad_name("Out")),
        outputs=(grad_name("X"),),
        attrs=_ATTRS,
        infer=grads_like(),
        kernel=_transform_grad,
        sequences=Sequences(source=None),
        doc="The gradient of roi_perspective_transform for X.",
    )
)
