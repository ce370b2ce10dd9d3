"""Operators without a layer: distances, circular convolution, losses, proximal updates, unpooling, rankings."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


@pytest.mark.parametrize(("x", "y"), [((3, 4), (3, 4)), ((3, 4), (1, 4)), ((3, 2, 2), (3, 2, 2))])
def test_squared_l2_distance(x, y):
    x, y = floats(*x), floats(*y)
    difference = x.reshape(3, -1) - y.reshape(len(y), -1)
    want = {"sub_result": difference, "Out": (difference**2).sum(axis=1, keepdims=True)}
    check("squared_l2_distance", {"X": x, "Y": y}, {}, want, grads=["X", "Y"])
    with pytest.raises(OperatorError, match="Y must have the shape of X"):
        infer("squared_l2_distance", {"X": x, "Y": floats(2, 4)})


@pytest.mark.parametrize("window", [1, 3, 5])
def test_conv_shift(window):
    x, y = floats(2, 5), floats(2, window)
    want = np.zeros_like(x)
    for k in range(window):
        want += np.roll(x, window // 2 - k, axis=1) * y[:, k : k + 1]
    check("conv_shift", {"X": x, "Y": y}, {}, {"Out": want}, grads=["X", "Y"])
    with pytest.raises(OperatorError, match="must be odd and at most that of X, got 2 and 5"):
        infer("conv_shift", {"X": x, "Y": floats(2, 2)})


def test_modified_huber_loss():
    x = np.array([[-2.0], [-0.5], [0.3], [3.0], [-3.0]], "float32")
    y = np.array([[1], [1], [0], [1], [0]], "float32")
    margin = x * (2 * y - 1)
    want = [[8], [2.25], [1.69], [0], [0]]
    out = {"IntermediateVal": margin, "Out": np.array(want, "float32")}
    check("modified_huber_loss", {"X": x, "Y": y}, {}, out, grads=["X"])


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.2)])
def test_proximal_updates(l1, l2):
    given = {"Param": floats(3, 2), "Grad": floats(3, 2), "LearningRate": np.array([0.5], "float32")}
    moment = np.abs(floats(3, 2))

    def shrunk(moved):
        if l1:
            moved = np.sign(moved) * np.maximum(np.abs(moved) - 0.5 * l1, 0)
        return (moved / (1 + 0.5 * l2)).astype("float32")

    attrs = {"l1": l1, "l2": l2}
    want = {"ParamOut": shrunk(given["Param"] - 0.5 * given["Grad"])}
    check("proximal_gd", given, attrs, want, programs=False)
    squares = moment + given["Grad"] ** 2
    want = {"ParamOut": shrunk(given["Param"] - 0.5 * given["Grad"] / np.sqrt(squares)), "MomentOut": squares}
    check("proximal_adagrad", {**given, "Moment": moment}, attrs, want, programs=False)


def test_unpool():
    x, places = floats(1, 1, 2, 2), np.array([[[[0, 3], [9, 14]]]], "int32")
    want = np.zeros(16, "float32")
    want[places.ravel()] = x.ravel()
    attrs = {"ksize": [2, 2], "strides": [2, 2]}
    check("unpool", {"X": x, "Indices": places}, attrs, {"Out": want.reshape(1, 1, 4, 4)}, grads=["X"])
    with pytest.raises(OperatorError, match="unpooling_type must be 'max'"):
        infer("unpool", {"X": x, "Indices": places}, {"unpooling_type": "avg"})


def test_positive_negative_pair():
    given = {
        "Score": np.array([[0.9], [0.2], [0.2], [0.7], [0.4]], "float32"),
        "Label": np.array([[1], [0], [2], [0], [1]], "float32"),
        "QueryID": np.array([[1], [1], [1], [2], [2]]),
        "Weight": np.array([[1], [1], [1], [2], [4]], "float32"),
    }
    # Query 1: 0.9 above 0.2 right; 0.9 above 0.2 wrong; equal scores wrong and neutral. Query 2: wrong, of weight 3.
    right, wrong, equal = 1, 1 + 1 + 3, 1
    names = ("PositivePair", "NegativePair", "NeutralPair")
    want = {name: np.array([n], "float32") for name, n in zip(names, (right, wrong, equal), strict=True)}
    check("positive_negative_pair", given, {}, want)
    before = {f"Accumulate{name}": np.array([2.5], "float32") for name in names}
    check("positive_negative_pair", {**given, **before}, {}, {name: n + 2.5 for name, n in want.items()})


def test_precision_recall():
    given = {
        "MaxProbs": np.ones((4, 1), "float32"),
        "Indices": np.array([[0], [1], [1], [0]], "int32"),
        "Labels": np.array([[0], [1], [0], [0]], "int32"),
    }
    states = np.array([[2, 0, 1, 1], [1, 1, 2, 0], [0, 0, 4, 0]], "float32")
    macro, micro = ((1 + 0.5 + 1) / 3, (2 / 3 + 1 + 1) / 3), (0.75, 0.75)
    figures = np.array([*macro, 2 * macro[0] * macro[1] / sum(macro), *micro, 0.75])
    want = {"BatchMetrics": figures, "AccumMetrics": figures, "AccumStatesInfo": states}
    check("precision_recall", given, {"class_number": 3}, want)
    made = run_kernel("precision_recall", {**given, "StatesInfo": states}, {"class_number": 3})
    np.testing.assert_array_equal(made["AccumStatesInfo"][0], 2 * states)
    with pytest.raises(OperatorError, match="Indices"):
        run_kernel("precision_recall", given, {"class_number": 1})
