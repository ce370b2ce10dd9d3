/* Softmax over rows, its logarithm and its gradient. */
#ifndef FL_NS

#include "kernels/by_rows.h"
#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_WIDE
#define FL_SELF "kernels/softmax.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_softmax = FL_TOPIC(softmax_table);

#else

#include "kernels/softmax_row.h"

namespace fl::FL_NS {
namespace {

template <class T> int softmax(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    const int64_t rows = call->i[0], n = call->i[1];
    softmax_rows(x, out, rows, n, [](int64_t, const RowScale<T> &) {});
    return FL_OK;
}

/* The logarithm of what `softmax` makes. */
template <class T> int log_softmax(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    const int64_t rows = call->i[0], n = call->i[1];
    for (int64_t r = 0; r < rows; ++r, x += n, out += n) {
        const T most = largest(x, n);
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < n; ++j) sum += vm::exp_inside(shifted(x[j], most));
        const T log_sum = vm::log(sum);
        FL_LOOP
        for (int64_t j = 0; j < n; ++j) out[j] = shifted(x[j], most) - log_sum;
    }
    return FL_OK;
}

template <class T> int softmax_grad(fl_call *call) {
    const T *out = at<T>(call, 0), *g = at<T>(call, 1);
    T *dx = at<T>(call, 2);
    const int64_t rows = call->i[0], n = call->i[1];
    for (int64_t r = 0; r < rows; ++r, out += n, g += n, dx += n) {
        T dot = 0;
#pragma omp simd reduction(+ : dot)
        for (int64_t j = 0; j < n; ++j) dot += out[j] * g[j];
        FL_LOOP
        for (int64_t j = 0; j < n; ++j) dx[j] = (g[j] - dot) * out[j];
    }
    return FL_OK;
}

template <class T> constexpr fl_kernel softmax_by_rows = by_rows<softmax<T>, Each<T, 1>, Each<T, 1>>;
template <class T> constexpr fl_kernel log_softmax_by_rows = by_rows<log_softmax<T>, Each<T, 1>, Each<T, 1>>;
template <class T> constexpr fl_kernel softmax_grad_by_rows = by_rows<softmax_grad<T>, Each<T, 1>, Each<T, 1>, Each<T, 1>>;

}  // namespace

extern const fl_entry softmax_table[] = {
    FL_REAL("softmax", softmax_by_rows, "xx|zz||ab,ab")
    FL_REAL("log_softmax", log_softmax_by_rows, "xx|zz||ab,ab")
    FL_REAL("softmax_grad", softmax_grad_by_rows, "xxx|zz||ab,ab,ab")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
