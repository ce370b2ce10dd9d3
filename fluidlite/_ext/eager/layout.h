/* What a variant of an eager operator knows: the layouts of its operands, and its kernel calls. */
#ifndef FLUIDLITE_EAGER_LAYOUT_H
#define FLUIDLITE_EAGER_LAYOUT_H

#include <vector>

#include "abi.h"
#include "engine/states.h"

namespace fl {

/* Element type and shape of a contiguous array; a type of -1 fits none. `dim` is NumPy's integer for dimensions. */
template <typename dim> struct LayoutOf {
    int type_num = -1;
    int ndim = 0;
    int64_t item = 0; /* bytes of an element */
    int64_t bytes = 0;
    dim shape[32] = {};
};

using Layout = LayoutOf<intptr_t>;

/* One kernel call; `places` say which operand each address is: 0.. counts inputs, then outputs, -1 is left out. */
struct Native {
    fl_kernel run = nullptr;
    fl_call call{};
    std::vector<int> places;
    std::vector<void *> p;
    std::vector<int64_t> i;
    std::vector<double> f;
    States states{64}; /* for other integers, where these change: as many as a large network has sizes for one operator */

    Native() = default;
    Native(const Native &) = delete;
    Native &operator=(const Native &) = delete;
    ~Native() { forget(); }

    /* Points the call at the vectors, which must not change any more. */
    void fix() {
        p.resize(places.size());
        call.p = p.data();
        call.i = i.data();
        call.f = f.data();
        call.n_p = static_cast<int>(p.size());
        call.n_i = static_cast<int>(i.size());
        call.n_f = static_cast<int>(f.size());
    }

    /* Drops what the kernel kept from earlier calls. */
    void forget() {
        if (call.free_state != nullptr && call.state != nullptr) call.free_state(call.state);
        call.state = nullptr;
    }
};

} // namespace fl

#endif
