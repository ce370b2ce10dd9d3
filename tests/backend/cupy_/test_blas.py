"""Products through cuBLAS."""

import ctypes

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.backend.cupy_ import blas
from fluidlite.backend.cupy_.recording import NotCapturable, Recording
from fluidlite.base.errors import EnforceNotMet

from ...simulated_cuda import cublas
from .agreement import gpu, rand, same

SIZES = [(1, 1, 1), (2, 3, 4), (17, 1, 5), (1, 9, 33), (64, 65, 63)]


def product(a, b, trans_a=False, trans_b=False):
    return (a.swapaxes(-1, -2) if trans_a else a) @ (b.swapaxes(-1, -2) if trans_b else b)


def given(rows, columns, trans, *batch, dtype="float32", seed=0):
    return rand(*batch, *((columns, rows) if trans else (rows, columns)), dtype=dtype, seed=seed)


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gemm(trans_a, trans_b, dtype):
    device = gpu()
    for m, n, k in SIZES:
        a, b = given(m, k, trans_a, dtype=dtype), given(k, n, trans_b, dtype=dtype, seed=1)
        out = rand(m, n, dtype=dtype, seed=2)
        expected = product(a, b, trans_a, trans_b)
        here, there, kept = (device.put(x) for x in (a, b, out))
        with device.active():
            made = blas.gemm(device, here, there, None, trans_a, trans_b)
            same(backend.to_host(made), expected, "gemm", 4)
            result = blas.gemm(device, here, there, kept, trans_a, trans_b, alpha=0.5, beta=2.0)
        assert result is kept
        same(backend.to_host(kept), (0.5 * expected + 2 * out).astype(dtype), "gemm on top", 4)


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_batches(trans_a, trans_b):
    device = gpu()
    a, b = given(3, 5, trans_a, 2, 4), given(5, 6, trans_b, 2, 4, seed=1)
    with device.active():
        made = blas.gemm_batched(device, device.put(a), device.put(b), None, trans_a, trans_b, alpha=2.0)
        one = blas.gemm_batched(device, device.put(a[0, 0]), device.put(b), None, trans_a, trans_b)
        other = blas.gemm_batched(device, device.put(a), device.put(b[1, 2]), None, trans_a, trans_b)
    same(backend.to_host(made), 2 * product(a, b, trans_a, trans_b), "batches", 4)
    same(backend.to_host(one), product(a[0, 0], b, trans_a, trans_b), "one times a batch", 4)
    same(backend.to_host(other), product(a, b[1, 2], trans_a, trans_b), "a batch times one", 4)


@pytest.mark.usefixtures("cuda")
def test_parts_of_larger_arrays_need_no_copies():
    device = gpu()
    large = rand(12, 20)
    here = device.put(large)
    with device.active():
        cases = [
            (here[2:7, 3:9], here[1:7, 10:14]),
            (here[:5, :6].T, here[5:10, 3:5]),
            (here[3:4, :4], here[:4, 2:3]),
            (here[::2, :6], here[:6, ::3]),  # only columns that are apart are copied
        ]
        for a, b in cases:
            same(
                backend.to_host(blas.gemm(device, a, b)),
                backend.to_host(a).copy() @ backend.to_host(b).copy(),
                f"{a.shape}, {b.shape}",
                4,
            )


@pytest.mark.usefixtures("cuda")
def test_nothing_to_multiply():
    device = gpu()
    with device.active():
        xp = device.xp
        assert blas.gemm(device, xp.zeros((0, 3), "f"), xp.zeros((3, 2), "f")).shape == (0, 2)
        empty = blas.gemm(device, xp.zeros((2, 0), "f"), xp.zeros((0, 3), "f"))
        assert backend.to_host(empty).tolist() == [[0, 0, 0], [0, 0, 0]]
        out = xp.ones((2, 3), "f")
        blas.gemm(device, xp.zeros((2, 0), "f"), xp.zeros((0, 3), "f"), out, beta=3.0)
        assert backend.to_host(out).tolist() == [[3, 3, 3], [3, 3, 3]]


@pytest.mark.usefixtures("cuda")
def test_what_does_not_fit_is_refused():
    device = gpu()
    with device.active():
        xp = device.xp
        a = xp.zeros((2, 3), "float32")
        for b in (xp.zeros((2, 3), "float32"), xp.zeros((3, 3), "float64")):
            with pytest.raises(ValueError, match="do not fit"):
                blas.gemm(device, a, b)
        with pytest.raises(ValueError, match=r"the result must be contiguous, \(2, 3\)"):
            blas.gemm(device, a, xp.zeros((3, 3), "float32"), xp.zeros((2, 2), "float32"))


def recorded(device, work):
    made = []
    with device.active():
        graph = Recording(device, lambda: made.append(work()), device.xp.cuda.Stream(non_blocking=True))
    return graph, made[0]


@pytest.mark.usefixtures("cuda")
def test_products_are_captured():
    device = gpu()
    a, b = device.put(rand(4, 5)), device.put(rand(5, 6, seed=1))
    with device.active():
        blas.gemm(device, a, b)
    graph, made = recorded(device, lambda: blas.gemm(device, a, b))
    other = rand(4, 5, seed=3)
    device.overwrite(a, other)
    with device.active():
        graph.launch()
        blas.gemm(device, a, b)  # on the compute stream again
    same(backend.to_host(made), other @ rand(5, 6, seed=1), "replayed", 4)


def test_no_synchronisation_and_one_call(simulation):
    device = gpu()
    a, b = device.put(rand(4, 5)), device.put(rand(5, 6))
    with device.active():
        blas.gemm(device, a, b)
        simulation.counters.reset()
        simulation.cublas.calls.clear()
        blas.gemm(device, a, b)
    assert simulation.counters.syncs == 0
    assert simulation.cublas.calls == [("cublasSgemm_v2", 6, 4, 5, 1)]


def test_work_aside_of_the_main_stream_has_its_own_workspace(simulation):
    device = gpu()
    a = device.put(rand(4, 4))
    stream = simulation.cupy.cuda.Stream(non_blocking=True)
    used = []

    def multiply():
        blas.gemm(device, a, a)
        (handle,) = simulation.cublas.handles.values()
        used.append((handle.stream, handle.workspace[0]))

    with device.active():
        multiply()
    device.chain(device.main, stream)
    with device.diverted(stream):
        multiply()
    with device.active():
        Recording(device, multiply, stream)
        multiply()
    streams, workspaces = zip(*used, strict=True)
    assert streams == (device.main.ptr, stream.ptr, stream.ptr, device.main.ptr)
    assert workspaces[0] == workspaces[2] == workspaces[3] != workspaces[1]


def test_tf32_only_on_request(simulation, monkeypatch):
    device = gpu()
    a = device.put(rand(4, 4))
    with device.active():
        blas.gemm(device, a, a)
        (handle,) = simulation.cublas.handles.values()
        assert handle.math == 0
        monkeypatch.setenv("FLUIDLITE_ALLOW_TF32", "1")
        blas.gemm(device, a, a)
        assert handle.math == 3
        monkeypatch.setenv("FLUIDLITE_ALLOW_TF32", "0")
        blas.gemm(device, a, a)
        assert handle.math == 0
    assert handle.workspace is not None and handle.workspace[1] == 32 * 2**20


def test_errors_of_cublas_have_names(simulation):
    device = gpu()
    a = device.put(rand(4, 4))
    with device.active():
        blas.gemm(device, a, a)
        library = blas.blas(device)._library
        failing = library.cublasSgemm_v2
        for status, name in ((13, "CUBLAS_STATUS_EXECUTION_FAILED"), (99, "status 99")):
            library.cublasSgemm_v2 = lambda *given, status=status: status
            with pytest.raises(EnforceNotMet, match=f"cublasSgemm_v2 on GPU 0 failed: {name}"):
                blas.gemm(device, a, a)
        library.cublasSgemm_v2 = failing


def test_without_cublas_cupy_multiplies_and_says_why(simulation):
    device = gpu()
    with cublas.absent():
        a, b = rand(2, 3, 4), rand(2, 5, 4, seed=1)
        assert "cuBLAS cannot be used: libcublas.so.12" in blas.missing(device)
        here, there = device.put(a), device.put(b)
        with device.active():
            made = blas.gemm_batched(device, here, there, trans_b=True, alpha=2.0)
            one = blas.gemm(
                device, here[0], there[0], device.put(np.ones((3, 5), "f")), False, True, 1.0, 3.0
            )
        same(backend.to_host(made), 2 * product(a, b, False, True), "batches", 4)
        same(backend.to_host(one), product(a[0], b[0], False, True) + 3, "on top", 4)
        with pytest.raises((NotCapturable, NotImplementedError)):
            recorded(device, lambda: blas.gemm(device, here[0], there[0], trans_b=True))
    assert blas.missing(device) == ""


def test_the_stand_in_checks_its_arguments(simulation):
    device = gpu()
    a = device.put(rand(4, 4))
    with device.active():
        blas.gemm(device, a, a)
        fake, handle = simulation.cublas, ctypes.c_void_p(next(iter(simulation.cublas.handles)))
        one = ctypes.byref(ctypes.c_float(1))
        pointer = a.data.ptr
        short = (handle, 0, 0, 4, 4, 4, one, pointer, 3, pointer, 4, one, pointer, 4)
        assert fake.cublasSgemm_v2(*short) == cublas.INVALID_VALUE
        with pytest.raises(TypeError, match="takes 14 arguments"):
            fake.cublasSgemm_v2(*short[:-1])
        assert fake.cublasSetStream_v2(ctypes.c_void_p(7), 0) == cublas.NOT_INITIALIZED
