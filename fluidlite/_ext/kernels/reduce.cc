/* Reductions over the middle of [pre, n, post], and their gradients. */
#ifndef FL_NS

#include "kernels/by_rows.h"
#include "kernels/topics.h"

#define FL_SELF "kernels/reduce.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_reduce = FL_TOPIC(reduce_table);

#else

namespace fl::FL_NS {
namespace {

constexpr int64_t strip = 32; /* columns reduced side by side when post is not 1 */

template <class T> using total_t = arithmetic_t<sum_t<T>>;

template <class T> total_t<T> row_sum(const T *x, int64_t n) {
    total_t<T> sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) sum += static_cast<total_t<T>>(x[j]);
    return sum;
}

template <class T> int reduce_sum(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    const int64_t pre = call->i[0], n = call->i[1], post = call->i[2];
    total_t<T> factor = 1;
    if constexpr (std::is_floating_point<T>::value) factor = call->f[0];
    for (int64_t p = 0; p < pre; ++p, x += n * post, out += post) {
        if (post == 1) {
            out[0] = static_cast<T>(row_sum(x, n) * factor);
            continue;
        }
        for (int64_t begin = 0; begin < post; begin += strip) {
            const int64_t count = post - begin < strip ? post - begin : strip;
            total_t<T> sum[strip] = {};
            for (int64_t j = 0; j < n; ++j) {
                const T *row = x + j * post + begin;
                for (int64_t t = 0; t < count; ++t) sum[t] += static_cast<total_t<T>>(row[t]);
            }
            for (int64_t t = 0; t < count; ++t) out[begin + t] = static_cast<T>(sum[t] * factor);
        }
    }
    return FL_OK;
}

/* What is not a number must not vanish from a largest or smallest element; its place is never the best. */
struct Largest {
    template <class T> static FL_INLINE bool better(T a, T b) { return a > b || (b != b && a == a); }
    template <class T> static FL_INLINE T join(T a, T b) { return larger(a, b); }
};
struct Smallest {
    template <class T> static FL_INLINE bool better(T a, T b) { return a < b || (b != b && a == a); }
    template <class T> static FL_INLINE T join(T a, T b) { return static_cast<int>(a < b) | static_cast<int>(a != a) ? a : b; }
};
struct Multiply {
    template <class T> static FL_INLINE T join(T a, T b) { return product_of(a, b); }
};
struct All {
    template <class T> static FL_INLINE T join(T a, T b) { return a & b; }
};
struct Any {
    template <class T> static FL_INLINE T join(T a, T b) { return a | b; }
};

/* The elements of a row joined: each sixteenth by itself, then these, on every machine alike. */
template <class Op, class T> T join_row(const T *x, int64_t n) {
    constexpr int64_t lanes = 16;
    T found[lanes];
    int64_t j = 0;
    if (n >= lanes) {
        for (int64_t t = 0; t < lanes; ++t) found[t] = x[t];
        for (j = lanes; j + lanes <= n; j += lanes) {
#pragma omp simd
            for (int64_t t = 0; t < lanes; ++t) found[t] = Op::join(x[j + t], found[t]);
        }
        for (int64_t t = 1; t < lanes; ++t) found[0] = Op::join(found[t], found[0]);
    } else if (n > 0) {
        found[0] = x[j++];
    } else {
        return T(0);
    }
    for (; j < n; ++j) found[0] = Op::join(x[j], found[0]);
    return found[0];
}

/* Out = x[0] joined with x[1], x[2], ... */
template <class Op, class T> int reduce_join(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    const int64_t pre = call->i[0], n = call->i[1], post = call->i[2];
    for (int64_t p = 0; p < pre; ++p, x += n * post, out += post) {
        if (post == 1) {
            out[0] = join_row<Op>(x, n);
            continue;
        }
        for (int64_t q = 0; q < post; ++q) out[q] = n == 0 ? T(0) : x[q];
        for (int64_t j = 1; j < n; ++j) {
            const T *row = x + j * post;
            FL_LOOP
            for (int64_t q = 0; q < post; ++q) out[q] = Op::join(row[q], out[q]);
        }
    }
    return FL_OK;
}

template <class Op, class T> int arg_best(fl_call *call) {
    const T *x = at<T>(call, 0);
    int64_t *out = at<int64_t>(call, 1);
    const int64_t pre = call->i[0], n = call->i[1], post = call->i[2];
    for (int64_t p = 0; p < pre; ++p, x += n * post) {
        for (int64_t q = 0; q < post; ++q) {
            int64_t best = 0;
            for (int64_t j = 1; j < n; ++j) {
                if (Op::better(x[j * post + q], x[best * post + q])) best = j;
            }
            *out++ = best;
        }
    }
    return FL_OK;
}

template <class T> int reduce_fill(fl_call *call) {
    const T *g = at<T>(call, 0);
    T *dx = at<T>(call, 1);
    const int64_t pre = call->i[0], n = call->i[1], post = call->i[2];
    const T factor = static_cast<T>(call->f[0]);
    for (int64_t p = 0; p < pre; ++p, g += post) {
        if (post == 1) {
            const T value = g[0] * factor;
            for (int64_t j = 0; j < n; ++j) *dx++ = value;
            continue;
        }
        for (int64_t j = 0; j < n; ++j, dx += post) {
            FL_LOOP
            for (int64_t q = 0; q < post; ++q) dx[q] = g[q] * factor;
        }
    }
    return FL_OK;
}

/* Every element that equals the extremum gets the whole gradient, as in Fluid. */
template <class T> int reduce_extremum_grad(fl_call *call) {
    const T *x = at<T>(call, 0), *out = at<T>(call, 1), *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    const int64_t pre = call->i[0], n = call->i[1], post = call->i[2];
    for (int64_t p = 0; p < pre; ++p, out += post, g += post) {
        if (post == 1) {
            const T best = out[0], value = g[0];
            FL_LOOP
            for (int64_t j = 0; j < n; ++j) dx[j] = x[j] == best ? value : T(0);
            x += n;
            dx += n;
            continue;
        }
        for (int64_t j = 0; j < n; ++j, x += post, dx += post) {
            FL_LOOP
            for (int64_t q = 0; q < post; ++q) dx[q] = x[q] == out[q] ? g[q] : T(0);
        }
    }
    return FL_OK;
}

template <class T> int squared_l2_norm(fl_call *call) {
    const T *x = at<T>(call, 0);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < call->i[0]; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    *at<T>(call, 1) = static_cast<T>(sum);
    return FL_OK;
}

/* X, scaled down to the norm in f[0] if its own is larger. */
template <class T> int clip_by_norm(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < call->i[0]; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    const double norm = std::sqrt(sum);
    const T factor = static_cast<T>(norm <= call->f[0] ? 1.0 : call->f[0] / norm);
    FL_LOOP
    for (int64_t k = 0; k < call->i[0]; ++k) out[k] = x[k] * factor;
    return FL_OK;
}

template <class T> constexpr fl_kernel reduce_sum_by_rows = by_rows<reduce_sum<T>, Each<T, 1, 2>, Each<T, 2>>;
template <class T> constexpr fl_kernel reduce_fill_by_rows = by_rows<reduce_fill<T>, Each<T, 2>, Each<T, 1, 2>>;
template <class T> constexpr fl_kernel reduce_max = reduce_join<Largest, T>;
template <class T> constexpr fl_kernel reduce_min = reduce_join<Smallest, T>;
template <class T> constexpr fl_kernel reduce_prod = reduce_join<Multiply, T>;
template <class T> constexpr fl_kernel arg_max = arg_best<Largest, T>;
template <class T> constexpr fl_kernel arg_min = arg_best<Smallest, T>;

}  // namespace

extern const fl_entry reduce_table[] = {
    FL_REAL("reduce_sum", reduce_sum_by_rows, "xx|zzz|f|abc,ac")
    {"reduce_sum.i32", reduce_sum<int32_t>, "xx|zzz|[f]|abc,ac"},
    {"reduce_sum.i64", reduce_sum<int64_t>, "xx|zzz|[f]|abc,ac"},
    FL_NUMBER("reduce_max", reduce_max, "xx|zzz||abc,ac")
    FL_NUMBER("reduce_min", reduce_min, "xx|zzz||abc,ac")
    FL_NUMBER("reduce_prod", reduce_prod, "xx|zzz||abc,ac")
    {"reduce_all.u8", FL_ONCE(reduce_join<All, uint8_t>), "xx|zzz||abcB,acB"},
    {"reduce_any.u8", FL_ONCE(reduce_join<Any, uint8_t>), "xx|zzz||abcB,acB"},
    FL_NUMBER("arg_max", arg_max, "xx|zzz||abc,acL")
    FL_NUMBER("arg_min", arg_min, "xx|zzz||abc,acL")
    FL_REAL("reduce_fill", reduce_fill_by_rows, "xx|zzz|f|ac,abc")
    FL_REAL("reduce_max_grad", reduce_extremum_grad, "xxxx|zzz||abc,ac,ac,abc")
    FL_REAL("reduce_min_grad", reduce_extremum_grad, "xxxx|zzz||abc,ac,ac,abc")
    FL_REAL("squared_l2_norm", squared_l2_norm, "xx|z||a,1")
    FL_REAL("clip_by_norm", clip_by_norm, "xx|z|f|a,a")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
