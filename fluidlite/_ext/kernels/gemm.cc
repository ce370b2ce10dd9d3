/* Matrix products, with bias and activation, and batches of them. */
#ifndef FL_NS

#include <atomic>

#include "kernels/topics.h"
#include "kernels/vec_math.h"
#include "parallel.h"

#define FL_WIDE
#define FL_SELF "kernels/gemm.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_gemm = FL_TOPIC(gemm_table);

#else

#include "kernels/product.h"

namespace fl::FL_NS {
namespace {

template <int ACT, class T> void finish(T *first, const T *bias, int64_t m, int64_t n) {
    if (bias == nullptr && ACT == act_none) return;
    in_ranges(m, 2 * n * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        T *c = first + begin * n;
        for (int64_t i = begin; i < end; ++i, c += n) {
            if (bias != nullptr) {
                FL_LOOP
                for (int64_t j = 0; j < n; ++j) c[j] = vm::activate<ACT>(c[j] + bias[j]);
            } else {
                FL_LOOP
                for (int64_t j = 0; j < n; ++j) c[j] = vm::activate<ACT>(c[j]);
            }
        }
    });
}

/* Adds operand 3, if there is one, to the rows of C and applies the activation that integer `which` names. */
template <class T> void finish(const fl_call *call, int which, T *c, int64_t m, int64_t n) {
    const T *bias = call->n_p > 3 ? at<T>(call, 3) : nullptr;
    switch (activation(call, which)) {
        case act_relu: finish<act_relu>(c, bias, m, n); break;
        case act_sigmoid: finish<act_sigmoid>(c, bias, m, n); break;
        case act_tanh: finish<act_tanh>(c, bias, m, n); break;
        default: finish<act_none>(c, bias, m, n);
    }
}

/* The product that a call describes, on matrices so many elements behind its operands. */
template <class T> Product<T> product(const fl_call *call, int64_t a = 0, int64_t b = 0, int64_t c = 0) {
    const int64_t *i = call->i;
    const T alpha = static_cast<T>(call->f[0]), beta = static_cast<T>(call->f[1]);
    T *const first = at<T>(call, 0), *const second = at<T>(call, 1), *const result = at<T>(call, 2);
    return {i[0], i[1], i[2], i[3] != 0, i[4] != 0, alpha, beta, first + a, second + b, result + c};
}

template <class T> int gemm(fl_call *call) {
    const Product<T> g = product<T>(call);
    if (g.m == 0 || g.n == 0) return FL_OK;
    if (const int code = multiply(call, g)) return code;
    finish(call, 5, g.c, g.m, g.n);
    return FL_OK;
}

template <class T> int gemm_pack(fl_call *call) {
    Packed<T> packed(call->i[0], call->i[1]);
    packed.memory = at<T>(call, 1);
    packed.pack(at<T>(call, 0), call->i[2] != 0, std::numeric_limits<int64_t>::max());
    return FL_OK;
}

template <class T> int gemm_packed(fl_call *call) {
    const int64_t m = call->i[0], n = call->i[1];
    if (m == 0 || n == 0) return FL_OK;
    Packed<T> packed(call->i[2], n);
    packed.memory = at<T>(call, 1);
    T *c = at<T>(call, 2);
    packed.multiply_in_pieces(m, at<T>(call, 0), static_cast<T>(call->f[0]), c);
    finish(call, 3, c, m, n);
    return FL_OK;
}

template <class T> int gemm_batched(fl_call *call) {
    const int64_t *i = call->i;
    if (i[0] == 0 || i[1] == 0) return FL_OK;
    /* A multiply-add counts like a fourth of a byte. */
    const double work = static_cast<double>(i[0]) * static_cast<double>(i[1]) * static_cast<double>(i[2]) / 4;
    const int64_t bytes = work < piece_bytes ? static_cast<int64_t>(work) + 1 : piece_bytes;
    std::atomic<int> failed{FL_OK};
    in_ranges(i[8] == 0 ? 1 : i[5], bytes, [=, &failed](int64_t begin, int64_t end) {
        if (i[8] == 0) end = i[5]; /* all into the same C, one after the other */
        for (int64_t b = begin; b < end; ++b) {
            if (const int code = multiply(call, product<T>(call, b * i[6], b * i[7], b * i[8]))) failed.store(code);
        }
    });
    return failed.load();
}

}  // namespace

extern const fl_entry gemm_table[] = {
    FL_REAL("gemm", gemm, "xxx[n]|zzzii[i]|ff|ac,cb,ab,b")
    FL_REAL("gemm_pack", gemm_pack, "xx|zzi||?")
    FL_REAL("gemm_packed", gemm_packed, "xxx[n]|zzz[i]|f|?")
    FL_REAL("gemm_batched", gemm_batched, "xxx|zzziizzzz|ff|?")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
