/* Dropout: the mask of Fluid's seeded stream, or fresh random masks, and the gradient. */
#ifndef FL_NS

#include <memory>

#include "kernels/by_rows.h"
#include "kernels/fresh_seed.h"
#include "kernels/topics.h"
#include "rng/stream.h"

#define FL_SELF "kernels/dropout.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_dropout = FL_TOPIC(dropout_table);

#else

#include "kernels/masks.h"

namespace fl::FL_NS {
namespace {

/* A seeded operator draws the same mask in every run, so it is drawn once and kept. */
struct Seeded {
    std::unique_ptr<uint8_t[]> mask;
};

/* Unseeded masks hash a counter; the key is random and changes with every run. */
struct Unseeded {
    uint32_t key = 0;
};

template <class State> void free_state(void *state) { delete static_cast<State *>(state); }

int seeded_mask(fl_call *call, uint8_t *mask, int64_t n, int64_t seed, float prob) {
    if (call->state == nullptr) {
        std::unique_ptr<Seeded> state(new (std::nothrow) Seeded);
        if (state) state->mask.reset(new (std::nothrow) uint8_t[static_cast<size_t>(n)]);
        if (!state || !state->mask) return no_memory(call, n);
        Stream stream(static_cast<uint64_t>(seed));
        for (int64_t k = 0; k < n; ++k) state->mask[static_cast<size_t>(k)] = stream.unit() < prob ? 0 : 1;
        call->state = state.release();
        call->free_state = free_state<Seeded>;
    }
    std::memcpy(mask, static_cast<Seeded *>(call->state)->mask.get(), static_cast<size_t>(n));
    return FL_OK;
}

int fresh_mask(fl_call *call, uint8_t *mask, int64_t n, float prob) {
    if (call->state == nullptr) {
        Unseeded *state = new (std::nothrow) Unseeded;
        if (state == nullptr) return no_memory(call, sizeof(Unseeded));
        state->key = static_cast<uint32_t>(fresh_seed());
        call->state = state;
        call->free_state = free_state<Unseeded>;
        call->any_ints = 1; /* one stream, however many numbers each run takes of it */
    }
    uint32_t &state = static_cast<Unseeded *>(call->state)->key;
    state = scramble(state + 0x9e3779b9u);
    const uint32_t key = state;
    const int32_t threshold = dropped_below(prob);
    in_ranges(n, 8, [=](int64_t begin, int64_t end) { /* as long as reading and writing 8 bytes */
        draw_mask(mask + begin, begin, end - begin, key, threshold);
    });
    return FL_OK;
}

int draw(fl_call *call, uint8_t *mask, int64_t n, int64_t seed) {
    const float prob = static_cast<float>(call->f[0]);
    if (n == 0) return FL_OK;
    return seed != 0 ? seeded_mask(call, mask, n, seed, prob) : fresh_mask(call, mask, n, prob);
}

/* The mask alone. */
int dropout_mask(fl_call *call) { return draw(call, at<uint8_t>(call, 0), call->i[0], call->i[1]); }

template <class T> FL_INLINE T kept_scale(const fl_call *call) {
    const T prob = static_cast<T>(call->f[0]);
    if (!call->i[1]) return T(1);
    return prob < T(1) ? T(1) / (T(1) - prob) : T(0);
}

template <class T> FL_NOINLINE void keep(const T *x, const uint8_t *mask, T *out, int64_t n, T scale) {
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) out[k] = mask[k] ? x[k] * scale : T(0);
}

template <class T> int dropout(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    uint8_t *mask = at<uint8_t>(call, 2);
    const int64_t n = call->i[0];
    if (const int code = draw(call, mask, n, call->i[2])) return code;
    const T scale = kept_scale<T>(call);
    in_ranges(n, 2 * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        keep(x + begin, mask + begin, out + begin, end - begin, scale);
    });
    return FL_OK;
}

template <class T> int dropout_grad(fl_call *call) {
    keep(at<T>(call, 0), at<uint8_t>(call, 1), at<T>(call, 2), call->i[0], kept_scale<T>(call));
    return FL_OK;
}

template <class T> constexpr fl_kernel dropout_grad_by_rows = by_rows<dropout_grad<T>, Each<T>, Each<char>, Each<T>>;

}  // namespace

extern const fl_entry dropout_table[] = {
    FL_REAL("dropout", dropout, "xxx|zii|f|a,a,aB")
    {"dropout_mask", dropout_mask, "x|zi|f|aB"},
    FL_REAL("dropout_grad", dropout_grad_by_rows, "xxx|zi|f|a,aB,a")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
