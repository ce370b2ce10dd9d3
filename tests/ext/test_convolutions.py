"""Convolutions of oneDNN share the memory that they need while they run."""

import numpy as np
import pytest

from fluidlite._ext import kernels

from .native import draw

needs_dnn = pytest.mark.skipif("conv2d.f32" not in kernels.table(), reason="needs oneDNN")


def results(n, c, size, filters, kernel, groups, value=None):
    shapes = (n, c, size, size), (filters, c // groups, kernel, kernel), (n, filters, size, size)
    image, weight, gradient = (
        draw(*shape, seed=k) if value is None else np.full(shape, value, "f4")
        for k, shape in enumerate(shapes)
    )
    out, d_image, d_weight = 0 * gradient, 0 * image, 0 * weight
    pad = kernel // 2
    ints = [n, c, size, size, filters, kernel, kernel, 1, 1, pad, pad, pad, pad, 1, 1, groups]
    kernels.call("conv2d.f32", [image, weight, None, out], ints, [])
    kernels.call("conv2d_grad_input.f32", [weight, gradient, d_image], ints, [])
    kernels.call("conv2d_grad_filter.f32", [image, gradient, d_weight], ints, [])
    return out, d_image, d_weight


@needs_dnn
@pytest.mark.parametrize(
    "sizes", [(2, 3, 9, 5, 3, 1), (5, 7, 8, 13, 1, 1), (2, 6, 9, 9, 5, 3), (1, 17, 5, 20, 3, 1)]
)
def test_nothing_is_left_of_those_before(sizes):
    """Layouts in blocks have room for more channels than there are, which has to be zero."""
    clean = results(*sizes)
    results(8, 34, 32, 66, 3, 2, np.nan)
    for array, again in zip(clean, results(*sizes), strict=True):
        assert np.isfinite(array).all()
        np.testing.assert_array_equal(again, array)
