"""pow, prelu, maxout."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

RNG = np.random.default_rng(15)
X = RNG.uniform(0.2, 2, (2, 4, 3, 2)).astype("float32") * np.where(
    RNG.random((2, 4, 3, 2)) < 0.5, -1, 1
).astype("float32")


@pytest.mark.parametrize("factor", [2.0, 3.0, 1.0, 0.5, -1.0])
def test_pow(factor):
    x = np.abs(X)
    check("pow", {"X": x}, {"factor": factor}, {"Out": x ** np.float32(factor)}, grads=["X"])


def test_pow_of_negative_numbers_and_by_a_tensor():
    check("pow", {"X": X}, {"factor": 2.0}, {"Out": X * X}, grads=["X"])
    check("pow", {"X": X, "FactorTensor": np.array([2.0], "float32")}, {}, {"Out": X * X}, grads=["X"])


def test_pow_of_integers():
    check("pow", {"X": np.array([-7, 6, 5])}, {"factor": 2.0}, {"Out": np.array([49, 36, 25])})


@pytest.mark.parametrize(
    ("mode", "shape", "aligned"),
    [
        ("all", (1,), (1, 1, 1, 1)),
        ("channel", (1, 4, 1, 1), (1, 4, 1, 1)),
        ("element", (1, 4, 3, 2), (1, 4, 3, 2)),
    ],
)
def test_prelu(mode, shape, aligned):
    alpha = RNG.uniform(0.1, 0.5, shape).astype("float32")
    expected = np.where(X > 0, X, X * alpha.reshape(aligned))
    check("prelu", {"X": X, "Alpha": alpha}, {"mode": mode}, {"Out": expected}, grads=["X", "Alpha"])


def test_prelu_with_a_wrong_alpha():
    with pytest.raises(OperatorError, match="needs 4 elements in Alpha"):
        infer("prelu", {"X": X, "Alpha": np.zeros(3, "float32")}, {"mode": "channel"})


@pytest.mark.parametrize("axis", [1, -1])
def test_maxout(axis):
    x = RNG.permutation(48).reshape(2, 4, 3, 2).astype("float32") / 10
    expected = x.reshape(2, 2, 2, 3, 2).max(2) if axis == 1 else x.max(3, keepdims=True)
    check("maxout", {"X": x}, {"groups": 2, "axis": axis}, {"Out": expected}, grads=["X"])


def test_ties_of_maxout_give_the_first_the_gradient():
    x = np.ones((1, 2, 1, 1))
    found = run_kernel(
        "maxout_grad", {"X": x, "Out": x[:, :1], "Out@GRAD": x[:, :1]}, {"groups": 2, "axis": 1}
    )
    np.testing.assert_array_equal(found["X@GRAD"][0].reshape(-1), [1, 0])


def test_maxout_of_minus_infinity_is_the_lowest_number_as_in_fluid():
    x = np.full((1, 2, 1, 1), -np.inf, "float32")
    want = np.full((1, 1, 1, 1), np.finfo("float32").min)
    check("maxout", {"X": x}, {"groups": 2, "axis": 1}, {"Out": want})


def test_maxout_groups_must_divide_the_channels():
    with pytest.raises(OperatorError, match="divide the 4 channels, got 3"):
        infer("maxout", {"X": X}, {"groups": 3})
