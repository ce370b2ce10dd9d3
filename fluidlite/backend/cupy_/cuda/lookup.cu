// Rows of a table by number, and the gradient of the table.

typedef SCALAR real;

// Numbers that are no row read zeros, and so does `padding` (-1: there is none), which need not be a row.
extern "C" __global__ void lookup(
    const real *table, const void *ids, i64 wide, real *out, i64 total, i64 height, i64 width, i64 padding,
    Faults *faults, i64 code) {
    EACH(i, total) {
        const i64 k = quotient(i, width), j = i - k * width, id = index_at(ids, k, wide);
        const bool none = padding >= 0 && id == padding, fits = id >= 0 && id < height;
        if (j == 0 && !fits && !none) fault(faults, code, k, id);
        out[i] = fits && !none ? table[id * width + j] : real(0);
    }
}

// Adds to `table`, which the caller has set to zero. The order of the additions is not fixed.
extern "C" __global__ void lookup_grad(
    const void *ids, i64 wide, const real *g, real *table, i64 total, i64 height, i64 width, i64 padding) {
    EACH(i, total) {
        const i64 k = quotient(i, width), j = i - k * width, id = index_at(ids, k, wide);
        const bool none = padding >= 0 && id == padding;
        if (id >= 0 && id < height && !none) atomicAdd(&table[id * width + j], g[i]);
    }
}

// A row with a single 1 for each number; none for numbers that are out of range.
extern "C" __global__ void one_hot(
    const void *ids, i64 wide, real *out, i64 total, i64 depth, i64 any_number, Faults *faults, i64 code) {
    EACH(i, total) {
        const i64 k = quotient(i, depth), j = i - k * depth, id = index_at(ids, k, wide);
        if (j == 0 && (id < 0 || id >= depth) && !any_number) fault(faults, code, k, id);
        out[i] = real(id == j);
    }
}
