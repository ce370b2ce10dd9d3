"""Batches on their way to a simulated GPU: what arrives, and when memory is used again."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.backend.cupy_ import pools, staging
from fluidlite.base.place import CUDAPlace
from tests.simulated_cuda.install import simulated
from tests.simulated_cuda.memory import device_view
from tests.simulated_cuda.streams import enqueue


@pytest.fixture(params=[None, 1, 2], ids=lambda seed: f"seed{seed}")
def gpu(request):
    with simulated(seed=request.param) as simulation:
        yield simulation
        gc.collect()
        assert staging.counters() == {"blocks": 0} and pools.counters()["blocks"] == 0


def device():
    found = backend.device_at(CUDAPlace(0))
    assert found is not None
    return found


CASES = {
    "big": np.arange(100_000, dtype="float32").reshape(100, -1),
    "small": np.arange(7),
    "scalar": np.array(2.5),
    "empty": np.empty((0, 3), "int32"),
    "bool": np.array([[True], [False]]),
    "half": np.arange(9, dtype="float16"),
    "complex": np.arange(3) * 1j,
    "columns": np.arange(90_000.0).reshape(300, 300)[:, ::2],
    "transposed": np.arange(90_000.0).reshape(300, 300).T,
    "other byte order": np.arange(40_000, dtype=">i4"),
}


@pytest.mark.parametrize("carrier", [staging.Staging, staging.Immediate])
def test_arrays_arrive(gpu, carrier) -> None:
    here = carrier(device())
    copied = here.copy(list(CASES.values()))
    copied.join()
    assert copied.size == sum(array.nbytes for array in CASES.values())
    for found, expected in zip(copied.arrays, CASES.values(), strict=True):
        assert found.shape == expected.shape and found.dtype == expected.dtype.newbyteorder("=")
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(device().get(found), expected)
    copied.finish()
    here.close()
    del copied, found


def test_many_threads_copy_what_is_very_big(gpu, monkeypatch) -> None:
    monkeypatch.setattr(staging, "_CHUNK", 1 << 14)
    here = staging.Staging(device())
    array = np.random.default_rng(1).random((700, 333))
    copied = here.copy([array])
    copied.join()
    np.testing.assert_array_equal(device().get(copied.arrays[0]), array)
    copied.finish()
    here.close()


def test_page_locked_memory_is_not_copied(gpu) -> None:
    here = staging.Staging(device())
    array = pools.pinned_array((300, 300), "float32")
    array[:] = 1
    copied = here.copy([array])
    array[:] = 2  # too early: the copy reads it later, unless chance would have it
    copied.join()
    found = device().get(copied.arrays[0])
    assert (found == found[0, 0]).all() and found[0, 0] in ((1, 2) if gpu.machine.options.seed else (2,))
    assert copied.finish() > 0 and copied.finish() == 0
    del array


def test_nothing_is_overwritten_that_is_still_read(gpu) -> None:
    """Batches come and go at random; each is read by steps that are queued for long."""
    chance = random.Random(gpu.machine.options.seed)
    here, steps, seen, held = staging.Staging(device()), [], [], []
    for number in range(120):
        copied = here.copy([np.full(20_000, number, "float32"), np.full(3, number)])
        copied.join()
        held.append(copied.arrays)
        copied.arrays = []
        copied.finish()
        for arrays in chance.sample(held, min(2, len(held))):
            where = [(array.data.ptr, array.shape, array.dtype) for array in arrays]
            steps.append(int(device_view(*where[1])[0]))
            enqueue(
                device().main.ptr,
                lambda where=where: seen.append([set(device_view(*place).tolist()) for place in where]),
            )
        del arrays
        while len(held) > 3 or (held and chance.random() < 0.4):
            held.pop(chance.randrange(len(held)))
        if chance.random() < 0.1:
            device().synchronize()
    device().synchronize()
    assert seen == [[{float(number)}, {number}] for number in steps]
    assert len(steps) > 100
    held.clear()


def test_memory_is_reused(gpu) -> None:
    here = staging.Staging(device())
    for number in range(50):
        copied = here.copy([np.full(50_000, number, "float32")])
        copied.join()
        copied.finish()
        del copied
    assert gpu.machine.devices[0].used <= 2 * 200_704
    assert gpu.counters.host_mallocs <= 2


def test_a_failure_leaks_nothing() -> None:
    with simulated(memory=1 << 20):
        here = staging.Staging(device())
        arrays = [np.full(100_000, 1, "float32"), np.full(1_000_000, 1, "float32")]
        with pytest.raises(MemoryError, match="4400000 bytes to GPU 0.*smaller batches"):
            here.copy(arrays)
        gc.collect()  # the error's frames
        assert staging.counters() == {"blocks": 0} and pools.counters()["blocks"] == 0
        copied = here.copy(arrays[:1])
        copied.join()
        assert (device().get(copied.arrays[0]) == 1).all()
        copied.finish()
        del copied


def test_memory_to_put_batches_together_in(gpu, monkeypatch) -> None:
    memory = staging.StagingMemory(device())
    assert memory.block(100) is None  # a few bytes
    block = memory.block(100_000)
    assert block is not None and pools.is_pinned(block) and block.nbytes >= 100_000
    assert pools.counters()["batches"] == 1
    assert pools.is_pinned(memory.empty((200, 200), "float32"))
    assert not pools.is_pinned(memory.empty((2, 2), "float32"))
    assert memory.empty((20_000,), object).dtype == object
    monkeypatch.setattr(staging, "PINNED_LIMIT", 150_000)
    assert memory.block(100_000) is None
    del block
    assert memory.block(100_000) is not None


def test_a_device_in_an_error_state(gpu, monkeypatch) -> None:
    """Memory released then is never reused, and finalizers raise nothing."""
    here = staging.Staging(device())
    copied = here.copy([np.zeros(10)])
    copied.join()
    copied.finish()

    def broken(*_) -> None:
        raise gpu.cupy.cuda.runtime.CUDARuntimeError(700)

    address = copied.arrays[0].data.ptr
    with monkeypatch.context() as patch:
        patch.setattr(gpu.cupy.cuda.Event, "record", broken)
        del copied
    other = here.copy([np.zeros(10)])
    assert other.arrays[0].data.ptr != address
    other.join()
    other.finish()
    del other


def test_steps_see_their_batches(cuda) -> None:
    """On a real GPU, if there is one: many batches, dropped at once, that queued work reads later."""
    here, found = staging.Staging(device()), []
    memory = staging.StagingMemory(device())
    under_way = []
    for number in range(60):
        array = memory.empty((500, 1000), "float32") if number % 2 else np.empty((500, 1000), "float32")
        array[:] = number
        copied = here.copy([array, np.full(3, number)])
        copied.join()
        big, small = copied.arrays
        copied.arrays = []
        with device().active():
            for _ in range(5):
                big = big * 1
            found.append((big.max(), big.min(), small.sum()))
        del array, big, small
        under_way.append(copied)
        if len(under_way) > 2:
            under_way.pop(0).finish()
    for copied in under_way:
        copied.finish()
    numbers = [tuple(float(device().get(each)) for each in step) for step in found]
    assert numbers == [(k, k, 3 * k) for k in range(60)]
    here.close()
    assert pools.counters()["batches"] == 0 and staging.counters()["blocks"] == 0
