"""Reductions on the GPU."""

import numpy as np
import pytest

from fluidlite.backend.cupy_.launchers import elementwise

from .agreement import agree, gpu, rand, refused

CASES = [
    ((1,), [0]), ((5, 7), [0]), ((5, 7), [1]), ((3, 4, 5, 6), [1, 2]), ((3, 4, 5), [0, 1, 2]),
    ((2, 3, 40), [1]), ((70, 33), [0]), ((3, 1500), [1]), ((1, 20000), [1]), ((3000, 2), [0]),
    ((2, 1200, 3), [1]),
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("cuda")


@pytest.mark.parametrize("how", ["sum", "mean", "max", "min", "prod"])
def test_reductions_and_gradients(how):
    for shape, dim in CASES:
        for keep in (False, True):
            x = rand(*shape, low=0.9, high=1.1) if how == "prod" else rand(*shape)
            attrs = {"dim": dim, "keep_dim": keep}
            (out,) = agree(f"reduce_{how}", {"X": x}, times=1000 if how == "prod" else 50, **attrs)
            if how == "prod":
                continue
            kept = {"Out": out} if how in ("max", "min") else {}
            agree(f"reduce_{how}_grad", {"X": x, **kept, "Out@GRAD": rand(*out.shape, seed=1)}, **attrs)


def test_all_axes_and_doubles():
    x = rand(30, 50, dtype="float64")
    (out,) = agree("reduce_sum", {"X": x}, reduce_all=True)
    agree("reduce_sum_grad", {"X": x, "Out@GRAD": out}, reduce_all=True)
    agree("reduce_mean", {"X": x}, dim=[-1])


def test_mean():
    for shape in ((1,), (3, 5), (100, 300)):
        x = rand(*shape)
        (out,) = agree("mean", {"X": x}, times=20)
        agree("mean_grad", {"X": x, "Out@GRAD": out})


def test_nan_and_infinities():
    x = np.array([[1, np.nan, 3], [np.inf, -np.inf, 0], [-np.inf] * 3, [2, 2, 2]], "float32")
    for how in ("sum", "max", "min", "mean"):
        for dim in (0, 1):
            (out,) = agree(f"reduce_{how}", {"X": x}, dim=[dim])
    (out,) = agree("reduce_max", {"X": x}, dim=[1])
    agree("reduce_max_grad", {"X": x, "Out": out, "Out@GRAD": np.ones(4, "float32")}, dim=[1])


def test_separate_axes_and_empty_arrays_are_left_to_the_reference_kernel():
    assert refused("reduce_sum", {"X": rand(2, 3, 4)}, dim=[0, 2])
    assert refused("reduce_sum", {"X": rand(2, 0)}, dim=[1])
    assert refused("reduce_sum", {"X": np.arange(3)}, dim=[0])


def test_sums_in_float_are_taken_in_a_tree():
    """One after the other, a million times 0.1 is wrong by a percent."""
    x = np.full(1 << 20, 0.1, "float32")
    here = gpu()
    with here.active():
        total = elementwise.reduced(here, here.put(x), "sum", (1, x.size, 1))
    np.testing.assert_allclose(here.get(total)[0, 0], x.sum(dtype="float64"), 1e-6)


@pytest.mark.parametrize("layout", [(1, 5, 1), (4, 5, 1), (4, 5, 6), (1, 5, 6), (700, 3, 1), (2, 3, 900)])
def test_sum_to_the_middle(layout):
    x, here = rand(*layout), gpu()
    with here.active():
        total = elementwise.summed_to_middle(here, here.put(x.reshape(-1)), layout, -2.0)
    np.testing.assert_allclose(here.get(total), -2 * x.sum(axis=(0, 2)), 1e-4, 1e-4)
