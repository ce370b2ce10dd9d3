/* Fluid's random streams: a Lehmer generator begun at the operator's seed, and the distributions drawn from it.
 *
 * The generator is the minimal standard one (x = 48271 x mod 2^31 - 1). The distributions draw as the GNU C++ library
 * does for float, written out here so that every compiler gives the same numbers.
 */
#ifndef FLUIDLITE_RNG_STREAM_H
#define FLUIDLITE_RNG_STREAM_H

#include <cmath>
#include <cstdint>

namespace fl {

class Stream {
  public:
    static constexpr uint64_t modulus = 2147483647u;
    static constexpr uint64_t span = modulus - 2; /* draws lie in [1, modulus - 1] */

    explicit Stream(uint64_t seed) : x_(seed % modulus) {
        if (x_ == 0) x_ = 1;
    }

    /* The next number of the generator, less its minimum: in [0, span]. */
    uint64_t next() {
        const uint64_t y = x_ * 48271u;
        const uint64_t folded = (y & modulus) + (y >> 31);
        x_ = folded >= modulus ? folded - modulus : folded;
        return x_ - 1;
    }

    /* Uniform on [0, 1). */
    float unit() {
        const float u = static_cast<float>(next()) / 2147483646.0f;
        return u < 1.0f ? u : 0x1.fffffep-1f;
    }

    /* Uniform integer in [low, high), high - low up to the generator's span: whole buckets, the rest is drawn again. */
    int64_t integer(int64_t low, int64_t high) {
        const uint64_t wanted = static_cast<uint64_t>(high - low);
        const uint64_t bucket = span / wanted;
        const uint64_t past = wanted * bucket;
        uint64_t x;
        do {
            x = next();
        } while (x >= past);
        return low + static_cast<int64_t>(x / bucket);
    }

  private:
    uint64_t x_;
};

/* Standard normal numbers in pairs, by Marsaglia's polar method. */
class Normal {
  public:
    float next(Stream &stream) {
        if (have_) {
            have_ = false;
            return spare_;
        }
        float x, y, r2;
        do {
            x = 2.0f * stream.unit() - 1.0f;
            y = 2.0f * stream.unit() - 1.0f;
            r2 = x * x + y * y;
        } while (r2 > 1.0f || r2 == 0.0f);
        const float scale = std::sqrt(-2.0f * std::log(r2) / r2);
        spare_ = x * scale;
        have_ = true;
        return y * scale;
    }

  private:
    float spare_ = 0.0f;
    bool have_ = false;
};

}  // namespace fl

#endif
