// Softmax of rows, cross entropy of logits, and their gradients. A team (a warp or a block) takes one row.

#include "bounded.cuh"
#include "tickets.cuh"

#define INF infinity<real>()

// As in Fluid, elements more than 64 below the largest count as 64 below it.
__device__ inline real shifted(real x, real largest) {
    const real d = x - largest;
    return d < real(-64) ? real(-64) : d;
}

#define LANES(j, n) for (i64 j = T::lane(); j < (n); j += T::width())
#define TEAMS(r, rows) for (i64 r = T::first(); r < (rows); r += T::count())

// The largest of a row, and the sum of the exponentials of what it is above the others.
template <class T> __device__ void measure(const real *x, i64 n, real *largest, real *total) {
    real most = -INF;
    LANES(j, n) most = Largest()(most, x[j]);
    most = T::join(most, Largest(), -INF);
    real sum = 0;
    LANES(j, n) sum += exp(shifted(x[j], most));
    *largest = most;
    *total = T::join(sum, Sum(), real(0));
}

template <bool BLOCK> __device__ void softmax(const real *x, real *out, i64 rows, i64 n) {
    typedef Team<BLOCK> T;
    TEAMS(r, rows) {
        real largest, total;
        measure<T>(x + r * n, n, &largest, &total);
        LANES(j, n) out[r * n + j] = exp(shifted(x[r * n + j], largest)) / total;
    }
}

template <bool BLOCK> __device__ void softmax_grad(const real *out, const real *g, real *dx, i64 rows, i64 n) {
    typedef Team<BLOCK> T;
    TEAMS(r, rows) {
        real mean = 0;
        LANES(j, n) mean += out[r * n + j] * g[r * n + j];
        mean = T::join(mean, Sum(), real(0));
        LANES(j, n) dx[r * n + j] = out[r * n + j] * (g[r * n + j] - mean);
    }
}

// The softmax of logits x and their cross entropy: from the logits, or from the PROBABLE ones. What is null is left out;
// `match`: the probability of each label; `mean`: that of all losses, for which a ticket is needed.
template <bool BLOCK, bool PROBABLE>
__device__ void hard(
    const real *x, const void *label, i64 wide, real *softmax, real *loss, real *match, real *mean, u32 *ticket,
    i64 rows, i64 n, i64 ignored, Faults *faults, i64 code) {
    typedef Team<BLOCK> T;
    TEAMS(r, rows) {
        const real *const row = x + r * n;
        real largest, total;
        measure<T>(row, n, &largest, &total);
        if (softmax != nullptr) {
            LANES(j, n) softmax[r * n + j] = exp(shifted(row[j], largest)) / total;
        }
        if (T::lane() == 0) {
            const i64 k = index_at(label, r, wide);
            const bool fits = k >= 0 && k < n, counts = fits && k != ignored;
            if (!fits && k != ignored) fault(faults, code, r, k);
            const real low = counts ? shifted(row[k], largest) : real(0), p = exp(low) / total;
            loss[r] = !counts ? real(0) : PROBABLE ? -bounded(log(p)) : log(total) - low;
            if (match != nullptr) match[r] = counts ? p : real(0);
        }
    }
    if (mean != nullptr && last(ticket, gridDim.x)) {
        real sum = 0;
        for (i64 r = threadIdx.x; r < rows; r += blockDim.x) sum += ((volatile real *)loss)[r];  // of other blocks, too
        sum = across_block(sum, Sum(), real(0));
        if (threadIdx.x == 0) *mean = sum / real(rows);
    }
}

template <bool BLOCK>
__device__ void soft(const real *x, const real *label, real *softmax, real *loss, i64 rows, i64 n) {
    typedef Team<BLOCK> T;
    TEAMS(r, rows) {
        const real *const row = x + r * n;
        real largest, total, weighted = 0, weight = 0;
        measure<T>(row, n, &largest, &total);
        LANES(j, n) {
            const real by = label[r * n + j], low = shifted(row[j], largest);
            weighted += by * low;
            weight += by;
            if (softmax != nullptr) softmax[r * n + j] = exp(low) / total;
        }
        weighted = T::join(weighted, Sum(), real(0));
        weight = T::join(weight, Sum(), real(0));
        if (T::lane() == 0) loss[r] = weight * log(total) - weighted;
    }
}

#define TEAM_KERNELS(NAME, FUNCTION, PARAMETERS, ARGUMENTS)                              \
    extern "C" __global__ void NAME##_warp PARAMETERS { FUNCTION<false> ARGUMENTS; }     \
    extern "C" __global__ void NAME##_block PARAMETERS { FUNCTION<true> ARGUMENTS; }

TEAM_KERNELS(softmax, softmax, (const real *x, real *out, i64 rows, i64 n), (x, out, rows, n))
TEAM_KERNELS(
    softmax_grad, softmax_grad, (const real *out, const real *g, real *dx, i64 rows, i64 n), (out, g, dx, rows, n))
#define HARD_PARAMETERS                                                                                            \
    (const real *x, const void *label, i64 wide, real *softmax, real *loss, real *match, real *mean, u32 *ticket,  \
     i64 rows, i64 n, i64 ignored, Faults *faults, i64 code)
#define HARD_ARGUMENTS (x, label, wide, softmax, loss, match, mean, ticket, rows, n, ignored, faults, code)

extern "C" __global__ void cross_entropy_hard_warp HARD_PARAMETERS { hard<false, false> HARD_ARGUMENTS; }
extern "C" __global__ void cross_entropy_hard_block HARD_PARAMETERS { hard<true, false> HARD_ARGUMENTS; }
extern "C" __global__ void cross_entropy_probable_warp HARD_PARAMETERS { hard<false, true> HARD_ARGUMENTS; }
extern "C" __global__ void cross_entropy_probable_block HARD_PARAMETERS { hard<true, true> HARD_ARGUMENTS; }

TEAM_KERNELS(
    cross_entropy_soft, soft,
    (const real *x, const real *label, real *softmax, real *loss, i64 rows, i64 n),
    (x, label, softmax, loss, rows, n))

// Rows whose label is to be ignored, or is none, have no gradient. g: of each row, or (`one`) of all; times `factor`.
extern "C" __global__ void cross_entropy_hard_grad(
    const real *softmax, const void *label, i64 wide, const real *g, i64 one, real factor, real *dx, i64 total, i64 n,
    i64 ignored, Faults *faults, i64 code) {
    EACH(i, total) {
        const i64 r = quotient(i, n), j = i - r * n, k = index_at(label, r, wide);
        const bool fits = k >= 0 && k < n;
        if (j == 0 && !fits && k != ignored) fault(faults, code, r, k);
        dx[i] = fits && k != ignored ? g[one ? 0 : r] * factor * (softmax[i] - real(j == k)) : real(0);
    }
}

extern "C" __global__ void cross_entropy_soft_grad(
    const real *softmax, const real *label, const real *g, real *dx, i64 total, i64 n) {
    EACH(i, total) dx[i] = g[quotient(i, n)] * (softmax[i] - label[i]);
}
