"""attention_lstm and fused_embedding_fc_lstm; numbers of Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

OFFSETS = (np.array([0, 2, 5]),)
NEW = np.random.RandomState(2)


def drawn(*shape):
    return NEW.rand(*shape).astype("float32")


SEEN = {
    "X": drawn(5, 3), "C0": drawn(2, 2), "AttentionWeight": drawn(5, 1), "AttentionBias": drawn(1, 1),
    "LSTMWeight": drawn(5, 8), "LSTMBias": drawn(1, 8),
}  # fmt: skip
SCALED = {**SEEN, "H0": drawn(2, 2), "AttentionScalar": np.full((1, 1), 0.7, "float32")}
SCALED["AttentionScalarBias"] = np.full((1, 1), 0.2, "float32")
TRANSPOSED = {
    **SCALED,
    "AttentionWeight": -SCALED["AttentionWeight"],
    "AttentionScalar": -SCALED["AttentionScalar"],
}
del TRANSPOSED["AttentionBias"]
EMBEDDED = {
    "Ids": np.array([[0], [2], [1], [3], [2]], "int64"),
    "Embeddings": drawn(4, 8),
    "WeightH": drawn(2, 8),
    "Bias": drawn(1, 8),
}
PEEPING = {**EMBEDDED, "Bias": drawn(1, 14), "H0": drawn(2, 2), "C0": drawn(2, 2)}


@pytest.mark.parametrize(
    "inputs, candidate, hidden",
    [
        (
            SEEN,
            "tanh",
            [
                [0.565575, 0.621179], [0.74998, 0.775088], [0.465264, 0.600787], [0.691871, 0.754621],
                [0.801704, 0.808041],
            ],
        ),
        (
            SCALED,
            "relu",
            [
                [0.78972, 0.792569], [0.850163, 0.833881], [0.671048, 0.786942], [0.828168, 0.820419],
                [0.869803, 0.833577],
            ],
        ),
        (
            TRANSPOSED,
            "tanh",
            [
                [0.729424, 0.744202], [0.805729, 0.811545], [0.617573, 0.73793], [0.765886, 0.7936],
                [0.832636, 0.820729],
            ],
        ),
    ],
)  # fmt: skip
def test_attention_lstm(inputs, candidate, hidden):
    attrs = {"candidate_activation": candidate}
    lods = {"X": [OFFSETS]}
    check("attention_lstm", inputs, attrs, {"Hidden": np.array(hidden, "float32")}, lods=lods)


@pytest.mark.parametrize(
    "inputs, attrs, hidden",
    [
        (
            EMBEDDED,
            {"use_peepholes": False},
            [
                [0.00439589, 0.249502], [0.265597, 0.306628], [0.124572, 0.162328], [0.225182, 0.397795],
                [0.456174, 0.460814],
            ],
        ),
        (
            EMBEDDED,
            {"use_peepholes": False, "is_reverse": True},
            [
                [0.165857, 0.346584], [0.236356, 0.0943708], [0.3302, 0.500661], [0.28891, 0.377945],
                [0.236356, 0.0943708],
            ],
        ),
        (
            PEEPING,
            {},
            [
                [0.0344953, 0.510098], [0.345508, 0.629274], [0.533906, 0.352958], [0.663239, 0.663468],
                [0.826111, 0.818276],
            ],
        ),
    ],
)  # fmt: skip
def test_fused_embedding_fc_lstm(inputs, attrs, hidden):
    lods = {"Ids": [OFFSETS]}
    check("fused_embedding_fc_lstm", inputs, attrs, {"Hidden": np.array(hidden, "float32")}, lods=lods)


def test_what_does_not_fit():
    with pytest.raises(OperatorError, match=r"LSTMWeight must have shape \[5, 8\]"):
        infer("attention_lstm", {**SEEN, "LSTMWeight": drawn(5, 7)}, {})
    with pytest.raises(OperatorError, match="must be one of identity"):
        infer("attention_lstm", SEEN, {"gate_activation": "swish"})
    with pytest.raises(OperatorError, match=r"Bias must be \[1, 14\]"):
        infer("fused_embedding_fc_lstm", EMBEDDED, {})
