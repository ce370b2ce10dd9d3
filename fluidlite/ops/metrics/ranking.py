"""positive_negative_pair, precision_recall: figures about rankings and classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..registry import OpDef, OpView, register
from ..value_checks import require_in_range


@hosted
def _pairs(
    xp: Any,
    Score: Any,
    Label: Any,
    QueryID: Any,
    AccumulatePositivePair: Any,
    AccumulateNegativePair: Any,
    AccumulateNeutralPair: Any,
    Weight: Any,
    column: int,
) -> Any:
    """A pair with equal scores counts half as right, half as wrong and as neutral, as in Fluid."""
    scores, labels, queries = Score[:, column], Label.reshape(-1), QueryID.reshape(-1)
    weights = np.ones_like(scores) if Weight is None else Weight.reshape(-1)
    first, second = np.triu_indices(len(scores), 1)
    counted = (queries[first] == queries[second]) & (labels[first] != labels[second])
    first, second = first[counted], second[counted]
    share = (weights[first] + weights[second]) / 2
    by_score, by_label = scores[first] - scores[second], labels[first] - labels[second]
    equal, right = by_score == 0, by_score * by_label > 0
    sums = [share[right].sum(), share[~right].sum(), share[equal].sum()]
    before = (AccumulatePositivePair, AccumulateNegativePair, AccumulateNeutralPair)
    if all(one is not None for one in before):
        sums = [total + one.reshape(-1)[0] for total, one in zip(sums, before, strict=True)]
    return tuple(np.array([total], Score.dtype) for total in sums)


def _infer_pairs(op: OpView) -> None:
    score, label, query = op.shape("Score"), op.shape("Label"), op.shape("QueryID")
    if len(score) != 2 or len(label) != 2 or len(query) != 2:
        raise op.fail(
            f"Score must be [n, columns], Label and QueryID [n, 1], got {list(score)}, {list(label)} and {list(query)}"
        )
    if not -score[1] <= op.attr("column") < score[1]:
        raise op.fail(f"column must be in [{-score[1]}, {score[1]}), got {op.attr('column')}")
    for slot in ("PositivePair", "NegativePair", "NeutralPair"):
        op.set(slot, (1,), op.dtype("Score"))


register(
    OpDef(
        "positive_negative_pair",
        (
            "Score",
            "Label",
            "QueryID",
            "AccumulatePositivePair?",
            "AccumulateNegativePair?",
            "AccumulateNeutralPair?",
            "Weight?",
        ),
        ("PositivePair", "NegativePair", "NeutralPair?"),
        {"column": 0},
        infer=_infer_pairs,
        kernel=_pairs,
        no_grad=("PositivePair", "NegativePair", "NeutralPair"),
        doc="How many pairs of answers to one query are ranked as their labels say, and how many are not.",
    )
)


def _shares(states: Any) -> Any:
    """Precision, recall and F1, the mean over classes and over all samples; states: TP, FP, TN, FN of each class."""

    def share(part: Any, rest: Any) -> Any:
        return np.where(part + rest > 0, part / np.where(part + rest > 0, part + rest, 1), 1.0)

    def f1(precision: float, recall: float) -> float:
        return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0

    true, false, _, missed = states.T
    macro = share(true, false).mean(), share(true, missed).mean()
    micro = float(share(true.sum(), false.sum())), float(share(true.sum(), missed.sum()))
    return np.array([*macro, f1(*macro), *micro, f1(*micro)], "float64")


@hosted
def _precision_recall(
    xp: Any, Indices: Any, Labels: Any, MaxProbs: Any, Weights: Any, StatesInfo: Any, class_number: int
) -> Any:
    found, wanted = Indices.reshape(-1), Labels.reshape(-1)
    for slot, classes in (("Indices", found), ("Labels", wanted)):
        require_in_range(np, "precision_recall", slot, classes, class_number, "classes")
    weights = np.ones(len(found), MaxProbs.dtype) if Weights is None else Weights.reshape(-1)
    states = np.zeros((class_number, 4), MaxProbs.dtype)
    states[:, 2] = weights.sum()
    for guess, label, weight in zip(found, wanted, weights, strict=True):
        states[guess, 0 if guess == label else 1] += weight
        states[guess, 2] -= weight
        if guess != label:
            states[label, 3] += weight
            states[label, 2] -= weight
    total = states if StatesInfo is None else states + StatesInfo
    return _shares(states), _shares(total), total


def _infer_precision_recall(op: OpView) -> None:
    kind = op.dtype("MaxProbs")
    op.set("BatchMetrics", (6,), VarType.FP64)
    op.set("AccumMetrics", (6,), VarType.FP64)
    op.set("AccumStatesInfo", (op.attr("class_number"), 4), kind)


register(
    OpDef(
        "precision_recall",
        ("MaxProbs", "Indices", "Labels", "Weights?", "StatesInfo?"),
        ("BatchMetrics", "AccumMetrics", "AccumStatesInfo"),
        {"class_number": 1},
        infer=_infer_precision_recall,
        kernel=_precision_recall,
        no_grad=("BatchMetrics", "AccumMetrics", "AccumStatesInfo"),
        doc="Precision, recall and F1 of predicted classes, their means over classes and over samples.",
    )
)
