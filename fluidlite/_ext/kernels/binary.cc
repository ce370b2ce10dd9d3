/* Elementwise operators with two operands: same shapes, Fluid's middle broadcast, and both gradients. Of types that networks do not compute
 * in, comparisons and powers, one instruction set is enough. */
#ifndef FL_NS

#include "kernels/binary_ops.h"
#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_WIDE
#define FL_SELF "kernels/binary.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_binary = FL_TOPIC(binary_table);

#else

#include "kernels/binary_loops.h"

namespace fl::FL_NS {

#define FL_AS_IT_IS(...) __VA_ARGS__
#define FL_REAL_AS(NAME, OP, TYPE, T, AS, MID)                                     \
    {NAME TYPE, AS((same_by_rows<OP, T>)), "xxx|z||a,a,a"},                       \
    {NAME "_mid" TYPE, MID((mid_by_rows<OP, T>)), "xxx|zzz[i]||abc,b,abc"},        \
    {NAME "_grad" TYPE, AS((grad_by_rows<OP, T>)), "nnnxnn|z||a,a,a,a,a,a"},      \
    {NAME "_dims" TYPE, AS((dims<OP, T>)), "xxx|r(zz)||?"},                    \
    {NAME "_dims_grad" TYPE, AS((dims_grad<OP, T>)), "nnnxnn|r(zz)||?"},       \
    {NAME "_mid_grad" TYPE, MID((mid_grad<OP, T>)), "nnnxnn|zzz||abc,b,abc,abc,abc,b"},
#define FL_INTEGER_AS(NAME, OP, TYPE, T)                                     \
    {NAME TYPE, FL_ONCE((same<OP, T>)), "xxx|z||a,a,a"},                      \
    {NAME "_mid" TYPE, FL_ONCE((mid<OP, T>)), "xxx|zzz[i]||abc,b,abc"},       \
    {NAME "_dims" TYPE, FL_ONCE((dims<OP, T>)), "xxx|r(zz)||?"},
#define FL_COMPARED(NAME, OP, TYPE, T)                                       \
    {NAME TYPE, FL_ONCE((same<OP, T, uint8_t>)), "xxx|z||a,a,aB"},            \
    {NAME "_mid" TYPE, FL_ONCE((mid<OP, T, uint8_t>)), "xxx|zzz||abc,b,abcB"},

#define FL_INTEGERS(NAME, OP) FL_INTEGER_AS(NAME, OP, ".i32", int32_t) FL_INTEGER_AS(NAME, OP, ".i64", int64_t)
#define FL_BINARY(NAME, OP, AS, MID)                                               \
    FL_REAL_AS(NAME, OP, ".f32", float, AS, MID) FL_REAL_AS(NAME, OP, ".f64", double, FL_ONCE, FL_ONCE) FL_INTEGERS(NAME, OP)
#define FL_COMPARE(NAME, OP)                                                          \
    FL_COMPARED(NAME, OP, ".f32", float) FL_COMPARED(NAME, OP, ".f64", double)        \
    FL_COMPARED(NAME, OP, ".i32", int32_t) FL_COMPARED(NAME, OP, ".i64", int64_t)

extern const fl_entry binary_table[] = {
    FL_BINARY("elementwise_add", Add, FL_NARROW, FL_AS_IT_IS) /* biases, which take an activation */
    FL_BINARY("elementwise_sub", Sub, FL_NARROW, FL_NARROW)
    FL_BINARY("elementwise_mul", Mul, FL_NARROW, FL_NARROW)
    FL_BINARY("elementwise_div", Div, FL_NARROW, FL_NARROW)
    FL_BINARY("elementwise_max", Max, FL_NARROW, FL_NARROW)
    FL_BINARY("elementwise_min", Min, FL_NARROW, FL_NARROW)
    FL_BINARY("elementwise_pow", Pow, FL_ONCE, FL_ONCE)
    FL_INTEGERS("elementwise_mod", Mod)
    FL_INTEGERS("elementwise_floordiv", Div)
    FL_COMPARE("equal", Equal)
    FL_COMPARE("not_equal", NotEqual)
    FL_COMPARE("less_than", Less)
    FL_COMPARE("less_equal", LessEqual)
    FL_COMPARE("greater_than", Greater)
    FL_COMPARE("greater_equal", GreaterEqual)
    {"logical_and.u8", FL_ONCE((same<And, uint8_t>)), "xxx|z||a,a,a"},
    {"logical_or.u8", FL_ONCE((same<Or, uint8_t>)), "xxx|z||a,a,a"},
    {"logical_xor.u8", FL_ONCE((same<Xor, uint8_t>)), "xxx|z||a,a,a"},
    {"logical_not.u8", FL_ONCE(logical_not<uint8_t>), "xx|z||a,a"},
    {nullptr, nullptr, nullptr}};

#undef FL_AS_IT_IS
#undef FL_REAL_AS
#undef FL_INTEGER_AS
#undef FL_COMPARED
#undef FL_INTEGERS
#undef FL_BINARY
#undef FL_COMPARE

}  // namespace fl::FL_NS

#endif
