/* Gated recurrent units over sequences, and their gradients.
 *
 * All sequences that still run make a step together (`rnn_steps.h`). Gates stand side by side: update gate, reset gate and
 * candidate; the weights of the two gates [size, 2 size] in front of those of the candidate [size, size].
 */
#ifndef FL_NS

#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_WIDE
#define FL_SELF "kernels/gru.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_gru = FL_TOPIC(gru_table);

#else

#include "kernels/rnn_steps.h"

namespace fl::FL_NS {
namespace {

/* ints: sequences, rows, size, 3 times the size, reverse, whether the update gate is the share of the old state, then the
 * activations of gates and candidate. */
struct Gru {
    int64_t sequences, rows, size, wide;
    bool reverse, keeps;
    int64_t gate_act, act;

    explicit Gru(const int64_t *i)
        : sequences(i[0]), rows(i[1]), size(i[2]), wide(i[3]), reverse(i[4] != 0), keeps(i[5] != 0), gate_act(i[6]), act(i[7]) {}
};

/* operands: X, offsets?, initial state?, weight, bias?; state, gates (packed), states after the reset gate (packed), states
 * (packed)?, which go together with offsets */
template <class T> int gru(fl_call *call) {
    const T *x = at<T>(call, 0), *state0 = at<T>(call, 2), *weight = at<T>(call, 3), *bias = at<T>(call, 4);
    T *out = at<T>(call, 5), *gates = at<T>(call, 6), *kept = at<T>(call, 7), *states = at<T>(call, 8);
    if (states == nullptr && offsets_at(call, 1) != nullptr) return missing(call, 8);
    if (states == nullptr) states = out;
    const Gru rule(call->i);
    const int64_t size = rule.size, wide = rule.wide;
    Steps steps(rule.sequences, rule.rows);
    Packed<T> opening(size, 2 * size), recurrent(size, size);
    T *initial = nullptr;
    // `sequences` by value: with a reference to `rule`, GCC fuses other products and sums below, and last bits change.
    const int laid = in_scratch(call, [&, sequences = rule.sequences](Arena &arena) {
        steps.take(arena);
        initial = arena.take<T>(sequences * size);
        opening.take(arena);
        recurrent.take(arena);
    });
    if (laid != FL_OK) return laid;
    steps.arrange(offsets_at(call, 1), rule.reverse);
    opening.pack(weight, false, steps.longest);
    recurrent.pack(weight + 2 * size * size, false, steps.longest);
    steps.gather_before(0, static_cast<const T *>(nullptr), state0, size, initial);
    const T *previous = initial;
    for (int64_t t = 0; t < steps.longest; ++t) {
        const int64_t from = steps.first[t], n = steps.count(t);
        const bool runs = t > 0 || state0 != nullptr;
        const int64_t *source = steps.source + from;
        T *sums = gates + from * wide;
        for (int64_t k = 0; k < n; ++k) {
            const T *FL_RESTRICT row = x + source[k] * wide;
            T *FL_RESTRICT to = sums + k * wide;
            if (bias == nullptr) copy_row(row, wide, to);
            for (int64_t q = 0; bias != nullptr && q < wide; ++q) to[q] = row[q] + bias[q];
        }
        if (runs) opening.multiply(n, previous, size, T(1), sums, wide);
        T *reset_states = kept + from * size, *made = states + from * size;
        for (int64_t k = 0; k < n; ++k) {
            activate(rule.gate_act, sums + k * wide, 2 * size);
            const T *FL_RESTRICT reset = sums + k * wide + size, *FL_RESTRICT old = previous + k * size;
            T *FL_RESTRICT to = reset_states + k * size;
            for (int64_t q = 0; q < size; ++q) to[q] = reset[q] * old[q];
        }
        if (runs) recurrent.multiply(n, reset_states, size, T(1), sums + 2 * size, wide);
        for (int64_t k = 0; k < n; ++k) {
            activate(rule.act, sums + k * wide + 2 * size, size);
            const T *FL_RESTRICT update = sums + k * wide, *FL_RESTRICT candidate = update + 2 * size, *FL_RESTRICT old = previous + k * size;
            T *FL_RESTRICT to = made + k * size;
            for (int64_t q = 0; q < size; ++q) {
                const T step = update[q] * (candidate[q] - old[q]);
                to[q] = rule.keeps ? candidate[q] - step : old[q] + step;
            }
            if (states != out) copy_row(made + k * size, size, out + source[k] * size);
        }
        previous = made;
    }
    return FL_OK;
}

/* The gradients of a row so far: those of the sums of update gate and candidate, and dstate, that of the state, becomes the
 * part of that of the old state which goes past the gates. */
template <class T>
void row_grad(const Gru &rule, const T *FL_RESTRICT gates, const T *FL_RESTRICT old, T *FL_RESTRICT dstate, T *FL_RESTRICT dupdate,
              T *FL_RESTRICT dcandidate) {
    const int64_t size = rule.size;
    const T *FL_RESTRICT update = gates, *FL_RESTRICT candidate = gates + 2 * size;
    for (int64_t q = 0; q < size; ++q) {
        const T g = dstate[q], u = update[q], through = g * u, past = g - through, apart = g * (candidate[q] - old[q]);
        dcandidate[q] = rule.keeps ? past : through;
        dupdate[q] = rule.keeps ? -apart : apart;
        dstate[q] = rule.keeps ? through : past;
    }
    apply_slope(rule.gate_act, update, dupdate, size);
    apply_slope(rule.act, candidate, dcandidate, size);
}

/* operands: offsets?, initial state?, weight; state, gates, states after the reset gate, gradient of the state; gradients of X?,
 * weight?, bias?, initial state? */
template <class T> int gru_grad(fl_call *call) {
    const T *state0 = at<T>(call, 1), *weight = at<T>(call, 2), *out = at<T>(call, 3), *gates = at<T>(call, 4),
            *kept = at<T>(call, 5), *g = at<T>(call, 6);
    T *dx = at<T>(call, 7), *dweight = at<T>(call, 8), *dbias = at<T>(call, 9), *dstate0 = at<T>(call, 10);
    const Gru rule(call->i);
    const int64_t size = rule.size, wide = rule.wide, rows = rule.rows;
    Packed<T> opening(2 * size, size), recurrent(size, size);
    Steps steps(rule.sequences, rows);
    T *dgates = nullptr, *room = nullptr, *before = nullptr, *resets = nullptr, *none = nullptr, *dstates = nullptr, *dkept = nullptr;
    double *sums = nullptr;
    // `sequences` by value: with a reference to `rule`, GCC fuses other products and sums below, and last bits change.
    const int laid = in_scratch(call, [&, sequences = rule.sequences](Arena &arena) {
        steps.take(arena);
        dgates = arena.take<T>(sequences * wide);
        room = arena.take<T>(dx == nullptr && dweight != nullptr ? rows * wide : 0);
        before = arena.take<T>(dweight != nullptr ? rows * size : 0);
        resets = arena.take<T>(dweight != nullptr ? rows * size : 0);
        none = arena.take<T>(size);
        dstates = arena.take<T>(sequences * size);
        dkept = arena.take<T>(sequences * size);
        sums = arena.take<double>(wide);
        opening.take(arena);
        recurrent.take(arena);
    });
    if (laid != FL_OK) return laid;
    steps.arrange(offsets_at(call, 0), rule.reverse);
    opening.pack(weight, true, steps.longest);
    recurrent.pack(weight + 2 * size * size, true, steps.longest);
    zero(sums, wide);
    zero(none, size);
    T *all = dx != nullptr ? dx : dweight != nullptr ? room : nullptr; /* the gradients of all gates, in X's order */
    for (int64_t t = steps.longest - 1; t >= 0; --t) {
        const int64_t from = steps.first[t], n = steps.count(t), after = steps.count(t + 1);
        const int64_t *source = steps.source + from;
        zero(dstates + after * size, (n - after) * size);
        for (int64_t k = 0; k < n; ++k) {
            T *FL_RESTRICT dstate = dstates + k * size;
            const T *given = g + source[k] * size, *old = steps.before(t, k, out, state0, size, static_cast<const T *>(none));
            for (int64_t q = 0; q < size; ++q) dstate[q] += given[q];
            row_grad(rule, gates + (from + k) * wide, old, dstate, dgates + k * wide, dgates + k * wide + 2 * size);
        }
        recurrent.multiply(n, dgates + 2 * size, wide, T(0), dkept, size);
        for (int64_t k = 0; k < n; ++k) {
            const T *reset = gates + (from + k) * wide + size, *dreset_state = dkept + k * size,
                    *past = steps.before(t, k, out, state0, size, static_cast<const T *>(none));
            T *FL_RESTRICT dreset = dgates + k * wide + size, *FL_RESTRICT dstate = dstates + k * size;
            for (int64_t q = 0; q < size; ++q) {
                dreset[q] = dreset_state[q] * past[q];
                dstate[q] += dreset_state[q] * reset[q];
            }
            apply_slope(rule.gate_act, reset, dreset, size);
            if (all != nullptr) copy_row(dgates + k * wide, wide, all + source[k] * wide);
            if (dweight != nullptr) {
                copy_row(past, size, before + source[k] * size);
                copy_row(kept + (from + k) * size, size, resets + source[k] * size);
            }
        }
        if (dbias != nullptr) add_rows(sums, dgates, n, wide);
        opening.multiply(n, dgates, wide, T(1), dstates, size);
    }
    if (dweight != nullptr) {
        const T *dcandidates = all + 2 * size;
        if (const int code = sum_over_rows<T>(call, rows, size, 2 * size, before, all, wide, dweight)) return code;
        if (const int code = sum_over_rows<T>(call, rows, size, size, resets, dcandidates, wide, dweight + 2 * size * size)) return code;
    }
    for (int64_t q = 0; dbias != nullptr && q < wide; ++q) dbias[q] = static_cast<T>(sums[q]);
    if (dstate0 != nullptr) steps.scatter_initial(static_cast<const T *>(dstates), size, dstate0);
    return FL_OK;
}

}  // namespace

extern const fl_entry gru_table[] = {
    FL_REAL("gru", gru, "xnnxnxxxn|zzzziiii||bd,a+L,ac,cd,d,bc,bd,bc,bc")
    FL_REAL("gru_grad", gru_grad, "nnxxxxxnnnn|zzzziiii||a+L,ac,cd,bc,bd,bc,bc,bd,cd,d,ac")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
