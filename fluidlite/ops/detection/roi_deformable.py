"""Pooling of regions whose bins are shifted by offsets (Dai et al. 2017): `deformable_psroi_pooling`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..infer import grads_like_inputs
from ..registry import LodArray, OpDef, OpView, Sequences, grad_name, register, standard_grad
from ..sequence import Lods
from .roi import Array, _away, images_of, pooled_size

DINPUT, DTRANS = grad_name("Input"), grad_name("Trans")


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

register(
    OpDef(
        "deformable_psroi_pooling",
        inputs=_INPUTS,
        outputs=("TopCount", "Output"),
        attrs=_ATTRS,
        infer=_infer,
        kernel=_pool,
        grad=standard_grad(_INPUTS, ("TopCount",)),
        no_grad=("ROIs", "TopCount"),
        sequences=Sequences(takes_lod=True, inferred=True),
        doc="For each region the means of interpolated features in bins that are moved by Trans, and of how many.",
    )
)
register(
    OpDef(
        "deformable_psroi_pooling_grad",
        inputs=(*_INPUTS, "TopCount", grad_name("Output")),
        outputs=(DINPUT + "?", DTRANS + "?"),
        attrs=_ATTRS,
        infer=grads_like_inputs,
        kernel=_pool_grad,
        sequences=Sequences(takes_lod=True, inferred=True),
        doc="The gradient of deformable_psroi_pooling for Input and Trans.",
    )
)
