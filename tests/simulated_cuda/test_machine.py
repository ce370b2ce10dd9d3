"""Devices, memory, versions, and what is exchanged with others."""

import decimal
import gc
import sys

import numpy as np
import pytest

from ..refusals import refuses
from . import device_view, dlpack, enqueue, machine, simulated


def test_cupy_is_there_for_a_while_only():
    before = sys.modules.get("cupy")
    with simulated(cupy_version="14.2.0") as sim:
        import cupy

        assert cupy is sim.cupy and cupy.__version__ == "14.2.0" and cupy.cuda.is_available()
    assert sys.modules.get("cupy") is before


@pytest.mark.parametrize("options", [{"driver_too_old": True}, {"no_driver": True}])
def test_a_machine_without_a_usable_driver(options):
    with simulated(**options) as sim:
        runtime = sim.cupy.cuda.runtime
        with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInsufficientDriver") as caught:
            runtime.getDeviceCount()
        assert caught.value.status == 35
        refuses(lambda: sim.cupy.zeros(3), runtime.CUDARuntimeError)
        assert runtime.driverGetVersion() < runtime.runtimeGetVersion()


def test_memory_ends():
    with simulated(memory=1 << 20) as sim:
        cp = sim.cupy
        first = cp.empty(1 << 19, "uint8")
        with pytest.raises(cp.cuda.memory.OutOfMemoryError, match="Out of memory allocating 1,048,000 bytes"):
            cp.empty(1_048_000, "uint8")
        pool = cp.get_default_memory_pool()
        assert pool.used_bytes() == 1 << 19
        del first
        assert pool.used_bytes() == 0 and pool.total_bytes() == 1 << 19
        assert cp.empty(1_048_000, "uint8").nbytes == 1_048_000  # what nobody uses is given back


def test_devices_do_not_see_each_other():
    with simulated(devices=2) as sim:
        cp = sim.cupy
        with cp.cuda.Device(1):
            there = cp.ones(3)
        assert there.device.id == 1
        with pytest.raises(
            ValueError, match=r"array resides \(1\) is different from the current device \(0\)"
        ):
            there + 1
        code = 'extern "C" __global__ void f(double *x) {}'
        with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="IllegalAddress"):
            cp.RawKernel(code, "f")((1,), (1,), (there,))
        refuses(lambda: cp.cuda.Device(2).use(), cp.cuda.runtime.CUDARuntimeError, "InvalidDevice")


def test_views_of_memory():
    with simulated() as sim:
        cp = sim.cupy
        a = cp.arange(4.0)
        cp.cuda.Stream.null.synchronize()
        assert device_view(a.data.ptr, (2,), "f8", (16,)).tolist() == [0.0, 2.0]
        for pointer, size in ((12345, 1), (a.data.ptr, 1000)):
            with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="IllegalAddress"):
                device_view(pointer, (size,), "f8")


def test_pinned_memory_is_a_buffer():
    with simulated() as sim:
        cuda = sim.cupy.cuda
        pointer = cuda.PinnedMemoryPointer(cuda.PinnedMemory(100), 0)
        array = np.frombuffer(pointer, "float32", 25)
        array[:] = 1
        assert pointer.size() == 100 and array.ctypes.data == pointer.ptr
        assert cuda.pinned_memory.is_memory_pinned(pointer.ptr)
        host = np.ones(3)
        address = host.ctypes.data
        cuda.runtime.hostRegister(address, host.nbytes, 0)
        assert cuda.pinned_memory.is_memory_pinned(address)
        cuda.runtime.hostUnregister(address)


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_goes_and_comes_back(versioned):
    with simulated() as sim:
        cp = sim.cupy
        a = cp.arange(6, dtype="float32").reshape(2, 3).T
        assert a.__dlpack_device__() == (2, 0)

        class Producer:
            def __dlpack__(self, **options):
                return a.__dlpack__(max_version=(1, 0) if versioned else None)

            def __dlpack_device__(self):
                return a.__dlpack_device__()

        b = cp.from_dlpack(Producer())
        b[0] = 9
        assert a.get().tolist() == [[9.0, 9.0], [1.0, 4.0], [2.0, 5.0]]
        capsule = a.__dlpack__()
        assert len(dlpack._kept) == 2
        del b, capsule
        gc.collect()
        assert not dlpack._kept
        refuses(lambda: cp.from_dlpack(np.ones(3)), TypeError, "CPU arrays cannot be directly imported")


class Ranks:
    """Two devices with a stream, an array and a communicator each."""

    def __init__(self, cp):
        self.cp, self.nccl = cp, cp.cuda.nccl
        self.ranks = self.nccl.NcclCommunicator.initAll([0, 1])
        self.streams, self.arrays = [], []
        for i in range(2):
            with cp.cuda.Device(i):
                stream = cp.cuda.Stream(non_blocking=True)
                with stream:
                    self.arrays.append(cp.full(4, i + 1.0))
                self.streams.append(stream)

    def reduce(self, rank):
        pointer = self.arrays[rank].data.ptr
        self.ranks[rank].allReduce(
            pointer, pointer, 4, self.nccl.NCCL_FLOAT64, self.nccl.NCCL_SUM, self.streams[rank].ptr
        )

    def values(self):
        found = []
        for i in range(2):
            with self.cp.cuda.Device(i):
                found.append(self.arrays[i].get(stream=self.streams[i]).tolist())
        return found


def test_nccl_adds_up():
    with simulated(devices=2) as sim:
        ranks = Ranks(sim.cupy)
        for _ in range(2):
            ranks.nccl.groupStart()
            ranks.reduce(0)
            ranks.reduce(1)
            ranks.nccl.groupEnd()
        assert ranks.values() == [[6.0] * 4] * 2


def test_nccl_in_graphs():
    with simulated(devices=2) as sim:
        ranks = Ranks(sim.cupy)
        for stream in ranks.streams:
            stream.begin_capture()
        for _ in range(2):
            ranks.nccl.groupStart()
            ranks.reduce(0)
            ranks.reduce(1)
            ranks.nccl.groupEnd()
        for graph, stream in [(stream.end_capture(), stream) for stream in ranks.streams]:
            graph.launch(stream)
        assert ranks.values() == [[6.0] * 4] * 2


def test_nccl_that_would_wait_for_ever():
    with simulated(devices=2) as sim:
        ranks = Ranks(sim.cupy)
        ranks.reduce(0)
        refuses(lambda: ranks.reduce(1), ranks.nccl.NcclError, "without a group")
        refuses(ranks.values, sim.cupy.cuda.runtime.CUDARuntimeError, "never joins")


def test_finalizers_may_compute_while_numpy_is_told_what_to_ignore():
    """This crashed CPython 3.11 where the simulation told NumPy so in the context of whoever was interrupted."""
    decimal.getcontext()  # a second ContextVar
    before = gc.get_threshold()
    with simulated() as sim:
        values = sim.cupy.ones(3, "float32")

        class Garbage:
            def __init__(self):
                self.own = self

            def __del__(self):
                ended.append(float((values + values)[0]))

        ended = []
        try:
            for turn in range(400):
                gc.collect(0)
                gc.disable()
                garbage = [Garbage() for _ in range(3)]
                gc.set_threshold(gc.get_count()[0] + turn % 12, 1000, 1000)
                del garbage
                gc.enable()
                with np.errstate(all="ignore"):
                    assert np.geterr()["over"] == "ignore"
        finally:
            gc.set_threshold(*before)
            gc.enable()
        gc.collect()
        assert ended == [2.0] * 1200


def test_no_garbage_gives_memory_back_in_the_middle_of_work():
    """It would have work done that waits for the work which is under way."""
    with simulated() as sim:
        cp = sim.cupy
        first, second = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
        before = gc.get_threshold()

        def work():
            for _ in range(10):
                cycle = [cp.cuda.Memory(64)]
                cycle.append(cycle)
                del cycle
                found.append([[number] for number in range(10)])

        found = []
        enqueue(first.ptr, work)
        enqueue(first.ptr, work)
        second.wait_event(first.record())
        enqueue(second.ptr, work)
        gc.set_threshold(1, 1, 1)
        try:
            first.synchronize()
            second.synchronize()
        finally:
            gc.set_threshold(*before)
        gc.collect()
        assert len(found) == 30
        assert not machine().devices[0].blocks and gc.isenabled()
