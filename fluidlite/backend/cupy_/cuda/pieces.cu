// Arrays one after another, and one array cut into several. All are seen as rows; a piece has some columns of each.

// The piece that a column is in; `end`: the column behind each.
__device__ inline int piece_of(const i64 *end, i64 column) {
    int k = 0;
    while (column >= end[k]) ++k;
    return k;
}

// Up to eight pieces, and the column behind each, counted from the first of them.
#define PIECES(QUALIFIER)                                                                                            \
    QUALIFIER SCALAR *a, QUALIFIER SCALAR *b, QUALIFIER SCALAR *c, QUALIFIER SCALAR *d, QUALIFIER SCALAR *e,         \
        QUALIFIER SCALAR *f, QUALIFIER SCALAR *g, QUALIFIER SCALAR *h, i64 end_a, i64 end_b, i64 end_c, i64 end_d,   \
        i64 end_e, i64 end_f, i64 end_g, i64 end_h

#define ENDS {end_a, end_b, end_c, end_d, end_e, end_f, end_g, end_h}

// Writes the columns from `first` on, `width` of all `columns`, of out.
extern "C" __global__ void join(PIECES(const), SCALAR *out, i64 total, i64 width, i64 columns, i64 first) {
    const SCALAR *const pieces[8] = {a, b, c, d, e, f, g, h};
    const i64 end[8] = ENDS;
    EACH(i, total) {
        const i64 row = quotient(i, width), column = i - row * width;
        const int k = piece_of(end, column);
        const i64 start = k == 0 ? 0 : end[k - 1];
        out[row * columns + first + column] = pieces[k][row * (end[k] - start) + column - start];
    }
}

// The reverse; pieces that nobody wants are null.
extern "C" __global__ void cut(PIECES(), const SCALAR *whole, i64 total, i64 width, i64 columns, i64 first) {
    SCALAR *const pieces[8] = {a, b, c, d, e, f, g, h};
    const i64 end[8] = ENDS;
    EACH(i, total) {
        const i64 row = quotient(i, width), column = i - row * width;
        const int k = piece_of(end, column);
        const i64 start = k == 0 ? 0 : end[k - 1];
        if (pieces[k] != nullptr) {
            pieces[k][row * (end[k] - start) + column - start] = whole[row * columns + first + column];
        }
    }
}
