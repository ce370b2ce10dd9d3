// Updates of the rows of tables that gradients name. SCALAR: the type of tables; RATE: that of the learning rate.

#include "tickets.cuh"

#define WIDTH 128  // threads of a block of merge_rows

// Adds up, in order, what there is for the same row: a block for each of n rows. The first place of a row gets the sum,
// others and rows outside of the table become row -1 of zeros.
extern "C" __global__ void merge_rows(
    const i64 *rows, const SCALAR *values, i64 *out_rows, SCALAR *out, i64 n, i64 width, i64 height) {
    __shared__ bool match[WIDTH];
    const i64 place = blockIdx.x, row = rows[place];
    const int x = threadIdx.x;
    bool none = row < 0 || row >= height;
    for (i64 k = x; k < place && !none; k += WIDTH) none = rows[k] == row;
    none = __syncthreads_or(none);
    if (x == 0) out_rows[place] = none ? -1 : row;
    for (i64 base = 0; base < width; base += WIDTH) {
        const i64 column = base + x;
        const bool inside = column < width;
        SCALAR sum = inside && !none ? values[place * width + column] : SCALAR(0);
        for (i64 start = place + 1; start < n && !none; start += WIDTH) {
            match[x] = start + x < n && rows[start + x] == row;
            if (!__syncthreads_or(match[x])) continue;
            for (int k = 0; k < WIDTH && inside; ++k) {
                if (match[k]) sum += values[(start + k) * width + column];
            }
            __syncthreads();  // before the next matches
        }
        if (inside) out[place * width + column] = sum;
    }
}

// The element of a table that element i of the values of its rows is about, or -1.
__device__ inline i64 target(const i64 *rows, i64 i, i64 width) {
    const i64 row = rows[i / width];
    return row < 0 ? -1 : row * width + i % width;
}

// Puts the values of different rows into a table.
extern "C" __global__ void spread_rows(const i64 *rows, const SCALAR *values, SCALAR *table, i64 size, i64 width) {
    EACH(i, size) {
        const i64 at = target(rows, i, width);
        if (at >= 0) table[at] = values[i];
    }
}

extern "C" __global__ void sgd_rows(
    const i64 *rows, const SCALAR *values, SCALAR *param, const RATE *rate, i64 size, i64 width) {
    EACH(i, size) {
        const i64 at = target(rows, i, width);
        if (at >= 0) param[at] -= (SCALAR)*rate * values[i];
    }
}

extern "C" __global__ void adagrad_rows(
    const i64 *rows, const SCALAR *values, SCALAR *param, const RATE *rate, SCALAR *moments, i64 size, i64 width,
    SCALAR epsilon) {
    EACH(i, size) {
        const i64 at = target(rows, i, width);
        if (at < 0) continue;
        const SCALAR grad = values[i], moment = moments[at] + grad * grad;
        moments[at] = moment;
        param[at] -= (SCALAR)*rate * grad / (sqrt(moment) + epsilon);
    }
}

// The powers are carried on before they are used. The betas are numbers unless they are given as arrays.
extern "C" __global__ void adam_rows(
    const i64 *rows, const SCALAR *values, SCALAR *param, const RATE *rate, SCALAR *moment1, SCALAR *moment2,
    SCALAR *power1, SCALAR *power2, i64 size, i64 width, SCALAR beta1, SCALAR rest1, SCALAR beta2, SCALAR rest2,
    SCALAR epsilon, const SCALAR *given1, const SCALAR *given2, u32 *ticket) {
    if (given1 != nullptr) rest1 = SCALAR(1) - (beta1 = *given1);
    if (given2 != nullptr) rest2 = SCALAR(1) - (beta2 = *given2);
    const SCALAR carried1 = *power1 * beta1, carried2 = *power2 * beta2;
    const SCALAR step = (SCALAR)(*rate * sqrt(SCALAR(1) - carried2) / (SCALAR(1) - carried1));
    EACH(i, size) {
        const i64 at = target(rows, i, width);
        if (at < 0) continue;
        const SCALAR grad = values[i];
        const SCALAR first = beta1 * moment1[at] + rest1 * grad;
        const SCALAR second = beta2 * moment2[at] + rest2 * grad * grad;
        moment1[at] = first;
        moment2[at] = second;
        param[at] -= step * (first / (sqrt(second) + epsilon));
    }
    if (last(ticket, gridDim.x) && threadIdx.x == 0) {
        *power1 = carried1;
        *power2 = carried2;
    }
}
