"""Comparisons, logic, questions about whole arrays, where."""

import operator

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

X = np.array([[1, 2, 3], [3, 2, 1]])
Y = np.array([[1, 3, 2], [2, 2, 2]])
P = np.array([[True, False, True], [False, True, False]])
Q = np.array([[True, True, False], [False, False, True]])
COMPARISONS = {
    "equal": operator.eq, "not_equal": operator.ne, "less_than": operator.lt, "less_equal": operator.le,
    "greater_than": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("op_type", sorted(COMPARISONS))
def test_comparison(op_type, dtype):
    x, y = X.astype(dtype), Y.astype(dtype)
    check(op_type, {"X": x, "Y": y}, {}, {"Out": COMPARISONS[op_type](x, y)})


def test_comparison_with_one_number():
    check("less_than", {"X": X, "Y": np.array([2])}, {}, {"Out": X < 2})


def test_comparison_at_an_axis():
    check("equal", {"X": X, "Y": np.array([1, 3])}, {"axis": 0}, {"Out": X == np.array([[1], [3]])})


@pytest.mark.parametrize(
    ("op_type", "function"),
    [("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)],
)
def test_logic(op_type, function):
    check(op_type, {"X": P, "Y": Q}, {}, {"Out": function(P, Q)})


def test_not():
    check("logical_not", {"X": P}, {}, {"Out": ~P})


def test_logic_is_for_bools_of_one_shape():
    with pytest.raises(OperatorError, match="must be bool"):
        infer("logical_and", {"X": X, "Y": P})
    with pytest.raises(OperatorError, match="same shape"):
        infer("logical_or", {"X": P, "Y": P[0]})


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_questions_about_good_numbers(dtype):
    x = X.astype(dtype)
    check("isfinite", {"X": x}, {}, {"Out": np.array([True])})
    check("isinf", {"X": x}, {}, {"Out": np.array([False])})
    check("isnan", {"X": x}, {}, {"Out": np.array([False])})


def test_questions_about_bad_numbers():
    inf, nan = np.array([1, np.inf], "float32"), np.array([np.nan, 1], "float32")
    check("isfinite", {"X": inf}, {}, {"Out": np.array([False])})
    check("isinf", {"X": inf}, {}, {"Out": np.array([True])})
    check("isinf", {"X": nan}, {}, {"Out": np.array([False])})
    check("isnan", {"X": nan}, {}, {"Out": np.array([True])})


def test_is_empty():
    check("is_empty", {"X": X}, {}, {"Out": np.array([False])})
    check("is_empty", {"X": np.zeros((0, 3), "float32")}, {}, {"Out": np.array([True])}, programs=False)


def test_where():
    x, y = X.astype("float32"), -Y.astype("float32")
    check("where", {"Condition": P, "X": x, "Y": y}, {}, {"Out": np.where(P, x, y)}, grads=["X", "Y"])


def test_where_index():
    # The number of rows depends on the values, so that only the rank is known before.
    assert infer("where_index", {"Condition": P})["Out"][0][0] == (-1, 2)
    np.testing.assert_array_equal(run_kernel("where_index", {"Condition": P})["Out"][0], np.argwhere(P))
    assert run_kernel("where_index", {"Condition": P & ~P})["Out"][0].shape == (0, 2)


def test_equal_reduce():
    """Recorded on Paddle 1.8.5."""
    rows = np.array([[1, 2], [1, 2]])
    check("equal_reduce", {"X": rows, "Y": rows.copy()}, {}, {"Out": np.array([True])})
    check("equal_reduce", {"X": rows, "Y": np.array([1, 2])}, {}, {"Out": np.array([True])})
    check("equal_reduce", {"X": rows, "Y": np.array([1, 2])}, {"axis": 0}, {"Out": np.array([False])})
    check("equal_reduce", {"X": rows, "Y": np.array([1, 3])}, {}, {"Out": np.array([False])})
    with pytest.raises(OperatorError, match="at least as many dimensions as Y"):
        infer("equal_reduce", {"X": np.array([1, 2]), "Y": rows})
