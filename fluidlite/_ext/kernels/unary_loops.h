/* The loops of the operators with one operand; included once for every instruction set, hence no guard. */

namespace fl {
namespace FL_NS {
namespace {

using namespace fl::unary;

template <template <class> class Rule, class T> int forward(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    const int64_t n = call->i[0];
    const Rule<T> rule(call->f);
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) out[k] = rule.f(x[k]);
    return FL_OK;
}

template <template <class> class Rule, class T> int backward(fl_call *call) {
    [[maybe_unused]] const T *x = at<T>(call, 0), *out = at<T>(call, 1);
    const T *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    const int64_t n = call->i[0];
    const Rule<T> rule(call->f);
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) {
        T value = 0, result = 0;
        if constexpr ((Rule<T>::reads & reads_x) != 0) value = x[k];
        if constexpr ((Rule<T>::reads & reads_out) != 0) result = out[k];
        dx[k] = rule.dx(value, result, g[k]);
    }
    return FL_OK;
}

}  // namespace
}  // namespace FL_NS
}  // namespace fl

#define FL_UNARY(NAME, RULE)                                                                \
    {NAME ".f32", forward<RULE, float>}, {NAME ".f64", forward<RULE, double>},              \
    {NAME "_grad.f32", backward<RULE, float>}, {NAME "_grad.f64", backward<RULE, double>},
