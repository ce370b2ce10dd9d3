"""Arithmetic of two arrays on the GPU."""

import numpy as np
import pytest

from fluidlite.backend.cupy_ import launch
from fluidlite.ops.registry import find

from .agreement import agree, gpu, launched, on_gpu, rand, refused

NAMES = ("add", "sub", "mul", "div", "max", "min", "pow")
SHAPES = [
    ((4, 3), (4, 3), -1), ((1,), (1,), -1), ((64, 10), (10,), -1), ((3, 5, 7, 2), (5,), 1),
    ((3, 5, 7, 2), (5, 7), 1), ((3, 5, 7), (3,), 0), ((3, 5), (1,), -1), ((300, 70), (70,), 1),
    ((9, 5), (9, 1), -1),
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("cuda")


def operands(name: str, x: tuple[int, ...], y: tuple[int, ...], dtype: str = "float32"):
    low = 0.2 if name == "pow" else -2.0
    divisor = (
        rand(*y, dtype=dtype, seed=1, low=0.3) if name == "div" else rand(*y, dtype=dtype, seed=1, low=low)
    )
    return rand(*x, dtype=dtype, low=low), divisor


@pytest.mark.parametrize("name", NAMES)
def test_value_and_gradients(name):
    op_type = f"elementwise_{name}"
    for x_shape, y_shape, axis in SHAPES:
        for dtype in ("float32", "float64"):
            x, y = operands(name, x_shape, y_shape, dtype)
            g = rand(*x_shape, dtype=dtype, seed=2)
            (out,) = agree(op_type, {"X": x, "Y": y}, axis=axis, times=2)
            given = {"X": x, "Y": y, "Out": out, "Out@GRAD": g}
            kept = {slot.name: given[slot.name] for slot in find(op_type + "_grad").input_slots}
            agree(op_type + "_grad", kept, axis=axis, times=20)


@pytest.mark.parametrize("name", NAMES)
def test_only_what_is_wanted_is_computed(name):
    x, y = operands(name, (6, 4), (4,))
    given = {"X": x, "Y": y, "Out": x, "Out@GRAD": rand(6, 4, seed=2)}
    kept = {slot.name: given[slot.name] for slot in find(f"elementwise_{name}_grad").input_slots}
    dx, none = launched(f"elementwise_{name}_grad", on_gpu(kept), ["X@GRAD"])
    assert dx.shape == x.shape and none is None
    none, dy = launched(f"elementwise_{name}_grad", on_gpu(kept), ["Y@GRAD"])
    assert dy.shape == y.shape and none is None


def test_ties_and_nan():
    x = np.array([1, np.nan, 2, np.nan, np.inf], "float32")
    y = np.array([1, 1, np.nan, np.nan, -np.inf], "float32")
    for name in ("max", "min"):
        agree(f"elementwise_{name}", {"X": x, "Y": y})
        agree(f"elementwise_{name}_grad", {"X": x, "Y": y, "Out@GRAD": np.ones(5, "float32")})
    agree("elementwise_div", {"X": x, "Y": np.zeros(5, "float32")})


def test_what_the_kernels_do_not_take():
    assert refused("elementwise_add", {"X": rand(3), "Y": rand(2, 3)})
    assert refused("elementwise_add", {"X": np.arange(3), "Y": np.arange(3)})
    assert refused("elementwise_mul", {"X": rand(2, 3, 4), "Y": rand(2, 1, 4)})
    assert refused("elementwise_add", {"X": rand(0, 3), "Y": rand(3)})


def test_large_sums_are_cut_into_parts():
    x, bias = rand(20000, 3), rand(3)
    agree("elementwise_add_grad", {"X": x, "Y": bias, "Out@GRAD": rand(20000, 3, seed=2)}, times=200)
    image = rand(2, 3, 100, 100)
    agree("elementwise_add_grad", {"X": image, "Y": bias, "Out@GRAD": image}, axis=1, times=200)


@pytest.mark.parametrize("count", [1, 2, 8, 9, 16, 20])
def test_sum_of_several(count):
    agree("sum", {"X": [rand(7, 5, seed=k) for k in range(count)]})


def test_scaling():
    x = rand(5, 3)
    agree("scale", {"X": x}, scale=3.0, bias=-1.0)
    agree("scale", {"X": x}, scale=3.0, bias=-1.0, bias_after_scale=False)
    agree("scale", {"X": x, "ScaleTensor": np.array([2.5], "float32")}, bias=0.5)
    assert refused("scale", {"X": np.arange(3)}, scale=2.0)


def test_more_elements_than_threads(monkeypatch):
    monkeypatch.setattr(launch, "MOST_BLOCKS", 2)
    monkeypatch.setattr(launch.blocks_for, "__defaults__", (launch.THREADS, 2))
    x = rand(1500)
    agree("elementwise_add", {"X": x, "Y": x})
    agree("relu", {"X": x})


def test_a_gradient_that_needs_no_kernel_is_handed_on():
    g = on_gpu({"g": rand(4, 3)})["g"][0]
    given = on_gpu({"X": rand(4, 3), "Y": rand(4, 3)})
    dx, dy = launched("elementwise_add_grad", {**given, "Out@GRAD": [g]})
    assert dx is g and dy.data.ptr == g.data.ptr
    np.testing.assert_array_equal(gpu().get(dx), gpu().get(dy))
