/* Kernels whose results follow row by row from rows of what they are given, cut along their first integer. */
#ifndef FLUIDLITE_KERNELS_BY_ROWS_H
#define FLUIDLITE_KERNELS_BY_ROWS_H

#include "kernels/common.h"
#include "parallel.h"

namespace fl {

/* What a row of an operand is: bytes times the ints that `factors` names, of which -1 is none. */
struct Row {
    int64_t bytes;
    int factors[4];
};

/* i[I] * i[J] * i[K] * i[L] elements of T. */
template <class T, int I = -1, int J = -1, int K = -1, int L = -1> struct Each {
    static constexpr Row row = {sizeof(T), {I, J, K, L}};
};

/* An operand that all rows share. */
struct Whole {
    static constexpr Row row = {0, {-1, -1, -1, -1}};
};

constexpr int most_row_operands = 8;

/* `run` on parts of the rows of its `count` operands. */
int run_by_rows(fl_call *call, fl_kernel run, const Row *operands, int count);

/* RUN on parts of the rows; it must keep no state, and if it fails, say nothing of where. */
template <fl_kernel RUN, class... Operands> int by_rows(fl_call *call) {
    static constexpr Row operands[] = {Operands::row...};
    static_assert(sizeof...(Operands) <= most_row_operands, "run_by_rows has no room for so many");
    return run_by_rows(call, RUN, operands, sizeof...(Operands));
}

}  // namespace fl

#endif
