/* Matrix products: loops of our own for small and medium ones, those of few rows and of recurrent steps, BLAS for the others.
 *
 * The loops keep a tile of C in registers and read B in strips as wide as the tile, one row of the strip behind the other,
 * so that a strip stays in the first cache for all rows of A. A is read where it is.
 */
#ifndef FL_NS

#include "fork_gate.h"
#include "kernels/blas.h"
#include "kernels/common.h"
#include "parallel.h"
#include "workspace.h"

/* Elements of two vectors by their numbers; compilers spell it differently. */
#if defined(__clang__)
#define FL_SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define FL_SHUFFLE(x, y, ...) \
    __builtin_shuffle(x, y, std::conditional_t<sizeof(T) == 4, fl::Places<int32_t>, fl::Places<int64_t>>{__VA_ARGS__})

namespace fl {
template <class I> using Places __attribute__((vector_size(4 * sizeof(I)))) = I;
}
#endif

#define FL_WIDE
#define FL_SELF "kernels/product.cc"
#include "kernels/targets.h"

namespace fl {
Blas blas;
}

#else

#include "kernels/product.h"

namespace fl {
namespace FL_NS {
namespace {

inline void call_blas(char *ta, char *tb, int *m, int *n, int *k, float *alpha, float *a, int *lda, float *b, int *ldb,
                      float *beta, float *c, int *ldc) {
    blas.sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

inline void call_blas(char *ta, char *tb, int *m, int *n, int *k, double *alpha, double *a, int *lda, double *b,
                      int *ldb, double *beta, double *c, int *ldc) {
    blas.dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

constexpr int64_t most_of_blas = std::numeric_limits<int>::max();

template <class T> bool fits_blas(const Product<T> &g) {
    return g.m <= most_of_blas && g.n <= most_of_blas && g.k <= most_of_blas && g.lda <= most_of_blas && g.ldb <= most_of_blas &&
           g.ldc <= most_of_blas;
}

/* Rows or columns of C that are computed together: enough that packing the other operand anew for each block costs little
 * (fewer where there would be one block only), and, but for the last, a multiple of what any BLAS computes at a time. */
constexpr int64_t block = 512, block_unit = 64;

inline int64_t blocks_of(int64_t length) { return length < block ? 1 : length < 2 * block ? 2 : length / block; }

inline int64_t end_of_block(int64_t which, int64_t blocks, int64_t length) {
    return which + 1 < blocks ? (which + 1) * (length / block_unit) / blocks * block_unit : length;
}

/* In blocks of the longer side of C. BLAS is column-major: to it the row-major matrices are their own transposes, so
 * C' = op(B)' op(A)' is asked for. */
template <class T> void by_blas(const Product<T> &g) {
    const LibraryCall entered(threads.inside());
    const bool in_rows = g.m >= g.n;
    const int64_t length = in_rows ? g.m : g.n, blocks = blocks_of(length);
    in_pieces(blocks, [&g, in_rows, length, blocks](int64_t which) {
        const int64_t begin = end_of_block(which - 1, blocks, length), size = end_of_block(which, blocks, length) - begin;
        const int64_t row = in_rows ? begin : 0, column = in_rows ? 0 : begin;
        int m = static_cast<int>(in_rows ? g.n : size), n = static_cast<int>(in_rows ? size : g.m), k = static_cast<int>(g.k);
        int lda = static_cast<int>(g.lda), ldb = static_cast<int>(g.ldb), ldc = static_cast<int>(g.ldc);
        char ta = g.trans_a ? 'T' : 'N', tb = g.trans_b ? 'T' : 'N';
        T alpha = g.alpha, beta = g.beta;
        T *a = const_cast<T *>(g.a) + (g.trans_a ? row : row * g.lda), *b = const_cast<T *>(g.b) + (g.trans_b ? column * g.ldb : column);
        call_blas(&tb, &ta, &m, &n, &k, &alpha, b, &ldb, a, &lda, &beta, g.c + row * g.ldc + column, &ldc);
    });
}

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

/* How many rows of B are asked for before they are read. */
constexpr int64_t ahead = 16;

/* ROWS rows of a strip of COLS vectors of LANES columns. The sums are held in vector variables: compilers keep those in
 * registers, which they do not do with arrays of numbers. KEEPS: `copy` becomes the strip, one row behind the other. */
template <int ROWS, int COLS, int LANES, bool KEEPS = false, class T>
FL_INLINE void tile(const Operands<T> &o, [[maybe_unused]] T *copy = nullptr) {
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

/* Up to this depth and so many multiply-adds nothing is prepared but what cannot be read as it is. */
constexpr int64_t tiny_depth = 64, tiny_work = 1024;

template <int WIDTH, class T> void tiny_strip(const Product<T> &g, int64_t first, int64_t width) {
    T packed[tiny_depth * WIDTH];
    Operands<T> o = {g.k, g.a, g.trans_a ? 1 : g.lda, g.trans_a ? g.lda : 1, g.b + first, g.ldb, g.alpha, g.beta, g.c + first, g.ldc, width};
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

template <int ROWS, int COLS, class T> void tile_of(const Operands<T> &o) { tile<ROWS, COLS, lanes<T>>(o); }

template <int ROWS, class T> void tile_keeping(const Operands<T> &o, T *copy) { tile<ROWS, strip_vectors, lanes<T>, true>(o, copy); }

template <int ROWS, int COLS, class T> FL_INLINE void tile_of_rows(int64_t rows, const Operands<T> &o) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS) return tile_of<ROWS, COLS>(o);
        tile_of_rows<ROWS - 1, COLS>(rows, o);
    }
}

/* The first tile of three or more of a whole strip, which copies the strip while it multiplies. */
template <int ROWS, class T> FL_INLINE void first_tile(int64_t rows, const Operands<T> &o, T *copy) {
    if constexpr (3 * ROWS > 2 * tile_rows) {
        if (rows == ROWS) return tile_keeping<ROWS>(o, copy);
        first_tile<ROWS - 1>(rows, o, copy);
    }
}

/* All m rows of a strip, in tiles of about the same height. */
template <int COLS, class T> FL_INLINE void column_of_tiles(int64_t m, Operands<T> o, T *copy = nullptr) {
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

}  // namespace

namespace {

template <int COLS, class T> FL_INLINE void all_rows_of(int64_t m, const Operands<T> &o) {
    if constexpr (COLS > 1) {
        if (o.width <= (COLS - 1) * lanes<T>) return all_rows_of<COLS - 1>(m, o);
    }
    column_of_tiles<COLS>(m, o);
}

}  // namespace

template <class T> void all_rows(int64_t m, const Operands<T> &o) { all_rows_of<strip_vectors>(m, o); }

namespace {

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
    constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T)); /* rows are read a line of the cache at a time */
    for (int64_t begin = 0; begin < squares; begin += line) {
        const int64_t end = squares - begin < line ? squares : begin + line;
        for (int64_t t = 0; t < in_squares; t += 4) {
            for (int r = 0; r < 4; ++r) __builtin_prefetch(b + (t + r) * across + begin + 2 * line);
            for (int64_t p = begin; p < end; p += 4) transpose_square(b + t * across + p, across, out + p * pitch + t, pitch);
        }
    }
    for (int64_t t = 0; t < width; ++t) {
        for (int64_t p = t < in_squares ? squares : 0; p < k; ++p) out[p * pitch + t] = b[t * across + p * down];
    }
}

namespace {

/* A part of C: rows and columns from one up to another. */
struct Part {
    int64_t top, bottom, left, right;
};

/* Up to so many rows are not worth a copy of what can be read as it is. */
constexpr int64_t few_to_copy = vector_bytes == 64 ? 24 : 12;

/* Rows and columns of C, and a depth of up to `depth` from `begin` on. */
struct Slab {
    int64_t begin, k, top, rows, left, right;
};

/* A slab strip by strip; `o` says how A is read. `panel`: memory for all strips, which are in it already if `packed`; without any, a strip
 * stays as long as it is read. `far`: rows of B are so far from each other that they are asked for ahead also where few rows of A are
 * multiplied by them. */
template <class T> void by_strips(const Product<T> &g, const Slab &slab, Operands<T> o, T *panel, bool is_packed, bool far) {
    alignas(64) T own[depth * strip_width<T>];
    const int64_t across = g.trans_b ? g.ldb : 1, down = g.trans_b ? 1 : g.ldb;
    const bool few = slab.rows <= few_to_copy && !(far && may_copy(slab.rows));
    for (int64_t first = slab.left; first < slab.right; first += strip_width<T>) {
        o.width = slab.right - first < strip_width<T> ? slab.right - first : strip_width<T>;
        o.c = g.c + slab.top * g.ldc + first;
        T *const packed = panel == nullptr ? own : panel + (first - slab.left) * slab.k;
        if (!is_packed) {
            o.b = g.b + first * across + slab.begin * down, o.pitch = down;
            const bool readable = !g.trans_b && o.width == padded<T>(o.width);
            if (readable && panel == nullptr && few) {
                all_rows(slab.rows, o);
                continue;
            }
            if (readable && !few && o.width == strip_width<T>) {
                column_of_tiles<strip_vectors>(slab.rows, o, packed);
                continue;
            }
            pack_strip(o.b, across, down, slab.k, o.width, packed);
        }
        o.b = packed, o.pitch = padded<T>(o.width);
        all_rows(slab.rows, o);
    }
}

/* Many rows of A are multiplied so many at a time that they stay in the second cache, by strips of B that are packed once for all. Rows that
 * lie a multiple of `cache_way` bytes apart want the same place in the caches, and those of a transposed A a page each: where they
 * are read often, they are copied. */
constexpr int64_t rows_together = 192, cache_way = 4096;

template <class T> bool is_for_copies(const Product<T> &g, const Part &part) {
    const int64_t apart = g.lda * static_cast<int64_t>(sizeof(T));
    return vector_bytes > 16 && (g.trans_a ? apart >= cache_way / 2 : apart % cache_way == 0) && part.bottom - part.top > few_to_copy &&
           part.right - part.left >= 8 * lanes<T>;
}

template <class T> void by_tiles(const Product<T> &g, const Part &part, bool far = false) {
    constexpr int64_t gap = 64 / static_cast<int64_t>(sizeof(T)), room = (depth + gap) * (rows_together + gap);
    const int64_t row = g.trans_a ? 1 : g.lda, step = g.trans_a ? g.lda : 1, all = part.bottom - part.top;
    bool copies = is_for_copies(g, part);
    T *memory = nullptr, *panel = nullptr;
    const bool parted = vector_bytes > 16 && all > (copies ? rows_together : 2 * rows_together);
    if (copies || parted) {
        const int64_t strips = parted ? (part.right - part.left + strip_width<T>) * depth : 0;
        try {
            memory = reinterpret_cast<T *>(Workspace<2>::of_this_thread(static_cast<size_t>(room + strips) * sizeof(T)));
            panel = parted ? memory + room : nullptr;
        } catch (const std::bad_alloc &) {
            copies = false;
        }
    }
    const int64_t together = panel != nullptr ? rows_together : all;
    for (int64_t begin = 0; begin == 0 || begin < g.k; begin += depth) {
        const int64_t k = g.k - begin < depth ? g.k - begin : depth;
        for (int64_t top = part.top; top < part.bottom; top += together) {
            const int64_t rows = part.bottom - top < together ? part.bottom - top : together;
            Operands<T> o = {k, g.a + top * row + begin * step, row, step, nullptr, 0, g.alpha, begin == 0 ? g.beta : T(1), nullptr, g.ldc, 0};
            if (copies) {
                const int64_t count = g.trans_a ? k : rows, length = g.trans_a ? rows : k, pitch = length + gap;
                for (int64_t t = 0; t < count; ++t) std::memcpy(memory + t * pitch, o.a + t * g.lda, static_cast<size_t>(length) * sizeof(T));
                o.a = memory, o.row = g.trans_a ? 1 : pitch, o.step = g.trans_a ? pitch : 1;
            }
            by_strips(g, {begin, k, top, rows, part.left, part.right}, o, panel, top > part.top, far);
        }
    }
}

/* A BLAS packs its operands in each call, which for small products takes longer than the product itself, and for few rows up
 * to where it would take several threads. With the largest vectors these loops are faster for all others as well; with smaller ones for
 * those of little work or depth, or of which 256 rows of B, or all of a B that few rows are multiplied by, stay in the caches. */
constexpr int64_t most_work = 1 << 21, most_work_of_few = 1 << 25, few_rows = 64, most_bytes_of_few = 1 << 20;
constexpr int64_t most_work_of_medium = vector_bytes > 16 ? 3 << 25 : most_work, most_bytes_of_medium = 3 << 18;
constexpr int64_t any_work = int64_t(1) << 40, most_work_of_depth = 1 << 30, most_work_of_floats = 1 << 27, rows_that_stay = 256;

template <class T> bool has_work(const Product<T> &g, int64_t most) {
    return g.m <= most && g.n <= most / g.m && g.k <= most / (g.m * g.n);
}

/* Whether `rows` of op(B) have at most so many bytes. */
template <class T> bool fits(const Product<T> &g, int64_t rows, int64_t bytes) {
    return rows <= bytes && g.n <= bytes / static_cast<int64_t>(sizeof(T)) / rows;
}

template <class T> bool is_for_tiles(const Product<T> &g) {
    if (g.m < (g.trans_b ? 8 : 2) || g.n < 4 || g.k == 0) return false;
    int64_t most = most_work;
    if (vector_bytes == 64) {
        most = any_work;
    } else if (vector_bytes == 32 && sizeof(T) == 4) {
        most = g.m <= rows_that_stay ? any_work : g.k <= depth ? most_work_of_depth : most_work_of_floats;
    }
    if (g.m <= few_rows && fits(g, g.k, most_bytes_of_few)) most = std::max(most, most_work_of_few);
    if (fits(g, std::min(g.k, depth), most_bytes_of_medium)) most = std::max(most, most_work_of_medium);
    return has_work(g, most);
}

/* Calls f with the parts of C that are computed together. */
template <class F> void in_blocks(int64_t m, int64_t n, int64_t k, const F &f) {
    const bool cut = m * n * k > most_work;
    const int64_t down = cut ? blocks_of(m) : 1, across = cut ? blocks_of(n) : 1;
    in_pieces(down * across, [=, &f](int64_t which) {
        const int64_t i = which / across, j = which % across;
        f({end_of_block(i - 1, down, m), end_of_block(i, down, m), end_of_block(j - 1, across, n), end_of_block(j, across, n)});
    });
}

/* Whether the columns of C fill vectors in part only, while the other way round its rows, as A has them, would fill whole
 * ones: C' = B' A, where B is read an element at a time. So it is with the gradient of a weight of few outputs. A depth that
 * pays for turning C is wanted; and for AVX2, whose strips are narrower, rows of A that do not all want the same place in the first
 * cache. */
constexpr int64_t most_turned = 1 << 14;

template <class T> bool fills_in_part(int64_t columns) { return 4 * columns <= 3 * padded<T>(columns); }

template <class T> bool is_for_turned(const Product<T> &g) {
    return vector_bytes > 16 && g.trans_a && !g.trans_b && g.n >= 4 && g.n <= 12 && fills_in_part<T>(g.n) && g.m >= 8 * lanes<T> &&
           g.k >= 128 && g.m <= most_turned && g.m * g.n <= most_turned &&
           (vector_bytes == 64 || g.lda * static_cast<int64_t>(sizeof(T)) % cache_way != 0);
}

template <class T> void turned(const Product<T> &g) {
    alignas(64) T out[most_turned];
    in_blocks(g.n, g.m, g.k, [&g, &out](const Part &part) {
        by_tiles(Product<T>{g.n, g.m, g.k, true, false, T(1), T(0), g.b, g.a, out, g.ldb, g.lda}, part, vector_bytes < 64);
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

template <class T> void along_depth(const Product<T> &g) {
    constexpr int64_t most = most_bytes_of_columns / static_cast<int64_t>(sizeof(T)) + most_columns * lanes<T>;
    alignas(64) T columns[most];
    const int64_t pitch = (g.k + lanes<T> - 1) / lanes<T> * lanes<T>, across = g.trans_b ? g.ldb : 1, down = g.trans_b ? 1 : g.ldb;
    for (int64_t j = 0; j < g.n; ++j) {
        T *const to = columns + j * pitch;
        for (int64_t p = 0; p < g.k; ++p) to[p] = g.b[j * across + p * down];
        for (int64_t p = g.k; p < pitch; ++p) to[p] = 0;
    }
    in_blocks(g.m, g.n, g.k, [&g, &columns, pitch](const Part &part) {
        const int64_t whole = part.top + (part.bottom - part.top) / rows_along * rows_along;
        along_depth<rows_along>(g, part.top, whole, columns, pitch);
        along_depth<1>(g, whole, part.bottom, columns, pitch);
    });
}

/* A part of a product with a matrix that is packed: behind each other the strips of its first rows, of the next ones, ... */
template <class T> void of_packed(const Packed<T> &b, const T *a, int64_t lda, T beta, T *c, int64_t ldc, const Part &part) {
    const int64_t rest = b.n % strip_width<T>, columns = b.n - rest + (rest > 0 ? padded<T>(rest) : 0);
    for (int64_t begin = 0; begin == 0 || begin < b.k; begin += depth) {
        const int64_t rows = b.k - begin < depth ? b.k - begin : depth;
        for (int64_t first = part.left; first < part.right; first += strip_width<T>) {
            const int64_t width = b.n - first < strip_width<T> ? b.n - first : strip_width<T>;
            const T *strip = b.memory + begin * columns + rows * first;
            all_rows(part.bottom - part.top, Operands<T>{rows, a + part.top * lda + begin, lda, 1, strip, padded<T>(width), T(1),
                                                         begin == 0 ? beta : T(1), c + part.top * ldc + first, ldc, width});
        }
    }
}

}  // namespace

template <class T> int multiply(fl_call *call, const Product<T> &g) {
    constexpr bool wide = sizeof(T) == 4 && vector_bytes > 16;
    if constexpr (wide) {
        if (is_along_depth(g)) {
            along_depth(g);
            return FL_OK;
        }
    }
    if (g.k <= tiny_depth && g.m <= tiny_work && g.n <= tiny_work && g.m * g.n * g.k <= tiny_work) {
        tiny(g);
    } else if (is_for_turned(g)) {
        turned(g);
    } else if (is_for_tiles(g)) {
        in_blocks(g.m, g.n, g.k, [&g](const Part &part) { by_tiles(g, part); });
    } else if (fits_blas(g)) {
        by_blas(g);
    } else {
        const int64_t most = g.m > g.n ? g.m : g.n;
        return too_large(call, most > g.k ? most : g.k, most_of_blas);
    }
    return FL_OK;
}

template <class T> int64_t Packed<T>::size(int64_t k, int64_t n) { return k * (n / strip_width<T> + 1) * strip_width<T>; }

template <class T> void Packed<T>::pack(const T *b, bool is_transposed, int64_t products) {
    transposed = is_transposed;
    as_given = products > 1 ? nullptr : b;
    if (as_given != nullptr) return;
    const int64_t across = transposed ? k : 1, down = transposed ? 1 : n;
    T *out = memory;
    for (int64_t begin = 0; begin < k; begin += depth) {
        const int64_t rows = k - begin < depth ? k - begin : depth;
        for (int64_t first = 0; first < n; first += strip_width<T>) {
            const int64_t width = n - first < strip_width<T> ? n - first : strip_width<T>;
            pack_strip(b + first * across + begin * down, across, down, rows, width, out);
            out += rows * padded<T>(width);
        }
    }
}

template <class T> void Packed<T>::multiply(int64_t m, const T *a, int64_t lda, T beta, T *c, int64_t ldc) const {
    if (as_given != nullptr) {
        const int64_t ldb = transposed ? k : n;
        return by_tiles(Product<T>{m, n, k, false, transposed, T(1), beta, a, as_given, c, lda, ldb, ldc}, {0, m, 0, n});
    }
    of_packed(*this, a, lda, beta, c, ldc, {0, m, 0, n});
}

template <class T> void Packed<T>::multiply_in_pieces(int64_t m, const T *a, T beta, T *c) const {
    in_blocks(m, n, k, [this, a, beta, c](const Part &part) { of_packed(*this, a, k, beta, c, n, part); });
}

template int multiply<float>(fl_call *, const Product<float> &);
template int multiply<double>(fl_call *, const Product<double> &);
template void all_rows<float>(int64_t, const Operands<float> &);
template void pack_strip<float>(const float *, int64_t, int64_t, int64_t, int64_t, float *);
template struct Packed<float>;
template struct Packed<double>;

}  // namespace FL_NS
}  // namespace fl

#endif
