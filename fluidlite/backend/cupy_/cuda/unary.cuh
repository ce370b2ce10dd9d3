// How functions of one array and their gradients are declared. Chains (chains.py) define UNARY in their own way.

#ifndef FUNCTIONS_OF_ONE
#define FUNCTIONS_OF_ONE

typedef SCALAR real;

#define R(x) ((real)(x))

__device__ inline real sign(real x) { return x > R(0) ? R(1) : x < R(0) ? R(-1) : R(0); }

// NAME: VALUE of x, and GRADIENT from g, the gradient of the result, and k: x or the result, whichever is kept. a, b and c
// are the attributes, in the order in which the operator declares them.
#ifndef UNARY
#define UNARY(NAME, VALUE, GRADIENT)                                                                                \
    extern "C" __global__ void NAME##_value(const real *from, real *to, i64 n, real a, real b, real c) {            \
        EACH(i, n) {                                                                                                \
            const real x = from[i];                                                                                 \
            to[i] = VALUE;                                                                                          \
        }                                                                                                           \
    }                                                                                                               \
    extern "C" __global__ void NAME##_grad(                                                                         \
        const real *kept, const real *from, real *to, i64 n, real a, real b, real c) {                              \
        EACH(i, n) {                                                                                                \
            [[maybe_unused]] const real k = kept == nullptr ? R(0) : kept[i], g = from[i];                          \
            to[i] = GRADIENT;                                                                                       \
        }                                                                                                           \
    }
#endif

#endif
