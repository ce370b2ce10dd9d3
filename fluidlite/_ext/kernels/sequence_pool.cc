/* One row for each sequence: sums, largest elements, first or last rows; and their gradients. */
#ifndef FL_NS

#include "kernels/topics.h"

#define FL_SELF "kernels/sequence_pool.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_sequence_pool = FL_TOPIC(sequence_pool_table);

#else

namespace fl::FL_NS {
namespace {

enum Scaling { scale_none = 0, scale_length = 1, scale_root = 2 }; /* what sums are divided by */

inline double factor_of(int64_t scaling, int64_t length) {
    const double n = static_cast<double>(length);
    return scaling == scale_length ? 1 / n : scaling == scale_root ? 1 / std::sqrt(n) : 1.0;
}

constexpr int64_t strip = 32; /* columns summed up side by side */

template <class T> FL_INLINE void sum_columns(const T *x, int64_t n, int64_t width, int64_t count, double factor, T *out) {
    double sum[strip] = {};
    for (int64_t j = 0; j < n; ++j, x += width) {
        for (int64_t t = 0; t < count; ++t) sum[t] += x[t];
    }
    for (int64_t t = 0; t < count; ++t) out[t] = static_cast<T>(sum[t] * factor);
}

/* ints: sequences, rows, width, what to divide by; the float is the result for an empty sequence, here and below. */
template <class T> int sequence_pool_sum(fl_call *call) {
    const T *x = at<T>(call, 0);
    const int64_t *offsets = offsets_at(call, 1);
    T *out = at<T>(call, 2);
    const int64_t n = call->i[0], width = call->i[2];
    for (int64_t s = 0; s < n; ++s, out += width) {
        const int64_t length = offsets[s + 1] - offsets[s];
        const T *rows = x + offsets[s] * width;
        if (length == 0) {
            for (int64_t q = 0; q < width; ++q) out[q] = static_cast<T>(call->f[0]);
            continue;
        }
        const double factor = factor_of(call->i[3], length);
        int64_t first = 0;
        for (; first + strip <= width; first += strip) sum_columns(rows + first, length, width, strip, factor, out + first);
        if (first < width) sum_columns(rows + first, length, width, width - first, factor, out + first);
    }
    return FL_OK;
}

template <class T> int sequence_pool_sum_grad(fl_call *call) {
    const int64_t *offsets = offsets_at(call, 0);
    const T *g = at<T>(call, 1);
    T *dx = at<T>(call, 2);
    const int64_t n = call->i[0], width = call->i[2];
    for (int64_t s = 0; s < n; ++s, g += width) {
        const T factor = static_cast<T>(factor_of(call->i[3], offsets[s + 1] - offsets[s]));
        for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r, dx += width) {
            FL_LOOP
            for (int64_t q = 0; q < width; ++q) dx[q] = g[q] * factor;
        }
    }
    return FL_OK;
}

/* The largest element of each column, and its first row in X (-1 if there is none). What is not a number is larger than
 * any number. */
template <class T> int sequence_pool_max(fl_call *call) {
    const T *x = at<T>(call, 0);
    const int64_t *offsets = offsets_at(call, 1);
    T *FL_RESTRICT out = at<T>(call, 2);
    int32_t *FL_RESTRICT place = at<int32_t>(call, 3);
    const int64_t n = call->i[0], width = call->i[2];
    for (int64_t s = 0; s < n; ++s, out += width, place += width) {
        const bool none = offsets[s] == offsets[s + 1];
        const int32_t first = none ? -1 : static_cast<int32_t>(offsets[s]);
        const T *row = x + offsets[s] * width;
        for (int64_t q = 0; q < width; ++q) {
            out[q] = none ? static_cast<T>(call->f[0]) : row[q];
            place[q] = first;
        }
        for (int64_t r = offsets[s] + 1; r < offsets[s + 1]; ++r) {
            row += width;
            const int32_t here = static_cast<int32_t>(r);
            for (int64_t q = 0; q < width; ++q) {
                const T best = out[q], value = row[q];
                const bool better = (value > best) | ((value != value) & (best == best));
                out[q] = better ? value : best;
                place[q] = better ? here : place[q];
            }
        }
    }
    return FL_OK;
}

template <class T> int sequence_pool_max_grad(fl_call *call) {
    const int64_t *offsets = offsets_at(call, 0);
    const int32_t *place = at<int32_t>(call, 1);
    const T *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    const int64_t n = call->i[0], width = call->i[2];
    for (int64_t s = 0; s < n; ++s, g += width, place += width) {
        for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r, dx += width) {
            const int32_t here = static_cast<int32_t>(r);
            FL_LOOP
            for (int64_t q = 0; q < width; ++q) dx[q] = place[q] == here ? g[q] : T(0);
        }
    }
    return FL_OK;
}

/* The first row of each sequence, or the last one if ints[3] is not 0. */
template <class T> int sequence_pool_end(fl_call *call) {
    const T *x = at<T>(call, 0);
    const int64_t *offsets = offsets_at(call, 1);
    T *out = at<T>(call, 2);
    const int64_t n = call->i[0], width = call->i[2];
    for (int64_t s = 0; s < n; ++s, out += width) {
        const T *row = x + (call->i[3] ? offsets[s + 1] - 1 : offsets[s]) * width;
        const bool none = offsets[s] == offsets[s + 1];
        for (int64_t q = 0; q < width; ++q) out[q] = none ? static_cast<T>(call->f[0]) : row[q];
    }
    return FL_OK;
}

template <class T> int sequence_pool_end_grad(fl_call *call) {
    const int64_t *offsets = offsets_at(call, 0);
    const T *g = at<T>(call, 1);
    T *dx = at<T>(call, 2);
    const int64_t n = call->i[0], width = call->i[2];
    for (int64_t k = 0; k < call->i[1] * width; ++k) dx[k] = 0;
    for (int64_t s = 0; s < n; ++s, g += width) {
        if (offsets[s] == offsets[s + 1]) continue;
        T *row = dx + (call->i[3] ? offsets[s + 1] - 1 : offsets[s]) * width;
        for (int64_t q = 0; q < width; ++q) row[q] = g[q];
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry sequence_pool_table[] = {
    FL_REAL("sequence_pool_sum", sequence_pool_sum, "xxx|zzzz|f|bc,a+L,ac")
    FL_REAL("sequence_pool_sum_grad", sequence_pool_sum_grad, "xxx|zzzz||a+L,ac,bc")
    FL_REAL("sequence_pool_max", sequence_pool_max, "xxxx|zmz|f|bc,a+L,ac,acI")
    FL_REAL("sequence_pool_max_grad", sequence_pool_max_grad, "xxxx|zmz||a+L,acI,ac,bc")
    FL_REAL("sequence_pool_end", sequence_pool_end, "xxx|zzzz|f|bc,a+L,ac")
    FL_REAL("sequence_pool_end_grad", sequence_pool_end_grad, "xxx|zzzz||a+L,ac,bc")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
