// What all CUDA kernels share. Compiled by NVRTC: no headers of the host are there, and none is needed.

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

// Each thread's share of n elements, for any number of threads.
#define EACH(i, n) for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (i64)blockDim.x * gridDim.x)

// What kernels have found wrong since somebody looked last; see faults.py.
struct Faults {
    u64 code;   // which check failed first; 0: none
    u64 first;  // its lowest position, and in the lower half the value there
    int *seen;  // a word of the host
};

// Notes that the check `code` failed at `position` for `value` (both saturate in 32 bits).
__device__ inline void fault(Faults *faults, i64 code, i64 position, i64 value) {
    const u64 before = atomicCAS(&faults->code, 0ull, (u64)code);
    if (before != 0 && before != (u64)code) return;
    const i64 limit = 0x7fffffff;
    const u64 where = position > 0xffffffffll ? 0xffffffffull : (u64)position;
    const u32 what = (u32)(value > limit ? limit : value < -limit - 1 ? -limit - 1 : value);
    atomicMin(&faults->first, where << 32 | what);
    *(volatile int *)faults->seen = 1;
}

// Numbers of classes and rows have 32 or 64 bits.
__device__ inline i64 index_at(const void *from, i64 k, i64 wide) {
    return wide ? ((const i64 *)from)[k] : (i64)((const int *)from)[k];
}

// Quotients of numbers that are not negative, in 32 bits where these suffice: dividing in 64 takes long.
__device__ inline i64 quotient(i64 i, i64 by) {
    return (u64)(i | by) <= 0xffffffffull ? (i64)((u32)i / (u32)by) : i / by;
}

// i / by % n.
__device__ inline i64 digit(i64 i, i64 by, i64 n) {
    const i64 high = by == 1 ? i : quotient(i, by);
    return high - quotient(high, n) * n;
}

// Where number `at` of the elements of a volume whose slices have `rows` rows of `row` elements lies.
struct Place {
    int z, y, x;
    __device__ Place(i64 at, int rows, int row) {
        const i64 line = quotient(at, row);
        z = (int)quotient(line, rows);
        y = (int)(line - (i64)z * rows);
        x = (int)(at - line * row);
    }
};

template <class T> __device__ inline T infinity() { return -log(T(0)); }

struct Sum {
    template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct Product {
    template <class T> __device__ T operator()(T a, T b) const { return a * b; }
};
// NaN is larger, and smaller, than everything.
struct Largest {
    template <class T> __device__ T operator()(T a, T b) const { return a < b || b != b ? b : a; }
};
struct Smallest {
    template <class T> __device__ T operator()(T a, T b) const { return a > b || b != b ? b : a; }
};

// What all 32 threads of a warp hold, joined; every thread gets it.
template <class T, class Join> __device__ T across_warp(T x, Join join) {
    for (int k = 16; k > 0; k >>= 1) x = join(x, __shfl_xor_sync(0xffffffffu, x, k));
    return x;
}

// The same for all threads of a block, whose number is a multiple of 32; `none` does not count.
template <class T, class Join> __device__ T across_block(T x, Join join, T none) {
    __shared__ T part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = across_warp(x, join);
    __syncthreads();  // the last use of `part` may be under way
    if (lane == 0) part[warp] = x;
    __syncthreads();
    x = lane < (int)blockDim.x / 32 ? part[lane] : none;
    return across_warp(x, join);
}

// The threads that work on one row together: a warp, or a whole block.
template <bool BLOCK> struct Team {
    __device__ static i64 first() {
        return BLOCK ? (i64)blockIdx.x : (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    }
    __device__ static i64 count() { return BLOCK ? (i64)gridDim.x : (i64)gridDim.x * (blockDim.x / 32); }
    __device__ static int lane() { return BLOCK ? threadIdx.x : threadIdx.x % 32; }
    __device__ static int width() { return BLOCK ? blockDim.x : 32; }
    template <class T, class Join> __device__ static T join(T x, Join how, T none) {
        if (BLOCK) return across_block(x, how, none);
        return across_warp(x, how);
    }
};
