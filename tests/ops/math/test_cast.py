"""cast and scale."""

import numpy as np
import pytest

from fluidlite.base.dtypes import to_vartype

from ..harness import check, gradients, run_kernel

X = np.random.default_rng(2).uniform(-3, 3, (2, 7)).astype("float32")


def _types(source, target):
    return {"in_dtype": int(to_vartype(source)), "out_dtype": int(to_vartype(target))}


@pytest.mark.parametrize("target", ["float64", "int32", "int64", "bool", "uint8", "float32"])
def test_cast_from_float(target):
    x = np.abs(X) if target == "uint8" else X
    check("cast", {"X": x}, _types("float32", target), {"Out": x.astype(target)})


@pytest.mark.parametrize("source", ["int64", "int32", "bool"])
def test_cast_to_float(source):
    x = np.array([[0, 1, 2], [3, 0, 1]]).astype(source)
    check("cast", {"X": x}, _types(source, "float32"), {"Out": x.astype("float32")})


def test_cast_passes_gradients_back_in_the_old_type():
    weight = np.array([1.5, -2.25])
    found = gradients("cast", {"X": np.ones(2, "float32")}, _types("float32", "float64"), {"Out": [weight]})
    assert found["X"][0].dtype == np.float32
    np.testing.assert_array_equal(found["X"][0], weight)


@pytest.mark.parametrize(("after", "expected"), [(True, X * 2.5 - 1.0), (False, (X - 1.0) * 2.5)])
def test_scale(after, expected):
    attrs = {"scale": 2.5, "bias": -1.0, "bias_after_scale": after}
    check("scale", {"X": X}, attrs, {"Out": expected.astype("float32")}, grads=["X"])


def test_scale_of_integers_drops_fractions():
    made = run_kernel("scale", {"X": np.array([1, 2], "int32")}, {"scale": 1.5, "bias": 2.7})
    np.testing.assert_array_equal(made["Out"][0], np.array([3, 4], "int32"))
    assert made["Out"][0].dtype == np.int32


def test_scale_by_a_variable():
    inputs = {"X": X, "ScaleTensor": np.array([3.0], "float32")}
    check("scale", inputs, {"scale": 7.0, "bias": 1.0}, {"Out": X * 3 + 1}, grads=["X"])
