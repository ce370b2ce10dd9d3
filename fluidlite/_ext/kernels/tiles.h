/* Tiles of products: sums of some rows and vectors of columns that stay in registers. Part of `product.cc`, hence no guard. */
namespace fl::FL_NS {
namespace {

/* Vectors of a register each: those of several registers, and copies of several at once, GCC 12 moves through memory. They
 * may stand at any address that is one of a T. */
template <class T, int LANES> struct Vector {
    typedef T Lanes __attribute__((vector_size(LANES * sizeof(T))));
    typedef T Loose __attribute__((vector_size(LANES * sizeof(T)), aligned(sizeof(T)), may_alias));

    FL_INLINE static Lanes load(const T *from) { return *reinterpret_cast<const Loose *>(from); }
    FL_INLINE static void store(T *to, Lanes value) { *reinterpret_cast<Loose *>(to) = value; }
};

/* The sums of a row of a strip of which only a part belongs to C. */
template <class T> __attribute__((noinline)) void finish_part(const TileOperands<T> &o, const T *sum, T *out) {
    for (int64_t t = 0; t < o.width; ++t) out[t] = o.alpha * sum[t] + (o.beta != T(0) ? o.beta * out[t] : T(0));
}

/* How many rows of B are asked for before they are read. */
constexpr int64_t ahead = 16;

/* ROWS rows of a strip of COLS vectors of LANES columns. The sums are held in vector variables: compilers keep those in
 * registers, which they do not do with arrays of numbers. KEEPS: `copy` becomes the strip, one row behind the other. */
template <int ROWS, int COLS, int LANES, bool KEEPS = false, class T>
FL_INLINE void tile(const TileOperands<T> &o, [[maybe_unused]] T *copy = nullptr) {
    using V = Vector<T, LANES>;
    typename V::Lanes sum[ROWS][COLS] = {};
    const T *a = o.a, *b = o.b;
    if (o.beta != T(0)) { /* C is asked for before it is read */
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; ++i) {
            for (int j = 0; j < COLS * LANES; j += 64 / static_cast<int>(sizeof(T))) __builtin_prefetch(o.c + i * o.ldc + j, 1);
        }
    }
    for (int64_t p = 0; p < o.k; ++p, a += o.step, b += o.pitch) {
        if constexpr (KEEPS) { /* no processor foresees rows that far from each other; behind the last come those of the next strip */
            const T *next = p + ahead < o.k ? b + ahead * o.pitch : b + (ahead - o.k) * o.pitch + COLS * LANES;
            __builtin_prefetch(next);
            __builtin_prefetch(next + COLS * LANES - 1);
        }
        typename V::Lanes strip[COLS];
#pragma GCC unroll 8
        for (int j = 0; j < COLS; ++j) {
            strip[j] = V::load(b + j * LANES);
            if constexpr (KEEPS) V::store(copy + (p * COLS + j) * LANES, strip[j]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 8
            for (int j = 0; j < COLS; ++j) sum[i][j] += strip[j] * a[i * o.row];
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

template <int ROWS, int COLS, class T> void tile_of(const TileOperands<T> &o) { tile<ROWS, COLS, lanes<T>>(o); }

template <int ROWS, class T> void tile_keeping(const TileOperands<T> &o, T *copy) { tile<ROWS, strip_vectors, lanes<T>, true>(o, copy); }

template <int ROWS, int COLS, class T> FL_INLINE void tile_of_rows(int64_t rows, const TileOperands<T> &o) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS) return tile_of<ROWS, COLS>(o);
        tile_of_rows<ROWS - 1, COLS>(rows, o);
    }
}

/* The first tile of three or more of a whole strip, which copies the strip while it multiplies. */
template <int ROWS, class T> FL_INLINE void first_tile(int64_t rows, const TileOperands<T> &o, T *copy) {
    if constexpr (3 * ROWS > 2 * tile_rows) {
        if (rows == ROWS) return tile_keeping<ROWS>(o, copy);
        first_tile<ROWS - 1>(rows, o, copy);
    }
}

/* All m rows of a strip, in tiles of about the same height. */
template <int COLS, class T> FL_INLINE void column_of_tiles(int64_t m, TileOperands<T> o, T *copy = nullptr) {
    for (int64_t tiles = (m + tile_rows - 1) / tile_rows; tiles > 0; --tiles) {
        const int64_t rows = (m + tiles - 1) / tiles;
        if (copy != nullptr) {
            first_tile<tile_rows>(rows, o, copy);
            o.b = copy, o.pitch = strip_width<T>;
            copy = nullptr;
        } else {
            tile_of_rows<tile_rows, COLS>(rows, o);
        }
        o.a += rows * o.row;
        o.c += rows * o.ldc;
        m -= rows;
    }
}

/* Rows of the first tile of a strip with m rows, and whether it may copy the strip while it multiplies. */
inline int64_t first_height(int64_t m) {
    const int64_t tiles = (m + tile_rows - 1) / tile_rows;
    return (m + tiles - 1) / tiles;
}
inline bool may_copy(int64_t m) { return 3 * first_height(m) > 2 * tile_rows; }

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

}  // namespace
}  // namespace fl::FL_NS
