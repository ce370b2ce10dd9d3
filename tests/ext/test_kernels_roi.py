"""Kernels that pool regions of feature maps, beside the reference kernels of their operators."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure
from fluidlite.ops.detection import roi

from .native import TYPES, blank, draw, each_real, each_target, near

OFFSETS = np.array([0, 2, 2, 5])
MAPS = [3, 2, 5, 7, 5, 2, 3]


def regions(kind):
    """Some within the maps, one larger than they are, one of no size, one outside."""
    corners = [
        [0.4, 1.3, 9.1, 7.7],
        [-3, -2, 30, 25],
        [2.2, 2.2, 2.2, 2.2],
        [3.5, 0, 11.5, 4.1],
        [-40, -40, -30, -35],
    ]
    return np.array(corners, TYPES[kind])


@each_target
@each_real
@pytest.mark.parametrize("samples", [2, -1])
def test_roi_align(samples, kind, target):
    x, rois, g = draw(*MAPS[:4], kind=kind), regions(kind), draw(5, 2, 2, 3, kind=kind, seed=1)
    attrs = {"spatial_scale": 0.5, "pooled_height": 2, "pooled_width": 3, "sampling_ratio": samples}
    lod = {"ROIs": [[OFFSETS]]}
    want = roi._roi_align(np, x, rois, None, lod=lod, **attrs).array
    d_want = roi._roi_align_grad(np, x, rois, None, g, lod=lod, **attrs).array
    out, dx = blank(5, 2, 2, 3, kind=kind), blank(*MAPS[:4], kind=kind)
    for name, maps, bins, right in (("roi_align", x, out, want), ("roi_align_grad", dx, g, d_want)):
        kernels.call(f"{name}.{kind}", [maps, rois, OFFSETS, bins], [*MAPS, samples], [0.5], target=target)
        near(out if maps is x else dx, right, kind, 10)


@each_target
@each_real
def test_roi_pool(kind, target):
    x, rois, g = draw(*MAPS[:4], kind=kind), regions(kind), draw(5, 2, 2, 3, kind=kind, seed=1)
    lod = {"ROIs": [[OFFSETS]]}
    want, places = (part.array for part in roi._roi_pool(np, x, rois, None, 0.5, 2, 3, lod=lod))
    out, where, dx = blank(5, 2, 2, 3, kind=kind), blank(5, 2, 2, 3, kind="i64"), blank(*MAPS[:4], kind=kind)
    kernels.call(f"roi_pool.{kind}", [x, rois, OFFSETS, out, where], MAPS, [0.5], target=target)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(where, places)
    kernels.call(f"roi_pool_grad.{kind}", [OFFSETS, where, g, dx], MAPS, target=target)
    near(dx, roi._roi_pool_grad(np, x, rois, None, where, g, lod=lod).array, kind)


def test_regions_that_are_no_numbers_or_endless():
    x, out = draw(1, 1, 4, 4), blank(1, 1, 2, 2)
    for wrong in (np.nan, 1e30):
        rois = np.array([[0, 0, wrong, 2]], "float32")
        ints = [1, 1, 4, 4, 1, 2, 2]
        where = blank(1, 1, 2, 2, kind="i64")
        kernels.call("roi_pool.f32", [x, rois, np.array([0, 1]), out, where], ints, [1.0])
        assert (where < 16).all()
        kernels.call("roi_align.f32", [x, rois, np.array([0, 1]), out], [*ints, 2], [1.0])
    with pytest.raises(KernelFailure):
        kernels.call("roi_align.f32", [x, rois, np.array([0, 1]), out], [*ints, -1], [1.0])
