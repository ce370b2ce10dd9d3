/* Operators with one operand whose loops vectorise. */
#ifndef FL_NS

#include "kernels/topics.h"
#include "kernels/unary_ops.h"

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
    {nullptr, nullptr, nullptr}};

#undef FL_UNARY

}  // namespace FL_NS
}  // namespace fl

#endif
