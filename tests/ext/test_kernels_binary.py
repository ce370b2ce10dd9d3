"""Elementwise kernels with two operands."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure

from .native import SIZES, TYPES, blank, draw, each_real, each_target, near, numeric

ARITHMETIC = {
    "elementwise_add": np.add, "elementwise_sub": np.subtract, "elementwise_mul": np.multiply,
    "elementwise_div": np.divide, "elementwise_max": np.maximum, "elementwise_min": np.minimum,
    "elementwise_pow": np.power,
}  # fmt: skip
MIDDLES = [
    (3, 5, 1), (2, 3, 4), (1, 1, 17), (4, 33, 1), (0, 3, 2), (2, 70, 9), (5, 1, 7), (5, 1, 1), (3, 300, 1),
    (2, 3, 600),
]  # fmt: skip


def sides(name: str, kind: str, x_shape: tuple, y_shape: tuple) -> tuple:
    low = 0.5 if name in ("elementwise_div", "elementwise_pow") else -2.0
    return draw(*x_shape, kind=kind, low=low), draw(*y_shape, kind=kind, seed=1, low=low)


@each_target
@each_real
@pytest.mark.parametrize("name", ARITHMETIC)
def test_same_shapes(name, kind, target):
    for n in SIZES:
        x, y = sides(name, kind, (n,), (n,))
        out = blank(n, kind=kind)
        kernels.call(f"{name}.{kind}", [x, y, out], [n], target=target)
        near(out, ARITHMETIC[name](x, y), kind, 4)
        for place in (0, 1):
            operands = [x.copy(), y.copy()]
            kernels.call(f"{name}.{kind}", [*operands, operands[place]], [n], target=target)
            np.testing.assert_array_equal(operands[place], out)


@each_target
@pytest.mark.parametrize("kind", ("i32", "i64"))
def test_integers(kind, target):
    x = np.array([7, -7, 7, -7, 0, np.iinfo(TYPES[kind]).min], TYPES[kind])
    y = np.array([3, 3, -3, -3, 5, -1], TYPES[kind])
    want = {
        "elementwise_floordiv": [2, -2, -2, 2, 0, x[5]],  # rounds towards zero as Fluid does, and never traps
        "elementwise_div": [2, -2, -2, 2, 0, x[5]],
        "elementwise_mod": [1, -1, 1, -1, 0, 0],
        "elementwise_max": [7, 3, 7, -3, 5, -1],
        "elementwise_min": [3, -7, -3, -7, 0, x[5]],
    }
    for name, result in want.items():
        out = blank(6, kind=kind)
        kernels.call(f"{name}.{kind}", [x, y, out], [6], target=target)
        assert out.tolist() == list(result), name
    for name in ("elementwise_floordiv", "elementwise_div", "elementwise_mod"):
        with pytest.raises(KernelFailure):
            kernels.call(f"{name}.{kind}", [x, x, out], [6], target=target)


@each_target
@each_real
@pytest.mark.parametrize("name", ARITHMETIC)
def test_middle_broadcast(name, kind, target):
    for pre, n, post in MIDDLES:
        x, y = sides(name, kind, (pre, n, post), (n,))
        out = blank(pre, n, post, kind=kind)
        kernels.call(f"{name}_mid.{kind}", [x, y, out], [pre, n, post], target=target)
        near(out, ARITHMETIC[name](x, y[:, None]), kind, 4)
        kernels.call(f"{name}_mid.{kind}", [x, y, x], [pre, n, post], target=target)
        np.testing.assert_array_equal(x, out)


@each_target
@each_real
def test_a_bias_with_activation(kind, target):
    activations = [lambda v: v, lambda v: np.maximum(v, 0), lambda v: 1 / (1 + np.exp(-v)), np.tanh]
    for pre, n, post in MIDDLES:
        x, y, out = draw(pre, n, post, kind=kind), draw(n, kind=kind, seed=1), blank(pre, n, post, kind=kind)
        for act, function in enumerate(activations):
            kernels.call(f"elementwise_add_mid.{kind}", [x, y, out], [pre, n, post, act], target=target)
            near(out, function(x + y[:, None]), kind, 2)


@each_target
@each_real
@pytest.mark.parametrize("name", ARITHMETIC)
def test_gradients_of_same_shapes(name, kind, target):
    x, y = sides(name, kind, (19,), (19,))
    out, g = ARITHMETIC[name](x, y), draw(19, kind=kind, seed=2)
    dx, dy = blank(19, kind=kind), blank(19, kind=kind)
    kernels.call(f"{name}_grad.{kind}", [x, y, out, g, dx, dy], [19], target=target)
    want = [numeric(ARITHMETIC[name], (x, y), side, g.astype(np.float64)) for side in (0, 1)]
    np.testing.assert_allclose(dx, want[0], rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(dy, want[1], rtol=2e-5, atol=2e-5)
    for side, answer in ((4, dx), (5, dy)):
        operands = [x, y, out, g.copy(), blank(19, kind=kind), blank(19, kind=kind)]
        operands[side] = operands[3]
        kernels.call(f"{name}_grad.{kind}", operands, [19], target=target)
        np.testing.assert_array_equal(operands[4], dx)
        np.testing.assert_array_equal(operands[5], dy)
        operands[9 - side] = None
        operands[3] = operands[side] = g.copy()
        kernels.call(f"{name}_grad.{kind}", operands, [19], target=target)
        np.testing.assert_array_equal(operands[side], answer)


@each_target
@each_real
@pytest.mark.parametrize("name", ARITHMETIC)
def test_gradients_of_the_middle_broadcast(name, kind, target):
    for pre, n, post in MIDDLES:
        x, y = sides(name, kind, (pre, n, post), (n,))
        out, g = ARITHMETIC[name](x, y[:, None]), draw(pre, n, post, kind=kind, seed=2)
        full = np.broadcast_to(y[:, None], x.shape).copy()
        dx, dy = blank(pre, n, post, kind=kind), blank(n, kind=kind)
        kernels.call(f"{name}_mid_grad.{kind}", [x, y, out, g, dx, dy], [pre, n, post], target=target)
        each = [blank(x.size, kind=kind), blank(x.size, kind=kind)]
        kernels.call(f"{name}_grad.{kind}", [x, full, out, g, *each], [x.size], target=target)
        near(dx, each[0].reshape(x.shape), kind, 2)
        near(dy, each[1].reshape(x.shape).astype(np.float64).sum((0, 2)), kind, 10)
        kernels.call(f"{name}_mid_grad.{kind}", [x, y, out, g, g, None], [pre, n, post], target=target)
        np.testing.assert_array_equal(g, dx)


LACKING = [
    ((3, 4, 5), (1, 0, 1)), ((2, 3, 300), (1, 0, 1)), ((4, 2, 3, 2), (0, 1, 0, 1)),
    ((2, 3, 2, 300), (1, 0, 1, 0)), ((2, 3, 2, 2, 3), (1, 0, 1, 0, 1)), ((70, 30, 64), (1, 0, 1)),
    ((5, 40, 7, 90), (0, 1, 0, 1)), ((0, 3, 2), (1, 0, 1)),
]  # fmt: skip


@each_target
@pytest.mark.parametrize("kind", ("f32", "f64", "i32"))
@pytest.mark.parametrize("name", ARITHMETIC)
def test_dimensions_that_y_lacks(name, kind, target):
    for sizes, stands in LACKING:
        x, y = sides(name, kind, sizes, [n if there else 1 for n, there in zip(sizes, stands, strict=True)])
        x, y = (x, y) if kind != "i32" else (abs(x) + 1, abs(y) + 1)
        full, ints = np.broadcast_to(y, sizes).copy(), [len(sizes), *sizes, *stands]
        out, want = blank(*sizes, kind=kind), blank(*sizes, kind=kind)
        kernels.call(f"{name}_dims.{kind}", [x, y, out], ints, target=target)
        kernels.call(f"{name}.{kind}", [x, full, want], [x.size], target=target)
        near(out, want, kind, 2) if kind != "i32" else np.testing.assert_array_equal(out, want)
        if kind == "i32":
            continue
        g, dx, dy = draw(*sizes, kind=kind, seed=2), blank(*sizes, kind=kind), blank(*y.shape, kind=kind)
        kernels.call(f"{name}_dims_grad.{kind}", [x, y, out, g, dx, dy], ints, target=target)
        each = [blank(*sizes, kind=kind), blank(*sizes, kind=kind)]
        kernels.call(f"{name}_grad.{kind}", [x, full, out, g, *each], [x.size], target=target)
        axes = tuple(k for k, there in enumerate(stands) if not there)
        near(dx, each[0], kind, 2)
        near(dy, each[1].astype(np.float64).sum(axes, keepdims=True), kind, 10)
        kernels.call(f"{name}_dims_grad.{kind}", [x, y, out, g, g, None], ints, target=target)
        np.testing.assert_array_equal(g, dx)


def test_alternating_dimensions():
    operands = [draw(2, 3, 4), draw(2, 3), blank(2, 3, 4)]
    for stands in ([1, 1, 0], [0, 0, 1]):
        with pytest.raises(ValueError, match="alternately present and missing"):
            kernels.call("elementwise_add_dims.f32", operands, [3, 2, 3, 4, *stands])
    with pytest.raises(ValueError, match="at least three"):
        kernels.call("elementwise_add_dims.f32", operands, [2, 6, 4, 1, 0])


def test_gradients_take_null_for_what_they_do_not_read():
    g, y, dy = draw(6), draw(3, seed=1), blank(3)
    kernels.call("elementwise_add_mid_grad.f32", [None, None, None, g, None, dy], [2, 3, 1])
    near(dy, g.reshape(2, 3).sum(0), "f32")
    dx = blank(6)
    kernels.call("elementwise_mul_mid_grad.f32", [None, y, None, g, dx, None], [2, 3, 1])
    near(dx, (g.reshape(2, 3) * y).ravel(), "f32")


def test_equal_values_give_the_gradient_of_max_and_min_to_y():
    x, g = np.array([1, 2, 3], np.float32), np.array([5, 6, 7], np.float32)
    y = np.array([1, 3, 2], np.float32)
    for name, x_wins in (("elementwise_max", [0, 0, 7]), ("elementwise_min", [0, 6, 0])):
        dx, dy = blank(3), blank(3)
        kernels.call(f"{name}_grad.f32", [x, y, None, g, dx, dy], [3])
        assert dx.tolist() == x_wins
        assert (dx + dy).tolist() == g.tolist()


COMPARISONS = {
    "equal": np.equal, "not_equal": np.not_equal, "less_than": np.less, "less_equal": np.less_equal,
    "greater_than": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip


@each_target
@pytest.mark.parametrize("kind", ("f32", "f64", "i32", "i64"))
def test_comparisons(kind, target):
    for n in SIZES:
        x, y = draw(n, kind=kind).round(), draw(n, kind=kind, seed=1).round()
        for name, function in COMPARISONS.items():
            out = np.full(n, True)
            kernels.call(f"{name}.{kind}", [x, y, out], [n], target=target)
            np.testing.assert_array_equal(out, function(x, y))


@each_target
def test_logic(target):
    x, y = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for name, function in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
        out = np.empty(4, bool)
        kernels.call(f"logical_{name}.u8", [x, y, out], [4], target=target)
        np.testing.assert_array_equal(out, function(x, y))
    kernels.call("logical_not.u8", [x, out], [4], target=target)
    np.testing.assert_array_equal(out, ~x)
