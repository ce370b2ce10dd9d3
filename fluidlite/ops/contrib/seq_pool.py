"""fused_embedding_seq_pool: sums of rows of a table, over the ids of each sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.selected_rows import SelectedRows
from ..infer import grads_like_inputs, product
from ..registry import (
    Attr,
    Dispatch,
    LodArray,
    OpDef,
    OperatorError,
    OpView,
    RowRule,
    Sequences,
    grad_name,
    register,
    standard_grad,
)
from ..sequence import Lods, input_lod
from ..value_checks import require_in_range

DW, DOUT = grad_name("W"), grad_name("Out")


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

register(
    OpDef(
        "fused_embedding_seq_pool",
        ("W", "Ids"),
        attrs=_ATTRS,
        infer=_infer,
        kernel=_sums,
        grad=standard_grad(inputs=("W", "Ids")),
        no_grad=("Ids",),
        sequences=Sequences(takes_lod=True, inferred=True),
        doc="For each sequence of Ids sums of the rows of W that its columns name; padding_idx names none.",
    )
)
register(
    OpDef(
        "fused_embedding_seq_pool_grad",
        ("W", "Ids", DOUT),
        (DW,),
        _ATTRS,
        infer=grads_like_inputs,
        kernel=_grad,
        dispatch=Dispatch(
            rows=RowRule(_sparse_grad, out=DW, when="is_sparse", count=lambda op: product(op.shape("Ids")))
        ),
        sequences=Sequences(takes_lod=True, inferred=True),
        doc="The gradient of fused_embedding_seq_pool for the table: SelectedRows with is_sparse.",
    )
)
