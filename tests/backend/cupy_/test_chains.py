"""Kernels that are written for chains of elementwise functions."""

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.backend.cupy_.launchers import elementwise
from fluidlite.backend.cupy_.launchers.elementwise import Chain, Step

from .agreement import gpu, rand, same


def run(chain, inputs, layouts, numbers, shape):
    device = gpu()
    with device.active():
        outs = elementwise.run(
            device, chain, [device.put(array) for array in inputs], layouts, numbers, shape
        )
    return [backend.to_host(out) for out in outs]


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_in_order(dtype):
    steps = (
        Step("sub_of_both", (0, 1)),
        Step("relu_of", (2,), 3),
        Step("scaled", (3,), 3),
        Step("tanh_slope", (0, 4), 3),
        Step("sub_slope_y", (None, None, 0)),
    )
    chain = Chain((False, True), steps, (4, 5, 6))
    for shape in ((4, 3, 5), (1, 3, 1), (300, 3, 7)):
        x, y = rand(*shape, dtype=dtype), rand(3, dtype=dtype, seed=1)
        numbers = [0.0] * 3 + [0.5, 2.0, 1.0] + [0.0] * 3
        found = run(chain, [x, y], [None, (3, shape[2])], numbers, shape)
        kept = np.maximum(x - y[:, None], 0) * np.asarray(0.5, dtype) + np.asarray(2, dtype)
        for mine, theirs in zip(found, (kept, kept * (1 - x * x), -x), strict=True):
            same(mine, theirs, str(shape), 4)


@pytest.mark.usefixtures("cuda")
def test_a_single_number_meets_all():
    chain = Chain((True,), (Step("scaled", (0,), 3),), (1,))
    (out,) = run(chain, [np.array([3.0], "float32")], [(1, 600)], [0.5, 0.0, 1.0], (20, 30))
    assert out.tolist() == np.full((20, 30), 1.5).tolist()


@pytest.mark.usefixtures("cuda")
def test_no_elements():
    chain = Chain((False,), (Step("exp_of", (0,), 3),), (1,))
    (out,) = run(chain, [np.zeros((0, 3), "float32")], [None], [0.0] * 3, (0, 3))
    assert out.shape == (0, 3)


def test_one_launch_compiled_once(simulation):
    device = gpu()
    x = device.put(rand(1000))
    chain = Chain((False,), (Step("exp_of", (0,), 3), Step("square_of", (1,), 3)), (2,))
    with device.active():
        elementwise.run(device, chain, [x], [None], [0.0] * 6, (1000,))
        simulation.counters.reset()
        elementwise.run(device, chain, [x], [None], [0.0] * 6, (1000,))
    assert (simulation.counters.launches, simulation.counters.syncs) == (1, 0)
    assert elementwise._kernel.cache_info().currsize == 1


def test_every_function_is_there():
    """Steps name functions that the macros make of the operators' own kernels."""
    code = elementwise.source(Chain((False,), (Step("exp_of", (0,), 3),), (1,)))
    for name in ("UNARY(relu,", "UNARY(floor,", "BINARY(div,"):
        assert name in code
    assert "#include" not in code
