"""One thing done to many arrays on the GPU."""

import numpy as np
import pytest

from fluidlite.backend.cupy_.launchers import updates

from .agreement import gpu, rand, same

pytestmark = pytest.mark.usefixtures("cuda")

SHAPES = [(1,), (3, 5), (0, 2), (20000,), (257,), (8192,), (8193,)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_squares(dtype):
    arrays, here = [rand(*shape, dtype=dtype, seed=k) for k, shape in enumerate(SHAPES)], gpu()
    with here.active():
        given = [here.put(array) for array in arrays]
        for _ in range(2):
            for array, total in zip(arrays, updates.sums_of_squares(here, given), strict=True):
                same(here.get(total), np.square(array).sum(dtype=dtype).reshape(1), "sum", 5)


@pytest.mark.parametrize("count", [1, 5, 96, 97, 200])
def test_products(count):
    arrays, here = [rand(k % 7, 3, seed=k) for k in range(count)], gpu()
    with here.active():
        given, factor = [here.put(array) for array in arrays], here.put(np.array([2.5], "float32"))
        made = updates.scaled(here, given, factor)
        sums = updates.sums_of_squares(here, given)
    assert len(made) == len(sums) == count
    for array, product, total in zip(arrays, made, sums, strict=True):
        same(here.get(product), array * np.float32(2.5), "product")
        same(here.get(total), np.square(array).sum().reshape(1), "sum", 5)


def test_large_arrays_take_several_blocks_next_to_small_ones():
    arrays, here = [rand(3), rand(30000, seed=1), rand(2, seed=2), rand(9000, seed=3)], gpu()
    with here.active():
        made = updates.scaled(here, [here.put(array) for array in arrays], here.put(np.float32([-1])))
    for array, product in zip(arrays, made, strict=True):
        same(here.get(product), -array, "product")
