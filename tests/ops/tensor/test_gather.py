"""gather, gather_nd, scatter, scatter_nd_add."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer, run_kernel

X = np.random.default_rng(11).uniform(-1, 1, (5, 4, 3)).astype("float32")
UPDATES = np.random.default_rng(12).uniform(-1, 1, (3, 4, 3)).astype("float32")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gather(dtype):
    index = np.array([4, 0, 2], dtype)
    check("gather", {"X": X, "Index": index}, {}, {"Out": X[index]}, grads=["X"])
    check(
        "gather", {"X": X, "Index": index.reshape(3, 1)}, {"overwrite": False}, {"Out": X[index]}, grads=["X"]
    )


def test_gradient_of_rows_gathered_double_grad():
    # Recorded from Paddle 1.8.5: with overwrite the last one counts.
    inputs = {"X": X, "Index": np.array([1, 1, 0])}
    found = gradients("gather", inputs, {"overwrite": True}, {"Out": [UPDATES]})["X"][0]
    np.testing.assert_array_equal(found[1], UPDATES[1])
    check("gather", inputs, {"overwrite": False}, {"Out": X[[1, 1, 0]]}, grads=["X"])


@pytest.mark.parametrize("bad", [-1, 5])
def test_gather_out_of_range(bad):
    with pytest.raises(
        ValueError, match=rf"gather: Index must be in \[0, 5\), .* 5 rows; got {bad} at position 1"
    ):
        run_kernel("gather", {"X": X, "Index": np.array([0, bad])})


@pytest.mark.parametrize(
    ("index", "expected"), [([[4], [0]], X[[4, 0]]), ([[1, 2], [1, 2], [0, 3]], X[[1, 1, 0], [2, 2, 3]])]
)
def test_gather_nd(index, expected):
    check("gather_nd", {"X": X, "Index": np.array(index)}, {}, {"Out": expected}, grads=["X"])


def test_gather_nd_of_single_elements():
    index = np.array([[[0, 0, 0], [4, 3, 2]]])
    check(
        "gather_nd",
        {"X": X, "Index": index},
        {},
        {"Out": X[[0, 4], [0, 3], [0, 2]].reshape(1, 2)},
        grads=["X"],
    )
    with pytest.raises(ValueError, match=r"Index\[..., 1\] must be in \[0, 4\), .*; got 4"):
        run_kernel("gather_nd", {"X": X, "Index": np.array([[0, 4]])})


def test_gather_nd_by_points_without_numbers():
    check(
        "gather_nd", {"X": X, "Index": np.zeros((2, 0), "int32")}, {}, {"Out": np.stack([X, X])}, grads=["X"]
    )


def test_gather_nd_deeper_than_x():
    with pytest.raises(OperatorError, match="between 0 and the 3"):
        infer("gather_nd", {"X": X, "Index": np.zeros((2, 4), "int64")})


def test_scatter():
    ids = np.array([4, 0, 2])
    expected = X.copy()
    expected[ids] = UPDATES
    for overwrite in (True, False):
        inputs = {"X": X, "Ids": ids, "Updates": UPDATES}
        check("scatter", inputs, {"overwrite": overwrite}, {"Out": expected}, grads=["Updates"])


def test_scatter_adds_up_what_meets():
    # Recorded from Paddle 1.8.5: the old row does not count.
    x = np.arange(1.0, 7).reshape(3, 2)
    inputs = {"X": x, "Ids": np.array([1, 0, 1]), "Updates": x * 10}
    expected = {"Out": np.array([[30.0, 40], [60, 80], [5, 6]])}
    check("scatter", inputs, {"overwrite": False}, expected, grads=["Updates"])
    # As there, the gradient of X passes everywhere.
    np.testing.assert_array_equal(gradients("scatter", inputs, {}, {"Out": [x]})["X"][0], x)


def test_scatter_of_what_does_not_fit():
    with pytest.raises(OperatorError, match="one row for each of the 2 Ids"):
        infer("scatter", {"X": X, "Ids": np.array([0, 1]), "Updates": UPDATES})
    with pytest.raises(ValueError, match=r"Ids must be in \[0, 5\), .*; got 7 at position 2"):
        run_kernel("scatter", {"X": X, "Ids": np.array([0, 1, 7]), "Updates": UPDATES})


def test_scatter_nd_add():
    index = np.array([[1, 2], [1, 2], [0, 3]])
    updates = UPDATES[:, 0]
    expected = X.copy()
    np.add.at(expected, tuple(index.T), updates)
    check(
        "scatter_nd_add",
        {"X": X, "Index": index, "Updates": updates},
        {},
        {"Out": expected},
        grads=["X", "Updates"],
    )
    with pytest.raises(OperatorError, match=r"Updates must be of shape \[3, 3\], got \[3, 4, 3\]"):
        infer("scatter_nd_add", {"X": X, "Index": index, "Updates": UPDATES})


def test_scatter_nd_add_to_the_whole():
    inputs = {"X": X, "Index": np.zeros((2, 3, 0), "int64"), "Updates": np.arange(6.0).reshape(2, 3, 1, 1, 1)}
    inputs["Updates"] = (inputs["Updates"] + X).astype("float32")
    check("scatter_nd_add", inputs, {}, {"Out": X * 7 + 15}, grads=["X", "Updates"])
