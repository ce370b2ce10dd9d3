/* Elementwise operators with two operands: same shapes, Fluid's middle broadcast, and both gradients. */
#ifndef FL_NS

#include "kernels/binary_ops.h"
#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_SELF "kernels/binary.cc"
#include "kernels/targets.h"

namespace fl {
const Topic topic_binary = FL_TOPIC(binary_table);
}

#else

namespace fl {
namespace FL_NS {
namespace {

using namespace fl::binary;

/* Whether the operator refuses 0 as its second operand. */
template <class Op, class T>
constexpr bool divides = std::is_integral<T>::value && (std::is_same<Op, Div>::value || std::is_same<Op, Mod>::value);

template <class T> int64_t first_zero(const T *y, int64_t n) {
    int64_t k = 0;
    while (k < n && y[k] != 0) ++k;
    return k;
}

template <class Op, class T, class R = T> int same(fl_call *call) {
    const T *x = at<T>(call, 0), *y = at<T>(call, 1);
    R *out = at<R>(call, 2);
    const int64_t n = call->i[0];
    if constexpr (divides<Op, T>) {
        const int64_t zero = first_zero(y, n);
        if (zero < n) return zero_divisor(call, zero);
    }
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) out[k] = Op::f(x[k], y[k]);
    return FL_OK;
}

template <class Op, int ACT, class T, class R>
void mid_loop(const T *x, const T *y, R *out, int64_t pre, int64_t n, int64_t post) {
    if (post == 1) {
        for (int64_t p = 0; p < pre; ++p, x += n, out += n) {
            FL_LOOP
            for (int64_t j = 0; j < n; ++j) out[j] = vm::activate<ACT>(Op::f(x[j], y[j]));
        }
        return;
    }
    for (int64_t p = 0; p < pre; ++p) {
        for (int64_t j = 0; j < n; ++j, x += post, out += post) {
            const T value = y[j];
            FL_LOOP
            for (int64_t q = 0; q < post; ++q) out[q] = vm::activate<ACT>(Op::f(x[q], value));
        }
    }
}

/* Additions of real numbers, as in biases, take an activation. */
template <class Op, class T, class R = T> int mid(fl_call *call) {
    const T *x = at<T>(call, 0), *y = at<T>(call, 1);
    R *out = at<R>(call, 2);
    const int64_t pre = call->i[0], n = call->i[1], post = call->i[2];
    if constexpr (divides<Op, T>) {
        const int64_t zero = first_zero(y, n);
        if (zero < n) return zero_divisor(call, zero);
    }
    if constexpr (std::is_same<Op, Add>::value && std::is_floating_point<T>::value) {
        switch (activation(call, 3)) {
            case act_relu: mid_loop<Op, act_relu>(x, y, out, pre, n, post); return FL_OK;
            case act_sigmoid: mid_loop<Op, act_sigmoid>(x, y, out, pre, n, post); return FL_OK;
            case act_tanh: mid_loop<Op, act_tanh>(x, y, out, pre, n, post); return FL_OK;
        }
    }
    mid_loop<Op, act_none>(x, y, out, pre, n, post);
    return FL_OK;
}

/* The operands of a gradient; what the rule does not read is never touched, so it may be NULL. */
template <class T> struct Operands {
    const T *x, *y, *out, *g;
};

template <class Op, class T> FL_INLINE T grad_x(const Operands<T> &o, int64_t k, int64_t ky) {
    T x = 0, y = 0, out = 0;
    if constexpr ((Op::dx_reads & reads_x) != 0) x = o.x[k];
    if constexpr ((Op::dx_reads & reads_y) != 0) y = o.y[ky];
    if constexpr ((Op::dx_reads & reads_out) != 0) out = o.out[k];
    return Op::dx(x, y, out, o.g[k]);
}

template <class Op, class T> FL_INLINE T grad_y(const Operands<T> &o, int64_t k, int64_t ky) {
    T x = 0, y = 0, out = 0;
    if constexpr ((Op::dy_reads & reads_x) != 0) x = o.x[k];
    if constexpr ((Op::dy_reads & reads_y) != 0) y = o.y[ky];
    if constexpr ((Op::dy_reads & reads_out) != 0) out = o.out[k];
    return Op::dy(x, y, out, o.g[k]);
}

template <class T> Operands<T> operands(const fl_call *call) {
    return {at<T>(call, 0), at<T>(call, 1), at<T>(call, 2), at<T>(call, 3)};
}

/* Whether all is there that the wanted gradients read; which operands those are depends on the operator. */
template <class Op> int check_operands(fl_call *call) {
    const int reads = (call->p[4] != nullptr ? Op::dx_reads : 0) | (call->p[5] != nullptr ? Op::dy_reads : 0);
    if ((reads & reads_x) != 0 && call->p[0] == nullptr) return missing(call, 0);
    if ((reads & reads_y) != 0 && call->p[1] == nullptr) return missing(call, 1);
    if ((reads & reads_out) != 0 && call->p[2] == nullptr) return missing(call, 2);
    return FL_OK;
}

template <class Op, class T> int same_grad(fl_call *call) {
    if (const int code = check_operands<Op>(call)) return code;
    const Operands<T> o = operands<T>(call);
    T *dx = at<T>(call, 4), *dy = at<T>(call, 5);
    const int64_t n = call->i[0];
    /* The gradient that overwrites DOut comes last. */
    const bool y_last = dy == o.g;
    for (int turn = 0; turn < 2; ++turn) {
        if ((turn == 1) == y_last) {
            if (dy == nullptr) continue;
            FL_LOOP
            for (int64_t k = 0; k < n; ++k) dy[k] = grad_y<Op>(o, k, k);
        } else {
            if (dx == nullptr) continue;
            FL_LOOP
            for (int64_t k = 0; k < n; ++k) dx[k] = grad_x<Op>(o, k, k);
        }
    }
    return FL_OK;
}

/* DY summed over rows, a strip of columns at a time. */
template <class Op, class T> void column_sums(const Operands<T> &o, T *dy, int64_t pre, int64_t n) {
    constexpr int64_t width = 32;
    in_ranges((n + width - 1) / width, pre * width * static_cast<int64_t>(sizeof(T)), [=](int64_t first, int64_t last) {
        for (int64_t begin = first * width; begin < n && begin < last * width; begin += width) {
            const int64_t count = n - begin < width ? n - begin : width;
            double sum[width] = {};
            if (count == width) { /* so many sums as registers hold */
                for (int64_t p = 0; p < pre; ++p) {
                    FL_LOOP
                    for (int64_t t = 0; t < width; ++t) sum[t] += grad_y<Op>(o, p * n + begin + t, begin + t);
                }
            }
            for (int64_t p = 0; p < pre && count < width; ++p) {
                FL_LOOP
                for (int64_t t = 0; t < count; ++t) sum[t] += grad_y<Op>(o, p * n + begin + t, begin + t);
            }
            for (int64_t t = 0; t < count; ++t) dy[begin + t] = static_cast<T>(sum[t]);
        }
    });
}

template <class Op, class T> int mid_grad(fl_call *call) {
    if (const int code = check_operands<Op>(call)) return code;
    const Operands<T> o = operands<T>(call);
    T *dx = at<T>(call, 4), *dy = at<T>(call, 5);
    const int64_t pre = call->i[0], n = call->i[1], post = call->i[2];
    if (dy != nullptr && post == 1) {
        column_sums<Op>(o, dy, pre, n);
    } else if (dy != nullptr) {
        in_ranges(n, pre * post * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
            for (int64_t j = begin; j < end; ++j) {
                double sum = 0;
                for (int64_t p = 0; p < pre; ++p) {
                    const int64_t row = (p * n + j) * post;
#pragma omp simd reduction(+ : sum)
                    for (int64_t q = 0; q < post; ++q) sum += grad_y<Op>(o, row + q, j);
                }
                dy[j] = static_cast<T>(sum);
            }
        });
    }
    if (dx == nullptr) return FL_OK;
    in_ranges(pre, 2 * n * post * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            if (post == 1) {
                FL_LOOP
                for (int64_t j = 0; j < n; ++j) dx[p * n + j] = grad_x<Op>(o, p * n + j, j);
                continue;
            }
            for (int64_t j = 0; j < n; ++j) {
                const int64_t row = (p * n + j) * post;
                FL_LOOP
                for (int64_t q = 0; q < post; ++q) dx[row + q] = grad_x<Op>(o, row + q, j);
            }
        }
    });
    return FL_OK;
}

int logical_not(fl_call *call) {
    const uint8_t *x = at<uint8_t>(call, 0);
    uint8_t *out = at<uint8_t>(call, 1);
    FL_LOOP
    for (int64_t k = 0; k < call->i[0]; ++k) out[k] = !x[k];
    return FL_OK;
}

}  // namespace

#define FL_FORWARD(NAME, OP, TYPE, T) \
    {NAME TYPE, same<OP, T>, "xxx|z||a,a,a"}, {NAME "_mid" TYPE, mid<OP, T>, "xxx|zzz[i]||abc,b,abc"},
#define FL_ROWS(NAME, OP, TYPE, T)                                                                                  \
    {NAME TYPE, (by_rows<same<OP, T>, Each<T>, Each<T>, Each<T>>), "xxx|z||a,a,a"},                                 \
    {NAME "_mid" TYPE, (by_rows<mid<OP, T>, Each<T, 1, 2>, Whole, Each<T, 1, 2>>), "xxx|zzz[i]||abc,b,abc"},
#define FL_GRAD(NAME, OP, TYPE, T)                                                                                  \
    {NAME "_grad" TYPE, (by_rows<same_grad<OP, T>, Each<T>, Each<T>, Each<T>, Each<T>, Each<T>, Each<T>>),          \
     "nnnxnn|z||a,a,a,a,a,a"},                                                                                      \
    {NAME "_mid_grad" TYPE, mid_grad<OP, T>, "nnnxnn|zzz||abc,b,abc,abc,abc,b"},
#define FL_ARITHMETIC(NAME, OP)             \
    FL_ROWS(NAME, OP, ".f32", float)        \
    FL_ROWS(NAME, OP, ".f64", double)       \
    FL_FORWARD(NAME, OP, ".i32", int32_t)   \
    FL_FORWARD(NAME, OP, ".i64", int64_t)   \
    FL_GRAD(NAME, OP, ".f32", float)        \
    FL_GRAD(NAME, OP, ".f64", double)
#define FL_COMPARED(NAME, OP, TYPE, T)                   \
    {NAME TYPE, same<OP, T, uint8_t>, "xxx|z||a,a,aB"}, \
    {NAME "_mid" TYPE, mid<OP, T, uint8_t>, "xxx|zzz||abc,b,abcB"},
#define FL_COMPARE(NAME, OP)               \
    FL_COMPARED(NAME, OP, ".f32", float)   \
    FL_COMPARED(NAME, OP, ".f64", double)  \
    FL_COMPARED(NAME, OP, ".i32", int32_t) \
    FL_COMPARED(NAME, OP, ".i64", int64_t)

extern const fl_entry binary_table[] = {
    FL_ARITHMETIC("elementwise_add", Add)
    FL_ARITHMETIC("elementwise_sub", Sub)
    FL_ARITHMETIC("elementwise_mul", Mul)
    FL_ARITHMETIC("elementwise_div", Div)
    FL_ARITHMETIC("elementwise_max", Max)
    FL_ARITHMETIC("elementwise_min", Min)
    FL_ARITHMETIC("elementwise_pow", Pow)
    FL_FORWARD("elementwise_mod", Mod, ".i32", int32_t)
    FL_FORWARD("elementwise_mod", Mod, ".i64", int64_t)
    FL_FORWARD("elementwise_floordiv", Div, ".i32", int32_t)
    FL_FORWARD("elementwise_floordiv", Div, ".i64", int64_t)
    FL_COMPARE("equal", Equal)
    FL_COMPARE("not_equal", NotEqual)
    FL_COMPARE("less_than", Less)
    FL_COMPARE("less_equal", LessEqual)
    FL_COMPARE("greater_than", Greater)
    FL_COMPARE("greater_equal", GreaterEqual)
    {"logical_and.u8", same<And, uint8_t>, "xxx|z||a,a,a"},
    {"logical_or.u8", same<Or, uint8_t>, "xxx|z||a,a,a"},
    {"logical_xor.u8", same<Xor, uint8_t>, "xxx|z||a,a,a"},
    {"logical_not.u8", logical_not, "xx|z||a,a"},
    {nullptr, nullptr, nullptr}};

#undef FL_FORWARD
#undef FL_ROWS
#undef FL_GRAD
#undef FL_ARITHMETIC
#undef FL_COMPARED
#undef FL_COMPARE

}  // namespace FL_NS
}  // namespace fl

#endif
