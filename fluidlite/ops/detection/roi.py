"""Regions of feature maps, pooled to one size: `roi_align`, `psroi_pool`, `prroi_pool`, `roi_pool`.

All but the last are linear in the features and go along one axis after the other: what a bin takes of each row and of
each column are two small matrices, and the rest is products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..native import Selector, typed
from ..registry import Call, LodArray, OperatorError, OpView, Sequences, grad_name
from ..sequence import Lods, input_lod, segments_of

Array = np.ndarray

DX, DOUT = grad_name("X"), grad_name("Out")


def images_of(
    op_type: str, X: Array, ROIs: Array, lod: Lods, bounds: Array | None = None, all_images: bool = True
) -> Array:
    """The image of each region: by the sequences of ROIs, or by the offsets `bounds`; `all_images`: of every image."""
    if bounds is not None:
        offsets = np.asarray(bounds, np.int64).reshape(-1)
    else:
        known = input_lod(lod, "ROIs")
        if not known:
            raise OperatorError(
                f"operator {op_type}: ROIs has no LoD information: feed sequences made with fluid.create_lod_tensor"
            )
        offsets = known[-1]
    count = len(offsets) - 1
    if count > len(X) or (all_images and count < len(X)) or offsets[-1] != len(ROIs):
        raise OperatorError(
            f"operator {op_type}: {count} sequences of {offsets[-1]} regions for {len(X)} images and "
            f"{len(ROIs)} regions"
        )
    return np.repeat(np.arange(count), np.diff(offsets))


def _grouped(X: Array, images: Array, rows: Array, columns: Array) -> Array:
    """[regions, C, bins down, bins across]: the features of its image pooled into each bin."""
    out = np.empty((len(images), X.shape[1], rows.shape[1], columns.shape[1]), X.dtype)
    for image in np.unique(images):
        own = images == image
        across = X[image] @ columns[own].swapaxes(1, 2)[:, None]
        out[own] = rows[own][:, None] @ across
    return out


def _spread(like: Array, d_out: Array, images: Array, rows: Array, columns: Array) -> Array:
    """The gradient of the features of `_grouped`."""
    dx = np.zeros_like(like)
    for image in np.unique(images):
        own = images == image
        dx[image] = (rows[own].swapaxes(1, 2)[:, None] @ d_out[own] @ columns[own][:, None]).sum(axis=0)
    return dx


def _sampled(begin: Array, bin_size: Array, bins: int, counts: Array, size: int) -> Array:
    """[regions, bins, size]: the mean weights of linear interpolation at `counts` places of each bin."""
    most = int(counts.max(initial=1))
    step = np.arange(most, dtype=begin.dtype)
    at = (step[None, None] + 0.5) * (bin_size / counts)[:, None, None]
    at = at + (begin[:, None] + np.arange(bins, dtype=begin.dtype) * bin_size[:, None])[..., None]
    there = (step < counts[:, None])[:, None] & (at >= -1) & (at <= size)
    at = np.clip(at, 0, size - 1)[..., None]
    weight = np.maximum(1 - abs(at - np.arange(size, dtype=begin.dtype)), 0)
    return (weight * there[..., None]).sum(axis=2) / counts[:, None, None].astype(begin.dtype)


def _align_weights(X: Array, ROIs: Array, attrs: dict[str, Any]) -> tuple[Array, Array]:
    scaled = ROIs * ROIs.dtype.type(attrs["spatial_scale"])
    made = []
    for axis, bins in ((1, attrs["pooled_height"]), (0, attrs["pooled_width"])):
        begin, extent = scaled[:, axis], np.maximum(scaled[:, axis + 2] - scaled[:, axis], 1)
        ratio = attrs["sampling_ratio"]
        counts = np.full(len(begin), ratio) if ratio > 0 else np.ceil(extent / bins).astype(np.int64)
        made.append(_sampled(begin, extent / bins, bins, counts, X.shape[3 - axis]).astype(X.dtype))
    return made[0], made[1]


@hosted
def _roi_align(xp: Any, X: Any, ROIs: Any, RoisLod: Any, lod: Lods, **attrs: Any) -> Any:
    images = images_of("roi_align", X, ROIs, lod, RoisLod)
    return LodArray(_grouped(X, images, *_align_weights(X, ROIs, attrs)), ())


@hosted
def _roi_align_grad(xp: Any, X: Any, ROIs: Any, RoisLod: Any, Out_grad: Any, lod: Lods, **attrs: Any) -> Any:
    images = images_of("roi_align_grad", X, ROIs, lod, RoisLod)
    return LodArray(_spread(X, Out_grad, images, *_align_weights(X, ROIs, attrs)), ())


def check_regions(op: OpView, width: int = 4) -> None:
    """Raise the operator's error unless X is feature maps and ROIs regions of `width` numbers."""
    shape, rois = op.shape("X"), op.shape("ROIs")
    if len(shape) != 4 or len(rois) != 2 or rois[1] not in (width, -1):
        raise op.fail(
            f"X must be [batch, channels, height, width] and ROIs [regions, {width}], got {list(shape)} and "
            f"{list(rois)}"
        )


def pooled_size(op: OpView, high: str = "pooled_height", wide: str = "pooled_width") -> tuple[int, int]:
    """Height and width of results; raises the operator's error unless they and the scale are positive."""
    size = op.attr(high), op.attr(wide)
    if min(size) <= 0 or op.attr("spatial_scale") <= 0:
        raise op.fail(
            f"{high}, {wide} and spatial_scale must be positive, got {size[0]}, {size[1]} and "
            f"{op.attr('spatial_scale')}"
        )
    return size


def _infer_pooled(op: OpView) -> None:
    check_regions(op)
    shape = (op.shape("ROIs")[0], op.shape("X")[1], *pooled_size(op))
    op.set("Out", shape, op.dtype("X"))
    op.set("Argmax", shape, VarType.INT32 if op.building else VarType.INT64)


def _native_maps(op: OpView, kernel: str, slots: tuple[str, ...]) -> tuple[str, str, list[int]] | None:
    """Kernel, offsets and first integers of a native call; None where the reference kernel has to do or to complain."""
    name, found = typed(op, kernel, slots), segments_of(op, "ROIs")
    if name is None or found is None or op.has("RoisLod") or found[1] != op.shape("X")[0]:
        return None
    return name, found[0], [*op.shape("X"), found[2], op.attr("pooled_height"), op.attr("pooled_width")]


def _align_native(kernel: str, given: str, features: str, pooled: str) -> Selector:
    def select(op: OpView) -> Call | None:
        maps = _native_maps(op, kernel, (given, "ROIs"))
        if maps is None:
            return None
        name, offsets, ints = maps
        operands = [op.name(features), op.name("ROIs"), offsets, op.name(pooled)]
        return Call(name, operands, [*ints, op.attr("sampling_ratio")], [op.attr("spatial_scale")])

    return select


def _pool_native(op: OpView) -> Call | None:
    maps = _native_maps(op, "roi_pool", ("X", "ROIs"))
    if maps is None:
        return None
    name, offsets, ints = maps
    operands = [op.name("X"), op.name("ROIs"), offsets, op.name("Out"), op.name("Argmax")]
    return Call(name, operands, ints, [op.attr("spatial_scale")])


def _pool_grad_native(op: OpView) -> Call | None:
    maps = _native_maps(op, "roi_pool_grad", (DOUT,))
    if maps is None:
        return None
    name, offsets, ints = maps
    return Call(name, [offsets, op.name("Argmax"), op.name(DOUT), op.name(DX)], ints)


def register_pooling(
    op_type: str,
    forward: Callable[..., Any],
    back: Callable[..., Any],
    infer: Callable[[OpView], None],
    doc: str,
    attrs: dict[str, Any],
    **more: Any,
) -> None:
    """Declare a pooling of regions ROIs of X and its gradient; `more`: see `register_pair`."""
    options: dict[str, Any] = {
        "inputs": ("X", "ROIs", "RoisLod?"),
        "keep": ("X#", "ROIs", "RoisLod"),
        "no_grad": ("ROIs", "RoisLod"),
        **more,
    }
    register_pair(
        op_type,
        kernel=forward,
        back=back,
        infer=infer,
        doc=doc,
        attrs={"spatial_scale": 1.0, "pooled_height": 1, "pooled_width": 1, **attrs},
        sequences=Sequences(takes_lod=True, inferred=True),
        **options,
    )


register_pooling(
    "roi_align",
    _roi_align,
    _roi_align_grad,
    _infer_pooled,
    "For each region the means of interpolated features in a grid of bins (He et al. 2017).",
    {"sampling_ratio": -1},
    native=(_align_native("roi_align", "X", "X", "Out"), _align_native("roi_align_grad", DOUT, DX, DOUT)),
)


def _away(numbers: Array) -> Array:
    """Round to the nearest integers, halves away from 0."""
    return np.copysign(np.floor(abs(numbers) + 0.5), numbers)


def _whole_bins(begin: Array, bin_size: Array, bins: int, size: int) -> tuple[Array, Array]:
    """First and last but one of the places of each bin, [regions, bins], within the features."""
    step = np.arange(bins, dtype=bin_size.dtype)
    low = np.floor(step * bin_size[:, None]) + begin[:, None]
    high = np.ceil((step + 1) * bin_size[:, None]) + begin[:, None]
    return np.clip(low, 0, size).astype(np.int64), np.clip(high, 0, size).astype(np.int64)


@hosted
def _roi_pool(
    xp: Any,
    X: Any,
    ROIs: Any,
    RoisLod: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    lod: Lods,
) -> Any:
    images = images_of("roi_pool", X, ROIs, lod, RoisLod)
    scaled = _away(ROIs * ROIs.dtype.type(spatial_scale))
    bins = []
    for axis, count in ((1, pooled_height), (0, pooled_width)):
        extent = np.maximum(scaled[:, axis + 2] - scaled[:, axis] + 1, 1)
        bins.append(_whole_bins(scaled[:, axis], extent / ROIs.dtype.type(count), count, X.shape[3 - axis]))
    (top, bottom), (left, right) = bins
    out = np.zeros((len(ROIs), X.shape[1], pooled_height, pooled_width), X.dtype)
    where = np.full(out.shape, -1, np.int64)
    wide = X.shape[3]
    for region, i, j in np.ndindex(len(ROIs), pooled_height, pooled_width):
        y, x = top[region, i], left[region, j]
        part = X[images[region], :, y : bottom[region, i], x : right[region, j]]
        if part.size:
            flat = part.reshape(len(part), -1)
            best = flat.argmax(axis=1)
            down, across = np.divmod(best, part.shape[2])
            out[region, :, i, j] = flat[np.arange(len(flat)), best]
            where[region, :, i, j] = (y + down) * wide + x + across
    return LodArray(out, ()), LodArray(where, ())


@hosted
def _roi_pool_grad(xp: Any, X: Any, ROIs: Any, RoisLod: Any, Argmax: Any, Out_grad: Any, lod: Lods) -> Any:
    images = images_of("roi_pool_grad", X, ROIs, lod, RoisLod)
    dx = np.zeros((X.shape[0], X.shape[1], X.shape[2] * X.shape[3]), Out_grad.dtype)
    region, channel, i, j = np.nonzero(Argmax >= 0)
    at = images[region], channel, Argmax[region, channel, i, j]
    np.add.at(dx, at, Out_grad[region, channel, i, j])
    return LodArray(dx.reshape(X.shape), ())


register_pooling(
    "roi_pool",
    _roi_pool,
    _roi_pool_grad,
    _infer_pooled,
    "For each region the greatest features in a grid of bins (Girshick 2015), and where they are.",
    {},
    outputs=("Out", "Argmax"),
    keep_out=("Argmax",),
    no_grad=("ROIs", "RoisLod", "Argmax"),
    native=(_pool_native, _pool_grad_native),
)


def _psroi_weights(X: Array, ROIs: Array, attrs: dict[str, Any]) -> tuple[Array, Array]:
    kind, scale = ROIs.dtype.type, attrs["spatial_scale"]
    made = []
    for axis, bins in ((1, attrs["pooled_height"]), (0, attrs["pooled_width"])):
        begin = _away(ROIs[:, axis]) * kind(scale)
        end = (_away(ROIs[:, axis + 2]) + 1) * kind(scale)
        size = (np.maximum(end - begin, kind(0.1)) / kind(bins))[:, None]
        step = np.arange(bins, dtype=ROIs.dtype)
        low = np.floor(step * size + begin[:, None])[..., None]
        high = np.ceil((step + 1) * size + begin[:, None])[..., None]
        place = np.arange(X.shape[3 - axis])
        inside = (place >= low) & (place < high)
        made.append(inside / np.maximum(inside.sum(axis=-1, keepdims=True), 1))
    return made[0].astype(X.dtype), made[1].astype(X.dtype)


def _own_channels(X: Array, bins: tuple[int, int]) -> Array:
    """[batch, channels, bins down, bins across, H, W]: the features that each bin takes its part of."""
    return X.reshape(len(X), -1, *bins, *X.shape[2:])


@hosted
def _psroi_pool(xp: Any, X: Any, ROIs: Any, lod: Lods, **attrs: Any) -> Any:
    images = images_of("psroi_pool", X, ROIs, lod)
    rows, columns = _psroi_weights(X, ROIs, attrs)
    maps = _own_channels(X, (rows.shape[1], columns.shape[1]))
    out = np.empty((len(ROIs), *maps.shape[1:4]), X.dtype)
    for region, image in enumerate(images):
        out[region] = np.einsum("cijhw,ih,jw->cij", maps[image], rows[region], columns[region], optimize=True)
    return LodArray(out, ())


@hosted
def _psroi_pool_grad(xp: Any, X: Any, ROIs: Any, Out_grad: Any, lod: Lods, **attrs: Any) -> Any:
    images = images_of("psroi_pool_grad", X, ROIs, lod)
    rows, columns = _psroi_weights(X, ROIs, attrs)
    dx = np.zeros(X.shape, Out_grad.dtype)
    maps = _own_channels(dx, (rows.shape[1], columns.shape[1]))
    for region, image in enumerate(images):
        maps[image] += np.einsum("cij,ih,jw->cijhw", Out_grad[region], rows[region], columns[region])
    return LodArray(dx, ())


def _infer_psroi(op: OpView) -> None:
    check_regions(op)
    high, wide = pooled_size(op)
    channels, own = op.shape("X")[1], op.attr("output_channels")
    if own <= 0 or (channels >= 0 and channels != own * high * wide):
        raise op.fail(f"X must have {own} x {high} x {wide} channels, got {channels}")
    op.set("Out", (op.shape("ROIs")[0], own, high, wide), op.dtype("X"))


register_pooling(
    "psroi_pool",
    _psroi_pool,
    _psroi_pool_grad,
    _infer_psroi,
    "For each region the means of features in a grid of bins, of other channels in each (Dai et al. 2016).",
    {"output_channels": 1},
    inputs=("X", "ROIs"),
    no_grad=("ROIs",),
    keep=("X#", "ROIs"),
)
