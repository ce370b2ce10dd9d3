// Arithmetic of two arrays and its gradients. Y stands at the middle n of X seen as [pre, n, post].

typedef SCALAR real;

// Where element i of X meets Y.
__device__ inline i64 partner(i64 i, i64 total, i64 n, i64 post) { return n == total ? i : digit(i, post, n); }

// NAME: VALUE of x and y, and the gradients DX and DY from x, y and g, before those of Y are summed.
#ifndef BINARY
#define BINARY(NAME, VALUE, DX, DY)                                                                                 \
    extern "C" __global__ void NAME##_value(const real *X, const real *Y, real *out, i64 total, i64 n, i64 post) {  \
        EACH(i, total) {                                                                                            \
            const real x = X[i], y = Y[partner(i, total, n, post)];                                                 \
            out[i] = VALUE;                                                                                         \
        }                                                                                                           \
    }                                                                                                               \
    extern "C" __global__ void NAME##_grad(                                                                         \
        const real *X, const real *Y, const real *dout, real *dx, real *dy, i64 total, i64 n, i64 post) {           \
        EACH(i, total) {                                                                                            \
            [[maybe_unused]] const real x = X[i], y = Y[partner(i, total, n, post)], g = dout[i];                   \
            if (dx != nullptr) dx[i] = DX;                                                                          \
            if (dy != nullptr) dy[i] = DY;                                                                          \
        }                                                                                                           \
    }
#endif

__device__ inline real power_slope(real x, real y, real g) { return y == real(0) ? real(0) : g * y * pow(x, y - real(1)); }

__device__ inline real exponent_slope(real x, real y, real g) {
    if (x < real(0)) return log(x);  // NaN
    return g * pow(x, y) * log(x > real(0) ? x : real(1));
}

BINARY(add, x + y, g, g)
BINARY(sub, x - y, g, -g)
BINARY(mul, x * y, g * y, g * x)
BINARY(div, x / y, g / y, -g * x / (y * y))
BINARY(max, x > y ? x : y, x > y ? g : real(0), x <= y ? g : real(0))
BINARY(min, x < y ? x : y, x < y ? g : real(0), x >= y ? g : real(0))
BINARY(pow, pow(x, y), power_slope(x, y, g), exponent_slope(x, y, g))

// Up to eight arrays added, in this order; may be repeated with `out` as the first.
extern "C" __global__ void add_many(
    const real *a, const real *b, const real *c, const real *d, const real *e, const real *f, const real *g,
    const real *h, real *out, i64 n) {
    const real *const more[7] = {b, c, d, e, f, g, h};
    EACH(i, n) {
        real total = a[i];
        for (int k = 0; k < 7 && more[k] != nullptr; ++k) total += more[k][i];
        out[i] = total;
    }
}

// factor * x + bias, or factor * (x + bias); `given`, if there, points to the factor.
extern "C" __global__ void scale(
    const real *x, const real *given, real *out, i64 n, real factor, real bias, i64 bias_after_scale) {
    const real by = given == nullptr ? factor : given[0];
    EACH(i, n) out[i] = bias_after_scale ? x[i] * by + bias : (x[i] + bias) * by;
}
