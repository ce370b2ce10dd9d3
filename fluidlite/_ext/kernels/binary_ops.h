/* The scalar rules of the elementwise operators with two operands, and of their gradients. */
#ifndef FLUIDLITE_KERNELS_BINARY_OPS_H
#define FLUIDLITE_KERNELS_BINARY_OPS_H

#include "kernels/by_rows.h"

namespace fl::binary {

/* Which operands a gradient reads. */
enum Reads { reads_nothing = 0, reads_x = 1, reads_y = 2, reads_out = 4 };

struct Add {
    static constexpr int dx_reads = reads_nothing, dy_reads = reads_nothing;
    template <class T> static FL_INLINE T f(T x, T y) { return sum_of(x, y); }
    template <class T> static FL_INLINE T dx(T, T, T, T g) { return g; }
    template <class T> static FL_INLINE T dy(T, T, T, T g) { return g; }
};

struct Sub {
    static constexpr int dx_reads = reads_nothing, dy_reads = reads_nothing;
    template <class T> static FL_INLINE T f(T x, T y) { return difference_of(x, y); }
    template <class T> static FL_INLINE T dx(T, T, T, T g) { return g; }
    template <class T> static FL_INLINE T dy(T, T, T, T g) { return -g; }
};

struct Mul {
    static constexpr int dx_reads = reads_y, dy_reads = reads_x;
    template <class T> static FL_INLINE T f(T x, T y) { return product_of(x, y); }
    template <class T> static FL_INLINE T dx(T, T y, T, T g) { return g * y; }
    template <class T> static FL_INLINE T dy(T x, T, T, T g) { return g * x; }
};

/* Integer division by zero gives 0 where nobody has refused it, and by -1 the negative modulo 2^bits: no value may trap. */
template <class T> FL_INLINE T divide(T x, T y) {
    if constexpr (std::is_floating_point<T>::value) {
        return x / y;
    } else {
        using U = std::make_unsigned_t<T>;
        if (y == 0) return 0;
        return y == -1 ? static_cast<T>(U(0) - static_cast<U>(x)) : static_cast<T>(x / y);
    }
}

struct Div {
    static constexpr int dx_reads = reads_y, dy_reads = reads_y | reads_out;
    template <class T> static FL_INLINE T f(T x, T y) { return divide(x, y); }
    template <class T> static FL_INLINE T dx(T, T y, T, T g) { return g / y; }
    template <class T> static FL_INLINE T dy(T, T y, T out, T g) { return -g * out / y; }
};

struct Mod {
    template <class T> static FL_INLINE T f(T x, T y) { return y == 0 || y == -1 ? T(0) : static_cast<T>(x % y); }
};

/* Where both are equal the gradient goes to Y, as in Fluid. */
struct Max {
    static constexpr int dx_reads = reads_x | reads_y, dy_reads = reads_x | reads_y;
    template <class T> static FL_INLINE T f(T x, T y) { return x > y ? x : y; }
    template <class T> static FL_INLINE T dx(T x, T y, T, T g) { return x > y ? g : T(0); }
    template <class T> static FL_INLINE T dy(T x, T y, T, T g) { return x <= y ? g : T(0); }
};

struct Min {
    static constexpr int dx_reads = reads_x | reads_y, dy_reads = reads_x | reads_y;
    template <class T> static FL_INLINE T f(T x, T y) { return x < y ? x : y; }
    template <class T> static FL_INLINE T dx(T x, T y, T, T g) { return x < y ? g : T(0); }
    template <class T> static FL_INLINE T dy(T x, T y, T, T g) { return x >= y ? g : T(0); }
};

struct Pow {
    static constexpr int dx_reads = reads_x | reads_y, dy_reads = reads_x | reads_out;
    template <class T> static FL_INLINE T f(T x, T y) { return static_cast<T>(std::pow(x, y)); }
    template <class T> static FL_INLINE T dx(T x, T y, T, T g) { return g * y * std::pow(x, y - T(1)); }
    template <class T> static FL_INLINE T dy(T x, T, T out, T g) { return g * std::log(x) * out; }
};

struct Equal {
    template <class T> static FL_INLINE bool f(T x, T y) { return x == y; }
};
struct NotEqual {
    template <class T> static FL_INLINE bool f(T x, T y) { return x != y; }
};
struct Less {
    template <class T> static FL_INLINE bool f(T x, T y) { return x < y; }
};
struct LessEqual {
    template <class T> static FL_INLINE bool f(T x, T y) { return x <= y; }
};
struct Greater {
    template <class T> static FL_INLINE bool f(T x, T y) { return x > y; }
};
struct GreaterEqual {
    template <class T> static FL_INLINE bool f(T x, T y) { return x >= y; }
};

struct And {
    static FL_INLINE bool f(uint8_t x, uint8_t y) { return x && y; }
};
struct Or {
    static FL_INLINE bool f(uint8_t x, uint8_t y) { return x || y; }
};
struct Xor {
    static FL_INLINE bool f(uint8_t x, uint8_t y) { return !x != !y; }
};

}  // namespace fl::binary

#endif
