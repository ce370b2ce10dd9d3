"""The native kernels of recurrent operators against the reference kernels."""

import numpy as np
import pytest

from .. import in_native
from . import test_gru, test_lstm

SIZES = [(3, [0, 3, 4, 8]), (17, [0, 2, 2, 5, 5]), (1, [0, 6]), (3, [0, 0]), (2, [0])]


@pytest.mark.parametrize("size, offsets", SIZES, ids=str)
def test_lstm_kernels(size, offsets):
    lods, attrs = {"Input": [[offsets]]}, {"is_reverse": True, "use_peepholes": False}
    in_native.check("lstm", test_lstm.operands(offsets, size, peepholes=False), attrs, lods)
    in_native.check("lstm", test_lstm.operands(offsets, size, initial=True), {}, lods)


@pytest.mark.parametrize("size, offsets", SIZES, ids=str)
def test_lstmp_kernels(size, offsets):
    lods = {"Input": [[offsets]]}
    in_native.check("lstmp", test_lstm.operands(offsets, size, 5), {"cell_clip": 0.3, "proj_clip": 0.2}, lods)
    in_native.check(
        "lstmp", test_lstm.operands(offsets, size, 5, True), {"proj_activation": "identity"}, lods
    )


@pytest.mark.parametrize("size, offsets", SIZES, ids=str)
def test_gru_kernels(size, offsets):
    lods = {"Input": [[offsets]]}
    in_native.check("gru", test_gru.operands(offsets, size), {"is_reverse": True}, lods)
    in_native.check("gru", test_gru.operands(offsets, size, True, False), {"origin_mode": True}, lods)


@pytest.mark.parametrize("size", [33, 66])
def test_wide_states(size):
    """Weights of several strips, of a depth that is cut into parts, and more rows than a part of their gradient has."""
    offsets = [0, 2, *range(9, 560, 8)]
    for op_type, made in (
        ("lstm", test_lstm.operands(offsets, size)),
        ("gru", test_gru.operands(offsets, size)),
    ):
        made["Weight"] /= size
        in_native.check(op_type, made, {}, {"Input": [[offsets]]})


@pytest.mark.parametrize(
    "steps, batch, width, size", [(1, 1, 1, 1), (5, 3, 4, 17), (7, 30, 33, 9), (0, 2, 3, 2)]
)
def test_cudnn_lstm_kernels(steps, batch, width, size):
    random = np.random.RandomState(2)
    for layers, ways in ((1, 1), (3, 1), (2, 2)):
        inner = [width if k < ways else size * ways for k in range(layers * ways)]
        sizes = {
            "Input": (steps, batch, width),
            "InitH": (layers * ways, batch, size),
            "InitC": (layers * ways, batch, size),
            "W": (sum(4 * size * (n + size + 2) for n in inner),),
        }
        given = {slot: random.uniform(-1, 1, shape).astype("float32") for slot, shape in sizes.items()}
        attrs = {"hidden_size": size, "num_layers": layers, "is_bidirec": ways == 2}
        in_native.check("cudnn_lstm", given, attrs)


@pytest.mark.parametrize("rows, size", [(1, 1), (3, 5), (30, 17), (0, 2)])
def test_units(rows, size):
    """Single steps; sums beyond those at which the operators on sequences cut sigmoids off."""
    random = np.random.RandomState(1)

    def draw(*shape):
        return random.uniform(-1, 1, shape).astype("float32")

    gru = {"Input": 20 * draw(rows, 3 * size), "HiddenPrev": draw(rows, size), "Weight": draw(size, 3 * size)}
    in_native.check("gru_unit", gru, {"origin_mode": True})
    for activation, gate in ((0, 1), (3, 2), (1, 1)):
        attrs = {"activation": activation, "gate_activation": gate}
        in_native.check("gru_unit", {**gru, "Bias": draw(1, 3 * size)}, attrs)
    lstm = {"X": 20 * draw(rows, 4 * size), "C_prev": draw(rows, size)}
    in_native.check("lstm_unit", lstm, {"forget_bias": 0.7})


@pytest.mark.parametrize("act", test_lstm.ACTS)
def test_activations(act):
    offsets = [0, 2, 3, 6]
    lods, names = {"Input": [[offsets]]}, ("gate_activation", "cell_activation", "candidate_activation")
    for name in names:
        in_native.check("lstmp", test_lstm.operands(offsets, 9, 4), {name: act}, lods)
    in_native.check("gru", test_gru.operands(offsets, 9), {"gate_activation": act, "activation": act}, lods)
