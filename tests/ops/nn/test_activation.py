"""Functions of one array, element by element: values, gradients, second derivatives."""

import numpy as np
import pytest
from scipy import special

import fluidlite as fluid
from fluidlite.ops import registry

from ..harness import check, run_kernel

# Off the kinks of all functions, so that central differences make sense.
X = np.array([[-7.3, -3.4, -2.2, -1.1], [-0.7, -0.3, 0.2, 0.6], [1.2, 2.3, 3.3, 7.1]], "float32")
POSITIVE = np.abs(X)
INSIDE = X / 8


def _sigmoid(x):
    return special.expit(x)


def _softplus(x):
    return np.logaddexp(0, x)


CASES = {
    "relu": (X, {}, lambda x: np.maximum(x, 0)),
    "relu6": (X, {"threshold": 3.0}, lambda x: np.clip(x, 0, 3)),
    "leaky_relu": (X, {"alpha": 0.3}, lambda x: np.where(x > 0, x, 0.3 * x)),
    "brelu": (X, {"t_min": -2.0, "t_max": 3.0}, lambda x: np.clip(x, -2, 3)),
    "hard_sigmoid": (X, {"slope": 0.3, "offset": 0.4}, lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    "softshrink": (X, {"lambda": 0.5}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    "hard_shrink": (X, {"threshold": 0.5}, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "thresholded_relu": (X, {"threshold": 1.0}, lambda x: np.where(x > 1, x, 0)),
    "abs": (X, {}, np.abs),
    "ceil": (X, {}, np.ceil),
    "floor": (X, {}, np.floor),
    "round": (X, {}, np.round),
    "sigmoid": (X, {}, _sigmoid),
    "tanh": (X, {}, np.tanh),
    "exp": (X / 2, {}, np.exp),
    "sqrt": (POSITIVE, {}, np.sqrt),
    "square": (X, {}, np.square),
    "elu": (X, {"alpha": 0.7}, lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    "selu": (X, {"scale": 1.2, "alpha": 0.7}, lambda x: 1.2 * np.where(x > 0, x, 0.7 * np.expm1(x))),
    "rsqrt": (POSITIVE, {}, lambda x: x**-0.5),
    "reciprocal": (X, {}, lambda x: 1 / x),
    "log": (POSITIVE, {}, np.log),
    "log1p": (POSITIVE, {}, np.log1p),
    "log2": (POSITIVE, {}, np.log2),
    "log10": (POSITIVE, {}, np.log10),
    "expm1": (X / 2, {}, np.expm1),
    "tan": (INSIDE, {}, np.tan),
    "sinh": (X / 2, {}, np.sinh),
    "cosh": (X / 2, {}, np.cosh),
    "silu": (X, {}, lambda x: x * _sigmoid(x)),
    "sin": (X, {}, np.sin),
    "cos": (X, {}, np.cos),
    "asin": (INSIDE, {}, np.arcsin),
    "acos": (INSIDE, {}, np.arccos),
    "atan": (X, {}, np.arctan),
    "erf": (X / 3, {}, special.erf),
    "softsign": (X, {}, lambda x: x / (1 + np.abs(x))),
    "softplus": (X, {}, _softplus),
    "logsigmoid": (X, {}, lambda x: -_softplus(-x)),
    "soft_relu": (X, {"threshold": 15.0}, lambda x: _softplus(np.clip(x, -15, 15))),
    "tanh_shrink": (X, {}, lambda x: x - np.tanh(x)),
    "stanh": (X, {"scale_a": 0.5, "scale_b": 1.5}, lambda x: 1.5 * np.tanh(0.5 * x)),
    "swish": (X, {"beta": 1.5}, lambda x: x * _sigmoid(1.5 * x)),
    "hard_swish": (
        X,
        {"threshold": 4.0, "scale": 4.0, "offset": 2.5},
        lambda x: x * np.clip(x + 2.5, 0, 4) / 4,
    ),
    "mish": (X, {}, lambda x: x * np.tanh(_softplus(x))),
    "gelu": (X, {"approximate": False}, lambda x: x * special.ndtr(x)),
}


LINEAR = {"relu", "relu6", "leaky_relu", "brelu", "hard_sigmoid", "softshrink", "hard_shrink", "abs"}
LINEAR |= {"thresholded_relu", "ceil", "floor", "round"}


@pytest.mark.parametrize("op_type", sorted(CASES))
def test_value_and_gradient(op_type):
    x, attrs, function = CASES[op_type]
    expected = function(x.astype("float64")).astype("float32")
    check(op_type, {"X": x}, attrs, {"Out": expected}, grads=["X"], rtol=3e-5, atol=3e-6)


def test_gelu_by_tanh():
    x = X.astype("float64")
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    expected = (0.5 * x * (1 + np.tanh(inner))).astype("float32")
    check("gelu", {"X": X}, {"approximate": True}, {"Out": expected}, grads=["X"], rtol=3e-5, atol=3e-6)


SMOOTH = [
    name for name, (_, _, _) in CASES.items() if registry.find(f"{name}_grad").grad and name not in LINEAR
]


@pytest.mark.parametrize("op_type", SMOOTH)
def test_second_derivative(op_type):
    x, attrs, _ = CASES[op_type]
    x = 0.6 * x.astype("float64")
    dout = np.linspace(-1, 2, x.size).reshape(x.shape)
    keeps = "X" if "X" in registry.find(f"{op_type}_grad").inputs else "Out"
    kept = x if keeps == "X" else run_kernel(op_type, {"X": x}, attrs)["Out"][0]
    inputs = {keeps: kept, "Out@GRAD": dout}
    check(f"{op_type}_grad", inputs, attrs, grads=[keeps, "Out@GRAD"], programs=False)


def test_second_derivative_of_gelu_by_tanh():
    inputs = {"X": X.astype("float64"), "Out@GRAD": X[::-1].astype("float64")}
    check("gelu_grad", inputs, {"approximate": True}, grads=["X", "Out@GRAD"], programs=False)


@pytest.mark.parametrize(("op_type", "keeps"), [("relu", "Out"), ("leaky_relu", "Out"), ("abs", "X")])
def test_second_derivative_of_piecewise_linear(op_type, keeps):
    inputs = {keeps: X.astype("float64"), "Out@GRAD": X[::-1].astype("float64")}
    check(f"{op_type}_grad", inputs, grads=["Out@GRAD"], programs=False)


def test_values_at_kinks():
    # Recorded from Paddle 1.8.5: the value and the gradient at points where definitions differ.
    x = np.array([-2.5, -1.5, -0.5, 0.0, 0.5, 2.5], "float32")
    ones = np.ones_like(x)
    np.testing.assert_array_equal(run_kernel("round", {"X": x})["Out"][0], [-3, -2, -1, 0, 1, 3])
    np.testing.assert_array_equal(
        run_kernel("relu_grad", {"Out": np.maximum(x, 0), "Out@GRAD": ones})["X@GRAD"][0], [0, 0, 0, 0, 1, 1]
    )
    found = run_kernel("brelu_grad", {"X": x, "Out@GRAD": ones}, {"t_min": -1.5, "t_max": 2.5})["X@GRAD"][0]
    np.testing.assert_array_equal(found, [0, 0, 1, 1, 1, 0])
    slope = np.float32(0.2)
    out = run_kernel("hard_sigmoid", {"X": x}, {})["Out"][0]
    found = run_kernel("hard_sigmoid_grad", {"Out": out, "Out@GRAD": ones}, {})["X@GRAD"][0]
    np.testing.assert_array_equal(found, [0, slope, slope, slope, slope, 0])


def test_far_from_zero_nothing_overflows():
    x = np.array([-1e4, -200.0, 200.0, 1e4], "float32")
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(run_kernel("sigmoid", {"X": x})["Out"][0], [0, 0, 1, 1])
        np.testing.assert_array_equal(run_kernel("softplus", {"X": x})["Out"][0], [0, 0, 200, 1e4])
        np.testing.assert_array_equal(run_kernel("logsigmoid", {"X": x})["Out"][0], [-1e4, -200, 0, 0])
        np.testing.assert_array_equal(
            run_kernel("elu_grad", {"X": x, "Out@GRAD": x * 0 + 1})["X@GRAD"][0], [0, 0, 1, 1]
        )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("op_type", sorted(CASES))
def test_types_are_kept(op_type, dtype):
    x, attrs, _ = CASES[op_type]
    assert run_kernel(op_type, {"X": x.astype(dtype)}, attrs)["Out"][0].dtype == dtype


def test_what_is_no_number_stays_none(engine):
    main = fluid.Program()
    with fluid.program_guard(main):
        x = fluid.data("x", [3])
        x.stop_gradient = False
        shrunk, swish = fluid.layers.softshrink(x), fluid.layers.hard_swish(x)
        (slope,) = fluid.gradients(swish, x)
    feed = {"x": np.float32([np.nan, 1.0, -0.25])}
    got = fluid.Executor(fluid.CPUPlace()).run(main, feed=feed, fetch_list=[shrunk, slope])
    np.testing.assert_allclose(got[0], [np.nan, 0.5, 0], 1e-6)
    np.testing.assert_allclose(got[1], [np.nan, 5 / 6, 2.5 / 6], 1e-6)
