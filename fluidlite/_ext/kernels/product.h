/* Matrix products: BLAS for all but tiny ones, where its set-up costs more than the work. Included once for every
 * instruction set, hence no guard.
 */

namespace fl {
namespace FL_NS {
namespace {

/* One product C[m,n] = alpha * op(A) op(B) + beta * C, all row-major. */
template <class T> struct Product {
    int64_t m, n, k;
    bool trans_a, trans_b;
    T alpha, beta;
    const T *a, *b;
    T *c;
};

inline void call_blas(char *ta, char *tb, int *m, int *n, int *k, float *alpha, float *a, int *lda, float *b, int *ldb,
                      float *beta, float *c, int *ldc) {
    blas.sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

inline void call_blas(char *ta, char *tb, int *m, int *n, int *k, double *alpha, double *a, int *lda, double *b,
                      int *ldb, double *beta, double *c, int *ldc) {
    blas.dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

constexpr int64_t most_of_blas = std::numeric_limits<int>::max();

/* BLAS is column-major: to it the row-major matrices are their own transposes, so C' = op(B)' op(A)' is asked for. */
template <class T> bool fits_blas(const Product<T> &g) {
    return g.m <= most_of_blas && g.n <= most_of_blas && g.k <= most_of_blas;
}

template <class T> void large(const Product<T> &g) {
    int m = static_cast<int>(g.n), n = static_cast<int>(g.m), k = static_cast<int>(g.k);
    int lda = static_cast<int>(g.trans_a ? g.m : g.k), ldb = static_cast<int>(g.trans_b ? g.k : g.n), ldc = m;
    char ta = g.trans_a ? 'T' : 'N', tb = g.trans_b ? 'T' : 'N';
    T alpha = g.alpha, beta = g.beta;
    const LibraryCall inside;
    choose_threads(static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k));
    call_blas(&tb, &ta, &m, &n, &k, &alpha, const_cast<T *>(g.b), &ldb, const_cast<T *>(g.a), &lda, &beta, g.c, &ldc);
}

constexpr int64_t most_k = 64;      /* depth of a packed strip of B */
constexpr int64_t most_work = 1024; /* multiply-adds up to which the loops here win over BLAS */

/* ROWS rows of C times a strip of WIDTH columns; element (i, p) of A stands at a[i * row + p * step]. The sums are held
 * in vector variables: compilers keep those in registers, which they do not do with arrays. */
template <int ROWS, int WIDTH, class T>
FL_INLINE void block(const Product<T> &g, const T *a, int64_t row, int64_t step, const T *strip, int64_t pitch, T *c,
                     int64_t width) {
    typedef T Lanes __attribute__((vector_size(WIDTH * sizeof(T))));
    Lanes sum[ROWS] = {};
    for (int64_t p = 0; p < g.k; ++p) {
        Lanes b;
        std::memcpy(&b, strip + p * pitch, sizeof b);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; ++i) sum[i] += b * a[i * row + p * step];
    }
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i) {
        T *out = c + i * g.n;
        Lanes result = sum[i] * g.alpha;
        if (g.beta != T(0)) {
            for (int64_t t = 0; t < width; ++t) result[t] += g.beta * out[t];
        }
        std::memcpy(out, &result, static_cast<size_t>(width) * sizeof(T));
    }
}

template <int WIDTH, class T> void strip_of_columns(const Product<T> &g, int64_t first, int64_t width) {
    T packed[most_k * WIDTH];
    const T *strip = g.b + first;
    int64_t pitch = g.n;
    if (g.trans_b || width != WIDTH) {
        const int64_t across = g.trans_b ? g.k : 1, down = g.trans_b ? 1 : g.n;
        for (int64_t p = 0; p < g.k; ++p) {
            for (int64_t t = 0; t < WIDTH; ++t) {
                packed[p * WIDTH + t] = t < width ? g.b[(first + t) * across + p * down] : T(0);
            }
        }
        strip = packed;
        pitch = WIDTH;
    }
    const int64_t row = g.trans_a ? 1 : g.k, step = g.trans_a ? g.m : 1;
    T *c = g.c + first;
    int64_t i = 0;
    for (; i + 4 <= g.m; i += 4) block<4, WIDTH>(g, g.a + i * row, row, step, strip, pitch, c + i * g.n, width);
    for (; i < g.m; ++i) block<1, WIDTH>(g, g.a + i * row, row, step, strip, pitch, c + i * g.n, width);
}

constexpr int narrow_rows = 4; /* as many sums as there are registers for */
constexpr int64_t narrow_columns = 16, narrow_depth = 256, narrow_least_work = 1 << 14;

/* A product with so few columns that a BLAS spends more on packing A than on multiplying: B is packed instead, in strips of
 * a depth that stays in the first cache, and the strips' products are added up in C. */
template <class T> void narrow(const Product<T> &g) {
    alignas(64) T packed[narrow_depth * narrow_columns];
    const int64_t across = g.trans_b ? g.k : 1, down = g.trans_b ? 1 : g.n;
    const int64_t row = g.trans_a ? 1 : g.k, step = g.trans_a ? g.m : 1;
    for (int64_t begin = 0; begin < g.k; begin += narrow_depth) {
        Product<T> part = g;
        part.k = g.k - begin < narrow_depth ? g.k - begin : narrow_depth;
        part.beta = begin == 0 ? g.beta : T(1);
        const T *a = g.a + begin * step, *b = g.b + begin * down;
        for (int64_t p = 0; p < part.k; ++p) {
            for (int64_t t = 0; t < narrow_columns; ++t) {
                packed[p * narrow_columns + t] = t < g.n ? b[t * across + p * down] : T(0);
            }
        }
        int64_t i = 0;
        for (; i + narrow_rows <= g.m; i += narrow_rows) {
            block<narrow_rows, narrow_columns>(part, a + i * row, row, step, packed, narrow_columns, g.c + i * g.n,
                                               g.n);
        }
        for (; i < g.m; ++i) {
            block<1, narrow_columns>(part, a + i * row, row, step, packed, narrow_columns, g.c + i * g.n, g.n);
        }
    }
}

template <class T> bool is_narrow(const Product<T> &g) {
    return g.n >= 4 && g.n <= narrow_columns && g.m >= 4 * g.n && g.m * g.n * g.k >= narrow_least_work;
}

/* Computes nothing and reports it if the product is one for BLAS, and one of its sizes is more than BLAS can count. */
template <class T> int multiply(fl_call *call, const Product<T> &g) {
    if (is_narrow(g)) {
        narrow(g);
        return FL_OK;
    }
    if (g.k <= most_k && g.m <= most_work && g.n <= most_work && g.m * g.n * g.k <= most_work) {
        int64_t first = 0;
        for (; g.n - first > 8; first += 16) {
            strip_of_columns<16>(g, first, g.n - first < 16 ? g.n - first : 16);
        }
        if (first < g.n) strip_of_columns<8>(g, first, g.n - first);
    } else if (fits_blas(g)) {
        large(g);
    } else {
        const int64_t most = g.m > g.n ? g.m : g.n;
        return too_large(call, most > g.k ? most : g.k, most_of_blas);
    }
    return FL_OK;
}

}  // namespace
}  // namespace FL_NS
}  // namespace fl
