/* Sequences that are given in either of two ways: one after the other, with offsets, or padded to the same number of steps,
 * with lengths. */
#ifndef FLUIDLITE_KERNELS_SEQUENCES_H
#define FLUIDLITE_KERNELS_SEQUENCES_H

#include "kernels/common.h"

namespace fl {

/* `lengths` is NULL for sequences with offsets, and `offsets` for padded ones. */
struct Sequences {
    const int64_t *offsets, *lengths;
    int64_t count, steps;

    FL_INLINE int64_t begin(int64_t s) const { return offsets != nullptr ? offsets[s] : s * steps; }
    FL_INLINE int64_t length(int64_t s) const { return offsets != nullptr ? offsets[s + 1] - offsets[s] : lengths[s]; }

    int64_t longest() const {
        int64_t most = 0;
        for (int64_t s = 0; s < count; ++s) most = length(s) > most ? length(s) : most;
        return most;
    }

    /* Lengths are data, and may be anything until this has seen them. */
    int verify(fl_call *call) const {
        if (offsets == nullptr && lengths == nullptr) return missing(call, 1);
        for (int64_t s = 0; s < count && offsets == nullptr; ++s) {
            if (lengths[s] < 0 || lengths[s] > steps) return uneven(call, s, lengths[s], steps);
        }
        return FL_OK;
    }
};

}  // namespace fl

#endif
