"""Metrics: top k, accuracy, area under the curve, overlap of segmentations, rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.functions import add_at
from ...base.dtypes import VarType
from .. import planning_rules
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..infer import product
from ..native import element, typed_call
from ..registry import Call, Dispatch, OperatorError, OpView, Planning, Sequences, register
from ..value_checks import forbid, require_in_range


def _top_k(xp: Any, X: Any, K: Any, k: int) -> Any:
    least = 1 if K is None else 0
    if K is not None:
        k = int(K.ravel()[0])
    if not least <= k <= X.shape[-1]:
        raise OperatorError(
            f"operator top_k: k must be in [{least}, {X.shape[-1]}], the last dimension of X; got {k}"
        )
    order = xp.argsort(-X, axis=-1, kind="stable")[..., :k]
    return xp.take_along_axis(X, order, axis=-1), order.astype("int64")


def _top_k_infer(op: OpView) -> None:
    shape = op.shape("X")
    k = op.attr("k")
    if op.has("K"):
        known = op.value("K")
        k = int(known.ravel()[0]) if known is not None else k if op.building else -1
    elif k < 1 or (len(shape) and 0 <= shape[-1] < k):
        raise op.fail(f"k must be in [1, {shape[-1]}], the last dimension of X; got {k}")
    op.set("Out", (*shape[:-1], k), op.dtype("X"))
    op.set("Indices", (*shape[:-1], k), VarType.INT64)


def _top_k_native(op: OpView) -> Call | None:
    shape = op.shape("X")
    ints = [product(shape[:-1]), shape[-1], op.attr("k")]
    return None if op.has("K") else typed_call(op, "top_k", ("X",), ("Out", "Indices"), ints)


def _top_k_grad(xp: Any, X: Any, Indices: Any, Out_grad: Any) -> Any:
    whole = xp.zeros((product(X.shape[:-1]), X.shape[-1]), Out_grad.dtype)
    places = Indices.reshape(len(whole), -1)
    whole[xp.arange(len(whole))[:, None], places] = Out_grad.reshape(places.shape)
    return whole.reshape(X.shape)


register_pair(
    "top_k",
    ("X", "K?"),
    _top_k,
    _top_k_grad,
    _top_k_infer,
    "The k largest elements of each row, largest first, and where they stand; of equal ones the first.",
    outputs=("Out", "Indices"),
    attrs={"k": 1},
    keep=("X#",),
    keep_out=("Indices",),
    no_grad=("K", "Indices"),
    native=(_top_k_native, None),
    planning=Planning(batchable=planning_rules.only_x),
    cuda=("losses.top_k", None),
)


def _accuracy(xp: Any, Indices: Any, Label: Any) -> Any:
    rows, count = Indices.shape[:2]  # of more dimensions Fluid takes as many elements, one after the other
    Indices = Indices.reshape(-1)[: rows * count].reshape(rows, count)
    hits = (Indices == Label.reshape(-1, 1)).any(axis=1)
    correct = hits.sum().reshape(1).astype("int32")
    total = xp.full((1,), len(Indices), "int32")
    return correct.astype("float32") / xp.maximum(total, 1).astype("float32"), correct, total


def _accuracy_infer(op: OpView) -> None:
    if len(op.shape("Indices")) < 2:
        raise op.fail(f"the candidates (Out and Indices) must be [rows, k], got {list(op.shape('Indices'))}")
    rows, labels = op.shape("Indices")[0], op.shape("Label")
    if product(labels) >= 0 <= rows and product(labels) != rows:
        raise op.fail(f"Label must have one class for each of the {rows} rows, got shape {list(labels)}")
    for slot, dtype in (("Accuracy", VarType.FP32), ("Correct", VarType.INT32), ("Total", VarType.INT32)):
        op.set(slot, (1,), dtype)


def _accuracy_native(op: OpView) -> Call | None:
    if element(op, "Indices", "Label") != "i64":
        return None
    slots = ("Indices", "Label", "Accuracy", "Correct", "Total")
    return Call("accuracy.f32", [op.name(slot) for slot in slots], list(op.shape("Indices")[:2]))


register(
    "accuracy",
    inputs=("Out", "Indices", "Label"),
    outputs=("Accuracy", "Correct", "Total"),
    infer=_accuracy_infer,
    kernel=_accuracy,
    no_grad=("Accuracy", "Correct", "Total"),
    native=_accuracy_native,
    dispatch=Dispatch(cuda="losses.accuracy"),
    sequences=Sequences(source=None),
    doc="The share of rows whose label is among their k candidates (Indices), with both counts.",
)


def _auc(
    xp: Any, Predict: Any, Label: Any, StatPos: Any, StatNeg: Any, num_thresholds: int, slide_steps: int
) -> Any:
    scores = Predict[:, -1]
    right = (scores >= 0) & (scores <= 1)
    forbid(~right, "operator auc: Predict must hold probabilities in [0, 1]")
    bucket = (xp.where(right, scores, 0) * num_thresholds).astype("int64")
    hit = Label.reshape(-1) != 0
    tallies = []
    for stat, mine in ((StatPos, hit), (StatNeg, ~hit)):
        counts = xp.zeros(num_thresholds + 1, "int64")
        add_at(xp, counts, bucket, mine.astype("int64"))
        tallies.append(_slid(xp, stat, counts, slide_steps))
    (positive, stat_pos), (negative, stat_neg) = tallies
    return _area(xp, positive, negative), stat_pos, stat_neg


def _slid(xp: Any, stat: Any, counts: Any, steps: int) -> tuple[Any, Any]:
    """Counts over the batches that matter, and what to remember of them.

    With `steps` = 0 everything is added up. Else `stat` holds the counts of the last `steps` batches in a
    ring, their sum, and how many batches there have been.
    """
    if steps == 0:
        # Paddle begins with a counter too many, and leaves it out from the first batch on.
        total = stat.reshape(-1)[: counts.size] + counts
        return total, total.reshape(1, -1)
    seen = stat[-1:]
    ring = stat[: counts.size * steps].reshape(steps, counts.size)
    newest = (xp.arange(steps) == seen % steps)[:, None]
    ring = xp.where(newest, counts, ring)
    total = ring.sum(axis=0)
    return total, xp.concatenate([ring.reshape(-1), total, seen + 1])


def _area(xp: Any, positive: Any, negative: Any) -> Any:
    """The area under the curve of true over false positives by trapezoids; 0 without one of the two kinds."""
    above = xp.cumsum(positive[::-1].astype("float64"))
    step = negative[::-1].astype("float64")
    area = (step * (above + xp.concatenate([xp.zeros(1), above[:-1]])) / 2).sum()
    whole = above[-1] * step.sum()
    return xp.where(whole > 0, area / xp.where(whole > 0, whole, 1.0), 0.0).reshape(1)


def _auc_infer(op: OpView) -> None:
    op.set("AUC", (1,), VarType.FP64)
    for slot in ("StatPos", "StatNeg"):
        total = (1, op.attr("num_thresholds") + 1)
        op.set(f"{slot}Out", op.shape(slot) if op.attr("slide_steps") else total, VarType.INT64)


register(
    "auc",
    inputs=("Predict", "Label", "StatPos", "StatNeg"),
    outputs=("AUC", "StatPosOut", "StatNegOut"),
    attrs={"curve": "ROC", "num_thresholds": 8191, "slide_steps": 1},
    infer=_auc_infer,
    kernel=_auc,
    no_grad=("Predict", "Label", "StatPos", "StatNeg", "AUC", "StatPosOut", "StatNegOut"),
    sequences=Sequences(source=None),
    doc="The area under the ROC curve of all batches so far, or of the last slide_steps ones.",
)


def _mean_iou(
    xp: Any, Predictions: Any, Labels: Any, InWrongs: Any, InCorrects: Any, InMeanIou: Any, num_classes: int
) -> Any:
    predicted, label = Predictions.reshape(-1), Labels.reshape(-1)
    require_in_range(xp, "mean_iou", "Predictions", predicted, num_classes, "classes")
    require_in_range(xp, "mean_iou", "Labels", label, num_classes, "classes")
    right = predicted == label
    correct, wrong = xp.zeros(num_classes, "int32"), xp.zeros(num_classes, "int32")
    xp.add.at(correct, label, right.astype("int32"))
    for place in (predicted, label):
        xp.add.at(wrong, place, (~right).astype("int32"))
    for more in InWrongs:
        wrong = wrong + more
    for more in InCorrects:
        correct = correct + more
    union = wrong + correct
    seen = xp.maximum((union > 0).sum(), 1).astype("float32")
    mean = (correct / xp.maximum(union, 1)).sum().astype("float32").reshape(1) / seen
    for more in InMeanIou:
        mean = mean + more
    return mean, wrong, correct


def _mean_iou_infer(op: OpView) -> None:
    op.set("OutMeanIou", (1,), VarType.FP32)
    for slot in ("OutWrong", "OutCorrect"):
        op.set(slot, (op.attr("num_classes"),), VarType.INT32)


register(
    "mean_iou",
    inputs=("Predictions", "Labels", "InWrongs*?", "InCorrects*?", "InMeanIou*?"),
    outputs=("OutMeanIou", "OutWrong", "OutCorrect"),
    attrs={"num_classes": 1},
    infer=_mean_iou_infer,
    kernel=_mean_iou,
    no_grad=("OutMeanIou", "OutWrong", "OutCorrect"),
    sequences=Sequences(source=None),
    doc=(
        "The mean over the classes of how much predicted and true segments overlap (intersection over union)."
    ),
)


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
    "precision_recall",
    ("MaxProbs", "Indices", "Labels", "Weights?", "StatesInfo?"),
    ("BatchMetrics", "AccumMetrics", "AccumStatesInfo"),
    {"class_number": 1},
    infer=_infer_precision_recall,
    kernel=_precision_recall,
    no_grad=("BatchMetrics", "AccumMetrics", "AccumStatesInfo"),
    doc="Precision, recall and F1 of predicted classes, their means over classes and over samples.",
)
