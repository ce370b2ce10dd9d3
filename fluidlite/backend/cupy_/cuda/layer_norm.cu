// Layer normalisation: rows with mean 0 and variance 1, scaled and shifted; and its gradients.

typedef SCALAR real;

template <bool BLOCK>
__device__ void layer_norm(
    const real *x, const real *scale, const real *bias, real *y, real *means, real *variances, i64 rows, i64 n,
    real epsilon) {
    typedef Team<BLOCK> T;
    for (i64 r = T::first(); r < rows; r += T::count()) {
        const real *const row = x + r * n;
        real total = 0, squares = 0;
        for (i64 j = T::lane(); j < n; j += T::width()) total += row[j];
        const real mean = T::join(total, Sum(), real(0)) / real(n);
        for (i64 j = T::lane(); j < n; j += T::width()) squares += (row[j] - mean) * (row[j] - mean);
        const real variance = T::join(squares, Sum(), real(0)) / real(n);
        const real by = real(1) / sqrt(variance + epsilon);
        for (i64 j = T::lane(); j < n; j += T::width()) {
            const real normal = (row[j] - mean) * by;
            y[r * n + j] = (scale == nullptr ? normal : normal * scale[j]) + (bias == nullptr ? real(0) : bias[j]);
        }
        if (T::lane() == 0) {
            means[r] = mean;
            variances[r] = variance;
        }
    }
}

template <bool BLOCK>
__device__ void layer_norm_grad(
    const real *x, const real *scale, const real *means, const real *variances, const real *g, real *dx, i64 rows,
    i64 n, real epsilon) {
    typedef Team<BLOCK> T;
    for (i64 r = T::first(); r < rows; r += T::count()) {
        const real mean = means[r], by = real(1) / sqrt(variances[r] + epsilon);
        real total = 0, along = 0;
        for (i64 j = T::lane(); j < n; j += T::width()) {
            const real d = scale == nullptr ? g[r * n + j] : g[r * n + j] * scale[j];
            total += d;
            along += d * (x[r * n + j] - mean) * by;
        }
        total = T::join(total, Sum(), real(0)) / real(n);
        along = T::join(along, Sum(), real(0)) / real(n);
        for (i64 j = T::lane(); j < n; j += T::width()) {
            const real d = scale == nullptr ? g[r * n + j] : g[r * n + j] * scale[j];
            dx[r * n + j] = (d - total - (x[r * n + j] - mean) * by * along) * by;
        }
    }
}

#define FORWARD_PARAMETERS                                                                                           \
    const real *x, const real *scale, const real *bias, real *y, real *means, real *variances, i64 rows, i64 n,      \
        real epsilon
#define GRAD_PARAMETERS                                                                                              \
    const real *x, const real *scale, const real *means, const real *variances, const real *g, real *dx, i64 rows,   \
        i64 n, real epsilon

extern "C" __global__ void forward_warp(FORWARD_PARAMETERS) {
    layer_norm<false>(x, scale, bias, y, means, variances, rows, n, epsilon);
}
extern "C" __global__ void forward_block(FORWARD_PARAMETERS) {
    layer_norm<true>(x, scale, bias, y, means, variances, rows, n, epsilon);
}
extern "C" __global__ void grad_warp(GRAD_PARAMETERS) {
    layer_norm_grad<false>(x, scale, means, variances, g, dx, rows, n, epsilon);
}
extern "C" __global__ void grad_block(GRAD_PARAMETERS) {
    layer_norm_grad<true>(x, scale, means, variances, g, dx, rows, n, epsilon);
}

// Sums over `splits` parts of the rows, of dy times the normalised x, and of dy: [splits, n]; either may be null.
extern "C" __global__ void parameter_grads(
    const real *x, const real *means, const real *variances, const real *g, real *dscale, real *dbias, i64 rows, i64 n,
    i64 splits, real epsilon) {
    __shared__ real part[2][8][33];
    const int across = threadIdx.x % 32, down = threadIdx.x / 32;
    const i64 tiles = (n + 31) / 32, length = (rows + splits - 1) / splits;
    for (i64 tile = blockIdx.x; tile < splits * tiles; tile += gridDim.x) {
        const i64 split = tile / tiles, j = (tile - split * tiles) * 32 + across, from = split * length;
        const i64 to = from + length < rows ? from + length : rows;
        real scaled = 0, plain = 0;
        if (j < n) {
            for (i64 r = from + down; r < to; r += 8) {
                const real d = g[r * n + j];
                plain += d;
                scaled += d * (x[r * n + j] - means[r]) / sqrt(variances[r] + epsilon);
            }
        }
        __syncthreads();
        part[0][down][across] = scaled;
        part[1][down][across] = plain;
        __syncthreads();
        if (down < 2 && j < n) {
            real *const out = down == 0 ? dscale : dbias;
            real total = 0;
            for (int k = 0; k < 8; ++k) total += part[down][k][across];
            if (out != nullptr) out[split * n + j] = total;
        }
    }
}
