"""mean, reduce_*, cumsum."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

X = np.random.default_rng(10).permutation(np.linspace(-1, 1, 24)).reshape(2, 3, 4).astype("float32")
FUNCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
LAYOUTS = [
    ({"dim": [0], "reduce_all": True}, (0, 1, 2)),
    ({"dim": [1]}, (1,)),
    ({"dim": [-1]}, (2,)),
    ({"dim": [0, 1]}, (0, 1)),
    ({"dim": [0, 2]}, (0, 2)),
    ({"dim": [1, -1, 2]}, (1, 2)),
    ({"dim": [0, 1, 2]}, (0, 1, 2)),
]


def test_mean():
    check("mean", {"X": X}, {}, {"Out": X.mean(keepdims=True).reshape(1)}, grads=["X"])


@pytest.mark.parametrize("keep_dim", [False, True])
@pytest.mark.parametrize(("attrs", "axes"), LAYOUTS)
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_reduce(name, attrs, axes, keep_dim):
    expected = FUNCTIONS[name](X, axis=axes, keepdims=keep_dim)
    expected = np.asarray(expected).reshape(np.shape(expected) or (1,))
    check(f"reduce_{name}", {"X": X}, {**attrs, "keep_dim": keep_dim}, {"Out": expected}, grads=["X"])


@pytest.mark.parametrize("dim", [[0, 2, 4], [0, 3], [1, 2, -1], [0, 1, 4]])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_axes_that_are_not_adjacent(name, dim):
    x = (
        np.random.default_rng(4)
        .permutation(np.linspace(-1.2, 1.3, 180))
        .reshape(3, 2, 5, 2, 3)
        .astype("float32")
    )
    expected = FUNCTIONS[name](x, axis=tuple(dim))
    tolerance = 1e-4 if name == "prod" else 1e-5
    check(f"reduce_{name}", {"X": x}, {"dim": dim}, {"Out": expected}, grads=["X"], rtol=tolerance)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_reduce_integers(dtype):
    x = np.array([[-7, -6, 7], [6, 5, 3]], dtype)
    check("reduce_sum", {"X": x}, {"dim": [1]}, {"Out": np.array([-6, 14], dtype)})
    check("reduce_max", {"X": x}, {"dim": [0]}, {"Out": np.array([6, 5, 7], dtype)})
    check("reduce_mean", {"X": x}, {"reduce_all": True}, {"Out": np.array([1], dtype)})


def test_ties_all_get_the_gradient():
    x = np.array([[1.0, 3, 3], [2, 2, 0]])
    found = run_kernel("reduce_max_grad", {"X": x, "Out": x.max(1), "Out@GRAD": np.ones(2)}, {"dim": [1]})
    np.testing.assert_array_equal(found["X@GRAD"][0], [[0, 1, 1], [1, 1, 0]])


def test_gradient_of_a_product_with_zeros():
    x = np.array([[1.0, 3, 0], [2, 0, 0], [2, 5, 4]])
    check("reduce_prod", {"X": x}, {"dim": [1]}, {"Out": x.prod(1)}, grads=["X"])


@pytest.mark.parametrize(("op_type", "function"), [("reduce_all", np.all), ("reduce_any", np.any)])
def test_reduce_bools(op_type, function):
    x = np.array([[True, False, True], [True, True, True]])
    check(op_type, {"X": x}, {"dim": [1]}, {"Out": function(x, 1)})
    check(op_type, {"X": x}, {"reduce_all": True, "keep_dim": True}, {"Out": function(x, keepdims=True)})


def test_dim_out_of_range():
    with pytest.raises(OperatorError, match=r"dim must be in \[-3, 3\), got 4"):
        infer("reduce_sum", {"X": X}, {"dim": [4]})


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumsum(axis, exclusive, reverse):
    x = np.flip(X, axis) if reverse else X
    expected = np.cumsum(x, axis, dtype="float32") - (x if exclusive else 0)
    expected = np.flip(expected, axis) if reverse else expected
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    check("cumsum", {"X": X}, attrs, {"Out": expected}, grads=["X"])
