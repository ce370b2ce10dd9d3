#include "rng/draw.h"

#include <cmath>

#include "rng/stream.h"

namespace fl {

namespace {

/* A polynomial, highest power first, its coefficients divided by `unit`, in single precision. */
template <int n> float horner(const double (&c)[n], float x, double unit) {
    float sum = static_cast<float>(c[0] / unit);
    for (int k = 1; k < n; ++k) sum = sum * x + static_cast<float>(c[k] / unit);
    return sum;
}

/* The inverse of erf, rounded wherever Fluid rounds: the middle branch of Wichura's AS 241 (1988). Fluid takes it for
 * all |x| < 0.955 that truncation leaves, though it is meant for |x| <= 0.85. */
float inverse_erf(float x) {
    static const double a[] = {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
                               4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
                               1.3314166789178437745e+2, 3.3871328727963666080e0};
    static const double b[] = {5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4,
                               2.1213794301586595867e+4, 5.3941960214247511077e+3, 6.8718700749205790830e+2,
                               4.2313330701600911252e+1, 1.0};
    const float r = static_cast<float>(0.180625 - 0.25 * x * x);
    return x * horner(a, r, 2.0 * std::sqrt(2.0)) / horner(b, r, 1.0);
}

template <typename T> void uniform(uint64_t seed, T low, T high, int64_t n, T *out) {
    Stream stream(seed);
    const T width = high - low;
    for (int64_t k = 0; k < n; ++k) {
        T u;
        draw_unit(stream, u);
        out[k] = u * width + low;
    }
}

template <typename T> void normal(uint64_t seed, T mean, T std, int64_t n, T *out) {
    Stream stream(seed);
    Normal<T> numbers;
    for (int64_t k = 0; k < n; ++k) out[k] = numbers.next(stream) * std + mean;
}

}  // namespace

void draw_uniform(uint64_t seed, float low, float high, int64_t n, float *out) { uniform(seed, low, high, n, out); }

void draw_uniform(uint64_t seed, double low, double high, int64_t n, double *out) { uniform(seed, low, high, n, out); }

void draw_normal(uint64_t seed, float mean, float std, int64_t n, float *out) { normal(seed, mean, std, n, out); }

void draw_normal(uint64_t seed, double mean, double std, int64_t n, double *out) { normal(seed, mean, std, n, out); }

void draw_truncated_normal(uint64_t seed, float mean, float std, int64_t n, float *out) {
    Stream stream(seed);
    const float lowest = static_cast<float>(0.5 * std::erfc(std::sqrt(2.0)));
    const float width = static_cast<float>(0.5 * std::erfc(-std::sqrt(2.0))) - lowest;
    for (int64_t k = 0; k < n; ++k) {
        const float p = lowest + width * stream.unit(); /* rounded to float, as Fluid does */
        out[k] = static_cast<float>(std::sqrt(2.0) * inverse_erf(2.0f * p - 1.0f) * std + mean);
    }
}

void draw_integers(uint64_t seed, int64_t low, int64_t high, int64_t n, int64_t *out) {
    Stream stream(seed);
    for (int64_t k = 0; k < n; ++k) out[k] = stream.integer(low, high);
}

void draw_dropout_mask(uint64_t seed, float prob, int64_t n, uint8_t *out) {
    Stream stream(seed);
    for (int64_t k = 0; k < n; ++k) out[k] = stream.unit() < prob ? 0 : 1;
}

}  // namespace fl
