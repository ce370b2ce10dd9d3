/* How many windows of a convolution there are along one dimension of its images. */
#ifndef FLUIDLITE_WINDOWS_H
#define FLUIDLITE_WINDOWS_H

#include <cstdint>

namespace fl {

/* Windows of `count` elements, `apart` from each other, that are moved by `step` over `size` elements with `before` and `behind` that are
 * padding. 0 if not even one fits: nobody asks for the results of that. `count_windows` in arity.pyx is the same for formulas. */
inline int64_t count_windows(int64_t size, int64_t before, int64_t behind, int64_t count, int64_t apart, int64_t step) {
    const int64_t room = size + before + behind - ((count - 1) * apart + 1);
    return room < 0 ? 0 : room / step + 1;
}

}  // namespace fl

#endif
