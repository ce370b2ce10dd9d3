/* Kernels whose results follow row by row from rows of what they are given, cut along their first integer. */
#ifndef FLUIDLITE_KERNELS_BY_ROWS_H
#define FLUIDLITE_KERNELS_BY_ROWS_H

#include <atomic>

#include "kernels/common.h"
#include "parallel.h"

namespace fl {

/* What a row of an operand is: i[I] * i[J] * ... elements of T. */
template <class T, int... I> struct Each {
    static int64_t bytes(const int64_t *i) { return (static_cast<int64_t>(sizeof(T)) * ... * i[I]); }
};

/* An operand that all rows share. */
struct Whole {
    static int64_t bytes(const int64_t *) { return 0; }
};

/* RUN on parts of the rows; it must keep no state, and if it fails, say nothing of where. */
template <fl_kernel RUN, class... Operands> int by_rows(fl_call *call) {
    constexpr int count = sizeof...(Operands), most_ints = 16;
    const int64_t rows = call->i[0];
    const int64_t each[] = {Operands::bytes(call->i)...};
    int64_t bytes = 0;
    for (const int64_t size : each) bytes += size;
    if (rows * bytes < 2 * piece_bytes || call->n_p > count || call->n_i > most_ints) return RUN(call);
    std::atomic<int> failed{FL_OK};
    in_ranges(rows, bytes, [call, &each, &failed](int64_t begin, int64_t end) {
        fl_call part = *call;
        void *operands[count];
        int64_t ints[most_ints];
        for (int k = 0; k < part.n_p; ++k) {
            char *whole = static_cast<char *>(call->p[k]);
            operands[k] = whole == nullptr ? nullptr : whole + begin * each[k];
        }
        for (int k = 0; k < part.n_i; ++k) ints[k] = call->i[k];
        ints[0] = end - begin;
        part.p = operands;
        part.i = ints;
        const int code = RUN(&part);
        int none = FL_OK;
        if (code != FL_OK && failed.compare_exchange_strong(none, code)) std::memcpy(call->err, part.err, sizeof part.err);
    });
    return failed.load();
}

}  // namespace fl

#endif
