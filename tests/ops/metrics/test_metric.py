"""Top-k, accuracy, area under the curve, overlap."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite._ext import kernels
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

# Ten predictions; the areas below are those of Fluid 1.8.5 with 7 thresholds.
SCORES = np.array([[0.55, 0.72, 0.6, 0.54, 0.42, 0.65, 0.44, 0.89, 0.96, 0.38]], "float32").T
LABELS = np.array([[0, 1, 1, 0, 0, 1, 1, 1, 1, 0]]).T


def test_top_k():
    x = np.array([[1, 1, 2, 2], [0, 0, 0, 0], [3, 9, 1, 5]], "float32")
    outputs = {
        "Out": np.array([[2, 2, 1], [0, 0, 0], [9, 5, 3]], "float32"),
        "Indices": np.array([[2, 3, 0], [0, 1, 2], [1, 3, 0]]),
    }
    check("top_k", {"X": x}, {"k": 3}, outputs)


@pytest.mark.parametrize("shape", [(7,), (2, 7), (3, 2, 5)])
def test_the_gradient_of_top_k_goes_where_the_largest_stand(shape):
    x = np.random.default_rng(3).permutation(np.prod(shape)).reshape(shape).astype("float32")
    order = np.argsort(-x, axis=-1)[..., :2]
    outputs = {"Out": np.take_along_axis(x, order, -1), "Indices": order}
    check("top_k", {"X": x}, {"k": 2}, outputs, grads=["X"])


@pytest.mark.usefixtures("alone")
def test_the_layer_topk_stops_gradients():
    x = fluid.layers.data("x", [4], stop_gradient=False)
    assert [out.stop_gradient for out in fluid.layers.topk(x, 2)] == [True, True]
    with fluid.dygraph.guard():
        x = fluid.dygraph.to_variable(np.ones((2, 4), "float32"))
        x.stop_gradient = False
        assert [out.stop_gradient for out in fluid.layers.topk(x, 2)] == [True, True]


@pytest.mark.parametrize("k", [1, 2, 7, 64, 300])
def test_top_k_of_long_rows(k):
    x = np.random.default_rng(k).permutation(900).reshape(3, 300).astype("float32")
    x[1, 17:200:3] = -np.inf
    x[2, 280:] = np.nan  # which comes last
    order = np.argsort(np.where(np.isnan(x), np.inf, -x), axis=1, kind="stable")[:, :k]
    values, places = np.empty((3, k), "float32"), np.empty((3, k), "int64")
    kernels.call("top_k.f32", [x, values, places], [3, 300, k])
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    if k < 200:  # beyond that equal ones come in any order
        np.testing.assert_array_equal(places, order)


def test_k_may_be_a_tensor():
    made = run_kernel("top_k", {"X": np.array([[1, 3, 2]], "float32"), "K": np.array([2], "int32")})
    np.testing.assert_array_equal(made["Indices"][0], [[1, 2]])
    none = run_kernel("top_k", {"X": np.array([[1, 3, 2]], "float32"), "K": np.array([0], "int32")})
    assert none["Out"][0].shape == none["Indices"][0].shape == (1, 0)


def test_k_must_not_be_larger_than_a_row():
    x = np.zeros((2, 3), "float32")
    with pytest.raises(OperatorError, match=r"k must be in \[1, 3\], the last dimension of X; got 4"):
        infer("top_k", {"X": x}, {"k": 4})
    with pytest.raises(OperatorError, match=r"k must be in \[0, 3\], the last dimension of X; got 4"):
        run_kernel("top_k", {"X": x, "K": np.array([4])})


def test_accuracy():
    inputs = {
        "Out": np.zeros((3, 2), "float32"),
        "Indices": np.array([[2, 3], [0, 1], [4, 0]]),
        "Label": np.array([[3], [2], [4]]),
    }
    outputs = {
        "Accuracy": np.array([2 / 3], "float32"),
        "Correct": np.array([2], "int32"),
        "Total": np.array([3], "int32"),
    }
    check("accuracy", inputs, {}, outputs)


def test_accuracy_of_candidates_of_several_dimensions():
    """As Fluid has it: each row's share of the first rows * shape[1] elements."""
    indices = np.array([[[4], [1], [0]], [[2], [3], [1]]])
    inputs = {"Out": np.zeros((2, 3, 1), "float32"), "Indices": indices, "Label": np.array([[1], [0]])}
    counts = {"Correct": np.array([1], "int32"), "Total": np.array([2], "int32")}
    check("accuracy", inputs, {}, {"Accuracy": np.array([0.5], "float32"), **counts})


def test_accuracy_needs_a_label_for_each_row():
    inputs = {
        "Out": np.zeros((3, 1), "float32"),
        "Indices": np.zeros((3, 1), "int64"),
        "Label": np.zeros((2, 1)),
    }
    with pytest.raises(OperatorError, match="one class for each of the 3 rows"):
        infer("accuracy", inputs)


def tables(size):
    return {"StatPos": np.zeros(size, "int64"), "StatNeg": np.zeros(size, "int64")}


def both(scores):
    return np.concatenate([1 - scores, scores], axis=1)


def test_auc_of_everything():
    outputs = {
        "AUC": np.array([0.95833333]),
        "StatPosOut": np.array([[0, 0, 0, 1, 2, 1, 2, 0]]),
        "StatNegOut": np.array([[0, 0, 2, 2, 0, 0, 0, 0]]),
    }
    inputs = {"Predict": both(SCORES), "Label": LABELS, **tables((1, 8))}
    check("auc", inputs, {"num_thresholds": 7, "slide_steps": 0}, outputs, programs=False)


def test_auc_of_the_last_two_batches():
    stats = tables(25)
    for at in (0, 3, 6):
        inputs = {"Predict": both(SCORES[at : at + 3]), "Label": LABELS[at : at + 3], **stats}
        made = run_kernel("auc", inputs, {"num_thresholds": 7, "slide_steps": 2})
        stats = {"StatPos": made["StatPosOut"][0], "StatNeg": made["StatNegOut"][0]}
    np.testing.assert_allclose(made["AUC"][0], [0.9375])
    ring, total = [0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0, 2, 0]
    np.testing.assert_array_equal(stats["StatPos"], [*ring, *total, 3])


def test_auc_of_one_kind_is_zero():
    inputs = {"Predict": both(SCORES), "Label": np.ones_like(LABELS), **tables((1, 8))}
    made = run_kernel("auc", inputs, {"num_thresholds": 7, "slide_steps": 0})
    np.testing.assert_array_equal(made["AUC"][0], [0])


def test_auc_wants_probabilities():
    inputs = {"Predict": both(SCORES) * 2, "Label": LABELS, **tables((1, 8))}
    with pytest.raises(OperatorError, match=r"probabilities in \[0, 1\]"):
        run_kernel("auc", inputs, {"num_thresholds": 7, "slide_steps": 0})


def test_mean_iou():
    inputs = {"Predictions": np.array([0, 0, 1, 2]), "Labels": np.array([0, 1, 1, 1])}
    outputs = {
        "OutMeanIou": np.array([(1 / 2 + 1 / 3 + 0) / 3], "float32"),
        "OutWrong": np.array([1, 2, 1, 0], "int32"),
        "OutCorrect": np.array([1, 1, 0, 0], "int32"),
    }
    check("mean_iou", inputs, {"num_classes": 4}, outputs)
