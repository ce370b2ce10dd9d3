/* What a variant of an eager operator knows: the layouts of its operands, its kernel calls, and how both follow sizes. */
#ifndef FLUIDLITE_EAGER_VARIANT_H
#define FLUIDLITE_EAGER_VARIANT_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "abi.h"
#include "engine/sizes.h"
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

/* What makes a variant serve many sizes: formulas of them, and the numbers that follow. */
struct Opening {
    struct VaryingAxis {
        int operand, axis;
        int64_t reg;
    };
    struct Number {
        int call, position;
        int64_t reg;
    };

    explicit Opening(const Sizes &formulas) : sizes(formulas) {}

    Sizes sizes;
    std::vector<VaryingAxis> ins, outs; /* registers of `ins` are roots */
    std::vector<Number> ints, reals;
    std::vector<uint32_t> free; /* of each input the axes that vary, one bit each */
    std::vector<int64_t> lengths; /* of the axes `ins`, of the arrays that come */

    /* Whether the guards hold for `lengths`. */
    bool holds() noexcept {
        for (size_t k = 0; k < ins.size(); ++k) sizes.set(ins[k].reg, lengths[k]);
        return sizes.evaluate() && sizes.holds();
    }

    /* After `holds`: gives layouts and calls the sizes of these `lengths`. */
    void settle(std::vector<Layout> &in, std::vector<Layout> &out, std::vector<std::unique_ptr<Native>> &natives) {
        for (size_t k = 0; k < ins.size(); ++k) {
            in[static_cast<size_t>(ins[k].operand)].shape[ins[k].axis] = static_cast<intptr_t>(lengths[k]);
        }
        for (const VaryingAxis &made : outs) {
            out[static_cast<size_t>(made.operand)].shape[made.axis] = static_cast<intptr_t>(sizes.get(made.reg));
        }
        for (const Number &number : ints) {
            natives[static_cast<size_t>(number.call)]->i[static_cast<size_t>(number.position)] = sizes.get(number.reg);
        }
        for (const Number &number : reals) {
            natives[static_cast<size_t>(number.call)]->f[static_cast<size_t>(number.position)] = sizes.real(number.reg);
        }
        for (const auto &native : natives) native->states.select(native->call, native->i.data(), native->call.n_i);
    }
};

} // namespace fl

#endif
