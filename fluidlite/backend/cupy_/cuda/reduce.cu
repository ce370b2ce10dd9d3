// Reductions of [pre, n, post] over n, and gradients of reductions.

typedef SCALAR real;

#define INF infinity<real>()

// Rows of n elements, each in `splits` parts: out[row, part]. One team takes one part.
template <bool BLOCK, class Join>
__device__ void rows(const real *x, real *out, i64 count, i64 n, i64 splits, real scale, Join join, real none) {
    typedef Team<BLOCK> T;
    const i64 length = (n + splits - 1) / splits;
    for (i64 part = T::first(); part < count * splits; part += T::count()) {
        const i64 row = quotient(part, splits), from = (part - row * splits) * length;
        const i64 to = from + length < n ? from + length : n;
        real total = none;
        for (i64 j = from + T::lane(); j < to; j += T::width()) total = join(total, x[row * n + j]);
        total = T::join(total, join, none);
        if (T::lane() == 0) out[part] = total * scale;
    }
}

// Columns: out[pre, part, post] of blocks of 32 columns times 8 threads that go down them.
template <class Join>
__device__ void columns(
    const real *x, real *out, i64 pre, i64 n, i64 post, i64 splits, real scale, Join join, real none) {
    __shared__ real part[8][33];
    const int across = threadIdx.x % 32, down = threadIdx.x / 32;
    const i64 tiles = (post + 31) / 32, length = (n + splits - 1) / splits;
    for (i64 tile = blockIdx.x; tile < pre * splits * tiles; tile += gridDim.x) {
        const i64 outer = tile / tiles, p = outer / splits, q = (tile - outer * tiles) * 32 + across;
        const i64 from = (outer - p * splits) * length, to = from + length < n ? from + length : n;
        real total = none;
        if (q < post) {
            for (i64 j = from + down; j < to; j += 8) total = join(total, x[(p * n + j) * post + q]);
        }
        __syncthreads();
        part[down][across] = total;
        __syncthreads();
        if (down == 0 && q < post) {
            for (int k = 1; k < 8; ++k) total = join(total, part[k][across]);
            out[outer * post + q] = total * scale;
        }
    }
}

#define REDUCTION(NAME, JOIN, NONE)                                                                                 \
    extern "C" __global__ void NAME##_rows_warp(const real *x, real *out, i64 count, i64 n, i64 splits, real scale) { \
        rows<false>(x, out, count, n, splits, scale, JOIN(), NONE);                                                 \
    }                                                                                                               \
    extern "C" __global__ void NAME##_rows_block(const real *x, real *out, i64 count, i64 n, i64 splits, real scale) { \
        rows<true>(x, out, count, n, splits, scale, JOIN(), NONE);                                                  \
    }                                                                                                               \
    extern "C" __global__ void NAME##_columns(                                                                      \
        const real *x, real *out, i64 pre, i64 n, i64 post, i64 splits, real scale) {                               \
        columns(x, out, pre, n, post, splits, scale, JOIN(), NONE);                                                 \
    }

REDUCTION(sum, Sum, real(0))
REDUCTION(prod, Product, real(1))
REDUCTION(max, Largest, -INF)
REDUCTION(min, Smallest, INF)

// dx[p, j, q] = scale * g[p, q].
extern "C" __global__ void spread(const real *g, real *dx, i64 total, i64 n, i64 post, real scale) {
    EACH(i, total) dx[i] = scale * g[quotient(i, n * post) * post + digit(i, 1, post)];
}

// The gradient goes to the elements that are as large (small) as the result.
extern "C" __global__ void spread_to_equal(
    const real *x, const real *out, const real *g, real *dx, i64 total, i64 n, i64 post) {
    EACH(i, total) {
        const i64 from = quotient(i, n * post) * post + digit(i, 1, post);
        dx[i] = x[i] == out[from] ? g[from] : real(0);
    }
}
