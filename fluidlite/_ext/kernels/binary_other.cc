/* Elementwise operators with two operands of types that networks do not compute in, comparisons and powers: one instruction set
 * is enough. */
#include "kernels/binary_ops.h"
#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_NS baseline
#include "kernels/binary_loops.h"

#define FL_OTHERS(NAME, OP)               \
    FL_REAL(NAME, OP, ".f64", double)     \
    FL_FORWARD(NAME, OP, ".i32", int32_t) \
    FL_FORWARD(NAME, OP, ".i64", int64_t)
#define FL_COMPARED(NAME, OP, TYPE, T)                   \
    {NAME TYPE, same<OP, T, uint8_t>, "xxx|z||a,a,aB"}, \
    {NAME "_mid" TYPE, mid<OP, T, uint8_t>, "xxx|zzz||abc,b,abcB"},
#define FL_COMPARE(NAME, OP)               \
    FL_COMPARED(NAME, OP, ".f32", float)   \
    FL_COMPARED(NAME, OP, ".f64", double)  \
    FL_COMPARED(NAME, OP, ".i32", int32_t) \
    FL_COMPARED(NAME, OP, ".i64", int64_t)

namespace fl {
namespace {

using namespace baseline;

int logical_not(fl_call *call) {
    const uint8_t *x = at<uint8_t>(call, 0);
    uint8_t *out = at<uint8_t>(call, 1);
    FL_LOOP
    for (int64_t k = 0; k < call->i[0]; ++k) out[k] = !x[k];
    return FL_OK;
}

const fl_entry table[] = {
    FL_OTHERS("elementwise_add", Add)
    FL_OTHERS("elementwise_sub", Sub)
    FL_OTHERS("elementwise_mul", Mul)
    FL_OTHERS("elementwise_div", Div)
    FL_OTHERS("elementwise_max", Max)
    FL_OTHERS("elementwise_min", Min)
    FL_OTHERS("elementwise_pow", Pow)
    FL_REAL("elementwise_pow", Pow, ".f32", float)
    FL_FORWARD("elementwise_mod", Mod, ".i32", int32_t)
    FL_FORWARD("elementwise_mod", Mod, ".i64", int64_t)
    FL_FORWARD("elementwise_floordiv", Div, ".i32", int32_t)
    FL_FORWARD("elementwise_floordiv", Div, ".i64", int64_t)
    FL_COMPARE("equal", Equal)
    FL_COMPARE("not_equal", NotEqual)
    FL_COMPARE("less_than", Less)
    FL_COMPARE("less_equal", LessEqual)
    FL_COMPARE("greater_than", Greater)
    FL_COMPARE("greater_equal", GreaterEqual)
    {"logical_and.u8", same<And, uint8_t>, "xxx|z||a,a,a"},
    {"logical_or.u8", same<Or, uint8_t>, "xxx|z||a,a,a"},
    {"logical_xor.u8", same<Xor, uint8_t>, "xxx|z||a,a,a"},
    {"logical_not.u8", logical_not, "xx|z||a,a"},
    {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_binary_other = {table, table, table};

}  // namespace fl
