"""Metrics kept in Python."""

import numpy as np
import pytest

from fluidlite import metrics

from ..refusals import refuses

P = np.array([[0.1], [0.9], [0.6]])


def test_accuracy():
    metric = metrics.Accuracy()
    assert str(metric) == "Accuracy"
    refuses(metric.eval, ValueError, "There is no data in Accuracy Metrics")
    metric.update(np.array([0.5]), 4)
    metric.update(value=1.0, weight=12)
    np.testing.assert_allclose(metric.eval(), [0.875])
    metric.reset()
    metric.update(0.5, 4)
    assert metric.eval() == 0.5


@pytest.mark.parametrize(("value", "weight"), [("a", 1), (0.5, -1), (0.5, None)])
def test_accuracy_refuses(value, weight):
    refuses(lambda: metrics.Accuracy().update(value, weight), ValueError, "'(value|weight)'")


def test_precision_and_recall():
    both = metrics.CompositeMetric()
    both.add_metric(metrics.Precision())
    both.add_metric(metrics.Recall("hits"))
    assert both.eval() == [0.0, 0.0]
    both.update(P, np.array([[0], [1], [0]]))
    assert both.eval() == [0.5, 1.0]
    both.update(P, np.array([[1], [1], [1]]))
    assert both.eval() == [3 / 4, 3 / 4]
    both.reset()
    assert both.eval() == [0.0, 0.0]


def test_arrays_are_needed():
    with pytest.raises(ValueError, match="The 'preds' must be a numpy ndarray, got list"):
        metrics.Precision().update([0.5], P)
    with pytest.raises(IndexError, match="there are 2 predictions in 'preds' for 3 labels"):
        metrics.Recall().update(P[:2], P)
    refuses(lambda: metrics.CompositeMetric().add_metric("precision"), ValueError, "inherit from MetricBase")


def test_chunk_evaluator():
    metric = metrics.ChunkEvaluator()
    assert metric.eval() == (0, 0, 0)
    metric.update(np.array([3]), np.array([4]), np.array([2]))
    np.testing.assert_allclose(np.ravel(metric.eval()), [2 / 3, 1 / 2, 4 / 7])
    refuses(lambda: metric.update("a", 1, 1), ValueError, "'num_infer_chunks' must be a number")


def test_edit_distance():
    metric = metrics.EditDistance("distance")
    refuses(metric.eval, ValueError, "There is no data in EditDistance Metric")
    metric.update(np.array([[1.0], [0.0], [3.0]]), np.array([3]))
    np.testing.assert_allclose(np.ravel(metric.eval()), [4 / 3, 2 / 3])
    metric.reset()
    assert np.all(metric.seq_num == 0)


def test_auc():
    metric = metrics.Auc("auc", num_thresholds=7)
    assert metric.eval() == 0.0
    scores = np.array([0.55, 0.72, 0.6, 0.54, 0.42, 0.65, 0.44, 0.89, 0.96, 0.38])
    labels = np.array([0, 1, 1, 0, 0, 1, 1, 1, 1, 0]).reshape(-1, 1)
    metric.update(np.stack([1 - scores, scores], axis=1), labels)
    assert metric.eval() == pytest.approx(0.95833333)
    metric.reset()
    assert metric.eval() == 0.0
    with pytest.raises(ValueError, match=r"probabilities in \[0, 1\]"):
        metric.update(np.array([[0.0, 2.0]]), np.array([[1]]))


def test_config_is_a_copy():
    metric = metrics.Accuracy("mine")
    metric.update(np.array([0.5]), 2)
    config = metric.get_config()
    assert config["name"] == "mine" and config["states"]["weight"] == 2.0
    config["states"]["value"][0] = 99
    assert metric.value[0] == 1.0


def test_own_metrics_must_say_what_they_do():
    class Own(metrics.MetricBase):
        pass

    refuses(lambda: Own("own").update(P, P), NotImplementedError, r"Own .* override update\(\)")
    refuses(lambda: Own("own").eval(), NotImplementedError, r"Own .* override eval\(\)")


@pytest.mark.parametrize("kind", [metrics.Precision, metrics.Recall, lambda: metrics.Auc("auc")])
def test_predictions_without_a_label_do_not_count(kind):
    """As in Fluid: programs hand over the predictions of all batches, with the labels of some."""
    scores, labels = np.array([[0.3, 0.7], [0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]), np.array([[1], [0], [0]])
    few, more = kind(), kind()
    few.update(scores[:3] if isinstance(few, metrics.Auc) else scores[:3, 1:], labels)
    more.update(scores if isinstance(more, metrics.Auc) else scores[:, 1:], labels)
    assert more.eval() == few.eval()
