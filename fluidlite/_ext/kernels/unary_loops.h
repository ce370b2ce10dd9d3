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

/* What kernels of `numbers` floats take. */
template <template <class> class Rule> constexpr const char *forward_takes() {
    constexpr const char *texts[] = {"xx|z||a,a", "xx|z|f|a,a", "xx|z|ff|a,a", "xx|z|fff|a,a"};
    return texts[Rule<float>::numbers];
}

template <template <class> class Rule> constexpr const char *backward_takes() {
    constexpr const char *texts[][4] = {
        {"nnxx|z||a,a,a,a", "nnxx|z|f|a,a,a,a", "nnxx|z|ff|a,a,a,a", "nnxx|z|fff|a,a,a,a"},
        {"xnxx|z||a,a,a,a", "xnxx|z|f|a,a,a,a", "xnxx|z|ff|a,a,a,a", "xnxx|z|fff|a,a,a,a"},
        {"nxxx|z||a,a,a,a", "nxxx|z|f|a,a,a,a", "nxxx|z|ff|a,a,a,a", "nxxx|z|fff|a,a,a,a"}};
    return texts[Rule<float>::reads][Rule<float>::numbers];
}

}  // namespace
}  // namespace FL_NS
}  // namespace fl

#define FL_UNARY(NAME, RULE, TYPE, T)                                                                                \
    {NAME TYPE, (by_rows<forward<RULE, T>, Each<T>, Each<T>>), forward_takes<RULE>()},                              \
    {NAME "_grad" TYPE, (by_rows<backward<RULE, T>, Each<T>, Each<T>, Each<T>, Each<T>>), backward_takes<RULE>()},
