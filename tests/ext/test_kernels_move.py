"""Kernels that move elements: concat, split, transpose, slice, expand."""

import itertools

import numpy as np
import pytest

from fluidlite._ext import kernels, threads

from .native import TYPES, blank, draw, each_real

KINDS = pytest.mark.parametrize("kind", TYPES)


@KINDS
@pytest.mark.parametrize("axis", (0, 1, 2))
def test_concat_and_split(kind, axis):
    lengths = (2, 0, 1, 5)
    shapes = [tuple(n if k == axis else 3 for k in range(3)) for n in lengths]
    xs = [draw(*shape, kind=kind, seed=n, low=0, high=99) for n, shape in enumerate(shapes)]
    whole = np.concatenate(xs, axis)
    pre, post = 3**axis, 3 ** (2 - axis)
    rows = [n * post * whole.itemsize for n in lengths]
    out = np.empty_like(whole)
    kernels.call("concat", [*xs, out], [pre, *rows])
    np.testing.assert_array_equal(out, whole)
    parts = [np.empty_like(x) for x in xs]
    kernels.call("split", [whole, parts[0], None, None, parts[3]], [pre, *rows])
    np.testing.assert_array_equal(parts[0], xs[0])
    np.testing.assert_array_equal(parts[3], xs[3])


@pytest.mark.parametrize("dtype", (np.uint8, np.float16, np.float32, np.float64))
def test_every_permutation_up_to_four_axes(dtype):
    for shape in ((), (5,), (3, 1), (19, 35), (2, 3, 4), (1, 5, 1), (2, 0, 3), (2, 3, 4, 5), (3, 1, 17, 2)):
        x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        for perm in itertools.permutations(range(len(shape))):
            want = np.ascontiguousarray(x.transpose(perm))
            out = np.empty_like(want)
            kernels.call("transpose", [x, out], [x.itemsize, x.ndim, *shape, *perm])
            np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("perm", ((5, 3, 1, 0, 2, 4), (0, 2, 1, 4, 3, 5), (1, 0, 2, 3, 5, 4)))
def test_permutations_of_six_axes(perm):
    x = np.arange(2 * 3 * 1 * 4 * 2 * 3, dtype=np.float32).reshape(2, 3, 1, 4, 2, 3)
    want = np.ascontiguousarray(x.transpose(perm))
    out = np.empty_like(want)
    kernels.call("transpose", [x, out], [4, 6, *x.shape, *perm])
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("shape", ((16, 64, 4, 64), (300, 200, 7), (70, 3, 1000), (1, 200, 800)))
def test_transpose_in_tiles(shape):
    """Large enough to be cut, of one thread and of three."""
    x, before = draw(*shape), threads.count()
    try:
        for perm in itertools.permutations(range(x.ndim)):
            want = np.ascontiguousarray(x.transpose(perm))
            for count in (1, 3):
                threads.use(count)
                out = np.full_like(want, -1)
                kernels.call("transpose", [x, out], [4, x.ndim, *shape, *perm])
                np.testing.assert_array_equal(out, want)
    finally:
        threads.use(before)


SLICES = [
    ((7,), (2,), (5,)),
    ((3, 4), (0, 0), (3, 4)),
    ((3, 4), (1, 2), (2, 2)),
    ((4, 5, 6), (1, 0, 3), (3, 5, 6)),
    ((2, 3, 4, 5), (1, 1, 0, 2), (2, 3, 4, 3)),
    ((0, 3), (0, 1), (0, 2)),
]


@KINDS
@pytest.mark.parametrize("shape, start, end", SLICES)
def test_slices_and_their_gradients(kind, shape, start, end):
    x = draw(*shape, kind=kind, low=0, high=99)
    where = tuple(slice(a, b) for a, b in zip(start, end, strict=True))
    want = np.ascontiguousarray(x[where])
    ints = [x.itemsize, x.ndim, *shape, *start, *end]
    out = np.empty_like(want)
    kernels.call("slice", [x, out], ints)
    np.testing.assert_array_equal(out, want)
    dx, filled = np.full_like(x, 77), np.zeros_like(x)
    filled[where] = want
    kernels.call("slice_grad", [want, dx], ints)
    np.testing.assert_array_equal(dx, filled)


TILES = [
    ((3,), (2,)), ((2, 3), (1, 2)), ((2, 3), (3, 1)), ((2, 1, 3), (2, 4, 2)), ((1,), (1,)),
    ((2, 0), (2, 2)),
]  # fmt: skip


@KINDS
@pytest.mark.parametrize("shape, times", TILES)
def test_expand(kind, shape, times):
    x = draw(*shape, kind=kind, low=0, high=99)
    want = np.tile(x, times)
    out = np.empty_like(want)
    kernels.call("expand", [x, out], [x.itemsize, x.ndim, *shape, *times])
    np.testing.assert_array_equal(out, want)


@each_real
@pytest.mark.parametrize("shape, times", TILES)
def test_gradient_of_expand(kind, shape, times):
    g = draw(*(n * t for n, t in zip(shape, times, strict=True)), kind=kind, low=-9, high=9).round()
    dx = blank(*shape, kind=kind)
    kernels.call(f"expand_grad.{kind}", [g, dx], [len(shape), *shape, *times])
    parts = g.reshape([k for pair in zip(times, shape, strict=True) for k in pair])
    np.testing.assert_array_equal(dx, parts.sum(tuple(range(0, 2 * len(shape), 2))))
