"""filter_by_instag: the samples of a batch that have one of the given tags."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..infer import grads_like_inputs
from ..registry import Attr, LodArray, OpDef, OperatorError, OpSpec, OpView, Sequences, grad_name, register
from ..sequence import Lods, input_lod

DINS = grad_name("Ins")


def _offsets(lod: Lods, slot: str, rows: int) -> Any:
    levels = input_lod(lod, slot)
    return np.asarray(levels[0]) if levels else np.arange(rows + 1)


@hosted
def _filter(
    xp: Any, Ins: Any, Ins_tag: Any, Filter_tag: Any, is_lod: bool, out_val_if_empty: int, lod: Lods
) -> Any:
    tags = _offsets(lod, "Ins_tag", len(Ins_tag))
    if is_lod and not input_lod(lod, "Ins"):
        raise OperatorError("operator filter_by_instag: Ins has no sequences, which is_lod=True asks for")
    rows = np.asarray(input_lod(lod, "Ins")[0]) if is_lod else np.arange(len(tags))
    if len(rows) != len(tags) or rows[-1] > len(Ins):
        raise OperatorError(
            f"operator filter_by_instag: Ins has {len(rows) - 1 if is_lod else len(Ins)} samples, but Ins_tag has "
            f"tags of {len(tags) - 1}"
        )
    hits = np.concatenate([[0], np.cumsum(np.isin(Ins_tag.reshape(-1), Filter_tag))])
    chosen = np.flatnonzero(hits[tags[1:]] > hits[tags[:-1]])
    if not len(chosen):
        out = np.full((1, *Ins.shape[1:]), out_val_if_empty, Ins.dtype)
        one = [np.array([0, 1])]
        places = np.array([[0, 1, 1]])
        return LodArray(out, one), LodArray(np.zeros((1, 1), "float32"), one), LodArray(places, one)
    lengths = (rows[1:] - rows[:-1])[chosen]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.stack([starts[:-1], rows[chosen], lengths], axis=1).astype("int64")
    out = Ins[_rows_of(places)]
    each = [np.arange(len(chosen) + 1)]
    weight = np.ones((len(chosen), 1), "float32")
    return LodArray(out, [starts]), LodArray(weight, each), LodArray(places, each)


def _rows_of(places: Any) -> Any:
    """The rows of Ins that the rows of Out came from."""
    return np.repeat(places[:, 1] - places[:, 0], places[:, 2]) + np.arange(places[:, 2].sum())


@hosted
def _filter_grad(xp: Any, Ins: Any, IndexMap: Any, LossWeight: Any, Out_grad: Any, lod: Lods) -> Any:
    """Zero if LossWeight is 0: no sample was chosen then."""
    made = np.zeros_like(Ins)
    if LossWeight.any():
        made[_rows_of(IndexMap)] = Out_grad
    return LodArray(made, input_lod(lod, "Ins")) if input_lod(lod, "Ins") else made


def _infer(op: OpView) -> None:
    shape = op.shape("Ins")
    op.set("Out", (-1, *shape[1:]), op.dtype("Ins"))
    op.set("LossWeight", (-1, 1), VarType.FP32)
    op.set("IndexMap", (-1, 2 if op.building else 3), VarType.INT64)


def _rule(op: OpView) -> list[OpSpec]:
    takes = {
        "IndexMap": op.names("IndexMap"),
        "Ins": op.names("Ins"),
        "LossWeight": op.names("LossWeight"),
        grad_name("Out"): [grad_name(op.name("Out"))],
    }
    return [OpSpec("filter_by_instag_grad", takes, {DINS: [grad_name(op.name("Ins"))]}, dict(op.attrs))]


_ATTRS: dict[str, Any] = {"is_lod": True, "out_val_if_empty": Attr(0, "LONG")}

register(
    OpDef(
        "filter_by_instag",
        ("Ins", "Ins_tag", "Filter_tag"),
        ("Out", "LossWeight", "IndexMap"),
        _ATTRS,
        infer=_infer,
        kernel=_filter,
        grad=_rule,
        no_grad=("Ins_tag", "Filter_tag", "LossWeight", "IndexMap"),
        sequences=Sequences(takes_lod=True),
        doc="The samples of Ins with a wanted tag; IndexMap: where each begins in Out and Ins, and its length.",
    )
)
register(
    OpDef(
        "filter_by_instag_grad",
        ("IndexMap", "Ins", "LossWeight", grad_name("Out")),
        (DINS,),
        _ATTRS,
        infer=grads_like_inputs,
        kernel=_filter_grad,
        sequences=Sequences(takes_lod=True),
        doc="The gradient of filter_by_instag: zero for samples that were left out.",
    )
)
