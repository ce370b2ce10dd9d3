/* What recurrent kernels share: the rows of sequences ordered by time, activations of rows, sums of columns. Included once
 * for every instruction set, hence no guard.
 */
#include "kernels/product.h"

namespace fl::FL_NS {

/* Packed rows: the first rows of all sequences, the longest sequence first, then their second rows, and so on. Those of step t
 * are first[t] to first[t + 1]; the k-th of them is row source[first[t] + k] of X and belongs to sequence order[k]. Each step
 * has the sequences of the step before, without those that have ended, which stand at its end. */
struct Steps {
    int64_t sequences, rows, longest;
    int64_t *order, *first, *source;

    Steps(int64_t n_sequences, int64_t n_rows) : sequences(n_sequences), rows(n_rows), longest(0) {}

    void take(Arena &arena) {
        order = arena.take<int64_t>(sequences);
        first = arena.take<int64_t>(rows + 2);
        source = arena.take<int64_t>(rows + 1);
    }

    int64_t count(int64_t t) const { return t < longest ? first[t + 1] - first[t] : 0; }

    /* Without offsets each row is a sequence. */
    void arrange(const int64_t *offsets, bool reverse);

    /* What came before row k of step t: a row of `states`, which is in X's order, or of `initial`, which has one for each
     * sequence; `none` without. */
    template <class T>
    FL_INLINE const T *before(int64_t t, int64_t k, const T *states, const T *initial, int64_t width, const T *none) const {
        if (t > 0) return states + source[first[t - 1] + k] * width;
        return initial != nullptr ? initial + order[k] * width : none;
    }

    /* The same of all rows of a step, one after the other. */
    template <class T> void gather_before(int64_t t, const T *states, const T *initial, int64_t width, T *out) const {
        const int64_t n = count(t);
        for (int64_t k = 0; k < n; ++k, out += width) {
            const T *from = before(t, k, states, initial, width, static_cast<const T *>(nullptr));
            for (int64_t q = 0; q < width; ++q) out[q] = from == nullptr ? T(0) : from[q];
        }
    }

    /* The gradients of initial states from those of the first step; zeros for empty sequences. */
    template <class T> void scatter_initial(const T *packed, int64_t width, T *out) const {
        const int64_t n = count(0);
        for (int64_t k = 0; k < sequences; ++k) {
            T *to = out + order[k] * width;
            for (int64_t q = 0; q < width; ++q) to[q] = k < n ? packed[k * width + q] : T(0);
        }
    }
};

template <class T> FL_INLINE void copy_row(const T *from, int64_t width, T *to) {
    std::memcpy(to, from, static_cast<size_t>(width) * sizeof(T));
}

/* Asks for elements that are read soon. */
template <class T> FL_INLINE void fetch_row(const T *row, int64_t n) {
    for (int64_t k = 0; k < n; k += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(row + k);
}

template <class T> FL_INLINE void zero(T *x, int64_t n) {
    for (int64_t k = 0; k < n; ++k) x[k] = 0;
}

constexpr int64_t act_unbounded_sigmoid = 4; /* besides those of common.h */

/* Activation `act` of n elements. */
template <class T> void activate(int64_t act, T *x, int64_t n);

/* Multiplies g by the slope of activation `act` where its result is `out`. */
template <class T> void apply_slope(int64_t act, const T *out, T *g, int64_t n);

template <class T> void clip(T bound, T *x, int64_t n);

/* No gradient goes through what has been cut off. */
template <class T> void apply_clip_slope(T bound, const T *out, T *g, int64_t n);

/* Adds up `count` rows of n elements, one after the other, in double. */
template <class T> void add_rows(double *sum, const T *rows, int64_t count, int64_t n);

/* C[m,n] = sum over the rows of A[rows,m]' B[rows,n], as the gradient of a weight is: by parts that stay in the caches. */
template <class T> int sum_over_rows(fl_call *call, int64_t rows, int64_t m, int64_t n, const T *a, const T *b, int64_t ldb, T *c);

template <class T> int sum_over_rows(fl_call *call, int64_t rows, int64_t m, int64_t n, const T *a, const T *b, T *c) {
    return sum_over_rows(call, rows, m, n, a, b, n, c);
}

}  // namespace fl::FL_NS
