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

/* The text for a kernel of `numbers` floats, of which there are three. */
constexpr const char *of_numbers(int numbers, const char *none, const char *one, const char *two) {
    return numbers == 0 ? none : numbers == 1 ? one : two;
}

template <template <class> class Rule> constexpr const char *forward_takes() {
    return of_numbers(Rule<float>::numbers, "xx|z||a,a", "xx|z|f|a,a", "xx|z|ff|a,a");
}

template <template <class> class Rule> constexpr const char *backward_takes() {
    constexpr int numbers = Rule<float>::numbers;
    switch (Rule<float>::reads) {
        case reads_nothing: return of_numbers(numbers, "nnxx|z||a,a,a,a", "nnxx|z|f|a,a,a,a", "nnxx|z|ff|a,a,a,a");
        case reads_x: return of_numbers(numbers, "xnxx|z||a,a,a,a", "xnxx|z|f|a,a,a,a", "xnxx|z|ff|a,a,a,a");
        case reads_out: return of_numbers(numbers, "nxxx|z||a,a,a,a", "nxxx|z|f|a,a,a,a", "nxxx|z|ff|a,a,a,a");
        default: return of_numbers(numbers, "xxxx|z||a,a,a,a", "xxxx|z|f|a,a,a,a", "xxxx|z|ff|a,a,a,a");
    }
}

}  // namespace
}  // namespace FL_NS
}  // namespace fl

#define FL_UNARY(NAME, RULE)                                                                \
    {NAME ".f32", forward<RULE, float>, forward_takes<RULE>()},                              \
    {NAME ".f64", forward<RULE, double>, forward_takes<RULE>()},                             \
    {NAME "_grad.f32", backward<RULE, float>, backward_takes<RULE>()},                       \
    {NAME "_grad.f64", backward<RULE, double>, backward_takes<RULE>()},
