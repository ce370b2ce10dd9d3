"""CUDA C++ on the CPU."""

import numpy as np
import pytest

from ..refusals import refuses

CODE = r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
template <class T> __device__ T total(T v) {
    __shared__ T part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int k = 16; k; k >>= 1) v += __shfl_xor_sync(0xffffffffu, v, k);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = lane < blockDim.x / 32 ? part[lane] : T(0);
    for (int k = 16; k; k >>= 1) v += __shfl_down_sync(0xffffffffu, v, k);
    return v;
}
#define SUM(NAME, T)                                                                      \
    extern "C" __global__ void NAME(const T *x, T *out, long long n) {                    \
        extern __shared__ T last[];                                                       \
        T v = 0;                                                                          \
        for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += x[i]; \
        v = total(v);                                                                     \
        if (threadIdx.x == 0) last[0] = v;                                                \
        __syncthreads();                                                                  \
        if (threadIdx.x == blockDim.x - 1) atomicAdd(out, last[0]);                       \
    }
SUM(sum_float, float)
SUM(sum_double, double)
extern "C" __global__ void fill(float *x) { x[threadIdx.x] = 1; }
extern "C" __global__ void leave(float *x) { if (threadIdx.x < 3) return; __syncthreads(); }
extern "C" __global__ void race(int *out) {
    __shared__ int seen;
    seen = threadIdx.x;
    out[threadIdx.x] = seen;
}
extern "C" __global__ void uninitialised(float *x) {
    __shared__ float a[4];
    extern __shared__ float b[];
    x[0] = a[0];
    x[1] = b[0];
}
extern "C" __global__ void __launch_bounds__(64) few(float *x) {}
template <class T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }
"""


@pytest.fixture
def kernel(cp):
    return cp.RawModule(code=CODE, options=("-std=c++17",), name_expressions=["scale<double>"]).get_function


def test_kernels_run_when_their_stream_gets_there(sim, cp, kernel):
    a, stream = cp.arange(1000, dtype="float32"), cp.cuda.Stream(non_blocking=True)
    c = cp.zeros_like(a)
    cp.cuda.Stream.null.synchronize()
    kernel("add")((4,), (256,), (a, a, c, np.int32(1000)), stream=stream)
    assert not c.get().any()
    stream.synchronize()
    np.testing.assert_array_equal(c.get(), 2 * np.arange(1000))
    assert sim.counters.launches == 1 and sim.counters.kernels == {"add": 1}


@pytest.mark.parametrize("name, dtype", [("sum_float", "float32"), ("sum_double", "float64")])
def test_barriers_shuffles_and_atomics(cp, kernel, name, dtype):
    x, out = cp.arange(1000, dtype=dtype), cp.zeros(1, dtype)
    kernel(name)((3,), (256,), (x, out, 1000), shared_mem=8)
    assert out.get()[0] == 499500


def test_templates_and_kernels_by_name(cp, kernel):
    x = cp.ones(4)
    kernel("scale<double>")((1,), (4,), (x, 3.0))
    assert x.get().tolist() == [3.0] * 4
    refuses(lambda: kernel("missing"), cp.cuda.driver.CUDADriverError, "CUDA_ERROR_NOT_FOUND")


def test_writing_behind_an_array_is_found(cp, kernel):
    kernel("fill")((1,), (128,), (cp.zeros(100, "float32"),))
    with pytest.raises(
        cp.cuda.runtime.CUDARuntimeError, match="writes 4 bytes, .* behind the end of a block of 400 bytes"
    ):
        cp.cuda.Stream.null.synchronize()


@pytest.mark.parametrize(
    "body, message",
    [
        ("x[0] = x[100 + threadIdx.x];", "reads 4 bytes, 0 bytes behind the end of a block of 400 bytes"),
        ("*(int *)0 = 1;", "null pointer"),
        ("*(double *)(x + 1) = 1;", "misaligned"),
        (
            "extern __shared__ float s[]; s[threadIdx.x] = 1; s[1] = 2;",
            "behind the end of dynamic shared memory",
        ),
        ("x[0] = 1 / (threadIdx.x - blockIdx.x);", "divided by zero"),
        ("x[0] = *(float *)HOST;", "no memory of this device"),
    ],
    ids=lambda v: v[:12],
)
def test_accesses_are_checked(cp, body, message):
    host = np.zeros(4, "float32")
    code = f'extern "C" __global__ void f(float *x) {{ {body} }}'.replace("HOST", f"{host.ctypes.data:#x}ull")
    cp.RawKernel(code, "f")((1,), (1,), (cp.zeros(100, "float32"),), shared_mem=4)
    refuses(lambda: cp.cuda.Stream.null.synchronize(), cp.cuda.runtime.CUDARuntimeError, message)


def test_threads_that_leave_before_a_barrier_are_found(cp, kernel):
    kernel("leave")((1,), (64,), (cp.zeros(1, "float32"),))
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="61 threads wait at __syncthreads"):
        cp.cuda.Stream.null.synchronize()


def test_threads_and_shared_memory_come_in_no_order(cp, kernel):
    out = cp.zeros(64, "int32")
    kernel("race")((1,), (64,), (out,))
    first = out.get()
    kernel("race")((1,), (64,), (out,))
    assert not np.array_equal(out.get(), first) or not np.array_equal(first, np.full(64, 63))
    x = cp.zeros(2, "float32")
    kernel("uninitialised")((1,), (1,), (x,), shared_mem=4)
    assert np.isnan(x.get()).all()


def test_launches_that_no_device_takes(cp, kernel):
    x, error = cp.zeros(4, "float32"), cp.cuda.driver.CUDADriverError
    for grid, block, shared in (
        ((1,), (2048,), 0),
        ((0,), (1,), 0),
        ((1,), (1,), 50_000),
        ((1, 70_000), (1,), 0),
    ):
        with pytest.raises(error):
            kernel("fill")(grid, block, (x,), shared_mem=shared)
    refuses(lambda: kernel("few")((1,), (128,), (x,)), error, "at most 64")
    function = kernel("fill")
    function.max_dynamic_shared_size_bytes = 100_000
    function((1,), (4,), (x,), shared_mem=50_000)
    refuses(lambda: function(1, 4, (x,)), TypeError)


@pytest.mark.parametrize(
    "last", [1.0, np.float32(1), np.int64(1), np.ones(2, "int32"), "1", 2**40], ids=lambda v: type(v).__name__
)
def test_arguments_must_be_what_parameters_take(cp, kernel, last):
    a = cp.zeros(4, "float32")
    refuses(lambda: kernel("add")((1,), (4,), (a, a, a, last)), TypeError)


def test_sources_that_do_not_compile(cp):
    with pytest.raises(cp.cuda.compiler.CompileException, match="nonsense"):
        cp.RawModule(code='extern "C" __global__ void f() { nonsense; }').get_function("f")


def test_graphs_of_kernels(cp, kernel):
    a, stream = cp.ones(4, "float32"), cp.cuda.Stream(non_blocking=True)
    cp.cuda.Stream.null.synchronize()
    with stream:
        stream.begin_capture()
        kernel("add")((1,), (4,), (a, a, a, np.int32(4)))
        graph = stream.end_capture()
        graph.launch()
        graph.launch()
        assert a.get().tolist() == [4.0] * 4
