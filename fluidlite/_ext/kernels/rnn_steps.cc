/* What recurrent kernels share, compiled once for all of them. */
#ifndef FL_NS

#include "kernels/common.h"
#include "kernels/vec_math.h"

#define FL_WIDE
#define FL_SELF "kernels/rnn_steps.cc"
#include "kernels/targets.h"

#else

#include "kernels/rnn_steps.h"

namespace fl::FL_NS {

void Steps::arrange(const int64_t *offsets, bool reverse) {
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

namespace {

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

}  // namespace

template <class T> void activate(int64_t act, T *x, int64_t n) {
    switch (act) {
        case act_relu: return activate_all<act_relu>(x, n);
        case act_sigmoid: return activate_all<act_sigmoid>(x, n);
        case act_unbounded_sigmoid: return activate_all<act_unbounded_sigmoid>(x, n);
        case act_tanh: return activate_all<act_tanh>(x, n);
        default: return;
    }
}

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

template <class T> void apply_clip_slope(T bound, const T *FL_RESTRICT out, T *FL_RESTRICT g, int64_t n) {
    if (!(bound > T(0))) return;
    for (int64_t q = 0; q < n; ++q) g[q] = out[q] >= bound || out[q] <= -bound ? T(0) : g[q];
}

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

template <class T> int sum_over_rows(fl_call *call, int64_t rows, int64_t m, int64_t n, const T *a, const T *b, int64_t ldb, T *c) {
    constexpr int64_t most = 512;
    int code = rows == 0 ? multiply(call, Product<T>{m, n, 0, true, false, T(1), T(0), a, b, c, m, ldb}) : FL_OK;
    for (int64_t first = 0; first < rows && code == FL_OK; first += most) {
        const int64_t k = rows - first < most ? rows - first : most;
        code = multiply(call, Product<T>{m, n, k, true, false, T(1), T(first > 0), a + first * m, b + first * ldb, c, m, ldb});
    }
    return code;
}

#define FL_INSTANCES(T)                                                   \
    template void activate(int64_t, T *, int64_t);                        \
    template void apply_slope(int64_t, const T *, T *, int64_t);          \
    template void clip(T, T *, int64_t);                                  \
    template void apply_clip_slope(T, const T *, T *, int64_t);           \
    template void add_rows(double *, const T *, int64_t, int64_t);        \
    template int sum_over_rows(fl_call *, int64_t, int64_t, int64_t, const T *, const T *, int64_t, T *);
FL_INSTANCES(float)
#if FL_EVERY_TYPE
FL_INSTANCES(double)
#endif
#undef FL_INSTANCES

}  // namespace fl::FL_NS

#endif
