/* Matrix products, with bias and activation, and batches of them. */
#ifndef FL_NS

#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_SELF "kernels/gemm.cc"
#include "kernels/targets.h"

namespace fl {
const Topic topic_gemm = FL_TOPIC(gemm_table);
}

#else

#include "kernels/product.h"

namespace fl {
namespace FL_NS {
namespace {

template <int ACT, class T> void finish(T *c, const T *bias, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; ++i, c += n) {
        if (bias != nullptr) {
            FL_LOOP
            for (int64_t j = 0; j < n; ++j) c[j] = vm::activate<ACT>(c[j] + bias[j]);
        } else if (ACT != act_none) {
            FL_LOOP
            for (int64_t j = 0; j < n; ++j) c[j] = vm::activate<ACT>(c[j]);
        }
    }
}

template <class T> int gemm(fl_call *call) {
    const int64_t *i = call->i;
    const Product<T> g = {i[0],
                          i[1],
                          i[2],
                          i[3] != 0,
                          i[4] != 0,
                          static_cast<T>(call->f[0]),
                          static_cast<T>(call->f[1]),
                          at<T>(call, 0),
                          at<T>(call, 1),
                          at<T>(call, 2)};
    if (g.m == 0 || g.n == 0) return FL_OK;
    if (const int code = multiply(call, g)) return code;
    const T *bias = call->n_p > 3 ? at<T>(call, 3) : nullptr;
    switch (activation(call, 5)) {
        case act_relu: finish<act_relu>(g.c, bias, g.m, g.n); break;
        case act_sigmoid: finish<act_sigmoid>(g.c, bias, g.m, g.n); break;
        case act_tanh: finish<act_tanh>(g.c, bias, g.m, g.n); break;
        default: finish<act_none>(g.c, bias, g.m, g.n);
    }
    return FL_OK;
}

template <class T> int gemm_batched(fl_call *call) {
    const int64_t *i = call->i;
    for (int64_t b = 0; b < i[5]; ++b) {
        const Product<T> g = {i[0],
                              i[1],
                              i[2],
                              i[3] != 0,
                              i[4] != 0,
                              static_cast<T>(call->f[0]),
                              static_cast<T>(call->f[1]),
                              at<T>(call, 0) + b * i[6],
                              at<T>(call, 1) + b * i[7],
                              at<T>(call, 2) + b * i[8]};
        if (g.m == 0 || g.n == 0) continue;
        if (const int code = multiply(call, g)) return code;
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry gemm_table[] = {
    {"gemm.f32", gemm<float>, "xxx[n]|zzzii[i]|ff|ac,cb,ab,b"},
    {"gemm.f64", gemm<double>, "xxx[n]|zzzii[i]|ff|ac,cb,ab,b"},
    {"gemm_batched.f32", gemm_batched<float>, "xxx|zzziizzzz|ff|?"},
    {"gemm_batched.f64", gemm_batched<double>, "xxx|zzziizzzz|ff|?"},
    {nullptr, nullptr, nullptr}};

}  // namespace FL_NS
}  // namespace fl

#endif
