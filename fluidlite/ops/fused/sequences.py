"""Fused operators on sequences: pooling of embeddings, pooling and joining, convolution, recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.functions import matmul
from ...base.selected_rows import SelectedRows
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..infer import product
from ..registry import (
    Attr,
    LodArray,
    OperatorError,
    OpView,
    RowRule,
    Sequences,
    find,
    grad_name,
    kernel_of,
    register,
)
from ..rnn.unit import activate, check_activations
from ..sequence import Lods, input_lod, one_level
from ..value_checks import require_in_range


def _pooled(xp: Any, X: list[Any], pooltype: str, lod: Lods) -> list[Any]:
    pool = kernel_of("sequence_pool")
    made = []
    for x, levels in zip(X, lod["X"], strict=True):
        result = pool(xp, X=x, pooltype=pooltype, pad_value=0.0, lod={"X": [levels]})[0]
        made.append(result.array if isinstance(result, LodArray) else result)
    return made


def _with_rows(array: Any) -> LodArray:
    """`array` with each row as a sequence, as in Fluid."""
    return LodArray(array, [np.arange(len(array) + 1)])


def _pool_concat(xp: Any, X: list[Any], pooltype: str, lod: Lods) -> Any:
    return _with_rows(xp.concatenate(_pooled(xp, X, pooltype, lod), axis=1))


def _pool_cvm_concat(xp: Any, X: list[Any], pooltype: str, lod: Lods) -> Any:
    parts = []
    for part in _pooled(xp, X, pooltype, lod):
        shown = xp.log(part[:, :1] + 1)
        parts.append(xp.concatenate([shown, xp.log(part[:, 1:2] + 1) - shown, part[:, 2:]], axis=1))
    return _with_rows(xp.concatenate(parts, axis=1))


def _infer_pool(op: OpView) -> None:
    if op.attr("axis") != 1:
        raise op.fail(f"axis must be 1, got {op.attr('axis')}")
    if op.attr("pooltype") not in ("SUM", "AVERAGE", "SQRT"):
        raise op.fail(f"pooltype must be SUM, AVERAGE or SQRT, got {op.attr('pooltype')}")
    if op.type == "fusion_seqpool_cvm_concat" and not op.attr("use_cvm"):
        raise op.fail("use_cvm must be true")
    widths = [op.shape("X", k)[1] for k in range(op.count("X"))]
    op.set("Out", (-1, sum(widths)), op.dtype("X"))


for _type, _inputs, _kernel, _attrs, _doc in (
    ("fusion_seqpool_concat", ("X*",), _pool_concat, {}, "The pooled sequences of each X, side by side."),
    (
        "fusion_seqpool_cvm_concat",
        ("X*", "CVM"),
        _pool_cvm_concat,
        {"use_cvm": True},
        "The pooled sequences of each X with their counts on a logarithmic scale, side by side.",
    ),
):
    register(
        _type,
        _inputs,
        attrs={"pooltype": "SUM", "axis": 1, **_attrs},
        infer=_infer_pool,
        kernel=_kernel,
        no_grad=("Out",),
        sequences=Sequences(takes_lod=True),
        doc=_doc,
    )


def _conv_relu(
    xp: Any, X: Any, Filter: Any, Bias: Any, contextStart: int, contextLength: int, lod: Lods
) -> Any:
    conv = kernel_of("sequence_conv")
    padding = {"PaddingData": None, "paddingTrainable": False}
    context = {"contextStart": contextStart, "contextLength": contextLength}
    made = conv(xp, X=X, Filter=Filter, lod={"X": lod["X"]}, **padding, **context)
    return LodArray(xp.maximum(made.array + Bias.reshape(1, -1), 0), made.lod), None


def _infer_conv(op: OpView) -> None:
    x, weight = op.shape("X"), op.shape("Filter")
    if op.attr("contextStride") != 1:
        raise op.fail(f"contextStride must be 1, got {op.attr('contextStride')}")
    if len(x) != 2 or len(weight) != 2 or (x[1] >= 0 and weight[0] != op.attr("contextLength") * x[1]):
        raise op.fail(
            f"X must be [rows, width] and Filter [contextLength * width, n], got {list(x)} and {list(weight)}"
        )
    op.set("Out", (x[0], weight[1]), op.dtype("X"))
    op.carry("Out", op.lod("X"))


register(
    "fusion_seqconv_eltadd_relu",
    ("X", "Filter", "Bias"),
    ("Out", "ColMat?"),
    {"contextLength": 1, "contextStart": 0, "contextStride": 1},
    infer=_infer_conv,
    kernel=_conv_relu,
    no_grad=("Out", "ColMat"),
    sequences=Sequences(takes_lod=True, inferred=True),
    doc="relu(sequence_conv + Bias); what is between is not kept.",
)


def _expand_fc(xp: Any, X: list[Any], FCWeight: Any, FCBias: Any, fc_activation: str, lod: Lods) -> Any:
    """The first X has sequences; a row of each other one belongs to all rows of one of them."""
    levels = input_lod(lod, "X")
    if not levels:
        raise OperatorError("operator fusion_seqexpand_concat_fc: the first of X has no sequences")
    which = xp.asarray(np.repeat(np.arange(len(levels[-1]) - 1), np.diff(levels[-1])))
    made = matmul(xp, xp.concatenate([X[0], *(x[which] for x in X[1:])], axis=1), FCWeight)
    if FCBias is not None:
        made = made + FCBias.reshape(1, -1)
    if fc_activation != "identity":
        activate = kernel_of(fc_activation)
        made = activate(xp, X=made)
    return LodArray(made, levels), None


def _infer_expand_fc(op: OpView) -> None:
    widths = [op.shape("X", k)[1] for k in range(op.count("X"))]
    weight = op.shape("FCWeight")
    if len(weight) != 2 or (min(widths) >= 0 and weight[0] != sum(widths)):
        raise op.fail(f"FCWeight must be [{sum(widths)}, n], got {list(weight)}")
    if op.attr("fc_activation") not in ("identity", "relu", "tanh", "sigmoid"):
        raise op.fail(
            f"fc_activation must be identity, relu, tanh or sigmoid, got {op.attr('fc_activation')!r}"
        )
    op.set("Out", (op.shape("X")[0], weight[1]), op.dtype("X"))
    op.carry("Out", op.lod("X"))


register(
    "fusion_seqexpand_concat_fc",
    ("X*", "FCWeight", "FCBias?"),
    ("Out", "FCOut?"),
    {"fc_activation": "identity"},
    infer=_infer_expand_fc,
    kernel=_expand_fc,
    no_grad=("Out", "FCOut"),
    sequences=Sequences(takes_lod=True, inferred=True),
    doc="Rows of sequences concatenated with a row for each sequence, then a product, a bias and an activation.",
)


def _offsets(lod: Lods) -> Any:
    levels = input_lod(lod, "Ids")
    if not levels:
        raise OperatorError("operator fused_embedding_seq_pool: Ids must be a LoDTensor with sequences")
    return np.asarray(levels[-1])


def _sums(xp: Any, W: Any, Ids: Any, padding_idx: int, lod: Lods) -> Any:
    ids, offsets = Ids.reshape(len(Ids), -1), _offsets(lod)
    require_in_range(
        xp,
        "fused_embedding_seq_pool",
        "Ids",
        ids.reshape(-1),
        len(W),
        "rows in W",
        padding_idx if padding_idx >= 0 else None,
    )
    made = xp.zeros((len(offsets) - 1, ids.shape[1] * W.shape[1]), W.dtype)
    rows = W[ids]
    if padding_idx >= 0:
        rows = xp.where((ids == padding_idx)[..., None], xp.zeros((), W.dtype), rows)
    places = xp.asarray(np.repeat(np.arange(len(made)), np.diff(offsets)))
    xp.add.at(made, places, rows.reshape(-1, made.shape[1]))
    return LodArray(made, ())


def _of_rows(xp: Any, ids: Any, Out_grad: Any, padding_idx: int, lod: Lods) -> Any:
    grads = Out_grad[xp.asarray(np.repeat(np.arange(len(Out_grad)), np.diff(_offsets(lod))))]
    grads = grads.reshape(len(ids), -1)
    return (
        xp.where((ids == padding_idx)[:, None], xp.zeros((), grads.dtype), grads)
        if padding_idx >= 0
        else grads
    )


def _grad(xp: Any, W: Any, Ids: Any, Out_grad: Any, padding_idx: int, lod: Lods) -> Any:
    ids = Ids.reshape(-1)
    total = xp.zeros_like(W)
    xp.add.at(total, ids, _of_rows(xp, ids, Out_grad, padding_idx, lod))
    return total


def _sparse_grad(xp: Any, W: Any, Ids: Any, Out_grad: Any, padding_idx: int, lod: Lods) -> SelectedRows:
    ids = Ids.reshape(-1)
    return SelectedRows(ids.astype("int64"), _of_rows(xp, ids, Out_grad, padding_idx, lod), len(W))


def _infer(op: OpView) -> None:
    ids, table = op.shape("Ids"), op.shape("W")
    if len(table) != 2 or len(ids) < 2 or ids[-1] not in (1, -1):
        raise op.fail(
            f"W must be [rows, width] and Ids [n, 1] or [n, k, 1], got {list(table)} and {list(ids)}"
        )
    if op.attr("combiner") != "sum":
        raise op.fail(f"combiner must be 'sum', got {op.attr('combiner')!r}")
    op.set("Out", (op.sequences("Ids"), product(ids[1:]) * table[1]), op.dtype("W"))
    op.carry("Out", ())


_ATTRS: dict[str, Any] = {
    "combiner": "sum",
    "padding_idx": Attr(-1, "LONG"),
    "grad_inplace": False,
    "is_sparse": False,
}


register_pair(
    "fused_embedding_seq_pool",
    ("W", "Ids"),
    _sums,
    _grad,
    _infer,
    "For each sequence of Ids sums of the rows of W that its columns name; padding_idx names none.",
    attrs=_ATTRS,
    no_grad=("Ids",),
    sequences=Sequences(takes_lod=True, inferred=True),
    rows_back=RowRule(
        _sparse_grad, out=grad_name("W"), when="is_sparse", count=lambda op: product(op.shape("Ids"))
    ),
)


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


def _infer_rnn(gates: int, outs: tuple[str, ...]) -> Any:
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
    infer=_infer_rnn(3, ("Hidden",)),
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
    infer=_infer_rnn(4, ("Hidden", "Cell")),
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
