/* Operators with one operand whose loops vectorise, in the type that networks compute in. */
#ifndef FL_NS

#include "kernels/topics.h"
#include "kernels/unary_ops.h"

#define FL_WIDE
#define FL_SELF "kernels/unary.cc"
#include "kernels/targets.h"

namespace fl {
const Topic topic_unary = FL_TOPIC(unary_table);
}

#else

#include "kernels/unary_loops.h"

namespace fl {
namespace FL_NS {

extern const fl_entry unary_table[] = {
    FL_UNARY("relu", Relu, ".f32", float)
    FL_UNARY("sigmoid", Sigmoid, ".f32", float)
    FL_UNARY("tanh", Tanh, ".f32", float)
    FL_UNARY("exp", Exp, ".f32", float)
    FL_UNARY("log", Log, ".f32", float)
    FL_UNARY("sqrt", Sqrt, ".f32", float)
    FL_UNARY("rsqrt", Rsqrt, ".f32", float)
    FL_UNARY("reciprocal", Reciprocal, ".f32", float)
    FL_UNARY("relu6", Relu6, ".f32", float)
    FL_UNARY("square", Square, ".f32", float)
    FL_UNARY("abs", Abs, ".f32", float)
    FL_UNARY("sign", Sign, ".f32", float)
    FL_UNARY("softsign", Softsign, ".f32", float)
    FL_UNARY("softplus", Softplus, ".f32", float)
    FL_UNARY("logsigmoid", LogSigmoid, ".f32", float)
    FL_UNARY("tanh_shrink", TanhShrink, ".f32", float)
    FL_UNARY("leaky_relu", LeakyRelu, ".f32", float)
    FL_UNARY("elu", Elu, ".f32", float)
    FL_UNARY("swish", Swish, ".f32", float)
    FL_UNARY("stanh", Stanh, ".f32", float)
    FL_UNARY("hard_sigmoid", HardSigmoid, ".f32", float)
    FL_UNARY("clip", Clip, ".f32", float)
    FL_UNARY("brelu", Clip, ".f32", float)
    FL_UNARY("gelu", Gelu, ".f32", float)
    FL_UNARY("erf", Erf, ".f32", float)
    FL_UNARY("silu", Silu, ".f32", float)
    FL_UNARY("mish", Mish, ".f32", float)
    FL_UNARY("selu", Selu, ".f32", float)
    FL_UNARY("softshrink", SoftShrink, ".f32", float)
    FL_UNARY("hard_shrink", HardShrink, ".f32", float)
    FL_UNARY("hard_swish", HardSwish, ".f32", float)
    FL_UNARY("thresholded_relu", ThresholdedRelu, ".f32", float)
    {nullptr, nullptr, nullptr}};

#undef FL_UNARY

}  // namespace FL_NS
}  // namespace fl

#endif
