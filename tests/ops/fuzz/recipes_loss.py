"""Cases of losses and measures."""

from __future__ import annotations

import numpy as np

from .cases import Case, Chooser, case, recipe


def rows(c: Chooser, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Probabilities: rows that add up to one."""
    made = c.floats(shape, dtype, "positive")
    return (made / np.maximum(made.sum(-1, keepdims=True), 1e-6)).astype(dtype)


def labels(c: Chooser, shape: tuple[int, ...], count: int, ignore: int) -> np.ndarray:
    """Classes, some of them to be ignored, now and then one out of range."""
    made = c.ints(shape, 0, count - 1 + c.one_in(20))
    if c.one_in(3):
        made = np.where(c.ints(shape, 0, 2) == 0, ignore, made)
    return made


@recipe("cross_entropy")
def cross_entropy(c: Chooser, op: str) -> Case:
    dtype, lead, n = c.real(), c.shape(1, 2), c.dim(1)
    x = rows(c, (*lead, n), dtype)
    if c.one_in(5):
        x = np.where(c.ints(x.shape, 0, 5) == 0, 0, x).astype(dtype)
    ignore = c.pick([-100, 0, n - 1])
    soft = c.one_in(3)
    label = rows(c, (*lead, n), dtype) if soft else labels(c, (*lead, 1), n, ignore)
    return case(op, {"X": x, "Label": label}, {"soft_label": soft, "ignore_index": ignore})


@recipe("cross_entropy2")
def cross_entropy2(c: Chooser, op: str) -> Case:
    dtype, lead, n = c.real(), c.shape(1, 2), c.dim(1)
    ignore = c.pick([-100, 0, n - 1])
    return case(
        op,
        {"X": rows(c, (*lead, n), dtype), "Label": labels(c, (*lead, 1), n, ignore)},
        {"ignore_index": ignore},
    )


@recipe("softmax_with_cross_entropy")
def softmax_with_cross_entropy(c: Chooser, op: str) -> Case:
    dtype = c.real()
    shape = c.shape(2, 4, 1)
    axis = c.int(-len(shape), len(shape) - 1) if c.bool() else -1
    n = shape[axis]
    soft, ignore = c.one_in(3), c.pick([-100, 0, n - 1, -1])
    if soft:
        label = rows(c, shape, dtype)
    else:
        one = list(shape)
        one[axis] = 1
        label = labels(c, tuple(one), n, ignore)
    logits = (c.floats(shape, dtype, "any" if c.one_in(6) else "plain") * c.pick([1, 1, 100])).astype(dtype)
    attrs = {"soft_label": soft, "ignore_index": ignore, "axis": axis, "numeric_stable_mode": c.bool()}
    return case(op, {"Logits": logits, "Label": label}, attrs)


@recipe("sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy(c: Chooser, op: str) -> Case:
    dtype, shape = c.real(), c.shape(2, 2, 1)
    label = c.floats(shape, dtype, "unit")
    if c.bool():
        label = np.where(c.ints(shape, 0, 2) == 0, c.pick([-100, -1]), np.round(label)).astype(dtype)
    attrs = {"normalize": c.bool(), "ignore_index": c.pick([-100, -1])}
    return case(op, {"X": c.floats(shape, dtype), "Label": label}, attrs)


@recipe("bce_loss")
def bce(c: Chooser, op: str) -> Case:
    dtype, shape = c.real(), c.shape(1, 3, 1)
    x = c.floats(shape, dtype, "unit")
    if c.one_in(3):
        x = np.round(x)
    return case(op, {"X": x, "Label": np.round(c.floats(shape, dtype, "unit"))})


@recipe("bpr_loss")
def bpr(c: Chooser, op: str) -> Case:
    n, k = c.dim(1), c.int(2, 7)
    return case(op, {"X": c.floats((n, k), None, "plain"), "Label": c.ints((n, 1), 0, k - 1)})


@recipe("hinge_loss")
def hinge(c: Chooser, op: str) -> Case:
    n = c.dim(1)
    return case(
        op, {"Logits": c.floats((n, 1), "float32"), "Labels": np.round(c.floats((n, 1), "float32", "unit"))}
    )


@recipe("huber_loss")
def huber(c: Chooser, op: str) -> Case:
    shape, dtype = (c.dim(1), 1) if c.bool() else c.shape(1, 2, 1), c.real()
    return case(op, {"X": c.floats(shape, dtype), "Y": c.floats(shape, dtype)}, {"delta": c.pick([1.0, 0.3])})


@recipe("kldiv_loss")
def kldiv(c: Chooser, op: str) -> Case:
    shape, dtype = c.shape(1, 3, 1), c.real()
    target = rows(c, shape, dtype) if c.bool() else c.floats(shape, dtype, "plain")
    return case(
        op,
        {"X": c.floats(shape, dtype, "plain"), "Target": target},
        {"reduction": c.pick(["mean", "sum", "none", "batchmean"])},
    )


@recipe("label_smooth")
def label_smooth(c: Chooser, op: str) -> Case:
    shape, dtype = c.shape(2, 3, 1), c.real()
    prior = rows(c, (1, shape[-1]), dtype) if c.bool() else None
    return case(op, {"X": rows(c, shape, dtype), "PriorDist": prior}, {"epsilon": c.pick([0.0, 0.1])})


@recipe("log_loss")
def log_loss(c: Chooser, op: str) -> Case:
    n = c.dim(1)
    inputs = {
        "Predicted": c.floats((n, 1), "float32", "unit"),
        "Labels": np.round(c.floats((n, 1), "float32", "unit")),
    }
    return case(op, inputs, {"epsilon": 1e-4})


@recipe("margin_rank_loss")
def margin_rank(c: Chooser, op: str) -> Case:
    shape = (c.dim(1), 1)
    label = (np.round(c.floats(shape, "float32", "unit")) * 2 - 1).astype("float32")
    return case(
        op,
        {"X1": c.floats(shape, "float32"), "X2": c.floats(shape, "float32"), "Label": label},
        {"margin": c.pick([0.0, 0.3])},
    )


@recipe("rank_loss")
def rank_loss(c: Chooser, op: str) -> Case:
    shape = (c.dim(1), 1)
    inputs = {"Left": c.floats(shape, "float32"), "Right": c.floats(shape, "float32")}
    return case(op, {**inputs, "Label": np.round(c.floats(shape, "float32", "unit"))})


@recipe("nll_loss")
def nll(c: Chooser, op: str) -> Case:
    n, k, dtype = c.dim(1), c.dim(1), c.real()
    image = (c.int(1, 3), c.int(1, 3)) if c.one_in(3) else ()
    ignore = c.pick([-100, 0])
    label = c.ints((n, *image), 0, k - 1)
    if c.one_in(3):
        label = np.where(c.ints(label.shape, 0, 2) == 0, ignore, label)
    weight = c.floats((k,), dtype, "positive") if c.bool() else None
    attrs = {"ignore_index": ignore, "reduction": c.pick(["mean", "sum", "none"])}
    return case(op, {"X": c.floats((n, k, *image), dtype, "plain"), "Label": label, "Weight": weight}, attrs)


@recipe("smooth_l1_loss")
def smooth_l1(c: Chooser, op: str) -> Case:
    shape = c.shape(2, 3, 1)
    inside, outside = (c.floats(shape, "float32", "positive") for _ in range(2))
    both = c.bool()
    inputs = {"X": c.floats(shape, "float32"), "Y": c.floats(shape, "float32")}
    return case(
        op,
        {**inputs, "InsideWeight": inside if both else None, "OutsideWeight": outside if both else None},
        {"sigma": c.pick([1.0, 3.0])},
    )


@recipe("teacher_student_sigmoid_loss")
def teacher(c: Chooser, op: str) -> Case:
    n = c.dim(1)
    label = c.rng().choice([-2.0, -1.0, 0.3, 1.4, 0.0, 1.0], (n, 1)).astype("float32")
    return case(op, {"X": c.floats((n, 1), "float32", "plain"), "Label": label})


@recipe("hierarchical_sigmoid")
def hsigmoid(c: Chooser, op: str) -> Case:
    n, d, k, dtype = c.dim(1), c.int(1, 5), c.int(2, 9), c.real()
    inputs = {
        "X": c.floats((n, d), dtype, "plain"),
        "W": c.floats((k - 1, d), dtype, "plain"),
        "Label": c.ints((n, 1), 0, k - 1),
        "Bias": c.floats((k - 1, 1), dtype, "plain") if c.bool() else None,
    }
    return case(op, inputs, {"num_classes": k})


@recipe("accuracy")
def accuracy(c: Chooser, op: str) -> Case:
    n, k = c.dim(), c.int(1, 3)
    return case(
        op,
        {
            "Out": c.floats((n, k), "float32", "unit"),
            "Indices": c.ints((n, k), 0, 4),
            "Label": c.ints((n, 1), 0, 4),
        },
    )


@recipe("auc")
def auc(c: Chooser, op: str) -> Case:
    n, bins = c.dim(1), c.pick([1, 10, 4095])
    p = c.floats((n, 1), "float32", "unit")
    inputs = {"Predict": np.concatenate([1 - p, p], 1), "Label": c.ints((n, 1), 0, 1)}
    slide = c.pick([0, 1, 3])
    size = (1, bins + 1) if slide == 0 else (slide + 1, bins + 1)
    size = (1 + slide, bins + 1) if slide else (1, bins + 1)
    for slot in ("StatPos", "StatNeg"):
        inputs[slot] = c.ints(size, 0, 3)
    return case(
        op,
        inputs,
        {
            "num_thresholds": bins,
            "slide_steps": slide,
            "curve": c.pick(["ROC", "PR"]) if c.one_in(3) else "ROC",
        },
    )


@recipe("mean_iou")
def mean_iou(c: Chooser, op: str) -> Case:
    k, shape = c.int(1, 5), c.shape(1, 2, 1)
    dtype = c.pick(["int32", "int64"]) if c.one_in(3) else "int32"
    return case(
        op,
        {"Predictions": c.ints(shape, 0, k - 1, dtype), "Labels": c.ints(shape, 0, k - 1, dtype)},
        {"num_classes": k},
    )
