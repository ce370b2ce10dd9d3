/* What makes a variant of an eager operator serve many sizes: formulas of them, and the numbers that follow. */
#ifndef FLUIDLITE_EAGER_OPENING_H
#define FLUIDLITE_EAGER_OPENING_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "eager/layout.h"
#include "engine/sizes.h"

namespace fl {

struct Opening {
    struct Axis {
        int operand, axis;
        int64_t reg;
    };
    struct Number {
        int call, position;
        int64_t reg;
    };

    explicit Opening(const Sizes &formulas) : sizes(formulas) {}

    Sizes sizes;
    std::vector<Axis> ins, outs; /* registers of `ins` are roots */
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
        for (const Axis &made : outs) {
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
