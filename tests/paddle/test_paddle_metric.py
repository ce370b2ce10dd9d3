"""`paddle.metric`."""

import numpy as np
import pytest

import fluidlite.paddle as paddle
from fluidlite.paddle import metric

SCORES = paddle.to_tensor([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.3, 0.3, 0.4], [0.2, 0.1, 0.7]])


@pytest.mark.parametrize(
    "label",
    [[1, 1, 2, 0], [[1], [1], [2], [0]], np.eye(3)[[1, 1, 2, 0]].astype("float32")],
    ids=["numbers", "column", "one-hot"],
)
def test_accuracy(label):
    one, two = metric.Accuracy(), metric.Accuracy((1, 2), name="top")
    label = paddle.to_tensor(label)
    assert one.update(one.compute(SCORES, label)) == 0.5
    assert two.update(two.compute(SCORES, label).numpy()) == [0.5, 0.75]
    one.update(np.ones((4, 1), "float32"))
    assert one.accumulate() == 0.75 and two.accumulate() == [0.5, 0.75]
    assert one.name() == ["acc"] and two.name() == ["top_top1", "top_top2"]
    one.reset()
    assert one.accumulate() == 0


def test_precision_and_recall():
    chances, truths = np.array([0.9, 0.8, 0.2, 0.6]), np.array([[1], [0], [1], [1]])
    precision, recall = metric.Precision(), metric.Recall("r")
    assert precision.accumulate() == recall.accumulate() == 0
    for one in (precision, recall):
        one.update(paddle.to_tensor(chances), truths)
        one.update([0.7], [0])
    assert precision.accumulate() == 2 / 4 and recall.accumulate() == 2 / 3
    assert (precision.name(), recall.name()) == ("precision", "r")
    with pytest.raises(ValueError, match="2 predictions and 1 labels"):
        recall.update([0.1, 0.2], [1])


def test_auc():
    auc = metric.Auc()
    chances = np.array([0.1, 0.4, 0.35, 0.8])
    auc.update(np.stack([1 - chances, chances], 1), paddle.to_tensor([[0], [0], [1], [1]]))
    assert auc.accumulate() == pytest.approx(0.75) and auc.name() == "auc"
    auc.reset()
    assert auc.accumulate() == 0


def test_accuracy_function(compute):
    got = compute(metric.accuracy, SCORES.numpy(), np.array([1, 1, 2, 0]))[0]
    assert got.shape == (1,) and got[0] == 0.5


def test_what_is_missing_in_a_metric():
    class Half(metric.Metric):
        def reset(self):
            pass

    with pytest.raises(TypeError, match="accumulate"):
        Half()
