/* Operators with one operand that call the C library for every element: one instruction set is enough. */
#include "kernels/topics.h"
#include "kernels/unary_ops.h"

#define FL_NS baseline
#include "kernels/unary_loops.h"

namespace fl {
namespace {

using namespace baseline;

const fl_entry table[] = {
    FL_UNARY("pow", Power)
    FL_UNARY("sin", Sin)
    FL_UNARY("cos", Cos)
    FL_UNARY("floor", Floor)
    FL_UNARY("ceil", Ceil)
    FL_UNARY("round", Round)
    {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_unary_special = {table, table, table};

}  // namespace fl
