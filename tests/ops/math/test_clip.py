"""clip, clip_by_norm, squared_l2_norm, sign."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer, run_kernel

X = np.random.default_rng(1).uniform(-2, 2, (3, 5)).astype("float32")


def test_clip():
    check("clip", {"X": X}, {"min": -0.5, "max": 1.25}, {"Out": np.clip(X, -0.5, 1.25)}, grads=["X"])


def test_clip_gradient_is_zero_at_the_limits():
    x = np.array([-1.0, -0.5, 0, 0.5, 1, 3])
    found = gradients("clip", {"X": x}, {"min": -0.5, "max": 1.0}, {"Out": [np.ones(6)]})
    np.testing.assert_array_equal(found["X"][0], [0, 0, 1, 1, 0, 0])


def test_clip_takes_limits_from_variables():
    low, high = np.array([-1], "float32"), np.array([0.5], "float32")
    made = run_kernel("clip", {"X": X, "Min": low, "Max": high}, {"min": 5.0, "max": -5.0})
    np.testing.assert_array_equal(made["Out"][0], np.clip(X, -1, np.float32(0.5)))


def test_clip_refuses_crossed_limits():
    with pytest.raises(OperatorError, match=r"min must not be above max, got 2\.0 and 1\.0"):
        infer("clip", {"X": X}, {"min": 2.0, "max": 1.0})


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_by_norm(max_norm):
    norm = np.linalg.norm(X)
    expected = X * np.float32(max_norm / norm) if norm > max_norm else X
    check("clip_by_norm", {"X": X}, {"max_norm": max_norm}, {"Out": expected})


@pytest.mark.parametrize("max_norm", [0.0, -1.0, float("nan")])
def test_clip_by_norm_refuses_norms_that_are_not_positive(max_norm):
    with pytest.raises(OperatorError, match=f"max_norm must be greater than 0, got {max_norm}"):
        infer("clip_by_norm", {"X": X}, {"max_norm": max_norm})


def test_clip_by_norm_of_zeros():
    made = run_kernel("clip_by_norm", {"X": np.zeros(3, "float32")}, {"max_norm": 1.0})
    np.testing.assert_array_equal(made["Out"][0], np.zeros(3))


def test_squared_l2_norm():
    expected = np.array([(X.astype("float64") ** 2).sum()], "float32")
    check("squared_l2_norm", {"X": X}, {}, {"Out": expected}, grads=["X"])


def test_sign():
    x = np.array([[-2.5, 0.0, 3.0], [1e-3, -1e-3, -0.0]], "float32")
    check("sign", {"X": x}, {}, {"Out": np.sign(x)})
    check("sign", {"X": x[x != 0]}, grads=["X"])
