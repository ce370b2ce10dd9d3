"""Kernels that normalise rows: samples, groups of channels, single channels."""

import numpy as np
import pytest

from fluidlite._ext import kernels

from .native import TYPES, blank, draw, each_real, each_target, near

# rows, channels of a row, elements of a channel, rows after which the parameters begin anew
ROWS = [(0, 3, 1, 1), (1, 1, 1, 1), (5, 17, 1, 1), (3, 256, 1, 1), (6, 2, 7, 3), (4, 1, 33, 2), (4, 1, 1, 4)]
each_cut = pytest.mark.parametrize("rows, channels, inner, period", ROWS)
EPSILON = 1e-3


def expected(x, scale, bias, cut):
    """Normalised numbers of [rows, channels, inner], with means and variances, in double."""
    rows, channels, _, period = cut
    wide = x.astype(np.float64)
    means, variances = wide.mean((1, 2)), wide.var((1, 2))
    unit = (wide - means[:, None, None]) / np.sqrt(variances[:, None, None] + EPSILON)
    at = np.arange(rows) % period
    factor, shift = (p.reshape(period, channels)[at][:, :, None] for p in (scale, bias))
    return unit, factor, unit * factor + shift, means, variances


@each_target
@each_real
@each_cut
@pytest.mark.parametrize("inverted", [0, 1])
def test_rows_are_normalised(rows, channels, inner, period, inverted, kind, target):
    cut = [rows, channels, inner, period]
    x = draw(rows, channels, inner, kind=kind) + TYPES[kind](3)
    scale, bias = draw(period * channels, kind=kind, seed=1), draw(period * channels, kind=kind, seed=2)
    _, _, want, means, variances = expected(x, scale, bias, cut)
    spreads = 1 / np.sqrt(variances + EPSILON) if inverted else variances
    outs = [blank(rows, channels, inner, kind=kind), blank(rows, kind=kind), blank(rows, kind=kind)]
    call = (f"layer_norm.{kind}", [*cut, inverted], [EPSILON])
    kernels.call(call[0], [x, scale, bias, *outs], call[1], call[2], target=target)
    for got, right in zip(outs, (want, means, spreads), strict=True):
        near(got, right, kind, 50)
    kernels.call(call[0], [x, scale, bias, x, *outs[1:]], call[1], call[2], target=target)
    np.testing.assert_array_equal(x, outs[0])


@each_target
@each_real
def test_scale_and_bias_may_be_left_out(kind, target):
    x, cut = draw(4, 3, 5, kind=kind), [4, 3, 5, 2]
    ones, zeros = np.ones(6, x.dtype), np.zeros(6, x.dtype)
    results = []
    for scale, bias in ((ones, zeros), (None, None), (ones, None), (None, zeros)):
        outs = [blank(4, 3, 5, kind=kind), blank(4, kind=kind), blank(4, kind=kind)]
        kernels.call(f"layer_norm.{kind}", [x, scale, bias, *outs], [*cut, 0], [EPSILON], target=target)
        results.append(outs[0])
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@each_target
@each_real
@each_cut
@pytest.mark.parametrize("inverted, whole", [(0, 1), (1, 1), (0, 0)])
def test_gradients_of_rows(rows, channels, inner, period, inverted, whole, kind, target):
    cut = [rows, channels, inner, period]
    x, g = draw(rows, channels, inner, kind=kind), draw(rows, channels, inner, kind=kind, seed=3)
    scale, bias = draw(period * channels, kind=kind, seed=1), draw(period * channels, kind=kind, seed=2)
    unit, factor, _, means, variances = expected(x, scale, bias, cut)
    inverse = 1 / np.sqrt(variances + EPSILON)
    spreads = inverse if inverted else variances
    slope = g * factor
    middle = slope.mean((1, 2), keepdims=True) if whole else 0.0
    dx = (slope - middle - unit * (slope * unit).mean((1, 2), keepdims=True)) * inverse[:, None, None]
    dscale, dbias = np.zeros((2, period, channels))
    np.add.at(dscale, np.arange(rows) % period, (g * unit).sum(2))
    np.add.at(dbias, np.arange(rows) % period, g.sum(2, dtype=np.float64))
    outs = [blank(rows, channels, inner, kind=kind), *(blank(period * channels, kind=kind) for _ in range(2))]
    saved = [means.astype(x.dtype), spreads.astype(x.dtype)]
    ints = [*cut, inverted, whole]
    kernels.call(f"layer_norm_grad.{kind}", [x, scale, *saved, g, *outs], ints, [EPSILON], target=target)
    near(outs[0], dx, kind, 100)
    near(outs[1], dscale.ravel(), kind, 100)
    near(outs[2], dbias.ravel(), kind, 100)
    kernels.call(
        f"layer_norm_grad.{kind}", [x, scale, *saved, g, g, None, None], ints, [EPSILON], target=target
    )
    np.testing.assert_array_equal(g, outs[0])
