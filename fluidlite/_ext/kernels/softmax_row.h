/* The softmax of one row; included once for every instruction set, hence no guard. */

namespace fl::FL_NS {
namespace {

/* Writes the softmax of x to out (which may be x) and returns the largest element and the logarithm of the sum of the
 * shifted exponentials. As in Fluid, elements more than 64 below the largest count as 64 below it, if FLOORED. */
template <class T> struct RowScale {
    T largest, log_sum;
};

template <class T> FL_INLINE T shifted(T x, T largest) {
    const T d = x - largest;
    return d < T(-64) ? T(-64) : d;
}

/* In four parts at once, so that a comparison need not wait for the one before it. */
template <class T> FL_INLINE T largest(const T *x, int64_t n) {
    const int64_t part = n / 4;
    const T *second = x + part, *third = second + part, *fourth = third + part;
    T a = -std::numeric_limits<T>::infinity(), b = a, c = a, d = a;
#pragma omp simd reduction(max : a, b, c, d)
    for (int64_t j = 0; j < part; ++j) {
        a = x[j] > a ? x[j] : a;
        b = second[j] > b ? second[j] : b;
        c = third[j] > c ? third[j] : c;
        d = fourth[j] > d ? fourth[j] : d;
    }
    for (int64_t j = 4 * part; j < n; ++j) a = x[j] > a ? x[j] : a;
    a = b > a ? b : a;
    c = d > c ? d : c;
    return c > a ? c : a;
}

template <bool FLOORED = true, class T> FL_INLINE RowScale<T> softmax_row(const T *x, T *out, int64_t n) {
    const T most = largest(x, n);
    FL_LOOP
    for (int64_t j = 0; j < n; ++j) out[j] = FLOORED ? vm::exp_inside(shifted(x[j], most)) : vm::exp(x[j] - most);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) sum += out[j];
    const T scale = T(1) / sum;
    FL_LOOP
    for (int64_t j = 0; j < n; ++j) out[j] *= scale;
    return {most, vm::log(sum)};
}

/* `softmax_row` of all rows, and f(row, what it returns) for each. Short rows go through exp and log together. */
constexpr int64_t narrow = 32, narrow_block = 32;

template <class T, class F> FL_INLINE void softmax_rows(const T *x, T *out, int64_t rows, int64_t n, const F &f) {
    if (n >= narrow) {
        for (int64_t r = 0; r < rows; ++r) f(r, softmax_row(x + r * n, out + r * n, n));
        return;
    }
    for (int64_t first = 0; first < rows; first += narrow_block) {
        const int64_t count = rows - first < narrow_block ? rows - first : narrow_block;
        const T *const from = x + first * n;
        T *const to = out + first * n;
        T most[narrow_block], sums[narrow_block];
        for (int64_t r = 0; r < count; ++r) {
            T found = -std::numeric_limits<T>::infinity();
            for (int64_t j = r * n; j < (r + 1) * n; ++j) found = from[j] > found ? from[j] : found;
            most[r] = found;
            for (int64_t j = r * n; j < (r + 1) * n; ++j) to[j] = shifted(from[j], found);
        }
        FL_LOOP
        for (int64_t k = 0; k < count * n; ++k) to[k] = vm::exp_inside(to[k]);
        for (int64_t r = 0; r < count; ++r) {
            T sum = 0;
            for (int64_t j = r * n; j < (r + 1) * n; ++j) sum += to[j];
            sums[r] = sum;
            const T scale = T(1) / sum;
            for (int64_t j = r * n; j < (r + 1) * n; ++j) to[j] *= scale;
        }
        FL_LOOP
        for (int64_t r = 0; r < count; ++r) sums[r] = vm::log(sums[r]);
        for (int64_t r = 0; r < count; ++r) f(first + r, RowScale<T>{most[r], sums[r]});
    }
}

}  // namespace
}  // namespace fl::FL_NS
