"""Images of another size against sums of old elements, weighted as triangles, boxes and Keys's cubic weigh them."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure

from .native import blank, draw, each_real, each_target, near


def share(method, distance):
    """How much an element counts at this distance from where a new one stands."""
    x = np.abs(distance)
    if method == "linear":
        return np.maximum(1 - x, 0)
    near, far = (1.25 * x - 2.25) * x * x + 1, ((-0.75 * x + 3.75) * x - 6) * x + 3
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def matrix(method, n, m, corners, centred):
    """The weights of n old elements in m new ones: those beyond an end are the one at that end."""
    weights = np.zeros((m, n))
    ratio = np.float32(0 if m == 1 else np.float32(n - corners) / np.float32(m - corners))  # as Fluid's
    for k in range(m):
        if method == "nearest":
            weights[k, min(int(ratio * np.float32(k) + 0.5 * corners), n - 1)] = 1
            continue
        at = float(ratio) * (k + 0.5) - 0.5 if centred and not corners else float(ratio * np.float32(k))
        at = float(ratio) * k if method == "cubic" and corners else at
        at = max(at, 0) if method == "linear" else at
        for place in range(int(np.floor(at)) - 2, int(np.floor(at)) + 4):
            weights[k, min(max(place, 0), n - 1)] += share(method, at - place)
    return weights


SIZES = [((5, 4), (8, 7)), ((6, 3), (2, 9)), ((1, 5), (4, 1)), ((7,), (3,)), ((3, 4, 2), (5, 2, 6))]


@each_target
@each_real
@pytest.mark.parametrize(("corners", "centred"), [(1, 0), (0, 0), (0, 1)])
@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("inner", [1, 19])
def test_resizing(sizes, inner, method, corners, centred, kind, target):
    if method == "cubic" and not corners and not centred:
        pytest.skip("a cubic always has elements in the middle of their share")
    old, new = sizes
    ints = [["nearest", "linear", "cubic"].index(method), corners, centred, 3, inner, len(old), *old, *new]
    x, g = draw(3, *old, inner, kind=kind), draw(3, *new, inner, kind=kind, seed=1)
    want, back = x.astype(float), g.astype(float)
    for axis, (n, m) in enumerate(zip(old, new, strict=True), 1):
        weights = matrix(method, n, m, corners, centred)
        want = np.moveaxis(np.tensordot(weights, want, (1, axis)), 0, axis)
        back = np.moveaxis(np.tensordot(weights.T, back, (1, axis)), 0, axis)
    out, dx = blank(*g.shape, kind=kind), blank(*x.shape, kind=kind)
    kernels.call(f"resize.{kind}", [x, out], ints, target=target)
    near(out, want, kind, 4)
    kernels.call(f"resize_grad.{kind}", [g, dx], ints, target=target)
    near(dx, back, kind, 8)


def test_no_images():
    kernels.call("resize.f32", [blank(0, 4), blank(0, 6)], [1, 1, 0, 0, 1, 1, 4, 6])


def test_four_axes_are_refused():
    with pytest.raises(KernelFailure, match="a size of 4 is more than"):
        kernels.call("resize.f32", [blank(16), blank(16)], [1, 1, 0, 1, 1, 4, *[2] * 8])
