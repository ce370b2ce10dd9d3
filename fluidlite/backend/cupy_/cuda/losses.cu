// Cross entropy of probabilities and of independent yes/no questions, and gradients.

#include "bounded.cuh"

// `match`, which may be null: the probability of each label.
extern "C" __global__ void cross_entropy(
    const real *x, const void *label, i64 wide, real *y, real *match, i64 rows, i64 n, i64 ignored, Faults *faults,
    i64 code) {
    EACH(r, rows) {
        const i64 k = index_at(label, r, wide);
        const bool fits = k >= 0 && k < n;
        if (!fits && k != ignored) fault(faults, code, r, k);
        const bool counts = fits && k != ignored;
        const real p = counts ? x[r * n + k] : real(0);
        y[r] = counts ? -bounded(log(p)) : real(0);
        if (match != nullptr) match[r] = p;
    }
}

// From the probabilities x, or those of the labels only.
extern "C" __global__ void cross_entropy_grad(
    const real *x, const real *match, const void *label, i64 wide, const real *g, real *dx, i64 total, i64 n,
    i64 ignored, Faults *faults, i64 code) {
    EACH(i, total) {
        const i64 r = quotient(i, n), j = i - r * n, k = index_at(label, r, wide);
        if (j == 0 && (k < 0 || k >= n) && k != ignored) fault(faults, code, r, k);
        dx[i] = j == k && k != ignored ? -g[r] / (match != nullptr ? match[r] : x[i]) : real(0);
    }
}

template <bool BLOCK> __device__ void soft(const real *x, const real *label, real *y, i64 rows, i64 n) {
    typedef Team<BLOCK> T;
    for (i64 r = T::first(); r < rows; r += T::count()) {
        real total = 0;
        for (i64 j = T::lane(); j < n; j += T::width()) {
            const real by = label[r * n + j];
            if (by != real(0)) total += by * bounded(log(x[r * n + j]));
        }
        total = T::join(total, Sum(), real(0));
        if (T::lane() == 0) y[r] = -total;
    }
}

extern "C" __global__ void cross_entropy_soft_warp(const real *x, const real *label, real *y, i64 rows, i64 n) {
    soft<false>(x, label, y, rows, n);
}
extern "C" __global__ void cross_entropy_soft_block(const real *x, const real *label, real *y, i64 rows, i64 n) {
    soft<true>(x, label, y, rows, n);
}

extern "C" __global__ void cross_entropy_soft_grad(
    const real *x, const real *label, const real *g, real *dx, i64 total, i64 n) {
    EACH(i, total) dx[i] = label[i] != real(0) ? -g[quotient(i, n)] * label[i] / x[i] : real(0);
}

// 1 over the number of labels that are not ignored; one block.
extern "C" __global__ void share_of_each(const real *label, real *out, i64 n, real ignored) {
    i64 counted = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) counted += label[i] != ignored;
    counted = across_block(counted, Sum(), (i64)0);
    if (threadIdx.x == 0) out[0] = real(1) / real(counted > 0 ? counted : 1);
}

// `share`, which may be null: what each counts for.
extern "C" __global__ void sigmoid_cross_entropy(
    const real *x, const real *label, const real *share, real *out, i64 n, real ignored) {
    EACH(i, n) {
        const real v = x[i], yes = label[i];
        const real loss = (v < real(0) ? real(0) : v) - v * yes + log1p(exp(-fabs(v)));
        out[i] = trunc(yes) == ignored ? real(0) : share == nullptr ? loss : loss * share[0];
    }
}

extern "C" __global__ void sigmoid_cross_entropy_grad(
    const real *x, const real *label, const real *share, const real *g, real *dx, i64 n, real ignored) {
    EACH(i, n) {
        const real probability = real(0.5) * (tanh(real(0.5) * x[i]) + real(1));
        const real slope = g[i] * (probability - label[i]);
        dx[i] = trunc(label[i]) == ignored ? real(0) : share == nullptr ? slope : slope * share[0];
    }
}
