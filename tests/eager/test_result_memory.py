"""Memory of large results goes from those that are gone to the next ones."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite._ext import eager
from fluidlite.eager import Tensor

LARGE = 1 << 16
"""Floats of a result that is large enough."""


@pytest.fixture(autouse=True)
def nothing_kept():
    gc.collect()
    eager.let_result_memory_go()
    yield
    gc.collect()
    eager.let_result_memory_go()


def doubled(count=LARGE, value=1.0):
    return layers.scale(Tensor(np.full(count, value, "float32")), 2.0)


def test_the_next_result_of_a_size_has_the_memory_of_the_last():
    live, kept = eager.result_memory()
    assert kept == 0
    first = doubled()
    place = first.array.ctypes.data
    taken = eager.result_memory()[0] - live
    assert 4 * LARGE < taken < 4 * LARGE * 1.2
    del first
    assert eager.result_memory() == (live, taken)
    second = doubled(LARGE - 5, 3.0)
    assert second.array.ctypes.data == place
    assert eager.result_memory() == (live + taken, 0)
    np.testing.assert_array_equal(second.array, 6)


def test_small_results_have_their_own():
    before = eager.result_memory()
    kept = [doubled(1000) for _ in range(3)]
    assert eager.result_memory() == before
    assert all(each.array.flags.owndata for each in kept)


def test_gradients_and_their_sums_have_it_as_well():
    x = Tensor(np.ones(LARGE, "float32"))
    x.stop_gradient = False
    live = eager.result_memory()[0]
    with dygraph.guard():
        loss = layers.reduce_sum(layers.square(x) + layers.exp(x))
        loss.backward()
    np.testing.assert_allclose(x.gradient(), 2 + np.e, rtol=1e-6)
    del loss
    assert 4 * LARGE < eager.result_memory()[0] - live < 4 * LARGE * 1.2  # the gradient
    x.clear_gradient()
    assert eager.result_memory()[0] == live


def test_arrays_outlive_their_tensors():
    live = eager.result_memory()[0]
    array = doubled().numpy()
    others = [doubled(value=5.0) for _ in range(3)]
    np.testing.assert_array_equal(array, 2)
    del others
    part = array[10:20]
    del array
    np.testing.assert_array_equal(part, 2)
    del part
    assert eager.result_memory()[0] == live


def test_what_is_kept_is_at_most_a_quarter_more_than_was_in_use():
    live = eager.result_memory()[0]
    for count in range(LARGE, 12 * LARGE, LARGE // 3):  # every one needs other memory
        doubled(count)
    most = 4 * 12 * LARGE * 1.2
    now, kept = eager.result_memory()
    assert now == live and kept <= most * 1.25
    for _ in range(2 * 4096):  # lately, little was in use
        doubled()
    assert eager.result_memory()[1] <= 4 * LARGE * 1.2 * 1.25


def test_resized_arrays_keep_their_elements():
    array = doubled().array
    live = eager.result_memory()[0]
    array.resize(LARGE + 7, refcheck=False)
    np.testing.assert_array_equal(array[:LARGE], 2)
    array.resize(40 * LARGE, refcheck=False)
    np.testing.assert_array_equal(array[:LARGE], 2)
    assert eager.result_memory()[0] > 30 * live
    array.resize(3, refcheck=False)
    np.testing.assert_array_equal(array, 2)


def test_more_than_there_is():
    x = Tensor(np.ones((1 << 20, 1), "float32"))
    live = eager.result_memory()[0]
    with pytest.raises((MemoryError, fluid.core.EnforceNotMet)):
        layers.expand(x, [1, 1 << 40])
    assert eager.result_memory()[0] == live
    np.testing.assert_array_equal(doubled().array, 2)


def test_threads_give_back_what_others_took():
    live = eager.result_memory()[0]
    shelf = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(150):
            value = float(random.integers(1, 100))
            mine = doubled(int(random.integers(LARGE // 8, 3 * LARGE)), value)
            shelf.append((mine, value))
            if len(shelf) > 6:
                other, value = shelf.pop(0)
                assert (other.array == 2 * value).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    shelf.clear()
    gc.collect()
    assert eager.result_memory()[0] == live


def test_forked_processes_go_on():
    kept = doubled(value=3.0)
    child = os.fork()
    if child == 0:
        good = (kept.array == 6).all() and (doubled(value=4.0).array == 8).all()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(kept.array, 6)


def test_a_result_that_there_is_no_memory_for_does_not_count():
    x = Tensor(np.ones(LARGE // 2, "float32"))
    for _ in range(2 * 4096):  # until what was in use before counts no more
        layers.scale(x, 2.0)
    one = Tensor(np.ones((1, 1), "float32"))
    with pytest.raises(MemoryError):
        layers.expand(one, [1 << 24, 1 << 24])
    for count in range(1, 9):
        live = eager.result_memory()[0]
        result = doubled(count * LARGE)
        most = eager.result_memory()[0]
        del result
        assert eager.result_memory()[1] <= 1.25 * most - live
