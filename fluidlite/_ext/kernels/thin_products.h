/* Products whose columns fill a part of a vector, and those of next to no work. Part of `product.cc`, hence no guard. */
namespace fl::FL_NS {
namespace {

/* Up to this depth and so many multiply-adds nothing is prepared but what cannot be read as it is. */
constexpr int64_t tiny_depth = 64, tiny_work = 1024;

template <int WIDTH, class T> void tiny_strip(const Product<T> &g, int64_t first, int64_t width) {
    T packed[tiny_depth * WIDTH];
    TileOperands<T> o = {g.k, g.a, g.trans_a ? 1 : g.lda, g.trans_a ? g.lda : 1, g.b + first, g.ldb, g.alpha, g.beta, g.c + first, g.ldc, width};
    if (g.trans_b || width != WIDTH) {
        const int64_t across = g.trans_b ? g.ldb : 1, down = g.trans_b ? 1 : g.ldb;
        for (int64_t p = 0; p < g.k; ++p) {
            for (int64_t t = 0; t < WIDTH; ++t) packed[p * WIDTH + t] = t < width ? g.b[(first + t) * across + p * down] : T(0);
        }
        o.b = packed;
        o.pitch = WIDTH;
    }
    constexpr int width_of_one = WIDTH < lanes<T> ? WIDTH : lanes<T>, columns = WIDTH / width_of_one;
    constexpr int rows = columns <= 2 ? 4 : 8 / columns;
    int64_t i = 0;
    for (; i + rows <= g.m; i += rows, o.a += rows * o.row, o.c += rows * g.ldc) tile<rows, columns, width_of_one>(o);
    for (; i < g.m; ++i, o.a += o.row, o.c += g.ldc) tile<1, columns, width_of_one>(o);
}

template <class T> void tiny(const Product<T> &g) {
    int64_t first = 0;
    for (; g.n - first > 8; first += 16) tiny_strip<16>(g, first, g.n - first < 16 ? g.n - first : 16);
    if (first < g.n) tiny_strip<8>(g, first, g.n - first);
}

/* Whether the columns of C fill vectors in part only, while the other way round its rows, as A has them, would fill whole
 * ones: C' = B' A, where B is read an element at a time. So it is with the gradient of a weight of few outputs. A depth that
 * pays for turning C is wanted; and for AVX2, whose strips are narrower, rows of A that do not all want the same place in the first
 * cache. Of up to three columns it is done where a BLAS would begin to pack an A of many more rows than columns, which takes much longer than
 * to read it. */
constexpr int64_t most_turned = 1 << 14, least_long = 1 << 20;

template <class T> bool fills_in_part(int64_t columns) { return 4 * columns <= 3 * padded<T>(columns); }

template <class T> bool is_for_turned(const Product<T> &g) {
    if (!g.trans_a || g.trans_b || g.m > most_turned || g.m * g.n > most_turned) return false;
    if (g.n < 4) return g.m >= lanes<T> && g.k >= 8 * g.m && g.k > least_long / (g.m * g.n);
    return vector_bytes > 16 && g.n <= 12 && fills_in_part<T>(g.n) && g.m >= 8 * lanes<T> && g.k >= 128 &&
           (vector_bytes == 64 || g.lda * static_cast<int64_t>(sizeof(T)) % cache_way != 0);
}

/* A product of one to three rows and a transposed A, whose strips are read once: in wider ones, as there are registers enough. */
template <int ROWS, class T> void few_rows_of(const Product<T> &g, const Part &part) {
    constexpr int vectors = ROWS == 1 ? 8 : 4;
    constexpr int64_t width = vectors * lanes<T>;
    const int64_t end = part.right - (part.right - part.left) % width;
    for (int64_t begin = 0; begin < g.k; begin += depth) {
        TileOperands<T> o = {std::min(g.k - begin, depth), g.a + begin * g.lda, 1, g.lda, nullptr, g.ldb, T(1), begin > 0 ? T(1) : T(0), nullptr, g.ldc, width};
        for (int64_t first = part.left; first < end; first += width) {
            o.b = g.b + begin * g.ldb + first, o.c = g.c + first;
            tile<ROWS, vectors, lanes<T>>(o);
        }
    }
    if (end < part.right) by_tiles(g, {0, ROWS, end, part.right});
}

/* `out`: room for C turned. */
template <class T> void turned(const Product<T> &g, T *out) {
    in_blocks(g.n, g.m, g.k, [&g, out](const Part &part) {
        const Product<T> other = {g.n, g.m, g.k, true, false, T(1), T(0), g.b, g.a, out, g.ldb, g.lda};
        switch (g.n) {
            case 1: return few_rows_of<1>(other, part);
            case 2: return few_rows_of<2>(other, part);
            case 3: return few_rows_of<3>(other, part);
            default: by_tiles(other, part, vector_bytes < 64);
        }
    });
    for (int64_t i = 0; i < g.m; ++i) {
        T *row = g.c + i * g.ldc;
        for (int64_t j = 0; j < g.n; ++j) row[j] = g.alpha * out[j * g.m + i] + (g.beta != T(0) ? g.beta * row[j] : T(0));
    }
}

/* Products whose rows of C would leave a good part of their vectors empty, as those of a layer of few outputs: vectors go along the
 * depth there, A's rows as they are and B's columns one behind the other, and their elements are added up in the end. */
constexpr int64_t least_columns = 4, most_columns = 12, least_depth = 128, least_rows = 32, most_bytes_of_columns = 1 << 17;
constexpr int columns_together = vector_bytes == 64 ? 5 : 4, rows_along = vector_bytes == 64 ? 4 : 3;

template <class T> bool is_along_depth(const Product<T> &g) {
    return !g.trans_a && g.n >= least_columns && g.n <= most_columns && fills_in_part<T>(g.n) && g.m >= least_rows &&
           g.k >= least_depth && fits(g, g.k, most_bytes_of_columns);
}

/* A vector as four sums of its elements. */
template <class T, int LANES> FL_INLINE typename Vector<T, 4>::Lanes quarter(const typename Vector<T, LANES>::Lanes &vector) {
    if constexpr (LANES == 4) {
        return vector;
    } else {
        typename Vector<T, LANES / 2>::Lanes half[2];
        std::memcpy(half, &vector, sizeof half);
        return quarter<T, LANES / 2>(half[0] + half[1]);
    }
}

/* The sums of the elements of four vectors. */
template <class T> FL_INLINE typename Vector<T, 4>::Lanes sums_of(const typename Vector<T, lanes<T>>::Lanes *vectors) {
    typename Vector<T, 4>::Lanes q[4];
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t) q[t] = quarter<T, lanes<T>>(vectors[t]);
    const auto pairs = [](const auto &x, const auto &y) { return FL_SHUFFLE(x, y, 0, 4, 1, 5) + FL_SHUFFLE(x, y, 2, 6, 3, 7); };
    const typename Vector<T, 4>::Lanes a = pairs(q[0], q[1]), b = pairs(q[2], q[3]);
    return FL_SHUFFLE(a, b, 0, 1, 4, 5) + FL_SHUFFLE(a, b, 2, 3, 6, 7);
}

/* `last`: what is left of the rows of A behind their whole vectors, with zeros behind it. */
template <int ROWS, int COLS, class T>
void rows_of_sums(const Product<T> &g, const T *a, const T *last, const T *columns, int64_t pitch, T *c) {
    using V = Vector<T, lanes<T>>;
    typename V::Lanes sum[ROWS][COLS] = {};
    const int64_t whole = g.k - g.k % lanes<T>;
    const auto add = [&sum, columns, pitch](const T *from, int64_t across, int64_t p) {
        typename V::Lanes row[ROWS];
#pragma GCC unroll 4
        for (int i = 0; i < ROWS; ++i) row[i] = V::load(from + i * across);
#pragma GCC unroll 8
        for (int j = 0; j < COLS; ++j) {
            const typename V::Lanes column = V::load(columns + j * pitch + p);
#pragma GCC unroll 4
            for (int i = 0; i < ROWS; ++i) sum[i][j] += row[i] * column;
        }
    };
    for (int64_t p = 0; p < whole; p += lanes<T>) add(a + p, g.lda, p);
    if (whole < g.k) add(last, lanes<T>, whole);
    constexpr int sums = ROWS * COLS, room = (sums + 3) / 4 * 4;
    typename V::Lanes four[room] = {};
    T made[room];
#pragma GCC unroll 32
    for (int t = 0; t < sums; ++t) four[t] = sum[t / COLS][t % COLS];
#pragma GCC unroll 8
    for (int t = 0; t < room; t += 4) Vector<T, 4>::store(made + t, sums_of<T>(four + t));
    for (int i = 0; i < ROWS; ++i) {
        for (int j = 0; j < COLS; ++j) {
            T &out = c[i * g.ldc + j];
            out = g.alpha * made[i * COLS + j] + (g.beta != T(0) ? g.beta * out : T(0));
        }
    }
}

template <int ROWS, int COLS, class T>
FL_INLINE void columns_of_sums(int64_t count, const Product<T> &g, const T *a, const T *last, const T *columns, int64_t pitch, T *c) {
    if constexpr (COLS > 0) {
        if (count == COLS) return rows_of_sums<ROWS, COLS>(g, a, last, columns, pitch, c);
        columns_of_sums<ROWS, COLS - 1>(count, g, a, last, columns, pitch, c);
    }
}

template <int ROWS, class T>
void along_depth(const Product<T> &g, int64_t top, int64_t bottom, const T *columns, int64_t pitch) {
    T last[ROWS * lanes<T>] = {};
    const int64_t rest = g.k % lanes<T>, groups = (g.n + columns_together - 1) / columns_together;
    for (int64_t i = top; i + ROWS <= bottom; i += ROWS) {
        const T *const a = g.a + i * g.lda;
        for (int64_t r = 0; r < ROWS && rest > 0; ++r) std::memcpy(last + r * lanes<T>, a + r * g.lda + g.k - rest, static_cast<size_t>(rest) * sizeof(T));
        for (int64_t which = 0, first = 0; which < groups; ++which) {
            const int64_t end = (which + 1) * g.n / groups;
            columns_of_sums<ROWS, columns_together>(end - first, g, a, last, columns + first * pitch, pitch, g.c + i * g.ldc + first);
            first = end;
        }
    }
}

/* Elements from one column of B to the next. */
template <class T> int64_t pitch_of_columns(const Product<T> &g) { return (g.k + lanes<T> - 1) / lanes<T> * lanes<T>; }

/* `columns`: room for those of B. */
template <class T> void along_depth(const Product<T> &g, T *columns) {
    const int64_t pitch = pitch_of_columns(g), across = g.trans_b ? g.ldb : 1, down = g.trans_b ? 1 : g.ldb;
    for (int64_t j = 0; j < g.n; ++j) {
        T *const to = columns + j * pitch;
        for (int64_t p = 0; p < g.k; ++p) to[p] = g.b[j * across + p * down];
        for (int64_t p = g.k; p < pitch; ++p) to[p] = 0;
    }
    in_blocks(g.m, g.n, g.k, [&g, columns, pitch](const Part &part) {
        const int64_t whole = part.top + (part.bottom - part.top) / rows_along * rows_along;
        along_depth<rows_along>(g, part.top, whole, columns, pitch);
        along_depth<1>(g, whole, part.bottom, columns, pitch);
    });
}

}  // namespace
}  // namespace fl::FL_NS
