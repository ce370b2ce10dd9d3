/* Fluid's random streams: a Lehmer generator begun at the operator's seed, and the distributions drawn from it.
 *
 * The generator is the minimal standard one (x = 48271 x mod 2^31 - 1). The distributions draw as the GNU C++ library
 * does for float and double, written out here so that every compiler gives the same numbers.
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

    /* Uniform on [0, 1) in double precision, which takes two numbers of the generator. */
    double unit64() {
        const double range = 2147483646.0;
        const double below = static_cast<double>(next());
        const double u = (below + static_cast<double>(next()) * range) / (range * range);
        return u < 1.0 ? u : 0x1.fffffffffffffp-1;
    }

    /* Uniform integer in [low, high). */
    int64_t integer(int64_t low, int64_t high) {
        const uint64_t least = static_cast<uint64_t>(low);
        return static_cast<int64_t>(least + up_to(static_cast<uint64_t>(high) - least - 1));
    }

    /* Uniform integer in [0, most]. */
    uint64_t up_to(uint64_t most) {
        if (most == span) return next();
        uint64_t x;
        if (most < span) { /* whole buckets, the rest is drawn again */
            const uint64_t wanted = most + 1, bucket = span / wanted, past = wanted * bucket;
            do {
                x = next();
            } while (x >= past);
            return x / bucket;
        }
        uint64_t tens; /* two digits, each of which is a number of the generator */
        do {
            tens = (span + 1) * up_to(most / (span + 1));
            x = tens + next();
        } while (x > most || x < tens);
        return x;
    }

  private:
    uint64_t x_;
};

inline void draw_unit(Stream &stream, float &u) { u = stream.unit(); }
inline void draw_unit(Stream &stream, double &u) { u = stream.unit64(); }

/* Standard normal numbers in pairs, by Marsaglia's polar method. */
template <typename T> class Normal {
  public:
    T next(Stream &stream) {
        if (have_) {
            have_ = false;
            return spare_;
        }
        T x, y, r2;
        do {
            draw_unit(stream, x);
            draw_unit(stream, y);
            x = T(2) * x - T(1);
            y = T(2) * y - T(1);
            r2 = x * x + y * y;
        } while (r2 > T(1) || r2 == T(0));
        const T scale = std::sqrt(T(-2) * std::log(r2) / r2);
        spare_ = x * scale;
        have_ = true;
        return y * scale;
    }

  private:
    T spare_ = T(0);
    bool have_ = false;
};

}  // namespace fl

#endif
