"""Recurrent layers fused with what is around them: fusion_gru, fusion_lstm, attention_lstm, fused_embedding_fc_lstm."""

from __future__ import annotations

from typing import Any

from ...backend.functions import matmul
from ..host_fallback import hosted
from ..registry import LodArray, OperatorError, OpView, Sequences, find, kernel_of, register
from ..rnn.unit import activate, check_activations
from ..sequence import Lods, one_level


def _recurrent(op_type: str, xp: Any, given: Any, sequences: Any, **more: Any) -> Any:
    """The results of `gru` or `lstm` for projected inputs; attributes in `more` that it does not have are ignored."""
    kernel, known = kernel_of(op_type), find(op_type)
    names = {*known.inputs_by_name, *known.attrs}
    own = {name: value for name, value in more.items() if name in names}
    return kernel(xp, Input=given, lod={"Input": sequences}, **own)


def _gru(xp: Any, X: Any, H0: Any, WeightX: Any, WeightH: Any, Bias: Any, lod: Lods, **attrs: Any) -> Any:
    """A projection followed by `gru`; as in Fluid, `origin_mode` has no effect."""
    options = {**attrs, "origin_mode": False, "H0": H0, "Weight": WeightH, "Bias": Bias}
    made = _recurrent("gru", xp, matmul(xp, X, WeightX), lod["X"], **options)
    return None, None, None, None, made[3]


def _lstm(
    xp: Any, X: Any, WeightX: Any, WeightH: Any, Bias: Any, H0: Any, C0: Any, lod: Lods, **attrs: Any
) -> Any:
    given = {"H0": H0, "C0": C0, "Weight": WeightH, "Bias": Bias}
    made = _recurrent("lstm", xp, matmul(xp, X, WeightX), lod["X"], **given, **attrs)
    return *made[:2], *[None] * 7


def _infer(gates: int, outs: tuple[str, ...]) -> Any:
    def infer(op: OpView) -> None:
        x, wide, state = op.shape("X"), op.shape("WeightX"), op.shape("WeightH")
        size = state[0]
        if len(x) != 2 or wide != (x[1], gates * size) or state != (size, gates * size):
            raise op.fail(
                f"X must be [rows, width], WeightX [width, {gates} * size] and WeightH [size, {gates} * size], got "
                f"{list(x)}, {list(wide)} and {list(state)}"
            )
        biases = gates * size if op.type == "fusion_gru" or not op.attr("use_peepholes") else 7 * size
        if op.has("Bias") and op.shape("Bias") != (1, biases):
            raise op.fail(f"Bias must be [1, {biases}], got {list(op.shape('Bias'))}")
        for out in outs:
            op.set(out, (x[0], size), op.dtype("X"))
            op.carry(out, op.lod("X"))

    return infer


_LSTM_OUTS = (
    *("Hidden", "Cell", "XX?", "BatchedInput?", "BatchedHidden?", "BatchedCell?"),
    *("ReorderedH0?", "ReorderedC0?", "CheckedCell?"),
)
_LSTM = {"gate_activation": "sigmoid", "cell_activation": "tanh", "candidate_activation": "tanh"}

register(
    "fusion_gru",
    ("X", "H0?", "WeightX", "WeightH", "Bias?"),
    ("ReorderedH0?", "XX?", "BatchedInput?", "BatchedOut?", "Hidden"),
    {
        "activation": "tanh",
        "gate_activation": "sigmoid",
        "is_reverse": False,
        "use_seq": True,
        "origin_mode": False,
    },
    infer=_infer(3, ("Hidden",)),
    kernel=_gru,
    no_grad=("ReorderedH0", "XX", "BatchedInput", "BatchedOut", "Hidden"),
    sequences=Sequences(takes_lod=True, inferred=True),
    doc="gru of the product of X and WeightX; what is between is not kept.",
)
register(
    "fusion_lstm",
    ("X", "WeightX", "WeightH", "Bias", "H0?", "C0?"),
    _LSTM_OUTS,
    {"use_peepholes": True, "is_reverse": False, "use_seq": True, **_LSTM},
    infer=_infer(4, ("Hidden", "Cell")),
    kernel=_lstm,
    no_grad=tuple(name.rstrip("?") for name in _LSTM_OUTS),
    sequences=Sequences(takes_lod=True, inferred=True),
    doc="lstm of the product of X and WeightX; what is between is not kept.",
)


@hosted
def _attention(
    xp: Any,
    X: Any,
    C0: Any,
    H0: Any,
    AttentionWeight: Any,
    AttentionBias: Any,
    AttentionScalar: Any,
    AttentionScalarBias: Any,
    LSTMWeight: Any,
    LSTMBias: Any,
    gate_activation: str,
    cell_activation: str,
    candidate_activation: str,
    lod: Lods,
) -> Any:
    offsets = one_level("attention_lstm", lod, "X")
    width, size = X.shape[1], C0.shape[1]
    if (offsets[1:] == offsets[:-1]).any():
        raise OperatorError("operator attention_lstm: there is a sequence without rows to pay attention to")
    scores = matmul(xp, X, AttentionWeight[:width])
    if AttentionBias is not None:
        scores = scores + AttentionBias.reshape(-1)[0]
    hidden, cell = xp.empty((2, len(X), size), X.dtype)
    for number, (begin, end) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        c = C0[number : number + 1]
        h = None if H0 is None else H0[number : number + 1]
        for row in range(begin, end):
            attention = activate(xp, scores[begin:end] + matmul(xp, c, AttentionWeight[width:]), "relu")
            if AttentionScalar is not None:
                attention = attention * AttentionScalar.reshape(-1)[0]
                if AttentionScalarBias is not None:
                    attention = attention + AttentionScalarBias.reshape(-1)[0]
                attention = activate(xp, attention, "relu")
            share = xp.exp(attention - attention.max())
            seen = matmul(xp, (share / share.sum()).T, X[begin:end])
            gates = matmul(xp, seen, LSTMWeight[size:]) + LSTMBias.reshape(1, -1)
            if h is not None:
                gates = gates + matmul(xp, h, LSTMWeight[:size])
            forget, into, out = (
                activate(xp, gates[:, k * size : (k + 1) * size], gate_activation) for k in range(3)
            )
            c = forget * c + into * activate(xp, gates[:, 3 * size :], candidate_activation)
            h = activate(xp, c, cell_activation) * out
            cell[row], hidden[row] = c[0], h[0]
    levels = [offsets]
    return LodArray(hidden, levels), LodArray(cell, levels), scores, None, None, None


def _infer_attention(op: OpView) -> None:
    x, cell = op.shape("X"), op.shape("C0")
    if len(x) != 2 or len(cell) != 2:
        raise op.fail(f"X and C0 must be matrices, got shapes {list(x)} and {list(cell)}")
    width, size = x[1], cell[1]
    wanted = {
        "AttentionWeight": (width + size, 1),
        "LSTMWeight": (width + size, 4 * size),
        "LSTMBias": (1, 4 * size),
        "AttentionBias": (1, 1),
        "AttentionScalar": (1, 1),
        "AttentionScalarBias": (1, 1),
    }
    for slot, shape in wanted.items():
        if op.has(slot) and op.shape(slot) != shape:
            raise op.fail(f"{slot} must have shape {list(shape)}, got {list(op.shape(slot))}")
    check_activations(op, *_LSTM)
    for out in ("Hidden", "Cell"):
        op.set(out, (x[0], size), op.dtype("X"))
        op.carry(out, op.lod("X"))
    if op.outputs.get("AttentionedX"):
        op.set("AttentionedX", (x[0], 1), op.dtype("X"))


def _embedded(
    xp: Any, Ids: Any, Embeddings: Any, WeightH: Any, Bias: Any, H0: Any, C0: Any, lod: Lods, **attrs: Any
) -> Any:
    """The rows of Embeddings are products with weights already, and have the bias of the gates in them."""
    size = WeightH.shape[0]
    bias = xp.concatenate([xp.zeros((1, 4 * size), Bias.dtype), Bias[:, 4 * size :]], axis=1)
    rows = kernel_of("lookup_table")(xp, W=Embeddings, Ids=Ids, padding_idx=-1)
    given = {"H0": H0, "C0": C0, "Weight": WeightH, "Bias": bias}
    made = _recurrent("lstm", xp, rows, lod["Ids"], **given, **attrs)
    return *made[:2], *[None] * 6


def _infer_embedded(op: OpView) -> None:
    ids, table, state = op.shape("Ids"), op.shape("Embeddings"), op.shape("WeightH")
    size = state[0]
    if len(ids) != 2 or ids[1] != 1 or len(table) != 2 or table[1] != 4 * size or state != (size, 4 * size):
        raise op.fail(
            "Ids must be [rows, 1], Embeddings [entries, 4 * size] and WeightH [size, 4 * size], got "
            f"{list(ids)}, {list(table)} and {list(state)}"
        )
    biases = (7 if op.attr("use_peepholes") else 4) * size
    if op.shape("Bias") != (1, biases):
        raise op.fail(f"Bias must be [1, {biases}], got {list(op.shape('Bias'))}")
    check_activations(op, *_LSTM)
    for out in ("Hidden", "Cell"):
        op.set(out, (ids[0], size), op.dtype("Embeddings"))
        op.carry(out, op.lod("Ids"))


_ATTENTION_OUTS = ("Hidden", "Cell", "AttentionedX?", "AttentionFCOut?", "LSTMX?", "LSTMOUT?")
_EMBEDDED_OUTS = _LSTM_OUTS[:-1]

register(
    "attention_lstm",
    (
        *("X", "C0", "H0?", "AttentionWeight", "AttentionBias?", "AttentionScalar?"),
        *("AttentionScalarBias?", "LSTMWeight", "LSTMBias"),
    ),
    _ATTENTION_OUTS,
    _LSTM,
    infer=_infer_attention,
    kernel=_attention,
    no_grad=tuple(name.rstrip("?") for name in _ATTENTION_OUTS),
    sequences=Sequences(takes_lod=True, inferred=True),
    doc="An LSTM that sees in each step the rows of its sequence, weighted by how they go with the last cell.",
)
register(
    "fused_embedding_fc_lstm",
    ("Ids", "Embeddings", "WeightH", "Bias", "H0?", "C0?"),
    _EMBEDDED_OUTS,
    {"use_peepholes": True, "is_reverse": False, "use_seq": True, **_LSTM},
    infer=_infer_embedded,
    kernel=_embedded,
    no_grad=tuple(name.rstrip("?") for name in _EMBEDDED_OUTS),
    sequences=Sequences(takes_lod=True, inferred=True),
    doc="lstm of rows of a table that holds the products with its weights.",
)
