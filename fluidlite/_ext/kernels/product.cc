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
    __builtin_shuffle(x, y, std::conditional_t<sizeof(T) == 4, fl::ShuffleIndices<int32_t>, fl::ShuffleIndices<int64_t>>{__VA_ARGS__})

namespace fl {
template <class I> using ShuffleIndices __attribute__((vector_size(4 * sizeof(I)))) = I;
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
#include "kernels/tiles.h"

namespace fl::FL_NS {
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

template <int COLS, class T> FL_INLINE void all_rows_of(int64_t m, const TileOperands<T> &o) {
    if constexpr (COLS > 1) {
        if (o.width <= (COLS - 1) * lanes<T>) return all_rows_of<COLS - 1>(m, o);
    }
    column_of_tiles<COLS>(m, o);
}

}  // namespace

template <class T> void all_rows(int64_t m, const TileOperands<T> &o) { all_rows_of<strip_vectors>(m, o); }

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

/* Rows and columns of C, and a depth of up to `most_depth` from `begin` on. */
struct Slab {
    int64_t begin, k, top, rows, left, right;
};

/* A slab strip by strip; `o` says how A is read. `panel`: memory for all strips, which are in it already if `packed`; without any, a strip
 * stays as long as it is read, in `own`, or if that is NULL a narrow one on the stack, of which threads may have little. `far`: rows of B are so far from each other that they are asked for ahead also where few rows of A are
 * multiplied by them. */
template <class T> void by_strips(const Product<T> &g, const Slab &slab, TileOperands<T> o, T *own, T *panel, bool is_packed, bool far) {
    alignas(64) T narrow[most_depth * lanes<T>];
    const int64_t strip = own != nullptr ? strip_width<T> : lanes<T>;
    if (own == nullptr) own = narrow;
    const int64_t across = g.trans_b ? g.ldb : 1, down = g.trans_b ? 1 : g.ldb;
    const bool few = slab.rows <= few_to_copy && !(far && may_copy(slab.rows));
    for (int64_t first = slab.left; first < slab.right; first += strip) {
        o.width = slab.right - first < strip ? slab.right - first : strip;
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
constexpr int64_t rows_together = 192, cache_way = 4096, many_pages = 128;

template <class T> bool is_for_copies(const Product<T> &g, const Part &part) {
    const int64_t apart = g.lda * static_cast<int64_t>(sizeof(T));
    const bool far_apart = apart % cache_way == 0 || (g.trans_a && apart >= cache_way / 2 && g.k >= many_pages);
    return vector_bytes > 16 && far_apart && part.bottom - part.top > few_to_copy && part.right - part.left >= 8 * lanes<T>;
}

template <class T> void by_tiles(const Product<T> &g, const Part &part, bool far = false) {
    constexpr int64_t gap = 64 / static_cast<int64_t>(sizeof(T)), room = (most_depth + gap) * (rows_together + gap);
    constexpr int64_t room_of_strip = most_depth * strip_width<T>;
    const int64_t row = g.trans_a ? 1 : g.lda, step = g.trans_a ? g.lda : 1, all = part.bottom - part.top;
    bool copies = is_for_copies(g, part);
    T *own = nullptr, *memory = nullptr, *panel = nullptr;
    const bool parted = vector_bytes > 16 && all > (copies ? rows_together : 2 * rows_together);
    const int64_t strips = parted ? (part.right - part.left + strip_width<T>) * most_depth : 0;
    try {
        own = reinterpret_cast<T *>(Workspace<2>::of_this_thread(static_cast<size_t>(room_of_strip + (copies || parted ? room + strips : 0)) * sizeof(T)));
        memory = own + room_of_strip;
        panel = parted ? memory + room : nullptr;
    } catch (const std::bad_alloc &) {
        copies = false;
    }
    const int64_t together = panel != nullptr ? rows_together : all;
    int64_t begin = 0;
    do {
        const int64_t k = slab_depth(g.k - begin);
        for (int64_t top = part.top; top < part.bottom; top += together) {
            const int64_t rows = part.bottom - top < together ? part.bottom - top : together;
            TileOperands<T> o = {k, g.a + top * row + begin * step, row, step, nullptr, 0, g.alpha, begin == 0 ? g.beta : T(1), nullptr, g.ldc, 0};
            if (copies) {
                const int64_t count = g.trans_a ? k : rows, length = g.trans_a ? rows : k, pitch = length + gap;
                for (int64_t t = 0; t < count; ++t) std::memcpy(memory + t * pitch, o.a + t * g.lda, static_cast<size_t>(length) * sizeof(T));
                o.a = memory, o.row = g.trans_a ? 1 : pitch, o.step = g.trans_a ? pitch : 1;
            }
            by_strips(g, {begin, k, top, rows, part.left, part.right}, o, own, panel, top > part.top, far);
        }
        begin += k;
    } while (begin < g.k);
}

/* A BLAS packs its operands in each call, which for small products takes longer than the product itself, and for few rows up
 * to where it would take several threads. With the largest vectors these loops are faster for all others as well; with smaller ones for
 * those of little work or depth, or of which 256 rows of B, or all of a B that few rows are multiplied by, stay in the caches. */
constexpr int64_t most_work = 1 << 21, most_work_of_few = 1 << 25, few_rows = 64, most_bytes_of_few = 1 << 20;
constexpr int64_t most_work_of_medium = vector_bytes > 16 ? 3 << 25 : most_work, most_bytes_of_medium = 3 << 18;
constexpr int64_t most_work_of_doubles = 1 << 14; /* where processors have wider vectors than those which doubles are compiled for */
constexpr int64_t any_work = int64_t(1) << 40, most_work_of_floats = 1 << 30, rows_that_stay = 256;

template <class T> bool has_work(const Product<T> &g, int64_t most) {
    return g.m <= most && g.n <= most / g.m && g.k <= most / (g.m * g.n);
}

/* Whether `rows` of op(B) have at most so many bytes. */
template <class T> bool fits(const Product<T> &g, int64_t rows, int64_t bytes) {
    return rows <= bytes && g.n <= bytes / static_cast<int64_t>(sizeof(T)) / rows;
}

template <class T> bool is_for_tiles(const Product<T> &g) {
    if (g.m < (g.trans_b ? 8 : 2) || g.n < 4 || g.k == 0) return false;
    if (sizeof(T) == 8 && vector_bytes == 16 && FL_MULTITARGET) return has_work(g, most_work_of_doubles);
    int64_t most = most_work;
    if (vector_bytes == 64) {
        most = any_work;
    } else if (vector_bytes == 32 && sizeof(T) == 4) {
        most = g.m <= rows_that_stay ? any_work : most_work_of_floats;
    }
    if (g.m <= few_rows && fits(g, g.k, most_bytes_of_few)) most = std::max(most, most_work_of_few);
    if (fits(g, std::min(g.k, depth), most_bytes_of_medium)) most = std::max(most, most_work_of_medium);
    return has_work(g, most);
}

/* Calls f with the parts of C that are computed together: blocks of its long sides, or halves where it has none but takes long. */
constexpr int64_t much_work = 1 << 25;

template <class F> void in_blocks(int64_t m, int64_t n, int64_t k, const F &f) {
    const int64_t work = m * n * k;
    int64_t down = work > most_work ? blocks_of(m) : 1, across = work > most_work ? blocks_of(n) : 1;
    if (down * across == 1 && work >= much_work) {
        const auto uneven = [](int64_t length) { return length < 2 * block_unit || 2 * end_of_block(0, 2, length) < length * 9 / 10; };
        if (!uneven(n) || (uneven(m) && n >= 2 * block_unit)) {
            across = 2;
        } else if (!uneven(m)) {
            down = 2;
        }
    }
    in_pieces(down * across, [=, &f](int64_t which) {
        const int64_t i = which / across, j = which % across;
        f({end_of_block(i - 1, down, m), end_of_block(i, down, m), end_of_block(j - 1, across, n), end_of_block(j, across, n)});
    });
}

}  // namespace
}  // namespace fl::FL_NS

#include "kernels/thin_products.h"

namespace fl::FL_NS {
namespace {

/* A part of a product with a matrix that is packed: behind each other the strips of its first rows, of the next ones, ... */
template <class T> void of_packed(const Packed<T> &b, const T *a, int64_t lda, T beta, T *c, int64_t ldc, const Part &part) {
    const int64_t rest = b.n % strip_width<T>, columns = b.n - rest + (rest > 0 ? padded<T>(rest) : 0);
    int64_t begin = 0;
    do {
        const int64_t rows = slab_depth(b.k - begin);
        for (int64_t first = part.left; first < part.right; first += strip_width<T>) {
            const int64_t width = b.n - first < strip_width<T> ? b.n - first : strip_width<T>;
            const T *strip = b.memory + begin * columns + rows * first;
            all_rows(part.bottom - part.top, TileOperands<T>{rows, a + part.top * lda + begin, lda, 1, strip, padded<T>(width), T(1),
                                                         begin == 0 ? beta : T(1), c + part.top * ldc + first, ldc, width});
        }
        begin += rows;
    } while (begin < b.k);
}

}  // namespace

/* Calls f with memory for so many elements, which is not on the stack, of which threads may have little. */
template <class T, class F> int with_room(fl_call *call, int64_t count, const F &f) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    T *memory;
    try {
        memory = reinterpret_cast<T *>(Workspace<4>::of_this_thread(bytes));
    } catch (const std::bad_alloc &) {
        return no_memory(call, static_cast<int64_t>(bytes));
    }
    f(memory);
    return FL_OK;
}

template <class T> int multiply(fl_call *call, const Product<T> &g) {
    constexpr bool wide = sizeof(T) == 4 && vector_bytes > 16;
    if constexpr (wide) {
        if (is_along_depth(g)) return with_room<T>(call, g.n * pitch_of_columns(g), [&g](T *columns) { along_depth(g, columns); });
    }
    if (g.k <= tiny_depth && g.m <= tiny_work && g.n <= tiny_work && g.m * g.n * g.k <= tiny_work) {
        tiny(g);
    } else if (is_for_turned(g)) {
        return with_room<T>(call, g.m * g.n, [&g](T *out) { turned(g, out); });
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
    for (int64_t begin = 0, rows = slab_depth(k); begin < k; begin += rows, rows = slab_depth(k - begin)) {
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
template void all_rows<float>(int64_t, const TileOperands<float> &);
template void pack_strip<float>(const float *, int64_t, int64_t, int64_t, int64_t, float *);
template struct Packed<float>;
#if FL_EVERY_TYPE
template int multiply<double>(fl_call *, const Product<double> &);
template struct Packed<double>;
#endif

}  // namespace fl::FL_NS

#endif
