/* Operators with one operand. */
#ifndef FL_NS

#include "kernels/topics.h"
#include "kernels/unary_ops.h"

#define FL_WIDE
#define FL_SELF "kernels/unary.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_unary = FL_TOPIC(unary_table);

#else

namespace fl::FL_NS {
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

template <template <class> class Rule, class T> constexpr fl_kernel forward_by_rows = by_rows<forward<Rule, T>, Each<T>, Each<T>>;
template <template <class> class Rule, class T>
constexpr fl_kernel backward_by_rows = by_rows<backward<Rule, T>, Each<T>, Each<T>, Each<T>, Each<T>>;

}  // namespace

#define FL_UNARY_AS(NAME, RULE, F32, F64)                                 \
    {NAME ".f32", F32((forward_by_rows<RULE, float>)), forward_takes<RULE>()},  \
    {NAME ".f64", F64((forward_by_rows<RULE, double>)), forward_takes<RULE>()}, \
    {NAME "_grad.f32", F32((backward_by_rows<RULE, float>)), backward_takes<RULE>()}, \
    {NAME "_grad.f64", F64((backward_by_rows<RULE, double>)), backward_takes<RULE>()},
#define FL_AS_IT_IS(...) __VA_ARGS__
#define FL_UNARY(NAME, RULE) FL_UNARY_AS(NAME, RULE, FL_AS_IT_IS, FL_ONCE)
#define FL_UNARY_ONCE(NAME, RULE) FL_UNARY_AS(NAME, RULE, FL_ONCE, FL_ONCE)

extern const fl_entry unary_table[] = {
    FL_UNARY("relu", Relu)
    FL_UNARY("sigmoid", Sigmoid)
    FL_UNARY("tanh", Tanh)
    FL_UNARY("exp", Exp)
    FL_UNARY("log", Log)
    FL_UNARY("sqrt", Sqrt)
    FL_UNARY("rsqrt", Rsqrt)
    FL_UNARY("reciprocal", Reciprocal)
    FL_UNARY("relu6", Relu6)
    FL_UNARY("square", Square)
    FL_UNARY("abs", Abs)
    FL_UNARY("sign", Sign)
    FL_UNARY("softsign", Softsign)
    FL_UNARY("softplus", Softplus)
    FL_UNARY("logsigmoid", LogSigmoid)
    FL_UNARY("tanh_shrink", TanhShrink)
    FL_UNARY("leaky_relu", LeakyRelu)
    FL_UNARY("elu", Elu)
    FL_UNARY("swish", Swish)
    FL_UNARY("stanh", Stanh)
    FL_UNARY("hard_sigmoid", HardSigmoid)
    FL_UNARY("clip", Clip)
    FL_UNARY("brelu", Clip)
    FL_UNARY("gelu", Gelu)
    FL_UNARY("erf", Erf)
    FL_UNARY("silu", Silu)
    FL_UNARY("mish", Mish)
    FL_UNARY("selu", Selu)
    FL_UNARY("softshrink", SoftShrink)
    FL_UNARY("hard_shrink", HardShrink)
    FL_UNARY("hard_swish", HardSwish)
    FL_UNARY("thresholded_relu", ThresholdedRelu)
    /* The others call the C library for every element. */
    FL_UNARY_ONCE("pow", Power)
    FL_UNARY_ONCE("sin", Sin)
    FL_UNARY_ONCE("cos", Cos)
    FL_UNARY_ONCE("floor", Floor)
    FL_UNARY_ONCE("ceil", Ceil)
    FL_UNARY_ONCE("round", Round)
    {nullptr, nullptr, nullptr}};

#undef FL_UNARY_AS
#undef FL_AS_IT_IS
#undef FL_UNARY
#undef FL_UNARY_ONCE

}  // namespace fl::FL_NS

#endif
