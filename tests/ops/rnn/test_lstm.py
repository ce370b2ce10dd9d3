"""lstm and lstmp; recorded numbers are those of Paddle 1.8.5."""

import numpy as np
import pytest
from scipy.special import expit

from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer, run_kernel

ACTS = {"sigmoid": expit, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0), "identity": lambda x: x}


def operands(offsets, size=3, state=None, initial=False, peepholes=True, seed=4):
    """Inputs of lstm, or of lstmp with a `state` of another size."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.uniform(-1, 1, shape).astype("float32")

    made = {"Input": draw(offsets[-1], 4 * size), "Weight": draw(state or size, 4 * size)}
    made["Bias"] = draw(1, (7 if peepholes else 4) * size)
    if state:
        made["ProjWeight"] = draw(size, state)
    if initial:
        made["H0"], made["C0"] = draw(len(offsets) - 1, state or size), draw(len(offsets) - 1, size)
    return made


def expected(given, offsets, attrs):
    """States and cells, sequence by sequence and row by row."""
    size = given["Weight"].shape[1] // 4
    gate, show, candidate = (ACTS[attrs.get(f"{k}_activation", d)] for k, d in DEFAULTS.items())
    bias = given["Bias"][0]
    into, forget, out = np.split(bias[4 * size :] if len(bias) > 4 * size else np.zeros(3 * size), 3)
    states, cells = (np.zeros((offsets[-1], n)) for n in (given["Weight"].shape[0], size))
    for s, (start, end) in enumerate(zip(offsets, offsets[1:], strict=False)):
        h = given["H0"][s] if "H0" in given else np.zeros(states.shape[1])
        c = given["C0"][s] if "C0" in given else np.zeros(size)
        for r in range(start, end)[:: -1 if attrs.get("is_reverse") else 1]:
            g, i, f, o = np.split(given["Input"][r] + bias[: 4 * size] + h @ given["Weight"], 4)
            i, f = gate(i + c * into), gate(f + c * forget)
            c = candidate(g) * i + c * f
            h = gate(o + c * out) * show(c)
            if "ProjWeight" in given:
                h = h @ given["ProjWeight"]
                h = show(h) if attrs.get("proj_activation", "tanh") != "identity" else h
            states[r], cells[r] = h, c
    return states, cells


DEFAULTS = {"gate": "sigmoid", "cell": "tanh", "candidate": "tanh"}
VARIANTS = [
    ({}, False, None),
    ({"is_reverse": True}, True, 3),
    ({"use_peepholes": False}, True, None),
    ({"gate_activation": "tanh", "cell_activation": "identity", "candidate_activation": "sigmoid"}, False, 3),
    ({"cell_activation": "sigmoid", "candidate_activation": "identity", "is_reverse": True}, True, None),
    ({"gate_activation": "identity", "candidate_activation": "relu", "use_peepholes": False}, False, 1),
]


@pytest.mark.parametrize("attrs, initial, state", VARIANTS, ids=str)
def test_states_cells_and_gradients(attrs, initial, state):
    offsets = [0, 2, 2, 3]
    given = operands(offsets, 2, state, initial, attrs.get("use_peepholes", True))
    states, cells = (made.astype("float32") for made in expected(given, offsets, attrs))
    outputs = {"Projection" if state else "Hidden": states, "Cell": cells}
    op_type = "lstmp" if state else "lstm"
    check(op_type, given, attrs, outputs, grads=list(given), lods={"Input": [[offsets]]}, grad_atol=1e-5)


RAMP = (np.arange(24).reshape(3, 8) / 12 - 1).astype("float32")
WEIGHT = (np.arange(16).reshape(2, 8) / 10 - 0.7).astype("float32")
PEEPHOLES = (np.arange(14).reshape(1, 14) / 10 - 0.5).astype("float32")
"""One sequence of two rows, one of one."""
RECORDED = {
    "Hidden": [[-0.0791547, -0.094515], [-0.162116, -0.1712999], [-0.0638112, 0.0074805]],
    "Cell": [[-0.2204457, -0.241501], [-0.3420917, -0.3379882], [-0.0907998, 0.0099104]],
    "BatchGate": [-0.1651404, 0.0166651, 0.549834, 0.5946768, 0.6379937, 0.6791787, 0.7046986, 0.75484],
    "Bias@GRAD": [-0.0769062, -0.0392232, 0.0374386, 0.0357247, 0.0067199, 0.00836, 0.0361221, 0.0356331,
        -0.0041839, -0.0044595, -0.0014814, -0.0020189, -0.0108979, -0.0112827],
    "Weight@GRAD": [0.0024737, 0.0036912, -0.0017938, -0.0017453, -0.0006351, -0.0007901, -0.0025226,
        -0.0026293],
}  # fmt: skip
"""The second rows of BatchGate, which is the first of the shorter sequence, and of Weight@GRAD."""


def test_lstm_is_that_of_fluid():
    given = {"Input": RAMP, "Weight": WEIGHT, "Bias": PEEPHOLES}
    lods = {"Input": [[[0, 2, 3]]]}
    made = run_kernel("lstm", given, {}, lods)
    np.testing.assert_allclose(made["Hidden"][0], RECORDED["Hidden"], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(made["Cell"][0], RECORDED["Cell"], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(made["BatchGate"][0][1], RECORDED["BatchGate"], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        made["BatchCellPreAct"][0], np.tanh(made["Cell"][0])[[0, 2, 1]], rtol=1e-5, atol=1e-7
    )
    found = gradients("lstm", given, {}, {"Hidden": [2 * made["Hidden"][0]]}, lods)
    np.testing.assert_allclose(found["Bias"][0][0], RECORDED["Bias@GRAD"], rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(found["Weight"][0][1], RECORDED["Weight@GRAD"], rtol=2e-4, atol=1e-6)


def test_what_is_cut_off_has_no_gradient():
    # As in Fluid: neither goes one through a cell at its bound, nor through a projection.
    offsets = [0, 4]
    given = operands(offsets, 3, 2)
    attrs, lods = {"cell_clip": 1e-3, "proj_clip": 0.0}, {"Input": [[offsets]]}
    ones = {"Projection": [np.ones((4, 2), "float32")]}
    made = run_kernel("lstmp", given, attrs, lods)
    assert set(np.abs(made["Cell"][0]).ravel()) == {np.float32(1e-3)}
    found = gradients("lstmp", given, attrs, ones, lods)
    assert not found["Input"][0][:, :9].any() and found["Input"][0][:, 9:].all()
    attrs = {"cell_clip": 0.0, "proj_clip": 1e-5}
    assert not gradients("lstmp", given, attrs, ones, lods)["ProjWeight"][0].any()


def test_large_sums_go_to_the_ends_as_in_fluid():
    # Fluid's sequence kernels look at no more than 13 and no less than -40 of what a sigmoid is taken of.
    given = {
        **operands([0, 1], 1),
        "Input": np.array([[1, 30, 0, 30]], "float32"),
        "Bias": np.zeros((1, 7), "float32"),
    }
    gates = run_kernel("lstm", given, {}, {"Input": [[[0, 1]]]})["BatchGate"][0]
    np.testing.assert_array_equal(gates[0, [1, 3]], np.float32(expit(13.0)))


@pytest.mark.parametrize(
    "slot, shape, message",
    [
        ("Weight", (3, 8), r"Weight must be of shape \[size, 4 \* size\], got \[3, 8\]"),
        ("Input", (4, 8), r"Input must be of shape \[-1, 12\], got \[4, 8\]"),
        ("Bias", (1, 12), r"Bias must be of shape \[1, 21\], got \[1, 12\]"),
        ("H0", (1, 3), "C0 must be given with H0"),
    ],
)
def test_what_does_not_fit_is_said(slot, shape, message):
    with pytest.raises(OperatorError, match=message):
        infer("lstm", {**operands([0, 4]), slot: np.zeros(shape, "float32")})


def test_activations_are_four():
    with pytest.raises(OperatorError, match="cell_activation must be one of .*, got 'softsign'"):
        infer("lstm", operands([0, 4]), {"cell_activation": "softsign"})


def test_sequences_of_sequences_are_refused():
    with pytest.raises(OperatorError, match="Input must have one level of sequences, got 2"):
        run_kernel("lstm", operands([0, 4]), {}, {"Input": [[[0, 1], [0, 4]]]})
