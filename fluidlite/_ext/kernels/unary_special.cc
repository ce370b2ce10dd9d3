/* Operators with one operand that call the C library for every element, and those of double, which mostly do: one instruction
 * set is enough. */
#include "kernels/topics.h"
#include "kernels/unary_ops.h"

#define FL_NS baseline
#include "kernels/unary_loops.h"

namespace fl {
namespace {

using namespace baseline;

const fl_entry table[] = {
    FL_UNARY("pow", Power, ".f32", float)
    FL_UNARY("pow", Power, ".f64", double)
    FL_UNARY("sin", Sin, ".f32", float)
    FL_UNARY("sin", Sin, ".f64", double)
    FL_UNARY("cos", Cos, ".f32", float)
    FL_UNARY("cos", Cos, ".f64", double)
    FL_UNARY("floor", Floor, ".f32", float)
    FL_UNARY("floor", Floor, ".f64", double)
    FL_UNARY("ceil", Ceil, ".f32", float)
    FL_UNARY("ceil", Ceil, ".f64", double)
    FL_UNARY("round", Round, ".f32", float)
    FL_UNARY("round", Round, ".f64", double)
    FL_UNARY("relu", Relu, ".f64", double)
    FL_UNARY("sigmoid", Sigmoid, ".f64", double)
    FL_UNARY("tanh", Tanh, ".f64", double)
    FL_UNARY("exp", Exp, ".f64", double)
    FL_UNARY("log", Log, ".f64", double)
    FL_UNARY("sqrt", Sqrt, ".f64", double)
    FL_UNARY("rsqrt", Rsqrt, ".f64", double)
    FL_UNARY("reciprocal", Reciprocal, ".f64", double)
    FL_UNARY("relu6", Relu6, ".f64", double)
    FL_UNARY("square", Square, ".f64", double)
    FL_UNARY("abs", Abs, ".f64", double)
    FL_UNARY("sign", Sign, ".f64", double)
    FL_UNARY("softsign", Softsign, ".f64", double)
    FL_UNARY("softplus", Softplus, ".f64", double)
    FL_UNARY("logsigmoid", LogSigmoid, ".f64", double)
    FL_UNARY("tanh_shrink", TanhShrink, ".f64", double)
    FL_UNARY("leaky_relu", LeakyRelu, ".f64", double)
    FL_UNARY("elu", Elu, ".f64", double)
    FL_UNARY("swish", Swish, ".f64", double)
    FL_UNARY("stanh", Stanh, ".f64", double)
    FL_UNARY("hard_sigmoid", HardSigmoid, ".f64", double)
    FL_UNARY("clip", Clip, ".f64", double)
    FL_UNARY("brelu", Clip, ".f64", double)
    FL_UNARY("gelu", Gelu, ".f64", double)
    FL_UNARY("erf", Erf, ".f64", double)
    FL_UNARY("silu", Silu, ".f64", double)
    FL_UNARY("mish", Mish, ".f64", double)
    FL_UNARY("selu", Selu, ".f64", double)
    FL_UNARY("softshrink", SoftShrink, ".f64", double)
    FL_UNARY("hard_shrink", HardShrink, ".f64", double)
    FL_UNARY("hard_swish", HardSwish, ".f64", double)
    FL_UNARY("thresholded_relu", ThresholdedRelu, ".f64", double)
    {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_unary_special = {table, table, table};

}  // namespace fl
