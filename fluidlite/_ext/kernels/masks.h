/* Random masks that follow from a key and the place of an element: whoever has the key can draw the same again.
 * Included once for every instruction set, hence no guard.
 */

namespace fl::FL_NS {
namespace {

/* A permutation of 32-bit numbers with good avalanche (Wellons, "lowbias32"). */
FL_INLINE uint32_t scramble(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

/* What the drawn number of an element has to reach for the element to be kept: 24 bits compare exactly with a float. */
FL_INLINE int32_t dropped_below(float prob) { return static_cast<int32_t>(prob * 16777216.0f); }

FL_INLINE bool is_kept(uint32_t place, uint32_t key, int32_t threshold) {
    return static_cast<int32_t>(scramble(scramble(place) ^ key) >> 8) >= threshold;
}

/* Whether each of `count` elements is kept, the first of which has the place `begin`: in numbers of 32 bits, and then as bytes,
 * because loops over both are not vectorised. */
inline void draw_mask(uint8_t *mask, int64_t begin, int64_t count, uint32_t key, int32_t threshold) {
    constexpr int64_t width = 512;
    int32_t kept[width];
    for (int64_t k = 0; k < count; k += width) {
        const int32_t length = static_cast<int32_t>(count - k < width ? count - k : width);
        const uint32_t first = static_cast<uint32_t>(begin + k);
        FL_LOOP
        for (int32_t t = 0; t < length; ++t) kept[t] = is_kept(first + static_cast<uint32_t>(t), key, threshold);
        FL_LOOP
        for (int32_t t = 0; t < length; ++t) mask[k + t] = static_cast<uint8_t>(kept[t]);
    }
}

}  // namespace
}  // namespace fl::FL_NS
