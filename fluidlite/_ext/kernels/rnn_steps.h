/* What recurrent kernels share: the rows of sequences ordered by time, activations of rows, sums of columns. Included once
 * for every instruction set, hence no guard.
 */
#include "kernels/product.h"

namespace fl::FL_NS {
namespace {

/* Hands out parts of the memory that a call keeps; first counts, then gives. */
class Parts {
  public:
    template <class T> T *take(int64_t n) {
        char *part = memory_ == nullptr ? nullptr : memory_ + used_;
        used_ += (n * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
        return reinterpret_cast<T *>(part);
    }

    /* Whether there is memory for what has been counted; what is taken after that is given. */
    bool begin(fl_call *call) {
        bytes_ = used_ + 64;
        char *given = static_cast<char *>(scratch(call, bytes_));
        if (given == nullptr) return false;
        const uintptr_t place = reinterpret_cast<uintptr_t>(given);
        memory_ = given + (64 - place % 64);
        used_ = 0;
        return true;
    }

    int64_t bytes() const { return bytes_; }

  private:
    char *memory_ = nullptr;
    int64_t used_ = 0, bytes_ = 0;
};

/* Packed rows: the first rows of all sequences, the longest sequence first, then their second rows, and so on. Those of step t
 * are first[t] to first[t + 1]; the k-th of them is row source[first[t] + k] of X and belongs to sequence order[k]. Each step
 * has the sequences of the step before, without those that have ended, which stand at its end. */
struct Steps {
    int64_t sequences, rows, longest;
    int64_t *order, *first, *source;

    Steps(int64_t n_sequences, int64_t n_rows) : sequences(n_sequences), rows(n_rows), longest(0) {}

    void take(Parts &parts) {
        order = parts.take<int64_t>(sequences);
        first = parts.take<int64_t>(rows + 2);
        source = parts.take<int64_t>(rows + 1);
    }

    int64_t count(int64_t t) const { return t < longest ? first[t + 1] - first[t] : 0; }

    /* Without offsets each row is a sequence. */
    void arrange(const int64_t *offsets, bool reverse) {
        if (offsets == nullptr) {
            longest = rows > 0;
            first[0] = 0, first[longest] = rows;
            for (int64_t s = 0; s < rows; ++s) order[s] = source[s] = s;
            return;
        }
        for (int64_t s = 0; s < sequences; ++s) {
            const int64_t length = offsets[s + 1] - offsets[s];
            longest = length > longest ? length : longest;
        }
        /* place[n]: how many sequences are longer than n, which is where the first one of n rows comes. */
        int64_t *place = source;
        for (int64_t t = 0; t <= longest; ++t) place[t] = 0;
        for (int64_t s = 0; s < sequences; ++s) ++place[offsets[s + 1] - offsets[s]];
        for (int64_t t = longest, longer = 0; t >= 0; --t) {
            const int64_t here = place[t];
            place[t] = longer;
            longer += here;
        }
        first[0] = 0;
        for (int64_t t = 0; t < longest; ++t) first[t + 1] = first[t] + place[t];
        for (int64_t s = 0; s < sequences; ++s) order[place[offsets[s + 1] - offsets[s]]++] = s;
        for (int64_t t = 0; t < longest; ++t) {
            for (int64_t k = first[t]; k < first[t + 1]; ++k) {
                const int64_t s = order[k - first[t]];
                source[k] = reverse ? offsets[s + 1] - 1 - t : offsets[s] + t;
            }
        }
    }

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

/* Fluid takes sigmoids of nothing below -40 or above 13 in operators on sequences. What is not a number stays so. */
template <int ACT, class T> void activate_all(T *x, int64_t n) {
    for (int64_t q = 0; q < n; ++q) {
        T given = x[q];
        if constexpr (ACT == act_sigmoid) given = given < T(-40) ? T(-40) : given > T(13) ? T(13) : given;
        x[q] = ACT == act_sigmoid             ? vm::sigmoid_inside(given)
               : ACT == act_unbounded_sigmoid ? vm::sigmoid(given)
                                              : vm::activate<ACT>(given);
    }
}

/* Activation `act` of n elements. */
template <class T> void activate(int64_t act, T *x, int64_t n) {
    switch (act) {
        case act_relu: return activate_all<act_relu>(x, n);
        case act_sigmoid: return activate_all<act_sigmoid>(x, n);
        case act_unbounded_sigmoid: return activate_all<act_unbounded_sigmoid>(x, n);
        case act_tanh: return activate_all<act_tanh>(x, n);
        default: return;
    }
}

/* Multiplies g by the slope of activation `act` where its result is `out`. */
template <class T> void apply_slope(int64_t act, const T *FL_RESTRICT out, T *FL_RESTRICT g, int64_t n) {
    switch (act) {
        case act_relu:
            for (int64_t q = 0; q < n; ++q) g[q] = out[q] > T(0) ? g[q] : T(0);
            return;
        case act_sigmoid:
        case act_unbounded_sigmoid:
            for (int64_t q = 0; q < n; ++q) g[q] *= out[q] * (T(1) - out[q]);
            return;
        case act_tanh:
            for (int64_t q = 0; q < n; ++q) g[q] *= T(1) - out[q] * out[q];
            return;
        default: return;
    }
}

template <class T> void clip(T bound, T *x, int64_t n) {
    if (!(bound > T(0))) return;
    for (int64_t q = 0; q < n; ++q) x[q] = x[q] > bound ? bound : x[q] < -bound ? -bound : x[q];
}

/* No gradient goes through what has been cut off. */
template <class T> void apply_clip_slope(T bound, const T *FL_RESTRICT out, T *FL_RESTRICT g, int64_t n) {
    if (!(bound > T(0))) return;
    for (int64_t q = 0; q < n; ++q) g[q] = out[q] >= bound || out[q] <= -bound ? T(0) : g[q];
}

/* Adds up `count` rows of n elements, one after the other, in double. */
template <class T> void add_rows(double *FL_RESTRICT sum, const T *FL_RESTRICT rows, int64_t count, int64_t n) {
    for (; count >= 4; count -= 4, rows += 4 * n) {
        for (int64_t q = 0; q < n; ++q) {
            sum[q] = sum[q] + static_cast<double>(rows[q]) + static_cast<double>(rows[n + q]) +
                     static_cast<double>(rows[2 * n + q]) + static_cast<double>(rows[3 * n + q]);
        }
    }
    for (; count > 0; --count, rows += n) {
        for (int64_t q = 0; q < n; ++q) sum[q] += static_cast<double>(rows[q]);
    }
}

/* C[m,n] = sum over the rows of A[rows,m]' B[rows,n], as the gradient of a weight is: by parts that stay in the caches. */
template <class T> int sum_over_rows(fl_call *call, int64_t rows, int64_t m, int64_t n, const T *a, const T *b, int64_t ldb, T *c) {
    constexpr int64_t most = 512;
    int code = rows == 0 ? multiply(call, Product<T>{m, n, 0, true, false, T(1), T(0), a, b, c, m, ldb}) : FL_OK;
    for (int64_t first = 0; first < rows && code == FL_OK; first += most) {
        const int64_t k = rows - first < most ? rows - first : most;
        code = multiply(call, Product<T>{m, n, k, true, false, T(1), T(first > 0), a + first * m, b + first * ldb, c, m, ldb});
    }
    return code;
}

template <class T> int sum_over_rows(fl_call *call, int64_t rows, int64_t m, int64_t n, const T *a, const T *b, T *c) {
    return sum_over_rows(call, rows, m, n, a, b, n, c);
}

}  // namespace
}  // namespace fl::FL_NS
