/* Tiles of a product, and how its operands are stored for them. Included once for every instruction set, hence no guard. */

namespace fl {
namespace FL_NS {
namespace {

template <class T> constexpr int64_t lanes = vector_bytes / sizeof(T);

/* What a tile is multiplied from: element (i, p) of A stands at a[i * row + p * step], row p of the strip of B at b + p * pitch;
 * C's rows are `ldc` elements apart, and `width` of a row's elements belong to the strip. */
template <class T> struct Operands {
    int64_t k;
    const T *a;
    int64_t row, step;
    const T *b;
    int64_t pitch;
    T alpha, beta;
    T *c;
    int64_t ldc, width;
};

/* Vectors of a register each: those of several registers, and copies of several at once, GCC 12 moves through memory. They
 * may stand at any address that is one of a T. */
template <class T, int LANES> struct Vector {
    typedef T Lanes __attribute__((vector_size(LANES * sizeof(T))));
    typedef T Loose __attribute__((vector_size(LANES * sizeof(T)), aligned(sizeof(T)), may_alias));

    FL_INLINE static Lanes load(const T *from) { return *reinterpret_cast<const Loose *>(from); }
    FL_INLINE static void store(T *to, Lanes value) { *reinterpret_cast<Loose *>(to) = value; }
};

/* The sums of a row of a strip of which only a part belongs to C. */
template <class T> __attribute__((noinline)) void finish_part(const Operands<T> &o, const T *sum, T *out) {
    for (int64_t t = 0; t < o.width; ++t) out[t] = o.alpha * sum[t] + (o.beta != T(0) ? o.beta * out[t] : T(0));
}

/* ROWS rows of a strip of COLS vectors of LANES columns; STEP: `row` and `step` of a panel, 0 for those that are given. The sums are held in vector variables: compilers keep those in
 * registers, which they do not do with arrays of numbers. */
template <int ROWS, int COLS, int LANES, int STEP = 0, class T> FL_INLINE void tile(const Operands<T> &o) {
    const int64_t row = STEP ? 1 : o.row, step = STEP ? STEP : o.step;
    using V = Vector<T, LANES>;
    typename V::Lanes sum[ROWS][COLS] = {};
    const T *a = o.a, *b = o.b;
    if (STEP) { /* of a block, whose C is seldom in the caches */
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; ++i) {
            __builtin_prefetch(o.c + i * o.ldc, 1);
            __builtin_prefetch(o.c + i * o.ldc + COLS * LANES - 1, 1);
        }
    }
    for (int64_t p = 0; p < o.k; ++p, a += step, b += o.pitch) {
        typename V::Lanes strip[COLS];
#pragma GCC unroll 8
        for (int j = 0; j < COLS; ++j) strip[j] = V::load(b + j * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 8
            for (int j = 0; j < COLS; ++j) sum[i][j] += strip[j] * a[i * row];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
        T *out = o.c + i * o.ldc;
        T part[COLS * LANES];
        const bool whole = o.width == COLS * LANES;
#pragma GCC unroll 8
        for (int j = 0; j < COLS; ++j) {
            if (!whole) {
                V::store(part + j * LANES, sum[i][j]);
            } else if (o.beta == T(0)) {
                V::store(out + j * LANES, sum[i][j] * o.alpha);
            } else {
                V::store(out + j * LANES, sum[i][j] * o.alpha + V::load(out + j * LANES) * o.beta);
            }
        }
        if (!whole) finish_part(o, part, out);
    }
}

/* Tiles of the larger products: as many sums as there are registers for. */
template <class T> constexpr int64_t strip_width = 2 * lanes<T>;
constexpr int tile_rows = vector_bytes == 64 ? 12 : 6;
constexpr int64_t depth = 256; /* of a strip that stays in the first cache */

/* Not inlined, because registers are short where several are. */
template <int ROWS, int COLS, int STEP, class T> __attribute__((noinline)) void tile_of(const Operands<T> &o) {
    tile<ROWS, COLS, lanes<T>, STEP>(o);
}

template <int ROWS, int COLS, int STEP = 0, class T> FL_INLINE void tile_of_rows(int64_t rows, const Operands<T> &o) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS) return tile_of<ROWS, COLS, STEP>(o);
        tile_of_rows<ROWS - 1, COLS, STEP>(rows, o);
    }
}

/* All m rows of a strip, in tiles of about the same height. */
template <int COLS, class T> FL_INLINE void column_of_tiles(int64_t m, Operands<T> o) {
    for (int64_t tiles = (m + tile_rows - 1) / tile_rows; tiles > 0; --tiles) {
        const int64_t rows = (m + tiles - 1) / tiles;
        tile_of_rows<tile_rows, COLS>(rows, o);
        o.a += rows * o.row;
        o.c += rows * o.ldc;
        m -= rows;
    }
}

template <class T> void all_rows(int64_t m, const Operands<T> &o) {
    if (o.width > lanes<T>) return column_of_tiles<2>(m, o);
    column_of_tiles<1>(m, o);
}

/* Columns in the memory of a strip of which `width` are used. */
template <class T> FL_INLINE int64_t padded(int64_t width) {
    return width >= strip_width<T> ? strip_width<T> : width > lanes<T> ? strip_width<T> : lanes<T>;
}

/* Four rows of four elements as four columns. */
template <class T> FL_INLINE void transpose_square(const T *from, int64_t across, T *to, int64_t pitch) {
    typedef T Lanes __attribute__((vector_size(4 * sizeof(T))));
    Lanes row[4];
    for (int t = 0; t < 4; ++t) std::memcpy(&row[t], from + t * across, sizeof row[t]);
    const Lanes a = FL_SHUFFLE(row[0], row[1], 0, 4, 1, 5), b = FL_SHUFFLE(row[2], row[3], 0, 4, 1, 5),
                c = FL_SHUFFLE(row[0], row[1], 2, 6, 3, 7), d = FL_SHUFFLE(row[2], row[3], 2, 6, 3, 7);
    const Lanes column[4] = {FL_SHUFFLE(a, b, 0, 1, 4, 5), FL_SHUFFLE(a, b, 2, 3, 6, 7), FL_SHUFFLE(c, d, 0, 1, 4, 5),
                             FL_SHUFFLE(c, d, 2, 3, 6, 7)};
    for (int p = 0; p < 4; ++p) std::memcpy(to + p * pitch, &column[p], sizeof column[p]);
}

/* Copies k rows of a strip; elements of B are `across` apart in a row and `down` in a column. */
template <class T> void pack_strip(const T *b, int64_t across, int64_t down, int64_t k, int64_t width, T *out) {
    const int64_t pitch = padded<T>(width);
    if (across == 1) {
        for (int64_t p = 0; p < k; ++p, b += down, out += pitch) {
            for (int64_t t = 0; t < width; ++t) out[t] = b[t];
            for (int64_t t = width; t < pitch; ++t) out[t] = 0;
        }
        return;
    }
    for (int64_t t = width; t < pitch; ++t) {
        for (int64_t p = 0; p < k; ++p) out[p * pitch + t] = 0;
    }
    const int64_t in_squares = down == 1 ? width / 4 * 4 : 0, squares = down == 1 ? k / 4 * 4 : 0;
    for (int64_t p = 0; p < squares; p += 4) {
        for (int64_t t = 0; t < in_squares; t += 4) transpose_square(b + t * across + p, across, out + p * pitch + t, pitch);
    }
    for (int64_t t = 0; t < width; ++t) {
        for (int64_t p = t < in_squares ? squares : 0; p < k; ++p) out[p * pitch + t] = b[t * across + p * down];
    }
}

}  // namespace
}  // namespace FL_NS
}  // namespace fl
