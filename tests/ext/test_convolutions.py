"""Convolutions of oneDNN share the memory that they need while they run."""

import numpy as np
import pytest

from fluidlite._ext import kernels, threads
from fluidlite.ops.nn.conv import convolve, convolve_grad

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
    for array, result in zip(clean, results(*sizes), strict=True):
        assert np.isfinite(array).all()
        np.testing.assert_array_equal(result, array)


FAMILIES = {"conv2d": "NCHW", "conv2d_last": "NHWC", "conv3d": "NCDHW", "conv3d_last": "NDHWC"}


@needs_dnn
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("name", FAMILIES)
def test_few_positions_are_cut_by_channels(name, stride):
    """The work is split by output channels: filters forward and for their gradient, image channels for the images'."""
    layout, n, c, filters = FAMILIES[name], 2, 96, 128
    dims, last = len(layout) - 2, layout[-1] == "C"
    size, kernel = ([9, 8], [3, 3]) if dims == 2 else ([3, 6, 5], [1, 3, 3])
    pads, out = [k // 2 for k in kernel], [(s - 1) // stride + 1 for s in size]
    x = draw(n, *size, c) if last else draw(n, c, *size)
    g = draw(n, *out, filters, seed=1) if last else draw(n, filters, *out, seed=1)
    w, bias = draw(filters, c, *kernel, seed=2), draw(filters, seed=3)
    attrs = {
        "strides": [stride] * dims, "paddings": pads, "dilations": [1] * dims, "groups": 1,
        "data_format": layout, "padding_algorithm": "EXPLICIT",
    }  # fmt: skip
    ints = [n, c, *size, filters, *kernel, *[stride] * dims, *[p for p in pads for _ in "ab"], *[1] * dims, 1]
    exact = [array.astype("f8") for array in (x, w, bias, g)]
    dx, dw, _ = convolve_grad(np, exact[0], exact[1], None, exact[3], **attrs)
    want = convolve(np, *exact[:3], **attrs), dx, dw
    before, found = threads.count(), []
    try:
        for count in (1, 2):
            threads.use(count)
            made = [np.full(array.shape, np.nan, "f4") for array in want]
            kernels.call(f"{name}.f32", [x, w, bias, made[0]], ints)
            kernels.call(f"{name}_grad_input.f32", [w, g, made[1]], ints)
            kernels.call(f"{name}_grad_filter.f32", [x, g, made[2]], ints)
            found.append(made)
    finally:
        threads.use(before)
    for one, two, exactly in zip(*found, want, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, exactly, rtol=1e-4, atol=1e-3)


def in_blocks(images, block):
    n, c, *places = images.shape
    parts = images.reshape(n, c // block, block, -1).transpose(0, 1, 3, 2)
    return np.ascontiguousarray(parts).reshape(n, c, *places)


def out_of_blocks(images, block):
    n, c, *places = images.shape
    parts = images.reshape(n, c // block, -1, block).transpose(0, 1, 3, 2)
    return np.ascontiguousarray(parts).reshape(n, c, *places)


@needs_dnn
@pytest.mark.parametrize("which", [(True, True), (True, False), (False, True)], ids=["both", "in", "out"])
@pytest.mark.parametrize("block", [8, 16])
@pytest.mark.parametrize(
    "n, c, size, filters, kernel, stride, groups",
    [
        (3, 16, 11, 16, 3, 1, 1), (4, 32, 9, 48, 3, 2, 1), (33, 48, 16, 32, 1, 1, 1),
        (2, 96, 6, 128, 3, 1, 1), (2, 160, 4, 192, 1, 1, 1), (2, 3, 12, 32, 7, 2, 1),
        (2, 20, 9, 32, 3, 1, 1), (3, 32, 10, 32, 3, 2, 32), (2, 32, 7, 64, 3, 1, 4),
        (2, 512, 2, 512, 3, 1, 1),
    ],
)  # fmt: skip
def test_images_in_blocks_of_channels(n, c, size, filters, kernel, stride, groups, block, which):
    """Either image of a convolution may be blocked, unless its channels are no multiple of the block."""
    of_input, of_output = which[0] and c % block == 0, which[1] and filters % block == 0
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    x, w, bias = (
        draw(n, c, size, size),
        draw(filters, c // groups, kernel, kernel, seed=1),
        draw(filters, seed=2),
    )
    g = draw(n, filters, out, out, seed=3)
    ints = [n, c, size, size, filters, kernel, kernel, stride, stride, pad, pad, pad, pad, 1, 1, groups]
    made = [np.full_like(each, np.nan) for each in (g, x, w)]
    wanted = [np.empty_like(each) for each in made]
    kernels.call("conv2d.f32", [x, w, bias, wanted[0]], ints)
    kernels.call("conv2d_grad_input.f32", [w, g, wanted[1]], ints)
    kernels.call("conv2d_grad_filter.f32", [x, g, wanted[2]], ints)
    x = in_blocks(x, block) if of_input else x
    g = in_blocks(g, block) if of_output else g
    ints += [block, int(of_input), int(of_output)]
    kernels.call("conv2d_blocks.f32", [x, w, bias, made[0]], ints)
    kernels.call("conv2d_blocks_grad_input.f32", [w, g, made[1]], ints)
    kernels.call("conv2d_blocks_grad_filter.f32", [x, g, made[2]], ints)
    made[0] = out_of_blocks(made[0], block) if of_output else made[0]
    made[1] = out_of_blocks(made[1], block) if of_input else made[1]
    for got, want in zip(made, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * abs(want).max())
