/* What integers are added and multiplied in: theirs wrap around, as those of NumPy and Fluid do, and signed ones of C++ must not. */
#ifndef FLUIDLITE_KERNELS_ARITHMETIC_H
#define FLUIDLITE_KERNELS_ARITHMETIC_H

#include <type_traits>

#include "kernels/common.h"

namespace fl {

/* T where it is a real number; an unsigned integer of as many bits, and at least those of int, which smaller ones become. */
template <class T, bool real = std::is_floating_point<T>::value> struct arithmetic {
    using type = T;
};
template <class T> struct arithmetic<T, false> {
    using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};
template <class T> using arithmetic_t = typename arithmetic<T>::type;

template <class T> FL_INLINE T sum_of(T a, T b) { return static_cast<T>(static_cast<arithmetic_t<T>>(a) + static_cast<arithmetic_t<T>>(b)); }
template <class T> FL_INLINE T difference_of(T a, T b) { return static_cast<T>(static_cast<arithmetic_t<T>>(a) - static_cast<arithmetic_t<T>>(b)); }
template <class T> FL_INLINE T product_of(T a, T b) { return static_cast<T>(static_cast<arithmetic_t<T>>(a) * static_cast<arithmetic_t<T>>(b)); }

}  // namespace fl

#endif
