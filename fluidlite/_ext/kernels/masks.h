/* Random masks that follow from a key and the place of an element: whoever has the key can draw the same again.
 * Included once for every instruction set, hence no guard.
 */

namespace fl {
namespace FL_NS {
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

FL_INLINE bool is_kept(int64_t k, uint32_t key, int32_t threshold) {
    return static_cast<int32_t>(scramble(scramble(static_cast<uint32_t>(k)) ^ key) >> 8) >= threshold;
}

}  // namespace
}  // namespace FL_NS
}  // namespace fl
