"""cvm and fsp; recorded numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer, run_kernel

X = np.array([[0.5, 1.5, 2.0], [1.0, 0.0, -1.0], [3.0, 2.0, 0.5]], "float32")
CVM = np.array([[1, 2], [3, 1]], "float32")


def test_counts_on_a_logarithmic_scale():
    shown = np.log(X[:, :1] + 1)
    want = np.concatenate([shown, np.log(X[:, 1:2] + 1) - shown, X[:, 2:]], axis=1)
    made = run_kernel("cvm", {"X": X, "CVM": X[:, :2]}, {"use_cvm": True})
    np.testing.assert_allclose(made["Y"][0], want, rtol=1e-6)
    check("cvm", {"X": X, "CVM": X[:, :2]}, {"use_cvm": False}, {"Y": X[:, 2:]})


@pytest.mark.parametrize("use_cvm", [True, False])
def test_the_counts_are_the_gradients_of_the_first_columns(use_cvm):
    weights = {"Y": [np.arange(9 if use_cvm else 3, dtype="float32").reshape(3, -1)]}
    lods = {"X": [[[0, 1, 3]]]}
    found = gradients("cvm", {"X": X, "CVM": CVM}, {"use_cvm": use_cvm}, weights, lods)["X"][0]
    np.testing.assert_array_equal(found[:, :2], CVM[[0, 1, 1]])
    np.testing.assert_array_equal(found[:, 2:], weights["Y"][0][:, -1:])
    rows = gradients("cvm", {"X": X[:2], "CVM": CVM}, {"use_cvm": True}, {"Y": [X[:2]]})["X"][0]
    np.testing.assert_array_equal(rows, np.concatenate([CVM, X[:2, 2:]], axis=1))
    with pytest.raises(OperatorError, match="CVM has rows for 2 of the 3 rows of X"):
        gradients("cvm", {"X": X, "CVM": CVM}, {"use_cvm": use_cvm}, weights)


def test_products_of_channels():
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(2, channels, 2, 3)).astype("float32") for channels in (2, 4))
    want = np.einsum("bihw,bjhw->bij", x, y) / 6
    check("fsp", {"X": x, "Y": y}, {}, {"Out": want}, grads=["X", "Y"])


def test_what_does_not_fit():
    with pytest.raises(OperatorError, match=r"CVM must be \[rows, 2\], got \[2, 1\]"):
        infer("cvm", {"X": X, "CVM": CVM[:, :1]})
    with pytest.raises(OperatorError, match="differ in channels only"):
        infer("fsp", {"X": np.zeros((1, 2, 3, 3)), "Y": np.zeros((1, 2, 3, 4))})
