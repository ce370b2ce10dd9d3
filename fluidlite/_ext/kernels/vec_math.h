/* Elementary functions written so that compilers vectorise the loops around them.
 *
 * The float versions are accurate to about two units in the last place over the whole range, keep infinities and NaN,
 * and have no branches. The polynomials for exp, log and tanh are those of Moshier's Cephes library (public
 * numerical tables); double goes to the C library.
 */
#ifndef FLUIDLITE_KERNELS_VEC_MATH_H
#define FLUIDLITE_KERNELS_VEC_MATH_H

#include "kernels/common.h"

namespace fl::vm {

FL_INLINE float from_bits(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

FL_INLINE uint32_t to_bits(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* What is left of exp when 2^n is taken out: exp(x) is the result times 2^n. */
FL_INLINE float exp_mantissa(float x, int32_t &n) {
    /* Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. */
    const float shifted = x * 1.44269504088896341f + 12582912.0f;
    const float whole = shifted - 12582912.0f;
    n = static_cast<int32_t>(to_bits(shifted)) - 0x4b400000;
    float r = x - whole * 0.693359375f;
    r = r + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * (r * r) + r + 1.0f;
}

FL_INLINE float exp(float x) {
    /* Beyond these bounds the result is 0 or infinity anyway; NaN passes both comparisons unchanged. */
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    int32_t n;
    const float p = exp_mantissa(x, n);
    /* 2^n in two factors, so that neither overflows for results near the ends of the range. */
    const int32_t half = n >> 1;
    const float a = from_bits(static_cast<uint32_t>(half + 127) << 23);
    const float b = from_bits(static_cast<uint32_t>(n - half + 127) << 23);
    return p * a * b;
}

/* The same for x from -80 to 80, and NaN for NaN. */
FL_INLINE float exp_inside(float x) {
    int32_t n;
    const float p = exp_mantissa(x, n);
    return p * from_bits(static_cast<uint32_t>(n + 127) << 23);
}

FL_INLINE float log(float x) {
    const bool tiny = x < 1.17549435e-38f;
    const float scaled = tiny ? x * 8388608.0f : x;
    /* Split into 2^e times a mantissa in [sqrt(1/2), sqrt(2)). */
    const uint32_t bits = to_bits(scaled) - 0x3f3504f3u;
    const int32_t e = static_cast<int32_t>(bits) >> 23;
    const float m = from_bits((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    const float k = static_cast<float>(e) - (tiny ? 23.0f : 0.0f);
    const float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = p * m * z;
    y = y - k * 2.12194440e-4f;
    y = y - 0.5f * z;
    float result = m + y;
    result = result + k * 0.693359375f;
    const float infinity = std::numeric_limits<float>::infinity();
    result = x < infinity ? result : x; /* infinity and NaN are their own logarithms */
    result = x == 0.0f ? -infinity : result;
    return x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : result;
}

/* log(1 + x) for x >= 0: the rounding error of 1 + x is put back. */
FL_INLINE float log1p(float x) {
    const float w = 1.0f + x;
    return log(w) + (x - (w - 1.0f)) / w;
}

FL_INLINE float tanh(float x) {
    const float size = std::fabs(x);
    const float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float small = p * z * x + x;
    const float cut = size > 20.0f ? 20.0f : size; /* from 9.1 on the result is 1 */
    const float large = 1.0f - 2.0f / (exp_inside(2.0f * cut) + 1.0f);
    const float signed_large = x < 0.0f ? -large : large;
    return size < 0.625f ? small : signed_large;
}

FL_INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

/* The same for x from -80 to 80, and NaN for NaN. */
FL_INLINE float sigmoid_inside(float x) { return 1.0f / (1.0f + exp_inside(-x)); }

/* A polynomial of x near 0, elsewhere 1 - exp(-p(x)) where p is near -log(erfc); beyond 4 it is 1 in float. */
FL_INLINE float erf(float x) {
    const float size = std::fabs(x), z = x * x;
    float p = -5.654105917e-4f;
    p = p * z + 4.923277535e-3f;
    p = p * z - 2.671638504e-2f;
    p = p * z + 1.128036454e-1f;
    p = p * z - 3.761234879e-1f;
    p = p * z + 1.128379107f;
    const float cut = size < 4.0f ? size : 4.0f;
    float q = 1.330939085e-5f;
    q = q * cut - 3.175720340e-4f;
    q = q * cut + 3.436867613e-3f;
    q = q * cut - 2.262198552e-2f;
    q = q * cut + 1.033189818e-1f;
    q = q * cut + 6.390933394e-1f;
    q = q * cut + 1.125925899f;
    q = q * cut + 7.569686277e-4f;
    const float large = 1.0f - exp(-q);
    const float signed_large = x < 0.0f ? -large : large;
    const float far = size >= 1.0f ? signed_large : x + size; /* what is no number stays none */
    return size < 1.0f ? p * x : far;
}

FL_INLINE double exp(double x) { return std::exp(x); }
FL_INLINE double exp_inside(double x) { return std::exp(x); }
FL_INLINE double log(double x) { return std::log(x); }
FL_INLINE double log1p(double x) { return std::log1p(x); }
FL_INLINE double tanh(double x) { return std::tanh(x); }
FL_INLINE double erf(double x) { return std::erf(x); }
FL_INLINE double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
FL_INLINE double sigmoid_inside(double x) { return sigmoid(x); }

/* Written so that NaN stays NaN. */
template <class T> FL_INLINE T relu(T x) { return x < T(0) ? T(0) : x; }

/* Activation ACT of common.h, chosen at compile time. */
template <int ACT, class T> FL_INLINE T activate(T x) {
    if constexpr (ACT == act_relu) {
        return relu(x);
    } else if constexpr (ACT == act_sigmoid) {
        return sigmoid(x);
    } else if constexpr (ACT == act_tanh) {
        return tanh(x);
    } else {
        return x;
    }
}

}  // namespace fl::vm

#endif
