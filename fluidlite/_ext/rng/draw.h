/* Arrays of random numbers, as Fluid's random operators draw them. */
#ifndef FLUIDLITE_RNG_DRAW_H
#define FLUIDLITE_RNG_DRAW_H

#include <cstdint>

namespace fl {

void draw_uniform(uint64_t seed, float low, float high, int64_t n, float *out);
void draw_uniform(uint64_t seed, double low, double high, int64_t n, double *out);
void draw_normal(uint64_t seed, float mean, float std, int64_t n, float *out);
void draw_normal(uint64_t seed, double mean, double std, int64_t n, double *out);
void draw_truncated_normal(uint64_t seed, float mean, float std, int64_t n, float *out);
void draw_integers(uint64_t seed, int64_t low, int64_t high, int64_t n, int64_t *out);
/* 1 where an element is kept: a uniform draw not below `prob`. */
void draw_dropout_mask(uint64_t seed, float prob, int64_t n, uint8_t *out);

}  // namespace fl

#endif
