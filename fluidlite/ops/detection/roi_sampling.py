"""Pooling of regions sampled elsewhere than on a grid: bins shifted by offsets (Dai et al. 2017), quadrilaterals,
precise means (Jiang et al. 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..registry import Levels, LodArray, OpView, Sequences
from ..sequence import Lods, input_lod
from .roi import (
    Array,
    _away,
    _grouped,
    _infer_pooled,
    _spread,
    check_regions,
    images_of,
    pooled_size,
    register_pooling,
)


def _split(extent: int, parts: int) -> Array:
    """To which of `parts` each of `extent` bins belongs."""
    return np.minimum(np.floor(np.arange(extent) * parts / extent).astype(np.int64), parts - 1)


class _Bins:
    """The places that each bin of each region looks at.

    Coordinates are [regions, classes, bins down, bins across, samples], y first; `there`: whether they are in the
    image.
    """

    def __init__(self, Input: Array, ROIs: Array, Trans: Array, images: Array, attrs: dict[str, Any]) -> None:
        kind, scale = ROIs.dtype.type, attrs["spatial_scale"]
        bins = attrs["pooled_height"], attrs["pooled_width"]
        samples, depth = attrs["sample_per_part"], attrs["output_dim"]
        fixed = attrs["no_trans"]
        classes = 1 if fixed else Trans.shape[1] // 2
        self.part: tuple[Any, ...] = np.ix_(
            *(_split(n, m) for n, m in zip(bins, attrs["part_size"], strict=True))
        )
        step = np.divmod(np.arange(samples * samples), samples)
        self.at, self.extent, self.there = [], [], np.True_
        for axis, column in ((0, 1), (1, 0)):
            begin = _away(ROIs[:, column]) * kind(scale) - kind(0.5)
            extent = np.maximum((_away(ROIs[:, column + 2]) + 1) * kind(scale) - kind(0.5) - begin, kind(0.1))
            size = extent / kind(bins[axis])
            order = np.arange(bins[axis]).reshape((-1, 1) if axis == 0 else (1, -1))
            start = order * size[:, None, None] + begin[:, None, None]
            moved = np.zeros((len(ROIs), classes, 1, 1), ROIs.dtype)
            if not fixed:
                own = Trans.reshape(len(ROIs), classes, 2, *Trans.shape[2:])[:, :, 1 - axis]
                moved = own[..., self.part[0], self.part[1]] * kind(attrs["trans_std"])
            at = start[:, None] + moved * extent[:, None, None, None]
            at = at[..., None] + step[axis] * (size / kind(samples))[:, None, None, None, None]
            limit = Input.shape[2 + axis]
            self.there = self.there & (at >= -0.5) & (at <= limit - 0.5)
            self.at.append(np.clip(at, 0, limit - 1))
            self.extent.append(extent)
        self.count = self.there.sum(axis=-1)
        # The channels that each element of the result looks at, and which class it belongs to.
        rows, columns = (_split(n, m) for n, m in zip(bins, attrs["group_size"], strict=True))
        group = attrs["group_size"]
        channel = (np.arange(depth)[:, None, None] * group[0] + rows[:, None]) * group[1] + columns
        self.of_class = np.arange(depth) // (depth // classes)
        self.index = images[:, None, None, None, None], channel[None, ..., None]

    def corners(self) -> list[tuple[Any, Array, Array, Array]]:
        """For each of four neighbours: the index of [regions, depth, down, across, samples], weight, d/dy, d/dx."""
        low = [np.floor(axis).astype(np.int64) for axis in self.at]
        high = [np.ceil(axis).astype(np.int64) for axis in self.at]
        part = [axis - whole for axis, whole in zip(self.at, low, strict=True)]
        result = []
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            place = [(high if up else low)[axis][:, self.of_class] for axis, up in enumerate((i, j))]
            tall, broad = (part[0] if i else 1 - part[0]), (part[1] if j else 1 - part[1])
            weights = tall * broad, broad * (1 if i else -1), tall * (1 if j else -1)
            result.append(((*self.index, *place), *((w * self.there)[:, self.of_class] for w in weights)))
        return result

    def shares(self) -> Array:
        """One through the number of places that each element of the result looks at."""
        return (1 / np.maximum(self.count, 1))[:, self.of_class]


@hosted
def _pool(xp: Any, Input: Any, ROIs: Any, Trans: Any, lod: Lods, **attrs: Any) -> Any:
    images = images_of("deformable_psroi_pooling", Input, ROIs, lod)
    bins = _Bins(Input, ROIs, Trans, images, attrs)
    total = sum((Input[at] * weight).sum(axis=-1) for at, weight, _, _ in bins.corners())
    count = np.ascontiguousarray(bins.count[:, bins.of_class]).astype(Input.dtype)
    return LodArray(count, ()), LodArray((total * bins.shares()).astype(Input.dtype), ())


@hosted
def _pool_grad(xp: Any, Input: Any, ROIs: Any, Trans: Any, Output_grad: Any, lod: Lods, **attrs: Any) -> Any:
    images = images_of("deformable_psroi_pooling_grad", Input, ROIs, lod)
    bins = _Bins(Input, ROIs, Trans, images, attrs)
    arrived = (Output_grad * bins.shares())[..., None]
    d_input, d_trans = np.zeros_like(Input), np.zeros_like(Trans)
    moved = [np.zeros(Output_grad.shape, Input.dtype) for _ in range(2)]
    for at, weight, by_y, by_x in bins.corners():
        np.add.at(d_input, tuple(np.broadcast_arrays(*at)), arrived * weight)
        for axis, slope in enumerate((by_y, by_x)):
            moved[axis] += (Input[at] * slope * arrived).sum(axis=-1)
    if not attrs["no_trans"]:
        own = d_trans.reshape(len(ROIs), -1, 2, *Trans.shape[2:])
        region, channel, down, across = np.indices(Output_grad.shape, sparse=True)
        part = [axis.reshape(-1)[place] for axis, place in zip(bins.part, (down, across), strict=True)]
        for axis in range(2):
            added = moved[axis] * bins.extent[axis][:, None, None, None] * attrs["trans_std"]
            np.add.at(own, (region, bins.of_class[channel], 1 - axis, *part), added)
    return LodArray(d_input, ()), LodArray(d_trans, ())


def _infer(op: OpView) -> None:
    shape, rois, trans = (op.shape(slot) for slot in ("Input", "ROIs", "Trans"))
    if len(shape) != 4 or len(rois) != 2 or len(trans) != 4:
        raise op.fail(
            f"Input and Trans must have 4 dimensions and ROIs 2, got {list(shape)}, {list(trans)} and {list(rois)}"
        )
    size, depth, group = pooled_size(op), op.attr("output_dim"), op.attr("group_size")
    if len(group) != 2 or len(op.attr("part_size")) != 2 or min([depth, *group, *op.attr("part_size")]) <= 0:
        raise op.fail(
            f"output_dim, group_size and part_size must be positive, got {depth}, {group} and {op.attr('part_size')}"
        )
    if shape[1] >= 0 and shape[1] < depth * group[0] * group[1]:
        raise op.fail(f"Input must have {depth} x {group[0]} x {group[1]} channels, got {shape[1]}")
    op.set("Output", (rois[0], depth, *size), op.dtype("Input"))
    op.set("TopCount", (rois[0], depth, *size), VarType.INT32 if op.building else op.dtype("Input"))


_ATTRS: dict[str, Any] = {
    "no_trans": False,
    "spatial_scale": 1.0,
    "output_dim": 1,
    "group_size": [1, 1],
    "pooled_height": 1,
    "pooled_width": 1,
    "part_size": [1, 1],
    "sample_per_part": 1,
    "trans_std": 0.1,
}
_INPUTS = ("Input", "ROIs", "Trans")


register_pair(
    "deformable_psroi_pooling",
    _INPUTS,
    _pool,
    _pool_grad,
    _infer,
    "For each region the means of interpolated features in bins that are moved by Trans, and of how many.",
    outputs=("TopCount", "Output"),
    attrs=_ATTRS,
    keep_out=("TopCount",),
    no_grad=("ROIs", "TopCount"),
    sequences=Sequences(takes_lod=True, inferred=True),
)

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


def _roi_perspective_infer(op: OpView) -> None:
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


_ROI_PERSPECTIVE_ATTRS: dict[str, Any] = {
    "spatial_scale": 1.0,
    "transformed_height": 1,
    "transformed_width": 1,
}
_OUTPUTS = ("Mask", "TransformMatrix", "Out2InIdx", "Out2InWeights")


register_pair(
    "roi_perspective_transform",
    ("X", "ROIs"),
    _transform,
    _transform_grad,
    _roi_perspective_infer,
    "Quadrilaterals of features as rectangles, which places of these lie in them, and how they are mapped.",
    outputs=("Out", *_OUTPUTS),
    attrs=_ROI_PERSPECTIVE_ATTRS,
    keep=("X#", "ROIs#"),
    keep_out=("Out2InIdx", "Out2InWeights"),
    no_grad=("ROIs", "Mask", "TransformMatrix", "Out2InIdx", "Out2InWeights"),
    sequences=Sequences(takes_lod=True, inferred=True, levels=Levels("ROIs", outs=("Out",))),
    sequences_back=Sequences(source=None),
)


def _hat(at: Array) -> Array:
    """The weight of a pixel at distance `at`: linear interpolation."""
    return np.maximum(1 - abs(at), 0)


def _hat_up_to(at: Array) -> Array:
    """The integral of `_hat` from minus infinity."""
    near = np.clip(at, -1, 1)
    return np.where(near < 0, (1 + near) ** 2 / 2, 0.5 + near - near**2 / 2)


class _Axis:
    """The bins of each region along one axis: how much each takes of each place, and how that changes.

    `weights` [regions, bins, size]; `by_begin`, `by_end`: its derivatives for the edges of the region.
    """

    def __init__(self, begin: Array, end: Array, bins: int, size: int, kind: Any) -> None:
        extent = np.maximum(end - begin, 0).astype(np.float64) / bins
        share = np.arange(bins) / bins
        low = begin[:, None] + np.arange(bins) * extent[:, None]
        low, high = (edge[..., None] - np.arange(size) for edge in (low, low + extent[:, None]))
        self.there = extent > 0
        unit = np.where(self.there, extent, 1)[:, None, None]
        exact = (_hat_up_to(high) - _hat_up_to(low)) / unit * self.there[:, None, None]
        by_high, by_low = (_hat(high) - exact) / unit, (exact - _hat(low)) / unit
        after = (share + 1 / bins)[None, :, None]
        self.by_begin = by_low * (1 - share[None, :, None]) + by_high * (1 - after)
        self.by_end = by_low * share[None, :, None] + by_high * after
        self.weights = exact.astype(kind)


def _axes(X: Array, ROIs: Array, attrs: dict[str, Any]) -> tuple[_Axis, _Axis]:
    scaled = ROIs * ROIs.dtype.type(attrs["spatial_scale"])
    down, across = (
        _Axis(scaled[:, k], scaled[:, k + 2], attrs[bins], X.shape[3 - k], X.dtype)
        for k, bins in ((1, "pooled_height"), (0, "pooled_width"))
    )
    return down, across


def _images(op_type: str, X: Array, ROIs: Array, BatchRoINums: Array | None, lod: Lods) -> Array:
    offsets = None if BatchRoINums is None else np.concatenate([[0], np.cumsum(BatchRoINums)])
    return images_of(op_type, X, ROIs, lod, offsets)


@hosted
def _prroi_pool(xp: Any, X: Any, ROIs: Any, BatchRoINums: Any, lod: Lods, **attrs: Any) -> Any:
    images = _images("prroi_pool", X, ROIs, BatchRoINums, lod)
    down, across = _axes(X, ROIs, attrs)
    return LodArray(_grouped(X, images, down.weights, across.weights), ())


@hosted
def _prroi_pool_grad(
    xp: Any, X: Any, ROIs: Any, BatchRoINums: Any, Out_grad: Any, lod: Lods, **attrs: Any
) -> Any:
    images = _images("prroi_pool_grad", X, ROIs, BatchRoINums, lod)
    down, across = _axes(X, ROIs, attrs)
    dx = _spread(X, Out_grad, images, down.weights, across.weights)
    empty = ~(down.there & across.there)[:, None]
    edges = [
        (_grouped(X.astype(np.float64), images, rows, columns) * Out_grad).sum(axis=(1, 2, 3))
        for rows, columns in (
            (down.weights, across.by_begin),
            (down.by_begin, across.weights),
            (down.weights, across.by_end),
            (down.by_end, across.weights),
        )
    ]
    drois = np.where(empty, 0, np.stack(edges, axis=1) * attrs["spatial_scale"]).astype(ROIs.dtype)
    return LodArray(dx, ()), LodArray(drois, ())


register_pooling(
    "prroi_pool",
    _prroi_pool,
    _prroi_pool_grad,
    _infer_pooled,
    "For each region the means of interpolated features over a grid of bins, taken exactly.",
    {},
    inputs=("X", "ROIs", "BatchRoINums?"),
    keep=("X", "ROIs", "BatchRoINums"),
    keep_out=("Out#",),
    no_grad=("BatchRoINums",),
)
