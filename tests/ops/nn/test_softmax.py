"""Softmax along every axis."""

import numpy as np
import pytest
from scipy.special import softmax

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

rng = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
def test_softmax(axis):
    x = rng.normal(0, 2, (2, 3, 4)).astype("float32")
    check("softmax", {"X": x}, {"axis": axis}, {"Out": softmax(x, axis=axis)}, grads=("X",))


def test_no_probability_is_zero():
    x = np.array([[0, 1000, -1000]], "float32")
    out = run_kernel("softmax", {"X": x})["Out"][0]
    np.testing.assert_allclose(out, [[1.6038109e-28, 1, 1.6038109e-28]], rtol=1e-5)


def test_softmax_of_nothing():
    assert run_kernel("softmax", {"X": np.zeros((0, 3), "float32")})["Out"][0].shape == (0, 3)


def test_axis_must_exist():
    with pytest.raises(OperatorError, match=r"axis must be in \[-2, 2\), got 2"):
        infer("softmax", {"X": np.zeros((2, 3), "float32")}, {"axis": 2})
