"""Reductions and their gradients."""

import numpy as np
import pytest

from fluidlite._ext import kernels

from .native import TOLERANCE, blank, draw, each_real, each_target, near

SHAPES = [(1, 1, 1), (1, 1000, 1), (7, 5, 1), (1, 6, 70), (3, 4, 5), (2, 0, 3), (0, 3, 2), (1, 33, 1)]
REDUCERS = {"reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod}


@each_target
@each_real
def test_sums_and_means(kind, target):
    for pre, n, post in SHAPES:
        x, out = draw(pre, n, post, kind=kind), blank(pre, post, kind=kind)
        for scale in (1.0, 1 / max(n, 1)):
            kernels.call(f"reduce_sum.{kind}", [x, out], [pre, n, post], [scale], target=target)
            near(out, x.astype(np.float64).sum(1) * scale, kind)


def test_a_long_float_sum_loses_nothing():
    x, out = np.full(10_000_000, 0.1, np.float32), blank(1)
    kernels.call("reduce_sum.f32", [x, out], [1, x.size, 1], [1.0])
    assert abs(out[0] - x.astype(np.float64).sum()) <= np.spacing(np.float32(1e6))


@each_target
@pytest.mark.parametrize("kind", ("i32", "i64"))
def test_integer_sums(kind, target):
    x = draw(3, 4, 5, kind=kind, low=-90, high=90)
    out = blank(3, 5, kind=kind)
    kernels.call(f"reduce_sum.{kind}", [x, out], [3, 4, 5], target=target)
    np.testing.assert_array_equal(out, x.sum(1))


@each_target
@pytest.mark.parametrize("kind", ("f32", "f64", "i32", "i64"))
@pytest.mark.parametrize("name", REDUCERS)
def test_extremes_and_products(name, kind, target):
    for pre, n, post in SHAPES:
        x, out = draw(pre, n, post, kind=kind), blank(pre, post, kind=kind)
        kernels.call(f"{name}.{kind}", [x, out], [pre, n, post], target=target)
        want = REDUCERS[name](x, axis=1) if n else np.zeros((pre, post))
        np.testing.assert_allclose(out, want, rtol=TOLERANCE.get(kind, 0) * 10, atol=1e-30)


@each_target
@pytest.mark.parametrize("post", (1, 2))
def test_what_is_not_a_number_does_not_vanish_wherever_it_is(post, target):
    for n in (1, 15, 16, 17, 40):
        for at in {0, n // 2, n - 1}:
            x, out = draw(2, n, post), blank(2, post)
            x[1, at] = np.nan
            for name in ("reduce_max", "reduce_min"):
                kernels.call(f"{name}.f32", [x, out], [2, n, post], target=target)
                assert np.isnan(out[1]).all() and (out[0] == REDUCERS[name](x[0], axis=0)).all()


def test_products_are_the_same_for_every_instruction_set():
    x = draw(3, 1000, 1, low=0.9, high=1.1)
    found: list[np.ndarray] = []
    for target in kernels.targets():
        found.append(blank(3, 1))
        kernels.call("reduce_prod.f32", [x, found[-1]], [3, 1000, 1], target=target)
    assert all((one == found[0]).all() for one in found)


@each_target
@pytest.mark.parametrize("kind", ("f32", "f64", "i32", "i64"))
def test_positions_of_extremes_take_the_first(kind, target):
    x = draw(4, 9, 3, kind=kind, low=-4, high=4).round()
    for name, function in (("arg_max", np.argmax), ("arg_min", np.argmin)):
        out = blank(4, 3, kind="i64")
        kernels.call(f"{name}.{kind}", [x, out], [4, 9, 3], target=target)
        np.testing.assert_array_equal(out, function(x, axis=1))


@each_target
@each_real
def test_gradient_of_sums(kind, target):
    for pre, n, post in SHAPES:
        g, dx = draw(pre, post, kind=kind), blank(pre, n, post, kind=kind)
        kernels.call(f"reduce_fill.{kind}", [g, dx], [pre, n, post], [0.25], target=target)
        np.testing.assert_array_equal(dx, np.broadcast_to(g[:, None] * g.dtype.type(0.25), dx.shape))


@each_target
@each_real
def test_gradient_of_extremes_goes_to_every_equal_element(kind, target):
    x = np.array([[[1], [3], [3]], [[2], [0], [1]]], kind.replace("f32", "f4").replace("f64", "f8"))
    g, dx = np.array([[5], [7]], x.dtype), np.empty_like(x)
    kernels.call(f"reduce_max_grad.{kind}", [x, x.max(1), g, dx], [2, 3, 1], target=target)
    assert dx.ravel().tolist() == [0, 5, 5, 7, 0, 0]
    kernels.call(f"reduce_min_grad.{kind}", [x, x.min(1), g, x], [2, 3, 1], target=target)
    assert x.ravel().tolist() == [5, 0, 0, 0, 7, 0]


@each_target
@each_real
def test_squared_norm(kind, target):
    for n in (0, 1, 1000):
        x, out = draw(n, kind=kind), blank(1, kind=kind)
        kernels.call(f"squared_l2_norm.{kind}", [x, out], [n], target=target)
        near(out[0], np.square(x.astype(np.float64)).sum(), kind)
