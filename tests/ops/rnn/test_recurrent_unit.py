"""gru_unit and lstm_unit."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer, run_kernel

X = np.linspace(-1, 1, 12).reshape(2, 6).astype("float32")
PREV = np.array([[0.3, -0.2], [0.1, 0.5]], "float32")
WEIGHT = np.arange(12).reshape(2, 6).astype("float32") / 10 - 0.5
BIAS = np.arange(6).reshape(1, 6).astype("float32") / 10 - 0.2
GRU = {"Input": X, "HiddenPrev": PREV, "Weight": WEIGHT, "Bias": BIAS}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("origin_mode", [True, False])
@pytest.mark.parametrize("activation", [0, 1, 2, 3])
def test_gru_unit_gradients(activation, origin_mode, bias):
    inputs = GRU if bias else {slot: GRU[slot] for slot in ("Input", "HiddenPrev", "Weight")}
    attrs = {"activation": activation, "gate_activation": 1, "origin_mode": origin_mode}
    check("gru_unit", inputs, attrs, grads=list(inputs))


def test_gru_unit_is_that_of_fluid():
    # Recorded from Paddle 1.8.5: the results, and the gradients of the sum of squares of the state.
    made = run_kernel("gru_unit", GRU)
    np.testing.assert_allclose(
        made["Hidden"][0], [[0.2200127, -0.0958119], [0.4299768, 0.7190565]], rtol=1e-5
    )
    np.testing.assert_allclose(
        made["ResetHiddenPrev"][0], [[0.0964843, -0.0776561], [0.0616459, 0.346732]], rtol=1e-5
    )
    np.testing.assert_allclose(
        made["Gate"][0][0], [0.2091594, 0.261501, 0.3216141, 0.3882806, -0.0824226, 0.1984235], rtol=1e-5
    )
    found = gradients("gru_unit", GRU, {}, {"Hidden": [2 * made["Hidden"][0]]})
    np.testing.assert_allclose(
        found["HiddenPrev"][0], [[0.3704315, -0.1323048], [0.3876562, 0.7532232]], rtol=1e-5
    )
    np.testing.assert_allclose(
        found["Weight"][0][0],
        [0.0073157, 0.0102844, 0.0003658, 0.0012069, 0.0838978, 0.0764869],
        rtol=2e-4,
        atol=1e-7,
    )


def test_gru_unit_says_what_does_not_fit():
    with pytest.raises(OperatorError, match="Input must be 3 \\* 2 wide, three times HiddenPrev, got 5"):
        infer("gru_unit", {**GRU, "Input": X[:, :5]})
    with pytest.raises(OperatorError, match=r"Weight must be of shape \[2, 6\], got \[2, 5\]"):
        infer("gru_unit", {**GRU, "Weight": WEIGHT[:, :5]})


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_lstm_unit():
    x = np.linspace(-2, 2, 16).reshape(2, 8).astype("float32")
    gates = np.split(x, 4, axis=1)
    cell = sigmoid(gates[1] + 0.5) * PREV + sigmoid(gates[0]) * np.tanh(gates[3])
    outputs = {"C": cell.astype("float32"), "H": (sigmoid(gates[2]) * np.tanh(cell)).astype("float32")}
    check("lstm_unit", {"X": x, "C_prev": PREV}, {"forget_bias": 0.5}, outputs, grads=["X", "C_prev"])


def test_lstm_unit_says_what_does_not_fit():
    with pytest.raises(OperatorError, match=r"X must be \[rows, 4 \* size\] and C_prev \[rows, size\]"):
        infer("lstm_unit", {"X": X, "C_prev": PREV})
