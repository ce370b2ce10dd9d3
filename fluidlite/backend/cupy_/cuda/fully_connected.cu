// Fully connected layers: small ones in one kernel, and what large ones do besides their products.

#define TILE 16

// The activations that a layer can end with: 0 none, 1 relu, 2 sigmoid, 3 tanh.
__device__ inline SCALAR activated(SCALAR x, int act) {
    if (act == 1) return x < SCALAR(0) ? SCALAR(0) : x;
    if (act == 2) return SCALAR(1) / (SCALAR(1) + exp(-x));
    if (act == 3) return tanh(x);
    return x;
}

// The gradient before the activation, from that after it and the activation's result.
__device__ inline SCALAR before(SCALAR dout, SCALAR out, int act) {
    if (act == 1) return out > SCALAR(0) ? dout : SCALAR(0);
    if (act == 2) return dout * out * (SCALAR(1) - out);
    if (act == 3) return dout * (SCALAR(1) - out * out);
    return dout;
}

// One tile of the product of left(row, k) and right(k, column), by a block of TILE x TILE threads. Each calls
// done(row, column, element, sum of the column of the right factor).
template <class Left, class Right, class Done>
__device__ void product(i64 tile, i64 rows, i64 columns, i64 depth, Left left, Right right, Done done) {
    __shared__ SCALAR a[TILE][TILE + 1], b[TILE][TILE + 1];
    const i64 across = (columns + TILE - 1) / TILE;
    const int y = threadIdx.y, x = threadIdx.x;
    const i64 row = tile / across * TILE + y, column = tile % across * TILE + x;
    SCALAR element = 0, sum = 0;
    for (i64 start = 0; start < depth; start += TILE) {
        a[y][x] = row < rows && start + x < depth ? left(row, start + x) : SCALAR(0);
        b[y][x] = column < columns && start + y < depth ? right(start + y, column) : SCALAR(0);
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
            element += a[y][k] * b[k][x];
            sum += b[k][x];
        }
        __syncthreads();
    }
    if (row < rows && column < columns) done(row, column, element, sum);
}

// out[m, n] = act(x[m, k] w[k, n] + bias[n]); a block for each tile of out.
extern "C" __global__ void layer(
    const SCALAR *x, const SCALAR *w, const SCALAR *bias, SCALAR *out, i64 m, i64 n, i64 k, i64 act) {
    product(
        blockIdx.x, m, n, k, [=](i64 row, i64 depth) { return x[row * k + depth]; },
        [=](i64 depth, i64 column) { return w[depth * n + column]; },
        [=](i64 row, i64 column, SCALAR element, SCALAR) {
            if (bias != nullptr) element += bias[column];
            out[row * n + column] = activated(element, (int)act);
        });
}

// The gradients of `layer`: a block for each tile of dx (unless it is null), then for each of dw. `out` may be null
// without an activation, dbias if nobody wants it.
extern "C" __global__ void layer_grad(
    const SCALAR *x, const SCALAR *w, const SCALAR *out, const SCALAR *dout, SCALAR *dx, SCALAR *dw, SCALAR *dbias,
    i64 m, i64 n, i64 k, i64 act) {
    const auto back = [=](i64 row, i64 column) {
        const i64 at = row * n + column;
        return act == 0 ? dout[at] : before(dout[at], out[at], (int)act);
    };
    const i64 first = dx == nullptr ? 0 : (m + TILE - 1) / TILE * ((k + TILE - 1) / TILE);
    if (blockIdx.x < first) {
        product(
            blockIdx.x, m, k, n, back, [=](i64 depth, i64 column) { return w[column * n + depth]; },
            [=](i64 row, i64 column, SCALAR element, SCALAR) { dx[row * k + column] = element; });
    } else {
        product(
            blockIdx.x - first, k, n, m, [=](i64 row, i64 depth) { return x[depth * k + row]; }, back,
            [=](i64 row, i64 column, SCALAR element, SCALAR sum) {
                dw[row * n + column] = element;
                if (row == 0 && dbias != nullptr) dbias[column] = sum;
            });
    }
}

// out[i] = act(out[i] + bias of its column), in place.
extern "C" __global__ void finish(SCALAR *out, const SCALAR *bias, i64 size, i64 n, i64 act) {
    EACH(i, size) out[i] = activated(out[i] + bias[digit(i, 1, n)], (int)act);
}

// dz[m, n]: the gradient before the activation (not written if null), and the sums of its columns over `share` rows:
// sums[blockIdx.y, n]. Blocks of 32 x 8 threads, 32 columns each.
extern "C" __global__ void unfinish(
    const SCALAR *out, const SCALAR *dout, SCALAR *dz, SCALAR *sums, i64 m, i64 n, i64 share, i64 act) {
    __shared__ SCALAR part[8][32];
    const i64 column = (i64)blockIdx.x * 32 + threadIdx.x;
    const i64 start = blockIdx.y * share, end = start + share < m ? start + share : m;
    SCALAR sum = 0;
    if (column < n) {
        for (i64 row = start + threadIdx.y; row < end; row += 8) {
            const i64 at = row * n + column;
            const SCALAR back = act == 0 ? dout[at] : before(dout[at], out[at], (int)act);
            if (dz != nullptr) dz[at] = back;
            sum += back;
        }
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < n) {
        for (int k = 1; k < 8; ++k) sum += part[k][threadIdx.x];
        sums[blockIdx.y * n + column] = sum;
    }
}

// out[n]: the sums of the columns of x[m, n], for few rows.
extern "C" __global__ void add_rows(const SCALAR *x, SCALAR *out, i64 m, i64 n) {
    EACH(column, n) {
        SCALAR sum = 0;
        for (i64 row = 0; row < m; ++row) sum += x[row * n + column];
        out[column] = sum;
    }
}
