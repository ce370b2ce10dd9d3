/* Matrix products: loops of our own, and BLAS where it is faster.
 *
 * The loops keep a tile of C in registers and read B in strips as wide as the tile, one row of the strip behind the other,
 * so that a strip stays in the first cache for all rows of A. A is read where it is, but for larger products (`product_blocks.h`).
 */
#ifndef FL_NS

#include "fork_gate.h"
#include "kernels/blas.h"
#include "kernels/common.h"
#include "parallel.h"

/* How wide the registers of each instruction set are. */
namespace fl {
namespace avx512 {
constexpr int vector_bytes = 64;
}
namespace avx2 {
constexpr int vector_bytes = 32;
}
namespace baseline {
constexpr int vector_bytes = 16;
}
}  // namespace fl

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

namespace fl {
namespace {

/* Memory for packed operands that the products of a thread use one after the other; NULL if there is none. */
void *product_memory(int64_t bytes) {
    struct Memory {
        char *memory = nullptr;
        int64_t bytes = 0;
        ~Memory() { delete[] memory; }
    };
    static thread_local Memory kept;
    if (kept.bytes < bytes) {
        delete[] kept.memory;
        kept.bytes = 0;
        kept.memory = new (std::nothrow) char[static_cast<size_t>(bytes)];
        if (kept.memory == nullptr) return nullptr;
        kept.bytes = bytes;
    }
    return kept.memory + (64 - reinterpret_cast<uintptr_t>(kept.memory) % 64) % 64;
}

}  // namespace
}  // namespace fl

#define FL_SELF "kernels/product.cc"
#include "kernels/targets.h"

namespace fl {
Blas blas;
}

#else

#include "kernels/product.h"
#include "kernels/product_tiles.h"
#include "kernels/product_blocks.h"

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
    return g.m <= most_of_blas && g.n <= most_of_blas && g.k <= most_of_blas;
}

/* Rows or columns of C that are computed together: enough that packing the other operand anew for each block costs little
 * (fewer where there would be one block only), and, but for the last, a multiple of what any BLAS computes at a time. */
constexpr int64_t block = 512, block_unit = 32;

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
        int lda = static_cast<int>(g.trans_a ? g.m : g.k), ldb = static_cast<int>(g.trans_b ? g.k : g.n);
        int ldc = static_cast<int>(g.n);
        char ta = g.trans_a ? 'T' : 'N', tb = g.trans_b ? 'T' : 'N';
        T alpha = g.alpha, beta = g.beta;
        T *a = const_cast<T *>(g.a) + (g.trans_a ? row : row * g.k), *b = const_cast<T *>(g.b) + (g.trans_b ? column * g.k : column);
        call_blas(&tb, &ta, &m, &n, &k, &alpha, b, &ldb, a, &lda, &beta, g.c + row * g.n + column, &ldc);
    });
}

/* Up to this depth and so many multiply-adds nothing is prepared but what cannot be read as it is. */
constexpr int64_t tiny_depth = 64, tiny_work = 1024;

template <int WIDTH, class T> void tiny_strip(const Product<T> &g, int64_t first, int64_t width) {
    T packed[tiny_depth * WIDTH];
    Operands<T> o = {g.k, g.a, g.trans_a ? 1 : g.k, g.trans_a ? g.m : 1, g.b + first, g.n, g.alpha, g.beta, g.c + first, g.n, width};
    if (g.trans_b || width != WIDTH) {
        const int64_t across = g.trans_b ? g.k : 1, down = g.trans_b ? 1 : g.n;
        for (int64_t p = 0; p < g.k; ++p) {
            for (int64_t t = 0; t < WIDTH; ++t) packed[p * WIDTH + t] = t < width ? g.b[(first + t) * across + p * down] : T(0);
        }
        o.b = packed;
        o.pitch = WIDTH;
    }
    constexpr int width_of_one = WIDTH < lanes<T> ? WIDTH : lanes<T>, columns = WIDTH / width_of_one;
    constexpr int rows = columns <= 2 ? 4 : 8 / columns;
    int64_t i = 0;
    for (; i + rows <= g.m; i += rows, o.a += rows * o.row, o.c += rows * g.n) tile<rows, columns, width_of_one>(o);
    for (; i < g.m; ++i, o.a += o.row, o.c += g.n) tile<1, columns, width_of_one>(o);
}

template <class T> void tiny(const Product<T> &g) {
    int64_t first = 0;
    for (; g.n - first > 8; first += 16) tiny_strip<16>(g, first, g.n - first < 16 ? g.n - first : 16);
    if (first < g.n) tiny_strip<8>(g, first, g.n - first);
}

/* The columns `from` to `to` of C. */
template <class T> void by_tiles(const Product<T> &g, int64_t from, int64_t to) {
    alignas(64) T packed[depth * strip_width<T>];
    const int64_t across = g.trans_b ? g.k : 1, down = g.trans_b ? 1 : g.n;
    const int64_t row = g.trans_a ? 1 : g.k, step = g.trans_a ? g.m : 1;
    for (int64_t begin = 0; begin == 0 || begin < g.k; begin += depth) {
        const int64_t k = g.k - begin < depth ? g.k - begin : depth;
        for (int64_t first = from; first < to; first += strip_width<T>) {
            const int64_t width = to - first < strip_width<T> ? to - first : strip_width<T>;
            const T *b = g.b + first * across + begin * down;
            Operands<T> o = {k, g.a + begin * step, row, step, b, down, g.alpha, begin == 0 ? g.beta : T(1), g.c + first, g.n, width};
            /* Few rows are not worth a copy of what can be read as it is. */
            if (g.trans_b || width != padded<T>(width) || g.m > 2 * tile_rows) {
                pack_strip(b, across, down, k, width, packed);
                o.b = packed;
                o.pitch = padded<T>(width);
            }
            all_rows(g.m, o);
        }
    }
}

/* A BLAS packs its operands in each call, which below this takes longer than the product itself; for few rows that is so
 * up to where it would take several threads. Smaller vectors read a B that the second cache does not hold slower than that. */
constexpr int64_t most_work = 1 << 21, most_work_of_few = 1 << 25, few_rows = 64;
constexpr int64_t most_bytes_of_few = vector_bytes == 64 ? int64_t(1) << 40 : 1 << 20;

/* Larger ones are made in blocks, as a BLAS does, if vectors are as wide as that takes. */
template <class T> bool is_for_blocks(const Product<T> &g) {
    constexpr double most = vector_bytes == 64 ? 1e300 : vector_bytes == 32 ? 1 << 25 : 0;
    return g.m >= 2 && g.n >= 8 && g.k > 0 && static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) <= most;
}

template <class T> bool is_for_tiles(const Product<T> &g) {
    if (g.m < (g.trans_b ? 8 : 2) || g.n < 4 || g.k == 0) return false;
    const bool few = g.m <= few_rows && g.k <= most_work_of_few && g.n <= most_bytes_of_few / static_cast<int64_t>(sizeof(T)) / g.k;
    const int64_t most = few ? most_work_of_few : most_work;
    return g.m <= most && g.n <= most && g.k <= most && g.m * g.n <= most && g.m * g.n * g.k <= most;
}

}  // namespace

template <class T> int multiply(fl_call *call, const Product<T> &g) {
    if (g.k <= tiny_depth && g.m <= tiny_work && g.n <= tiny_work && g.m * g.n * g.k <= tiny_work) {
        tiny(g);
    } else if (is_for_tiles(g)) {
        const int64_t blocks = g.m * g.n * g.k <= most_work ? 1 : blocks_of(g.n);
        in_pieces(blocks, [&g, blocks](int64_t which) {
            by_tiles(g, end_of_block(which - 1, blocks, g.n), end_of_block(which, blocks, g.n));
        });
    } else if (is_for_blocks(g)) {
        return by_blocks(call, g);
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

template <class T> void Packed<T>::multiply(int64_t m, const T *a, T beta, T *c) const {
    if (as_given != nullptr) return by_tiles(Product<T>{m, n, k, false, transposed, T(1), beta, a, as_given, c}, 0, n);
    const T *strip = memory;
    for (int64_t begin = 0; begin == 0 || begin < k; begin += depth) {
        const int64_t rows = k - begin < depth ? k - begin : depth;
        for (int64_t first = 0; first < n; first += strip_width<T>) {
            const int64_t width = n - first < strip_width<T> ? n - first : strip_width<T>;
            all_rows(m, Operands<T>{rows, a + begin, k, 1, strip, padded<T>(width), T(1), begin == 0 ? beta : T(1), c + first, n, width});
            strip += rows * padded<T>(width);
        }
    }
}

template int multiply<float>(fl_call *, const Product<float> &);
template int multiply<double>(fl_call *, const Product<double> &);
template struct Packed<float>;
template struct Packed<double>;

}  // namespace FL_NS
}  // namespace fl

#endif
