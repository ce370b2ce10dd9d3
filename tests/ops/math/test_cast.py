"""cast and scale."""

import numpy as np
import pytest

from fluidlite.base.dtypes import to_vartype

from .. import on_device
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


@pytest.mark.parametrize(
    ("source", "values", "bits"),
    [
        # What Paddle 1.8.5 makes of them on the CPU.
        ("float32", [1.0009, -2.5421, 0.3, 3.14159, -0.0], [0x3C00, 0xC115, 0x34CC, 0x4248, 0x8000]),
        ("float32", [65504, 65519, -70000, np.inf], [0x7BFF, 0x7C00, 0xFC00, 0x7C00]),
        ("float32", [6e-5, 3e-5, 5.9e-8, 1e-10], [0x3EE, 0x1F7, 0, 0]),
        ("float64", [1.0009, 5.9e-8, 65519, -0.3], [0x3C00, 0, 0x7C00, 0xB4CC]),
        ("int64", [1, 2049, 4099, -2051, 65535], [0x3C00, 0x6800, 0x6C00, 0xE801, 0x7C00]),
    ],
)
def test_float16_is_cut_and_not_rounded(source, values, bits):
    if on_device.active():
        pytest.skip("GPUs round")
    out = np.array(bits, "uint16").view("float16")
    check("cast", {"X": np.array(values, source)}, _types(source, "float16"), {"Out": out}, rtol=0, atol=0)


def test_nan_stays_nan_in_float16():
    made = run_kernel("cast", {"X": np.array([np.nan, 1], "float32")}, _types("float32", "float16"))
    assert np.isnan(made["Out"][0]).tolist() == [True, False]


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


def test_scale_of_small_integers_wraps():
    made = run_kernel("scale", {"X": np.array([0, 5], "uint8")}, {"scale": -1.0, "bias": -2.0})
    np.testing.assert_array_equal(made["Out"][0], np.array([254, 249], "uint8"))


def test_scale_by_a_variable():
    inputs = {"X": X, "ScaleTensor": np.array([3.0], "float32")}
    check("scale", inputs, {"scale": 7.0, "bias": 1.0}, {"Out": X * 3 + 1}, grads=["X"])
