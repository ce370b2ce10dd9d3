"""concat, split, sum, multiplex."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (2, 6, 3)).astype("float32")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(axis):
    parts = [X, X[:, :6], X * 2]
    check("concat", {"X": parts}, {"axis": axis}, {"Out": np.concatenate(parts, axis)}, grads=["X"])


def test_concat_of_different_sizes():
    parts = [X, X[:, :2], X[:, :1]]
    check("concat", {"X": parts}, {"axis": 1}, {"Out": np.concatenate(parts, 1)}, grads=["X"])


def test_concat_along_an_axis_in_a_tensor():
    inputs = {"X": [X, X], "AxisTensor": np.array([1], "int32")}
    check("concat", inputs, {"axis": 0}, {"Out": np.concatenate([X, X], 1)}, grads=["X"])


def test_concat_keeps_integers():
    ids = np.arange(6).reshape(2, 3)
    check("concat", {"X": [ids, ids]}, {"axis": 0}, {"Out": np.concatenate([ids, ids])})


@pytest.mark.parametrize(
    ("parts", "axis", "words"),
    [
        ([X, X[:1]], 1, "equal in dimension 0"),
        ([X, X], 5, r"axis must be in \[-3, 3\), got 5"),
        ([X, X.astype("float64")], 0, "must have the dtype"),
        ([X, X[0]], 0, "must have 3 dimensions"),
    ],
)
def test_concat_of_what_does_not_fit(parts, axis, words):
    with pytest.raises(OperatorError, match=words):
        infer("concat", {"X": parts}, {"axis": axis})


@pytest.mark.parametrize(
    ("attrs", "cuts"),
    [
        ({"num": 3}, [2, 4]),
        ({"sections": [1, 2, 3]}, [1, 3]),
        ({"sections": [1, -1, 3]}, [1, 3]),
        ({"num": 2}, [3]),
    ],
)
def test_split(attrs, cuts):
    check("split", {"X": X}, {"axis": 1, **attrs}, {"Out": np.split(X, cuts, 1)}, grads=["X"])


def test_split_by_tensors():
    parts = [np.array([n], "int32") for n in (1, 5)]
    inputs = {"X": X, "SectionsTensorList": parts}
    check("split", inputs, {"sections": [1, -1], "axis": 1}, {"Out": np.split(X, [1], 1)}, grads=["X"])
    inputs = {"X": X, "AxisTensor": np.array([1], "int32")}
    check("split", inputs, {"num": 2}, {"Out": np.split(X, 2, 1)}, grads=["X"])


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"num": 4}, "6 cannot be split"),
        ({"sections": [1, 1]}, "add up to 6"),
        ({"sections": [-1, -1]}, "only one"),
    ],
)
def test_split_into_what_does_not_fit(attrs, words):
    with pytest.raises(OperatorError, match=words):
        infer("split", {"X": X}, {"axis": 1, **attrs}, {"Out": 2})


@pytest.mark.parametrize("count", [1, 2, 5])
def test_sum(count):
    parts = [X * k for k in range(1, count + 1)]
    check("sum", {"X": parts}, {}, {"Out": np.sum(parts, 0, dtype="float32")}, grads=["X"])


def test_sum_leaves_its_inputs_alone():
    x = X.copy()
    run_kernel("sum", {"X": [x, X]})
    np.testing.assert_array_equal(x, X)


def test_sum_of_different_shapes():
    with pytest.raises(OperatorError, match="same shape"):
        infer("sum", {"X": [X, X[0]]})


def test_multiplex():
    a, b = X[:, 0], X[:, 1]
    ids = np.array([[1], [0]], "int32")
    inputs = {"Ids": ids, "X": [a, b]}
    check("multiplex", inputs, {}, {"Out": np.stack([b[0], a[1]])}, grads=["X"])
    with pytest.raises(ValueError, match=r"Ids must be in \[0, 2\), .* 2 inputs X; got 2 at position"):
        run_kernel("multiplex", {"Ids": ids * 2, "X": [a, b]})
