/* Matrix products (`product.cc`). Included once for every instruction set, hence no guard. */

namespace fl::FL_NS {

/* One product C[m,n] = alpha * op(A) op(B) + beta * C, all row-major; rows as stored are lda, ldb and ldc elements apart. */
template <class T> struct Product {
    int64_t m, n, k;
    bool trans_a, trans_b;
    T alpha, beta;
    const T *a, *b;
    T *c;
    int64_t lda = trans_a ? m : k, ldb = trans_b ? k : n, ldc = n;
};

/* Computes nothing and reports it if the product is one for BLAS, and one of its sizes is more than BLAS can count. */
template <class T> int multiply(fl_call *call, const Product<T> &g);

/* What a tile is multiplied from: element (i, p) of A stands at a[i * row + p * step], row p of the strip of B at b + p * pitch;
 * C's rows are `ldc` elements apart, and `width` of a row's elements belong to the strip. */
template <class T> struct TileOperands {
    int64_t k;
    const T *a;
    int64_t row, step;
    const T *b;
    int64_t pitch;
    T alpha, beta;
    T *c;
    int64_t ldc, width;
};

template <class T> constexpr int64_t lanes = vector_bytes / sizeof(T);

/* Tiles of the larger products have as many sums as there are registers for. Wide ones read fewer rows of A at a time, which may all want
 * the same place in the first cache. */
template <class T> constexpr int64_t strip_width = strip_vectors * lanes<T>;
constexpr int64_t depth = 256; /* of a strip that stays in the first caches */

/* The depth of the next slab of a product, where so much is left: a slab of next to no depth would go over all of C for it. */
constexpr int64_t most_depth = depth + depth / 4;
FL_INLINE int64_t slab_depth(int64_t left) { return left <= most_depth ? left : depth; }

/* Columns in the memory of a strip of which `width` are used. */
template <class T> FL_INLINE int64_t padded(int64_t width) {
    return width >= strip_width<T> ? strip_width<T> : (width + lanes<T> - 1) / lanes<T> * lanes<T>;
}

/* All m rows of a strip, in tiles of about the same height. */
template <class T> void all_rows(int64_t m, const TileOperands<T> &o);

/* Copies k rows of a strip; elements of B are `across` apart in a row and `down` in a column. */
template <class T> void pack_strip(const T *b, int64_t across, int64_t down, int64_t k, int64_t width, T *out);

/* A matrix B[k,n] that many products share, as a recurrent weight in all time steps: stored once in the order in which the
 * loops of a product read it, which saves each product of few rows the work of packing it. */
template <class T> struct Packed {
    int64_t k, n;
    T *memory = nullptr;        /* room for size(k, n) elements at an address that is a multiple of 64 */
    const T *as_given = nullptr; /* for a single product */
    bool transposed = false;

    Packed(int64_t rows, int64_t columns) : k(rows), n(columns) {}

    static int64_t size(int64_t k, int64_t n);

    void take(Arena &arena) { memory = arena.take<T>(size(k, n)); }

    /* From a matrix that is stored k x n, or n x k if transposed, for so many products. */
    void pack(const T *b, bool is_transposed, int64_t products);

    /* C[m,n] = A[m,k] B + beta C, where beta is 0 or 1, with rows lda and ldc elements apart. */
    void multiply(int64_t m, const T *a, int64_t lda, T beta, T *c, int64_t ldc) const;
    void multiply(int64_t m, const T *a, T beta, T *c) const { multiply(m, a, k, beta, c, n); }

    /* The same, in pieces for several threads where it is large, of a matrix that is packed already. */
    void multiply_in_pieces(int64_t m, const T *a, T beta, T *c) const;
};

}  // namespace fl::FL_NS
