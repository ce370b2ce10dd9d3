"""Fused operators on sequences: pooling and joining, convolution with relu, joining and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.products import matmul
from ..registry import LodArray, OpDef, OperatorError, OpView, Sequences, find, register
from ..sequence import Lods, input_lod


def _pooled(xp: Any, X: list[Any], pooltype: str, lod: Lods) -> list[Any]:
    pool = find("sequence_pool").kernel
    assert pool is not None
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
        OpDef(
            _type,
            _inputs,
            attrs={"pooltype": "SUM", "axis": 1, **_attrs},
            infer=_infer_pool,
            kernel=_kernel,
            no_grad=("Out",),
            sequences=Sequences(takes_lod=True),
            doc=_doc,
        )
    )


def _conv_relu(
    xp: Any, X: Any, Filter: Any, Bias: Any, contextStart: int, contextLength: int, lod: Lods
) -> Any:
    conv = find("sequence_conv").kernel
    assert conv is not None
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
    OpDef(
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
        activate = find(fc_activation).kernel
        assert activate is not None
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
    OpDef(
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
)
