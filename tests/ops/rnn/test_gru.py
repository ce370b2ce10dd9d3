"""gru; recorded numbers are those of Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer, run_kernel
from .test_lstm import ACTS


def operands(offsets, size=3, initial=False, bias=True, seed=4):
    rng = np.random.default_rng(seed)
    shapes = {"Input": (offsets[-1], 3 * size), "Weight": (size, 3 * size)}
    shapes.update({"H0": (len(offsets) - 1, size)} if initial else {})
    shapes.update({"Bias": (1, 3 * size)} if bias else {})
    return {slot: rng.uniform(-1, 1, shape).astype("float32") for slot, shape in shapes.items()}


def expected(given, offsets, attrs):
    """The states, sequence by sequence and row by row."""
    size = given["Weight"].shape[0]
    flat = given["Weight"].ravel()
    gates, candidate = flat[: 2 * size * size].reshape(size, -1), flat[2 * size * size :].reshape(size, size)
    gate_act, act = ACTS[attrs.get("gate_activation", "sigmoid")], ACTS[attrs.get("activation", "tanh")]
    x = given["Input"] + given.get("Bias", 0)
    states = np.zeros((offsets[-1], size))
    for s, (start, end) in enumerate(zip(offsets, offsets[1:], strict=False)):
        h = given["H0"][s] if "H0" in given else np.zeros(size)
        for r in range(start, end)[:: -1 if attrs.get("is_reverse") else 1]:
            update, reset = np.split(gate_act(x[r, : 2 * size] + h @ gates), 2)
            new = act(x[r, 2 * size :] + (reset * h) @ candidate)
            h = (
                update * h + (1 - update) * new
                if attrs.get("origin_mode")
                else (1 - update) * h + update * new
            )
            states[r] = h
    return states


VARIANTS = [
    ({}, False, True),
    ({"is_reverse": True}, True, False),
    ({"origin_mode": True}, True, True),
    (
        {"gate_activation": "tanh", "activation": "relu", "origin_mode": True, "is_reverse": True},
        False,
        False,
    ),
    ({"gate_activation": "identity", "activation": "sigmoid"}, True, True),
]


@pytest.mark.parametrize("attrs, initial, bias", VARIANTS, ids=str)
def test_states_and_gradients(attrs, initial, bias):
    offsets = [0, 2, 2, 3]
    given = operands(offsets, 2, initial, bias)
    outputs = {"Hidden": expected(given, offsets, attrs).astype("float32")}
    check("gru", given, attrs, outputs, grads=list(given), lods={"Input": [[offsets]]})


RAMP = (np.arange(18).reshape(3, 6) / 9 - 1).astype("float32")
WEIGHT = (np.arange(12).reshape(2, 6) / 10 - 0.5).astype("float32")
BIAS = (np.arange(6).reshape(1, 6) / 10 - 0.2).astype("float32")
RECORDED = {
    "Hidden": [[-0.0790009, -0.0388933], [0.0580409, 0.1737262], [0.4010842, 0.4859108]],
    "BatchGate": [0.3799069, 0.4278516, 0.4771908, 0.5269791, 0.2817239, 0.4580536],
    "BatchResetHiddenPrev": [-0.0376985, -0.020496],
    "Bias@GRAD": [0.1648268, 0.2333607, -0.0011661, -0.0008801, 0.2102276, 0.3386917],
    "Weight@GRAD": [-0.0007793, -0.0033392, 9.21e-05, 6.95e-05, -0.0003837, -0.0016439, 4.54e-05, 3.42e-05,
        -0.0015306, -0.0044284, -0.0008321, -0.0024076],
}  # fmt: skip
"""Of the Batch... rows the third, the second of the longer sequence."""


def test_gru_is_that_of_fluid():
    given = {"Input": RAMP, "Weight": WEIGHT, "Bias": BIAS}
    lods = {"Input": [[[0, 2, 3]]]}
    made = run_kernel("gru", given, {}, lods)
    np.testing.assert_allclose(made["Hidden"][0], RECORDED["Hidden"], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(made["BatchGate"][0][2], RECORDED["BatchGate"], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        made["BatchResetHiddenPrev"][0][2], RECORDED["BatchResetHiddenPrev"], rtol=1e-5, atol=1e-7
    )
    np.testing.assert_array_equal(made["BatchHidden"][0], made["Hidden"][0][[0, 2, 1]])
    found = gradients("gru", given, {}, {"Hidden": [2 * made["Hidden"][0]]}, lods)
    np.testing.assert_allclose(found["Bias"][0][0], RECORDED["Bias@GRAD"], rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(found["Weight"][0].ravel(), RECORDED["Weight@GRAD"], rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize(
    "slot, shape, message",
    [
        ("Weight", (3, 8), r"Weight must be of shape \[size, 3 \* size\], got \[3, 8\]"),
        ("Input", (4, 8), r"Input must be of shape \[-1, 9\], got \[4, 8\]"),
        ("Bias", (1, 12), r"Bias must be of shape \[1, 9\], got \[1, 12\]"),
        ("H0", (1, 4), r"H0 must be of shape \[-1, 3\], got \[1, 4\]"),
    ],
)
def test_what_does_not_fit_is_said(slot, shape, message):
    with pytest.raises(OperatorError, match=message):
        infer("gru", {**operands([0, 4]), slot: np.zeros(shape, "float32")})
