#include "kernels/by_rows.h"

#include <atomic>

namespace fl {

int run_by_rows(fl_call *call, fl_kernel run, const Row *operands, int count) {
    constexpr int most_ints = 18;
    const int64_t rows = call->i[0];
    int64_t each[most_row_operands];
    int64_t bytes = 0;
    for (int k = 0; k < count; ++k) {
        each[k] = operands[k].bytes;
        for (const int factor : operands[k].factors) each[k] *= factor < 0 ? 1 : call->i[factor];
        bytes += each[k];
    }
    if (rows * bytes < 2 * piece_bytes || call->n_p > count || call->n_i > most_ints) return run(call);
    std::atomic<int> failed{FL_OK};
    in_ranges(rows, bytes, [call, run, &each, &failed](int64_t begin, int64_t end) {
        fl_call part = *call;
        void *parts[most_row_operands];
        int64_t ints[most_ints];
        for (int k = 0; k < part.n_p; ++k) {
            char *whole = static_cast<char *>(call->p[k]);
            parts[k] = whole == nullptr ? nullptr : whole + begin * each[k];
        }
        for (int k = 0; k < part.n_i; ++k) ints[k] = call->i[k];
        ints[0] = end - begin;
        part.p = parts;
        part.i = ints;
        const int code = run(&part);
        int none = FL_OK;
        if (code != FL_OK && failed.compare_exchange_strong(none, code)) std::memcpy(call->err, part.err, sizeof part.err);
    });
    return failed.load();
}

}  // namespace fl
