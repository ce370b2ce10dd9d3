"""Convolution, pooling and batch normalisation."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure

from .native import TYPES, blank, draw, each_real, each_target, near

needs_onednn = pytest.mark.skipif(not kernels.available("conv2d.f32"), reason="oneDNN is not installed")

# n, c, h, w, oc, kernel, strides, pads (top, bottom, left, right), dilations, groups
CONVOLUTIONS = [
    (2, 1, 8, 8, 4, (3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    (2, 3, 9, 8, 20, (3, 2), (2, 1), (1, 1, 0, 1), (1, 1), 1),
    (1, 4, 9, 9, 6, (3, 3), (1, 2), (0, 2, 1, 0), (2, 1), 2),
    (3, 5, 1, 1, 7, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    (2, 4, 6, 6, 4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4),
]


def convolve(x, w, case):
    *_, strides, pads, dilations, groups = case
    n, oc, (kh, kw) = len(x), len(w), w.shape[2:]
    x = np.pad(x, ((0, 0), (0, 0), pads[:2], pads[2:]))
    oh = (x.shape[2] - (kh - 1) * dilations[0] - 1) // strides[0] + 1
    ow = (x.shape[3] - (kw - 1) * dilations[1] - 1) // strides[1] + 1
    out = np.zeros((n, oc, oh, ow))
    for a in range(kh):
        for b in range(kw):
            top, left = a * dilations[0], b * dilations[1]
            part = x[
                :, :, top : top + oh * strides[0] : strides[0], left : left + ow * strides[1] : strides[1]
            ]
            part = part[:, :, :oh, :ow].reshape(n, groups, -1, oh, ow)
            taps = w[:, :, a, b].reshape(groups, oc // groups, -1)
            out += np.einsum("ngchw,goc->ngohw", part, taps).reshape(out.shape)
    return out


def convolution(case, n=None):
    batch, c, h, wide, oc, size, strides, pads, dilations, groups = case
    batch = batch if n is None else n
    ints = [batch, c, h, wide, oc, *size, *strides, *pads, *dilations, groups]
    return ints, draw(batch, c, h, wide), draw(oc, c // groups, *size, seed=1)


@needs_onednn
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case):
    ints, x, w = convolution(case)
    want, bias = convolve(x.astype(np.float64), w, case), draw(case[4], seed=2)
    out = blank(*want.shape)
    kernels.call("conv2d.f32", [x, w, None, out], ints)
    near(out, want, "f32", 10)
    biased = want + bias[:, None, None]
    kernels.call("conv2d.f32", [x, w, bias, out], ints)
    near(out, biased, "f32", 20)
    scale, shift, mean = (draw(case[4], seed=seed) for seed in (3, 4, 5))
    variance = np.abs(draw(case[4], seed=6)) + 0.5
    for added, before in ((None, want), (bias, biased)):
        kernels.call("conv2d_norm.f32", [x, w, added, out, scale, shift, mean, variance], ints, [1e-3])
        normal = (before - mean[:, None, None]) / np.sqrt(variance + 1e-3)[:, None, None]
        near(out, normal * scale[:, None, None] + shift[:, None, None], "f32", 40)


@needs_onednn
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_gradients_of_convolution(case):
    """Convolution is linear in both operands: <g, conv(dx, w)> = <grad_input, dx>, and so for the filter."""
    ints, x, w = convolution(case)
    g = draw(*convolve(x, w, case).shape, seed=3)
    dx, dw = blank(*x.shape), blank(*w.shape)
    kernels.call("conv2d_grad_input.f32", [w, g, dx], ints)
    kernels.call("conv2d_grad_filter.f32", [x, g, dw], ints)
    for seed in range(5):
        step_x, step_w = draw(*x.shape, seed=10 + seed), draw(*w.shape, seed=20 + seed)
        near((dx * step_x).sum(), (convolve(step_x, w, case) * g).sum(), "f32", 200)
        near((dw * step_w).sum(), (convolve(x, step_w, case) * g).sum(), "f32", 200)


@needs_onednn
def test_convolution_of_an_empty_batch():
    case = CONVOLUTIONS[1]
    ints, x, w = convolution(case, n=0)
    g, dw = blank(0, 20, 5, 8), blank(*w.shape)
    kernels.call("conv2d.f32", [x, w, None, g], ints)
    kernels.call("conv2d_grad_input.f32", [w, g, x], ints)
    kernels.call("conv2d_grad_filter.f32", [x, g, dw], ints)
    assert not dw.any()


def test_without_onednn_everything_but_convolution_remains():
    code = (
        "from pathlib import Path\n"
        "from fluidlite._ext import dnn, kernels\n"
        "dnn._libraries = lambda: ['/nonexistent/libdnnl.so']\n"
        "assert not kernels.available('conv2d.f32') and 'conv2d.f32' not in kernels.table()\n"
        "assert kernels.available('pool2d_max.f32') and kernels.available('gemm.f32')\n"
        "try: kernels.address('conv2d.f32')\n"
        "except KeyError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert "no kernel 'conv2d.f32' in this build" in done.stdout


# planes (n, c), image, kernel, strides, pads (top, left), output
POOLS = [
    ((2, 3), (4, 6), (2, 2), (2, 2), (0, 0), (2, 3)),
    ((1, 2), (5, 7), (2, 2), (2, 2), (0, 0), (2, 3)),
    ((1, 2), (5, 5), (2, 2), (2, 2), (0, 0), (3, 3)),
    ((2, 1), (5, 6), (3, 2), (1, 2), (1, 0), (5, 3)),
    ((1, 1), (6, 6), (3, 3), (2, 2), (1, 1), (3, 3)),
    ((2, 2), (4, 4), (4, 4), (1, 1), (0, 0), (1, 1)),
    ((1, 1), (4, 300), (2, 2), (2, 2), (0, 0), (2, 150)),
    ((1, 2), (5, 600), (2, 2), (2, 2), (0, 0), (2, 300)),
    ((1, 1), (7, 600), (3, 3), (1, 1), (1, 1), (7, 600)),
    ((2, 3), (9, 23), (5, 3), (3, 3), (2, 1), (3, 8)),
    ((0, 3), (4, 4), (2, 2), (2, 2), (0, 0), (2, 2)),
]


def windows(case):
    (n, c), (h, w), (kh, kw), (sh, sw), (top, left), (oh, ow) = case
    for b in range(n):
        for k in range(c):
            for r in range(oh):
                for q in range(ow):
                    y, x = r * sh - top, q * sw - left
                    yield (
                        (b, k, slice(max(y, 0), min(y + kh, h)), slice(max(x, 0), min(x + kw, w))),
                        (b, k, r, q),
                    )


def pool_ints(case, exclusive):
    planes, image, size, strides, pads, out = case
    return [*planes, *image, *size, *strides, *pads, *out, exclusive]


@each_target
@each_real
@pytest.mark.parametrize("case", POOLS)
def test_max_pooling(case, kind, target):
    planes, image, *_, size = case
    x = draw(*planes, *image, kind=kind).round(1)  # rounded, so that maxima repeat
    out, g = blank(*planes, *size, kind=kind), draw(*planes, *size, kind=kind, seed=1)
    kernels.call(f"pool2d_max.{kind}", [x, out], pool_ints(case, 1), target=target)
    dx, want = blank(*x.shape, kind=kind), np.zeros_like(x)
    for window, place in windows(case):
        assert out[place] == x[window].max()
        first = np.unravel_index(np.argmax(x[window]), x[window].shape)
        want[window][first] += g[place]
    kernels.call(f"pool2d_max_grad.{kind}", [x, out, g, dx], pool_ints(case, 1), target=target)
    near(dx, want, kind)


@each_target
@each_real
@pytest.mark.parametrize("exclusive", (0, 1))
@pytest.mark.parametrize("case", POOLS)
def test_average_pooling(case, exclusive, kind, target):
    planes, image, (kh, kw), *_, size = case
    x, out = draw(*planes, *image, kind=kind), blank(*planes, *size, kind=kind)
    g, dx = draw(*planes, *size, kind=kind, seed=1), blank(*planes, *image, kind=kind)
    want, gradient = np.zeros(out.shape), np.zeros(x.shape)
    for window, place in windows(case):
        share = x[window].size if exclusive else kh * kw
        want[place] = x[window].sum() / share
        gradient[window] += g[place] / share
    kernels.call(f"pool2d_avg.{kind}", [x, out], pool_ints(case, exclusive), target=target)
    near(out, want, kind, 2)
    kernels.call(f"pool2d_avg_grad.{kind}", [g, dx], pool_ints(case, exclusive), target=target)
    near(dx, gradient, kind, 2)


def spans(n, size, stride, pad, out, bins):
    """(begin, end) inside of the image for each window along a dimension."""
    for k in range(out):
        begin, end = (
            (k * n // out, -(-(k + 1) * n // out)) if bins else (k * stride - pad, k * stride - pad + size)
        )
        yield max(begin, 0), min(end, n)


# images, (depth, height, width), channels, kernel, strides, pads before, output
VOLUMES = [
    (2, (4, 5, 6), 1, (2, 2, 2), (2, 2, 2), (0, 0, 0), (2, 2, 3)),
    (1, (3, 7, 5), 70, (3, 2, 3), (1, 2, 2), (1, 0, 1), (3, 3, 3)),
    (3, (1, 6, 5), 5, (1, 3, 3), (1, 1, 2), (0, 1, 1), (1, 6, 3)),
    (2, (1, 9, 7), 130, (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 4, 3)),
    (0, (2, 4, 4), 3, (2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 2, 2)),
]


@each_target
@each_real
@pytest.mark.parametrize("share", ["whole window", "inside", "bins"])
@pytest.mark.parametrize("case", VOLUMES)
def test_pooling_of_volumes_and_of_channels_that_are_last(case, share, kind, target):
    n, sizes, c, kernel, strides, pads, out_sizes = case
    ints = [
        n,
        *sizes,
        c,
        *kernel,
        *strides,
        *pads,
        *out_sizes,
        ("whole window", "inside", "bins").index(share),
    ]
    x, g = draw(n, *sizes, c, kind=kind).round(1), draw(n, *out_sizes, c, kind=kind, seed=1)
    axes = [
        list(spans(*axis, share == "bins"))
        for axis in zip(sizes, kernel, strides, pads, out_sizes, strict=True)
    ]
    high, mean = np.zeros(g.shape), np.zeros(g.shape)
    d_high, d_mean = np.zeros(x.shape), np.zeros(x.shape)
    for place in itertools.product(range(n), *map(range, out_sizes), range(c)):
        where = (place[0], *(slice(*axis[k]) for axis, k in zip(axes, place[1:], strict=False)), place[-1])
        window = x[where]
        size = np.prod(kernel) if share == "whole window" else window.size
        high[place], mean[place] = window.max(), window.sum() / size
        first = np.unravel_index(np.argmax(window), window.shape)
        d_high[where][first] += g[place]
        d_mean[where] += g[place] / size
    out, dx = blank(*g.shape, kind=kind), blank(*x.shape, kind=kind)
    kernels.call(f"pool3d_max.{kind}", [x, out], ints, target=target)
    np.testing.assert_array_equal(out, high.astype(out.dtype))
    kernels.call(f"pool3d_max_grad.{kind}", [x, out, g, dx], ints, target=target)
    near(dx, d_high, kind)
    kernels.call(f"pool3d_avg.{kind}", [x, out], ints, target=target)
    near(out, mean, kind, 2)
    kernels.call(f"pool3d_avg_grad.{kind}", [g, dx], ints, target=target)
    near(dx, d_mean, kind, 2)


NORMALISED = [(3, 2, 4), (8, 5, 1), (2, 3, 35), (17, 40, 1), (2, 3, 16), (1, 2, 49), (3, 2, 8), (2, 1, 131)]


def affine_inputs(c, kind):
    return [draw(c, kind=kind, seed=k + 1, low=0.5, high=2) for k in range(4)]


def aligned(channels):
    return np.asarray(channels, np.float64)[:, None]


@each_target
@each_real
@pytest.mark.parametrize("n, c, hw", NORMALISED)
def test_batch_norm(n, c, hw, kind, target):
    x = draw(n, c, hw, kind=kind) + TYPES[kind](3)
    scale, bias, mean, variance = affine_inputs(c, kind)
    outs = [blank(n, c, hw, kind=kind), *(blank(c, kind=kind) for _ in range(4))]
    kernels.call(
        f"batch_norm.{kind}", [x, scale, bias, mean, variance, *outs], [n, c, hw], [1e-3, 0.9], target=target
    )
    wide = x.astype(np.float64)
    m, v = wide.mean((0, 2)), wide.var((0, 2))
    want = (wide - aligned(m)) / np.sqrt(aligned(v) + 1e-3) * aligned(scale) + aligned(bias)
    for got, expected in zip(
        outs, (want, 0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v, m, 1 / np.sqrt(v + 1e-3)), strict=True
    ):
        near(got, expected, kind, 5)
    operands = [x, scale, bias, mean, variance, x, mean, variance, *outs[3:]]
    kernels.call(f"batch_norm.{kind}", operands, [n, c, hw, 1], [1e-3, 0.9], target=target)
    near(x, np.maximum(want, 0), kind, 5)
    np.testing.assert_array_equal(mean, outs[1])
    np.testing.assert_array_equal(variance, outs[2])


def in_blocks(images, block):
    n, c, hw = images.shape
    return np.ascontiguousarray(images.reshape(n, c // block, block, hw).transpose(0, 1, 3, 2)).reshape(
        n, c, hw
    )


@each_target
@pytest.mark.parametrize("act", [0, 1])
@pytest.mark.parametrize(
    "n, c, block, hw", [(3, 16, 16, 9), (2, 48, 8, 49), (5, 32, 16, 1), (40, 32, 8, 300)]
)
def test_batch_norm_in_blocks_of_channels(n, c, block, hw, act, target):
    """Elementwise results have the bits of those of plain images; outputs may alias inputs."""
    x, g = draw(n, c, hw) + np.float32(3), draw(n, c, hw, seed=9)
    numbers = affine_inputs(c, "f32")
    y, dx, *made = blank(n, c, hw), blank(n, c, hw), *(blank(c) for _ in range(6))
    kernels.call("batch_norm.f32", [x, *numbers, y, *made[:4]], [n, c, hw, act], [1e-3, 0.9], target=target)
    operands = [x, numbers[0], *made[2:4], g, dx, *made[4:]]
    kernels.call("batch_norm_grad.f32", operands, [n, c, hw], [1e-3], target=target)
    for alias in (False, True):
        px, pg, *others = in_blocks(x, block), in_blocks(g, block), *(blank(c) for _ in range(6))
        py, pdx = (blank(n, c, hw) for _ in range(2))
        operands = [px, numbers[0], *made[2:4], pg, pg if alias else pdx, *others[4:]]
        kernels.call("batch_norm_blocks_grad.f32", operands, [n, c, hw, block], [1e-3], target=target)
        operands = [px, *numbers, px if alias else py, *others[:4]]
        kernels.call("batch_norm_blocks.f32", operands, [n, c, hw, act, block], [1e-3, 0.9], target=target)
        near(px if alias else py, in_blocks(y, block), "f32", 5)
        near(pg if alias else pdx, in_blocks(dx, block), "f32", 5)
        for got, want in zip(others, made, strict=True):
            near(got, want, "f32", 20)
    bias = blank(c)
    kernels.call("bias_blocks_grad.f32", [in_blocks(g, block), bias], [n, c, hw, block], target=target)
    near(bias, g.astype(np.float64).sum((0, 2)), "f32", 20)


@pytest.mark.parametrize("ints", [[2, 16, 4, 0, 4], [2, 24, 4, 0, 16], [2, 16, 4, 2, 16], [2, 16, 4, 0, 0]])
def test_blocks_of_channels_that_there_are_not(ints):
    channels = [draw(ints[1]) for _ in range(8)]
    operands = [draw(2, ints[1], 4), *channels[:4], draw(2, ints[1], 4), *channels[4:]]
    with pytest.raises(KernelFailure):
        kernels.call("batch_norm_blocks.f32", operands, ints, [1e-3, 0.9])


@each_target
@each_real
@pytest.mark.parametrize("n, c, hw", NORMALISED)
def test_batch_norm_with_global_statistics(n, c, hw, kind, target):
    x, g = draw(n, c, hw, kind=kind), draw(n, c, hw, kind=kind, seed=9)
    scale, bias, mean, variance = affine_inputs(c, kind)
    inverse = 1 / np.sqrt(aligned(variance) + 1e-3)
    out = blank(n, c, hw, kind=kind)
    kernels.call(
        f"batch_norm_infer.{kind}", [x, scale, bias, mean, variance, out], [n, c, hw], [1e-3], target=target
    )
    near(out, (x - aligned(mean)) * inverse * aligned(scale) + aligned(bias), kind, 5)
    outs = [blank(n, c, hw, kind=kind), blank(c, kind=kind), blank(c, kind=kind)]
    operands = [x, scale, mean, variance, g, *outs]
    kernels.call(f"batch_norm_infer_grad.{kind}", operands, [n, c, hw], [1e-3], target=target)
    near(outs[0], g * inverse * aligned(scale), kind, 5)
    near(outs[1], (g * (x - aligned(mean)) * inverse).sum((0, 2)), kind, 20)
    near(outs[2], g.astype(np.float64).sum((0, 2)), kind, 20)


@each_target
@each_real
@pytest.mark.parametrize("n, c, hw", NORMALISED)
def test_gradient_of_batch_norm(n, c, hw, kind, target):
    x, g = draw(n, c, hw, kind=kind), draw(n, c, hw, kind=kind, seed=9)
    scale = affine_inputs(c, kind)[0]
    wide = x.astype(np.float64)
    m, inverse = wide.mean((0, 2)), 1 / np.sqrt(wide.var((0, 2)) + 1e-3)
    saved = m.astype(x.dtype), inverse.astype(x.dtype)
    outs = [blank(n, c, hw, kind=kind), blank(c, kind=kind), blank(c, kind=kind)]
    kernels.call(f"batch_norm_grad.{kind}", [x, scale, *saved, g, *outs], [n, c, hw], [1e-3], target=target)
    unit = (wide - aligned(m)) * aligned(inverse)
    mean_g, mean_gu = g.mean((0, 2), dtype=np.float64), (g * unit).mean((0, 2))
    near(outs[0], (g - aligned(mean_g) - unit * aligned(mean_gu)) * aligned(inverse * scale), kind, 10)
    near(outs[1], (g * unit).sum((0, 2)), kind, 20)
    near(outs[2], g.astype(np.float64).sum((0, 2)), kind, 20)
    kernels.call(
        f"batch_norm_grad.{kind}", [x, scale, *saved, g, g, None, None], [n, c, hw], [1e-3], target=target
    )
    np.testing.assert_array_equal(g, outs[0])
