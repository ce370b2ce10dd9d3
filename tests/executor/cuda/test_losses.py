"""Softmax, cross entropy and mean, and clipping by the global norm, as few launches on a GPU."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fluidlite import clip, layers, optimizer
from fluidlite.base.errors import OperatorError

from .test_fusion import agree, joined

pytestmark = [pytest.mark.usefixtures("alone"), pytest.mark.usefixtures("cuda")]

CLASSES = 5


def feeds(steps=3, rows=6, kind="int64", low=0):
    draw = np.random.default_rng(0)
    return [
        {"x": draw.random((rows, 8), "float32"), "y": draw.integers(low, CLASSES, (rows, 1)).astype(kind)}
        for _ in range(steps)
    ]


def scores(kind="int64"):
    """Class scores, and labels."""
    x, y = layers.data("x", [8]), layers.data("y", [1], dtype=kind)
    return layers.fc(layers.fc(x, 7, act="relu"), CLASSES), y


FORWARD = ("softmax", "cross_entropy2", "mean")
BACKWARD = ("mean_grad", "cross_entropy_grad2", "softmax_grad")


@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_softmax_cross_entropy_and_mean_are_one_launch_each_way(kind):
    logits, y = scores(kind)
    probable = layers.softmax(logits)
    loss = layers.mean(layers.cross_entropy(probable, y))
    accuracy = layers.accuracy(probable, y)
    optimizer.SGD(0.1).minimize(loss)
    batches = feeds(kind=kind)
    kinds = joined([loss, accuracy], batches[0])
    assert Counter(FORWARD) in kinds and Counter(BACKWARD) in kinds
    agree([loss, accuracy], batches)


def test_what_reads_the_softmax_may_stand_before_the_loss():
    logits, y = scores()
    probable = layers.softmax(logits)
    accuracy = layers.accuracy(probable, y)
    loss = layers.mean(layers.cross_entropy(probable, y))
    optimizer.SGD(0.1).minimize(loss)
    assert Counter(FORWARD) in joined([loss, accuracy], feeds()[0])
    agree([loss, accuracy], feeds())


def test_labels_to_ignore_and_losses_that_are_fetched():
    logits, y = scores()
    rows = layers.cross_entropy(layers.softmax(logits), y, ignore_index=1)
    loss = layers.mean(rows)
    optimizer.SGD(0.1).minimize(loss)
    assert Counter(FORWARD) in joined([loss, rows], feeds()[0])
    agree([loss, rows], feeds())


def test_without_the_mean():
    logits, y = scores()
    rows = layers.cross_entropy(layers.softmax(logits), y)
    loss = layers.reduce_sum(rows * rows)
    optimizer.SGD(0.1).minimize(loss)
    kinds = joined([loss], feeds()[0])
    assert Counter(FORWARD[:2]) in kinds and Counter(BACKWARD[1:]) in kinds
    agree([loss], feeds())


def test_softmax_with_cross_entropy_and_its_mean():
    logits, y = scores()
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, y))
    optimizer.SGD(0.1).minimize(loss)
    kinds = joined([loss], feeds()[0])
    assert Counter(["softmax_with_cross_entropy", "mean"]) in kinds
    assert Counter(["mean_grad", "softmax_with_cross_entropy_grad"]) in kinds
    agree([loss], feeds())


def test_a_softmax_with_other_readers_gets_all_its_gradients():
    logits, y = scores()
    probable = layers.softmax(logits)
    loss = layers.mean(layers.cross_entropy(probable, y)) + layers.reduce_sum(layers.square(probable))
    optimizer.SGD(0.1).minimize(loss)
    kinds = joined([loss], feeds()[0])
    assert not any("softmax_grad" in kind and "cross_entropy_grad2" in kind for kind in kinds)
    agree([loss], feeds())


def test_soft_labels_are_not_fused():
    x, y = layers.data("x", [8]), layers.data("y", [CLASSES])
    loss = layers.mean(layers.cross_entropy(layers.fc(x, CLASSES, act="softmax"), y, soft_label=True))
    optimizer.SGD(0.1).minimize(loss)
    batches = [{"x": batch["x"], "y": np.full((6, CLASSES), 1 / CLASSES, "float32")} for batch in feeds()]
    assert not any("softmax" in kind and len(kind) > 1 for kind in joined([loss], batches[0]))
    agree([loss], batches)


def test_many_rows_and_classes():
    x, y = layers.data("x", [1100]), layers.data("y", [1], dtype="int64")
    loss = layers.mean(layers.cross_entropy(layers.softmax(x), y))
    draw = np.random.default_rng(0)
    batch = {"x": draw.random((700, 1100), "float32"), "y": draw.integers(0, 1100, (700, 1))}
    agree([loss], [batch] * 3)


def test_wrong_labels_name_the_operator():
    logits, y = scores()
    loss = layers.mean(layers.cross_entropy(layers.softmax(logits), y))
    with pytest.raises(
        OperatorError, match="operator cross_entropy2: Label must be in .*; got 5 at position 0"
    ):
        agree([loss], [{"x": np.zeros((1, 8), "float32"), "y": np.array([[CLASSES]])}])


def test_clipping_by_the_global_norm_takes_few_launches():
    logits, y = scores()
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, y))
    optimizer.Adam(0.1, grad_clip=clip.GradientClipByGlobalNorm(0.1)).minimize(loss)
    kinds = joined([loss], feeds()[0])
    assert Counter({"square": 4, "reduce_sum": 4}) in kinds and Counter({"elementwise_mul": 4}) in kinds
    assert not any("square" in kind and kind["square"] < 4 for kind in kinds)
    agree([loss], feeds())


def test_gradients_of_sums_of_squares_read_the_shapes_of_the_squares():
    logits, _ = scores()
    one, two = (layers.fc(logits, 3, bias_attr=False) for _ in range(2))
    loss = layers.sums([layers.reduce_sum(layers.square(each)) for each in (one, two)])
    optimizer.SGD(0.01).minimize(loss)
    assert Counter({"square": 2, "reduce_sum": 2}) in joined([loss], feeds()[0])
    agree([loss], feeds())


def test_products_that_build_on_one_another_stay_in_order():
    x, factor = layers.data("x", [8]), layers.fill_constant([1], "float32", 3.0)
    factor.stop_gradient = False
    one = layers.elementwise_mul(layers.data("y", [8]), factor)
    two = layers.elementwise_mul(x, factor)
    three = layers.elementwise_mul(two, factor)
    out = layers.reduce_sum(one, dim=1) + layers.reduce_sum(three, dim=1)
    draw = np.random.default_rng(0)
    agree([out, two], [{name: draw.random((4, 8), "float32") for name in "xy"} for _ in range(3)])
