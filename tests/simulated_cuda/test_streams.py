"""Work on streams happens as late as it may, and captures record it."""

import threading

import numpy as np
import pytest

from ..refusals import refuses
from . import enqueue, simulated


@pytest.fixture
def sim():
    with simulated(seed=None, late=False) as found:
        yield found


@pytest.fixture
def cuda(sim):
    return sim.cupy.cuda


def pinned(cp, values):
    values = np.asarray(values)
    memory = cp.cuda.alloc_pinned_memory(values.nbytes)
    array = np.frombuffer(memory, values.dtype, values.size)
    array[...] = values
    return array


def copy(cp, target, source, stream):
    kind = cp.cuda.runtime.memcpyDefault
    cp.cuda.runtime.memcpyAsync(
        target.data.ptr, source.__array_interface__["data"][0], source.nbytes, kind, stream.ptr
    )


def test_page_locked_memory_is_read_when_the_copy_happens(cp, cuda):
    stream, source, target = cuda.Stream(non_blocking=True), pinned(cp, [1.0, 2.0]), cp.zeros(2)
    cuda.Stream.null.synchronize()
    copy(cp, target, source, stream)
    source[:] = 5
    stream.synchronize()
    assert target.get().tolist() == [5.0, 5.0]


def test_other_host_memory_is_read_at_once(cp, cuda):
    stream, source, target = cuda.Stream(non_blocking=True), np.array([1.0, 2.0]), cp.zeros(2)
    cuda.Stream.null.synchronize()
    copy(cp, target, source, stream)
    source[:] = 5
    stream.synchronize()
    assert target.get().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("with_event", [True, False])
def test_streams_need_events(cp, cuda, with_event):
    copying, computing = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    source, target = pinned(cp, [1.0, 2.0]), cp.zeros(2)
    cuda.Stream.null.synchronize()
    copy(cp, target, source, copying)
    if with_event:
        computing.wait_event(copying.record())
    with computing:
        assert (target + 1).get().tolist() == ([2.0, 3.0] if with_event else [1.0, 1.0])


def test_the_legacy_stream_waits_for_blocking_streams_only(cp, cuda):
    for non_blocking, expected in ((False, [1.0]), (True, [0.0])):
        stream, source, target = cuda.Stream(non_blocking=non_blocking), pinned(cp, [1.0]), cp.zeros(1)
        cuda.Stream.null.synchronize()
        copy(cp, target, source, stream)
        assert target.get().tolist() == expected


def test_results_reach_other_streams_by_events_only(cp, cuda):
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    with first:
        made = cp.ones(2)
    with second:
        assert np.isnan(made.get()).all()
        second.wait_event(first.record())
        assert made.get().tolist() == [1.0, 1.0]


def test_late_array_functions_read_late():
    with simulated(late=True, seed=None) as sim:
        cp = sim.cupy
        first, second = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
        a = cp.zeros(2)
        cp.cuda.Stream.null.synchronize()
        with first:
            b = a + 1
        with second:
            a[...] = 5
            second.synchronize()
        first.synchronize()
        assert b.get().tolist() == [6.0, 6.0]


def test_a_seed_lets_streams_advance():
    def seen(seed):
        with simulated(seed=seed) as sim:
            stream = sim.cupy.cuda.Stream(non_blocking=True)
            done = []
            for i in range(8):
                enqueue(stream.ptr, lambda i=i: done.append(i))
            return len(done)

    assert seen(None) == 0
    assert len({seen(seed) for seed in range(10)}) > 1


def test_events_and_callbacks(cp, cuda):
    stream, seen = cuda.Stream(non_blocking=True), []
    stream.launch_host_func(seen.append, 1)
    event = stream.record(cuda.Event(disable_timing=True))
    stream.launch_host_func(lambda _: cuda.runtime.deviceSynchronize(), None)
    event.synchronize()
    assert seen == [1] and event.done
    refuses(stream.synchronize, cuda.runtime.CUDARuntimeError, "cudaErrorNotPermitted")


def test_the_current_stream_is_of_a_thread(cp, cuda):
    stream, seen = cuda.Stream(), []
    with stream:
        thread = threading.Thread(target=lambda: seen.append(cuda.get_current_stream()))
        thread.start()
        thread.join()
        assert cuda.get_current_stream() is stream
    assert seen == [cuda.Stream.null] and cuda.get_current_stream() == cuda.Stream.null


def test_a_freed_block_is_reused_on_its_stream_only(cp, cuda):
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    with first:
        a = cp.empty(100)
        pointer = a.data.ptr
        del a
    with second:
        assert cp.empty(100).data.ptr != pointer
    with first:
        assert cp.empty(100).data.ptr == pointer


def test_graphs_compute_with_what_is_in_memory_then(sim, cp, cuda):
    stream, a = cuda.Stream(non_blocking=True), cp.zeros(3)
    cuda.Stream.null.synchronize()
    with stream:
        stream.begin_capture()
        b = a * 2
        b += 1
        graph = stream.end_capture()
        assert np.isnan(b.get()).all()
        for value in (1, 2):
            a[...] = value
            graph.launch(stream)
            assert b.get().tolist() == [2 * value + 1] * 3
    assert sim.counters.graph_launches == 2 and sim.counters.captures == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda cp, a, stream: a.get(),
        lambda cp, a, stream: float(a[0]),
        lambda cp, a, stream: cp.nonzero(a),
        lambda cp, a, stream: a[a > 0],
        lambda cp, a, stream: cp.asarray(np.ones(3)),
        lambda cp, a, stream: stream.synchronize(),
        lambda cp, a, stream: cp.cuda.Device().synchronize(),
        lambda cp, a, stream: stream.record().synchronize(),
        lambda cp, a, stream: a.set(np.ones(3)),
    ],
)
def test_what_spoils_a_capture(cp, cuda, use):
    stream, a = cuda.Stream(non_blocking=True), cp.ones(3)
    cuda.Stream.null.synchronize()
    error = cuda.runtime.CUDARuntimeError
    with stream:
        stream.begin_capture()
        with pytest.raises(error) as caught:
            use(cp, a, stream)
        assert caught.value.status in (900, 907)
        with pytest.raises(error) as caught:
            stream.end_capture()
        assert caught.value.status == 901
        assert (a + 1).get().tolist() == [2.0, 2.0, 2.0]


def test_cublas_of_cupy_cannot_be_captured(cp, cuda):
    stream, a = cuda.Stream(non_blocking=True), cp.ones((3, 3))
    with stream:
        stream.begin_capture()
        refuses(lambda: a @ a, NotImplementedError, "calling cuBLAS API during stream capture")
        stream.end_capture()


def test_forks_of_a_capture_must_join(cp, cuda):
    first, second = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    for joined in (True, False):
        first.begin_capture()
        second.wait_event(first.record())
        enqueue(second.ptr, lambda: None)
        if joined:
            first.wait_event(second.record())
            assert first.end_capture() is not None
        else:
            refuses(first.end_capture, cuda.runtime.CUDARuntimeError, "Unjoined")


def test_modes_of_capture(cp, cuda):
    runtime, stream = cuda.runtime, cuda.Stream(non_blocking=True)
    stream.begin_capture(runtime.streamCaptureModeGlobal)
    refuses(lambda: cuda.Memory(100), runtime.CUDARuntimeError, "900|StreamCaptureUnsupported")
    refuses(stream.end_capture, runtime.CUDARuntimeError)
    stream.begin_capture()
    assert cuda.Memory(100).ptr
    stream.end_capture()
