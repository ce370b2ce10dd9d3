"""Products on the device, by cuBLAS: all that `@` takes."""

import numpy as np
import pytest

from fluidlite.backend.cupy_.device import device
from fluidlite.backend.functions import matmul

RNG = np.random.default_rng(0)

SHAPES = [
    ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5)),
    ((6, 1, 3, 4), (2, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4,)),
    ((0, 4), (4, 5)), ((3, 0), (0, 5)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(cuda, a, b, dtype):
    a, b = ((RNG.uniform(-4, 4, shape)).astype(dtype) for shape in (a, b))
    gpu = device(0)
    with gpu.active():
        got = matmul(gpu.xp, gpu.put(a), gpu.put(b))
    want = matmul(np, a, b)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(gpu.get(got), want, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-5)


def test_transposed_factors_are_not_copied(simulation):
    gpu = device(0)
    a, b = (RNG.uniform(-1, 1, shape).astype("float32") for shape in ((4, 3), (5, 4)))
    with gpu.active():
        on_gpu = gpu.put(a), gpu.put(b)
        before = simulation.counters.array_calls
        got = matmul(gpu.xp, on_gpu[0].T, on_gpu[1].T)
        assert simulation.counters.array_calls - before <= 1  # the memory of the result
    np.testing.assert_allclose(gpu.get(got), a.T @ b.T, rtol=1e-6)


def test_shapes_that_do_not_fit(cuda):
    gpu = device(0)
    with gpu.active(), pytest.raises(ValueError, match=r"\(3, 4\)"):
        matmul(gpu.xp, gpu.put(np.ones((3, 4))), gpu.put(np.ones((3, 4))))
