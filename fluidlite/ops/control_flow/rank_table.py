"""Sequences sorted by length: the table of their ranks, and rows and sequences in its order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.lod import Lod
from ...base.rank_table import RankTable
from ..infer import same_as
from ..registry import Levels, LodArray, OpDef, OperatorError, OpSpec, OpView, Sequences, grad_name, register
from ..sequence import Lods, input_lod, offsets_of, ranges


def _makes_a_table(op: OpView) -> None:
    """A table has neither shape nor element type."""


def _rank(xp: Any, X: Any, level: int, lod: Lods) -> RankTable:
    deep = input_lod(lod, "X")
    if not 0 <= level < len(deep):
        raise OperatorError(
            f"operator lod_rank_table: cannot rank level {level} of X, which has {len(deep)} levels of sequences: "
            "feed sequences made with fluid.create_lod_tensor"
        )
    return RankTable(deep, level)


register(
    OpDef(
        "lod_rank_table",
        inputs=("X",),
        attrs={"level": 0},
        infer=_makes_a_table,
        kernel=_rank,
        no_grad=("Out",),
        sequences=Sequences(takes_lod=True),
        doc="The sequences of one level, sorted by length: the longest first, and of equal ones the first.",
    )
)


def _longest(op: OpView) -> None:
    op.set("Out", (1,), VarType.INT64)


register(
    OpDef(
        "max_sequence_len",
        inputs=("RankTable",),
        infer=_longest,
        kernel=lambda xp, RankTable: xp.array([RankTable.longest], "int64"),
        no_grad=("Out",),
        sequences=Sequences(source=None),
        doc="The length of the longest sequence of a rank table: int64 [1].",
    )
)


def _in_order(op_type: str, xp: Any, x: Any, order: np.ndarray, deep: Lod) -> Any:
    """Rows, or sequences of the outermost level, put in this order."""
    count = len(deep[0]) - 1 if deep else len(x)
    if count != len(order):
        raise OperatorError(
            f"operator {op_type}: X has {count} {'sequences' if deep else 'rows'}, but RankTable ranks {len(order)}"
        )
    made = []
    items = order
    for offsets in deep:
        lengths = (offsets[1:] - offsets[:-1])[items]
        made.append(offsets_of(lengths))
        items = ranges(offsets[:-1][items], lengths)
    return LodArray(x.take(xp.asarray(items), axis=0), made)


def _reorder(xp: Any, X: Any, RankTable: RankTable, lod: Lods) -> Any:
    return _in_order("reorder_lod_tensor_by_rank", xp, X, RankTable.order, input_lod(lod, "X"))


def _reorder_grad(xp: Any, X: Any, RankTable: RankTable, lod: Lods) -> Any:
    back = np.empty_like(RankTable.order)
    back[RankTable.order] = np.arange(len(back))
    return _in_order("reorder_lod_tensor_by_rank_grad", xp, X, back, input_lod(lod, "X"))


def _reorder_rule(op: OpView) -> list[OpSpec]:
    takes = {"X": [grad_name(op.name("Out"))], "RankTable": [op.name("RankTable")]}
    return [OpSpec("reorder_lod_tensor_by_rank_grad", takes, {"Out": [grad_name(op.name("X"))]})]


def _reorder_grad_rule(op: OpView) -> list[OpSpec]:
    takes = {"X": [grad_name(op.name("Out"))], "RankTable": [op.name("RankTable")]}
    return [OpSpec("reorder_lod_tensor_by_rank", takes, {"Out": [grad_name(op.name("X"))]})]


register(
    OpDef(
        "reorder_lod_tensor_by_rank",
        inputs=("X", "RankTable"),
        infer=same_as("X"),
        kernel=_reorder,
        grad=_reorder_rule,
        no_grad=("RankTable",),
        sequences=Sequences(takes_lod=True, levels=Levels("X")),
        doc="Rows, or the sequences of X, in the order of a rank table.",
    )
)
register(
    OpDef(
        "reorder_lod_tensor_by_rank_grad",
        inputs=("X", "RankTable"),
        infer=same_as("X"),
        kernel=_reorder_grad,
        grad=_reorder_grad_rule,
        no_grad=("RankTable",),
        sequences=Sequences(takes_lod=True),
        doc="Rows, or the sequences of X, that are in the order of a rank table, in the order that was ranked.",
    )
)
