"""Page-locked memory: blocks that are used again, and how they are recognised."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

from fluidlite.backend.cupy_ import pools
from tests.simulated_cuda.install import simulated


@pytest.fixture
def gpu():
    with simulated() as simulation:
        yield simulation
        gc.collect()


def test_arrays(gpu) -> None:
    array = pools.pinned_array((3, 5), "float32")
    assert array.shape == (3, 5) and array.dtype == np.float32
    assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    assert gpu.machine.is_pinned(array.ctypes.data)
    array[:] = 7
    assert pools.counters() == {"blocks": 1, "batches": 0, "bytes": 4096, "cached": 0}
    assert pools.pinned_array((), "int64").shape == () and pools.pinned_array((0, 4), "bool").size == 0


def test_is_pinned(gpu) -> None:
    array = pools.pinned_array((100, 100), "float64")
    other = pools.pinned_array((10,), "int8")
    for each in (array, array[3:, 2], array.T, array.view("int64"), array[99:], other[-1:]):
        assert pools.is_pinned(each)
    for each in (np.empty(3), array.copy(), np.empty((0, 3))):
        assert not pools.is_pinned(each)


def test_blocks_are_reused(gpu) -> None:
    addresses = set()
    for size in (1000, 1024, 1001, 990) * 5:
        array = pools.pinned_array((size, 100), "float32")
        addresses.add(array.ctypes.data)
        del array
    assert len(addresses) <= 3 and gpu.counters.host_mallocs <= 3  # 990 and 1024 rows are of two sizes


def test_views_keep_their_block(gpu) -> None:
    array = pools.pinned_array((100, 100), "float64")
    part = memoryview(array[50:, 1])
    address = array.ctypes.data
    del array
    assert pools.pinned_array((100, 100), "float64").ctypes.data != address
    assert pools.counters()["blocks"] == 1
    del part
    assert pools.counters()["blocks"] == 0


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 100_000, 1 << 20, 77_070_336, (1 << 31) + 1])
def test_sizes(size: int) -> None:
    whole = pools.block_size(size)
    assert whole >= max(size, 1) and (whole <= size * 1.125 or whole == 4096)
    assert pools.block_size(whole) == whole


def test_few_sizes() -> None:
    assert len({pools.block_size(size) for size in range(1 << 20, 1 << 21, 97)}) <= 9


def test_unused_memory_is_limited(gpu, monkeypatch) -> None:
    monkeypatch.setattr(pools, "KEPT", 10 << 20)
    arrays = [pools.pinned_array((1 << 20,), "uint8") for _ in range(20)]
    assert gpu.machine.pinned.used == 20 << 20
    arrays.clear()
    arrays.append(pools.pinned_array((1 << 20,), "uint8"))
    assert gpu.machine.pinned.used == 10 << 20 and pools.counters()["cached"] == 9 << 20
    arrays.clear()
    pools.trim()
    assert gpu.machine.pinned.used == 0 and not any(pools.counters().values())


def test_no_memory_left() -> None:
    with simulated(pinned=1 << 20):
        kept = pools.pinned_array((1 << 19,), "uint8")
        pools.pinned_array((1 << 18,), "uint8")  # unused: given back for what is asked for next
        assert pools.pinned_array((400 << 10,), "uint8").nbytes == 400 << 10
        with pytest.raises(MemoryError, match=r"page-locked.*524288 bytes are in use.*capacity"):
            pools.pinned_array((1 << 20,), "uint8")
        assert pools.is_pinned(kept)
        del kept


def test_without_cupy(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(RuntimeError, match="pip install .cupy"):
        pools.pinned_array((3,), "float32")


def test_the_child_of_a_fork_leaves_it_alone(gpu) -> None:
    array = pools.pinned_array((10, 10), "float32")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            del array
            gc.collect()
            status = 0 if not any(pools.counters().values()) else 2
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert pools.is_pinned(array) and pools.counters()["blocks"] == 1
