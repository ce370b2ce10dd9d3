"""Elementwise kernels with one operand, and the accuracy of the functions behind them."""

import math

import numpy as np
import pytest

from fluidlite._ext import kernels

from .native import SIZES, blank, draw, each_real, each_target, near, numeric


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x, approximate):
    if approximate:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


# name -> (function, real arguments, lowest and highest input)
FUNCTIONS = {
    "relu": (lambda x: np.maximum(x, 0), (), -2, 2),
    "sigmoid": (sigmoid, (), -8, 8),
    "tanh": (np.tanh, (), -4, 4),
    "exp": (np.exp, (), -4, 4),
    "log": (np.log, (), 0.1, 9),
    "sqrt": (np.sqrt, (), 0.1, 9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (), 0.1, 9),
    "reciprocal": (lambda x: 1 / x, (), 0.1, 9),
    "relu6": (lambda x, t: np.clip(x, 0, t), (1.5,), -3, 3),
    "square": (np.square, (), -2, 2),
    "abs": (np.abs, (), -2, 2),
    "sign": (np.sign, (), -2, 2),
    "softsign": (lambda x: x / (1 + np.abs(x)), (), -4, 4),
    "softplus": (lambda x: np.log1p(np.exp(x)), (), -4, 4),
    "logsigmoid": (lambda x: np.log(sigmoid(x)), (), -4, 4),
    "tanh_shrink": (lambda x: x - np.tanh(x), (), -4, 4),
    "leaky_relu": (lambda x, a: np.where(x > 0, x, a * x), (0.1,), -2, 2),
    "elu": (lambda x, a: np.where(x > 0, x, a * (np.exp(x) - 1)), (0.5,), -2, 2),
    "swish": (lambda x, b: x * sigmoid(b * x), (1.5,), -4, 4),
    "stanh": (lambda x, a, b: b * np.tanh(a * x), (0.67, 1.7), -4, 4),
    "hard_sigmoid": (lambda x, s, o: np.clip(s * x + o, 0, 1), (0.2, 0.5), -4, 4),
    "clip": (np.clip, (-0.7, 1.1), -2, 2),
    "brelu": (np.clip, (-0.7, 1.1), -2, 2),
    "erf": (erf, (), -5, 5),
    "silu": (lambda x: x * sigmoid(x), (), -4, 4),
    "mish": (lambda x, t: x * np.tanh(np.log1p(np.exp(x))), (20.0,), -30, 30),
    "selu": (lambda x, s, a: s * np.where(x > 0, x, a * (np.exp(x) - 1)), (1.05, 1.67), -4, 4),
    "softshrink": (lambda x, w: np.sign(x) * np.maximum(np.abs(x) - w, 0), (0.5,), -2, 2),
    "hard_shrink": (lambda x, t: np.where(np.abs(x) > t, x, 0), (0.5,), -2, 2),
    "hard_swish": (lambda x, t, s, o: x * np.clip(x + o, 0, t) / s, (6.0, 6.0, 3.0), -5, 5),
    "thresholded_relu": (lambda x, t: np.where(x > t, x, 0), (0.5,), -2, 2),
    "pow": (np.power, (2.5,), 0.1, 4),
    "sin": (np.sin, (), -4, 4),
    "cos": (np.cos, (), -4, 4),
    "floor": (np.floor, (), -4, 4),
    "ceil": (np.ceil, (), -4, 4),
    "round": (np.round, (), -4, 4),
    "gelu": (gelu, (0.0,), -4, 4),
}
CASES = [*((name, *FUNCTIONS[name]) for name in FUNCTIONS), ("gelu", gelu, (1.0,), -4, 4)]
each_function = pytest.mark.parametrize("name, function, floats, low, high", CASES)


@each_target
@each_real
@each_function
def test_functions(name, function, floats, low, high, kind, target):
    for n in SIZES:
        x, out = draw(n, kind=kind, low=low, high=high), blank(n, kind=kind)
        kernels.call(f"{name}.{kind}", [x, out], [n], floats, target=target)
        near(out, function(x.astype(np.float64), *floats), kind, 4)
        kernels.call(f"{name}.{kind}", [x, x], [n], floats, target=target)
        np.testing.assert_array_equal(x, out)


@each_target
@each_real
@each_function
def test_gradients(name, function, floats, low, high, kind, target):
    x = draw(57, kind=kind, low=low, high=high)
    g = draw(57, kind=kind, seed=1)
    out = function(x.astype(np.float64), *floats).astype(x.dtype)
    want = numeric(lambda v: function(v, *floats), (x,), 0, g.astype(np.float64))
    dx = blank(57, kind=kind)
    kernels.call(f"{name}_grad.{kind}", [x, out, g, dx], [57], floats, target=target)
    np.testing.assert_allclose(dx, want, rtol=3e-5, atol=3e-5)
    for shared in range(3):
        operands = [x.copy(), out.copy(), g.copy()]
        kernels.call(f"{name}_grad.{kind}", [*operands, operands[shared]], [57], floats, target=target)
        np.testing.assert_array_equal(operands[shared], dx)


def test_gradients_take_null_for_what_they_do_not_read():
    g, out, dx = draw(5), draw(5, low=0.1), blank(5)
    for name in ("relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "reciprocal"):
        kernels.call(f"{name}_grad.f32", [None, out, g, dx], [5])
    for name in ("log", "square", "abs", "softsign", "softplus", "logsigmoid", "tanh_shrink", "sin", "cos"):
        kernels.call(f"{name}_grad.f32", [out, None, g, dx], [5])
    kernels.call("hard_sigmoid_grad.f32", [None, out, g, dx], [5], [0.2, 0.5])


# What Fluid 1.8.5 gives at the corners, for an incoming gradient of 1.
CORNERS = [
    ("relu", (), [-1, 0, 1], [0, 0, 1]),
    ("abs", (), [-1, 0, 1], [-1, 0, 1]),
    ("relu6", (6.0,), [0, 6, 7, 3], [0, 0, 0, 1]),
    ("leaky_relu", (0.1,), [-1, 0, 1], [0.1, 0.1, 1]),
    ("elu", (0.5,), [0, 1], [0.5, 1]),
    ("clip", (-0.5, 1.0), [-0.5, 0, 1], [0, 1, 0]),
    ("hard_sigmoid", (0.2, 0.5), [-3, 0, 6], [0, 0.2, 0]),
]


@each_target
@pytest.mark.parametrize("name, floats, x, want", CORNERS)
def test_gradients_at_the_corners(name, floats, x, want, target):
    x = np.array(x, np.float32)
    out, dx = blank(x.size), blank(x.size)
    kernels.call(f"{name}.f32", [x, out], [x.size], floats, target=target)
    kernels.call(f"{name}_grad.f32", [x, out, np.ones_like(x), dx], [x.size], floats, target=target)
    near(dx, np.array(want, np.float32), "f32")


def test_round_takes_halves_away_from_zero():
    x, out = np.array([-1.5, -0.5, 0.5, 2.5], np.float32), blank(4)
    kernels.call("round.f32", [x, out], [4])
    assert out.tolist() == [-2, -1, 1, 3]


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """Largest distance in units of the last place of float32, `want` being in double."""
    return float((np.abs(got.astype(np.float64) - want) / np.spacing(np.abs(want).astype(np.float32))).max())


@each_target
@pytest.mark.parametrize(
    "name, function, low, high, bound",
    [
        ("exp", np.exp, -87.0, 88.7, 2.0),
        ("tanh", np.tanh, -12.0, 12.0, 2.5),
        ("sigmoid", sigmoid, -80.0, 40.0, 3.0),
        ("log", np.log, 1e-30, 8.0, 2.0),
        ("softplus", lambda x: np.logaddexp(x, 0), -30.0, 30.0, 3.5),
    ],
)
def test_float_functions_are_accurate_to_a_few_ulps(name, function, low, high, bound, target):
    x = np.linspace(low, high, 200_001).astype(np.float32)
    if name == "log":
        x = np.concatenate([x, np.geomspace(1e-37, 1e37, 100_000).astype(np.float32)])
    out = np.empty_like(x)
    kernels.call(f"{name}.f32", [x, out], [x.size], target=target)
    assert ulps(out, function(x.astype(np.float64))) < bound


@each_target
def test_float_functions_keep_infinities_nan_and_tiny_numbers(target):
    inf, nan, tiny = np.inf, np.nan, np.float32(1e-42)
    x = np.array([-inf, inf, nan, 0.0, tiny, 200.0, -200.0, -1.0], np.float32)
    want = {
        "exp": [0, inf, nan, 1, 1, inf, 0, np.exp(-1)],
        "log": [nan, inf, nan, -inf, np.log(float(tiny)), np.log(200), nan, nan],
        "tanh": [-1, 1, nan, 0, tiny, 1, -1, np.tanh(-1)],
        "sigmoid": [0, 1, nan, 0.5, 0.5, 1, 0, sigmoid(-1)],
        "relu": [0, inf, nan, 0, tiny, 200, 0, 0],
        "softplus": [0, inf, nan, np.log(2), np.log(2), 200, 0, np.log1p(np.exp(-1))],
    }
    for name, values in want.items():
        out = blank(8)
        kernels.call(f"{name}.f32", [x, out], [8], target=target)
        np.testing.assert_allclose(out, np.array(values, np.float32), rtol=1e-6, atol=1e-45, err_msg=name)
