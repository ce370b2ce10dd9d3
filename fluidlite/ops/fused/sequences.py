"""Fused operators on sequences: pooling of embeddings, pooling and joining, convolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.functions import matmul
from ...base.selected_rows import SelectedRows
from ..grad_pairs import register_pair
from ..infer import product
from ..registry import (
    Attr,
    LodArray,
    OperatorError,
    OpView,
    RowRule,
    Sequences,
    grad_name,
    kernel_of,
    register,
)
from ..sequence import Lods, input_lod
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
