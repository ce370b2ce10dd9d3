/* Elementwise operators with two operands of the type that networks compute in: same shapes, Fluid's middle broadcast, and
 * both gradients. */
#ifndef FL_NS

#include "kernels/binary_ops.h"
#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_WIDE
#define FL_SELF "kernels/binary.cc"
#include "kernels/targets.h"

namespace fl {
const Topic topic_binary = FL_TOPIC(binary_table);
}

#else

#include "kernels/binary_loops.h"

namespace fl {
namespace FL_NS {

extern const fl_entry binary_table[] = {
    FL_REAL("elementwise_add", Add, ".f32", float)
    FL_REAL("elementwise_sub", Sub, ".f32", float)
    FL_REAL("elementwise_mul", Mul, ".f32", float)
    FL_REAL("elementwise_div", Div, ".f32", float)
    FL_REAL("elementwise_max", Max, ".f32", float)
    FL_REAL("elementwise_min", Min, ".f32", float)
    {nullptr, nullptr, nullptr}};

#undef FL_FORWARD
#undef FL_REAL

}  // namespace FL_NS
}  // namespace fl

#endif
