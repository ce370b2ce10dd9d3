/* Long short-term memories over sequences, with or without a projection of their states, and single steps; and their gradients.
 *
 * All sequences that still run make a step together, so that a step is one product (`rnn_steps.h`). Gates stand side by side:
 * candidate, input, forget and output gate.
 */
#ifndef FL_NS

#include <algorithm>
#include <utility>

#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_WIDE
#define FL_SELF "kernels/lstm.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_lstm = FL_TOPIC(lstm_table);

#else

#include "kernels/rnn_steps.h"

namespace fl::FL_NS {
namespace {

/* ints: sequences, rows, size of the cell, width of the state, 4 times the size, width of the bias, reverse, then the
 * activations of gates, cell, candidate and projection. Bias holds the peepholes too if it is wider than the gates.
 * floats: bounds of cell and projection, 0 for none. */
template <class T> struct Lstm {
    int64_t sequences, rows, size, state, wide;
    bool reverse;
    int64_t gate_act, cell_act, candidate_act, projection_act;
    T cell_bound, projection_bound;
    const T *bias, *peepholes;
    bool usual; /* gates are sigmoids, the others tanh, and cells have no bound */

    Lstm(const fl_call *call, const T *given) {
        const int64_t *i = call->i;
        sequences = i[0], rows = i[1], size = i[2], state = i[3], wide = i[4], reverse = i[6] != 0;
        gate_act = i[7], cell_act = i[8], candidate_act = i[9], projection_act = i[10];
        cell_bound = static_cast<T>(call->f[0]), projection_bound = static_cast<T>(call->f[1]);
        bias = given, peepholes = i[5] > wide ? given + wide : nullptr;
        usual = (gate_act == act_sigmoid || gate_act == act_unbounded_sigmoid) && cell_act == act_tanh &&
                candidate_act == act_tanh && !(cell_bound > T(0));
    }

    /* A row of a step: from sums in `gates` and the cell before it to gates, cell, its activation and the state. */
    void row(T *FL_RESTRICT gates, const T *FL_RESTRICT before, T *FL_RESTRICT cell, T *FL_RESTRICT shown,
             T *FL_RESTRICT out) const {
        const T *FL_RESTRICT candidate = gates, *FL_RESTRICT show = gates + 3 * size;
        T *FL_RESTRICT in = gates + size, *FL_RESTRICT forget = gates + 2 * size;
        if (peepholes != nullptr) {
            for (int64_t q = 0; q < size; ++q) {
                in[q] += before[q] * peepholes[q];
                forget[q] += before[q] * peepholes[size + q];
            }
        }
        activate(candidate_act, gates, size);
        activate(gate_act, in, 2 * size);
        for (int64_t q = 0; q < size; ++q) cell[q] = candidate[q] * in[q] + before[q] * forget[q];
        clip(cell_bound, cell, size);
        if (peepholes != nullptr) {
            for (int64_t q = 0; q < size; ++q) gates[3 * size + q] += cell[q] * peepholes[2 * size + q];
        }
        activate(gate_act, gates + 3 * size, size);
        for (int64_t q = 0; q < size; ++q) shown[q] = cell[q];
        activate(cell_act, shown, size);
        for (int64_t q = 0; q < size; ++q) out[q] = show[q] * shown[q];
    }

    /* The gradients of a row: `dg` of the sums of its gates; dcell, that of its cell, becomes that of the cell before it.
     * `peephole_sums`: adds those of the peepholes there, if not NULL. */
    void row_grad(const T *FL_RESTRICT gates, const T *FL_RESTRICT before, const T *FL_RESTRICT cell, const T *FL_RESTRICT shown,
                  const T *FL_RESTRICT dout, T *FL_RESTRICT dg, T *FL_RESTRICT dcell, double *FL_RESTRICT peephole_sums) const {
        if (!usual) {
            any_row_grad(gates, before, cell, shown, dout, dg, dcell);
        } else if (peepholes != nullptr) {
            usual_row_grad<true>(gates, before, shown, dout, dg, dcell);
        } else {
            usual_row_grad<false>(gates, before, shown, dout, dg, dcell);
        }
        if (peepholes == nullptr || peephole_sums == nullptr) return;
        const T *FL_RESTRICT din = dg + size, *FL_RESTRICT dforget = dg + 2 * size, *FL_RESTRICT dshow = dg + 3 * size;
        for (int64_t q = 0; q < size; ++q) {
            peephole_sums[q] += static_cast<double>(din[q] * before[q]);
            peephole_sums[size + q] += static_cast<double>(dforget[q] * before[q]);
            peephole_sums[2 * size + q] += static_cast<double>(dshow[q] * cell[q]);
        }
    }

  private:
    /* In one pass. */
    template <bool PEEPHOLES>
    void usual_row_grad(const T *FL_RESTRICT gates, const T *FL_RESTRICT before, const T *FL_RESTRICT shown,
                        const T *FL_RESTRICT dout, T *FL_RESTRICT dg, T *FL_RESTRICT dcell) const {
        const T *FL_RESTRICT candidates = gates, *FL_RESTRICT ins = gates + size, *FL_RESTRICT forgets = gates + 2 * size,
                *FL_RESTRICT shows = gates + 3 * size, *FL_RESTRICT peeps = peepholes;
        T *FL_RESTRICT din = dg + size, *FL_RESTRICT dforget = dg + 2 * size, *FL_RESTRICT dshow = dg + 3 * size;
        for (int64_t q = 0; q < size; ++q) {
            const T candidate = candidates[q], in = ins[q], forget = forgets[q], show = shows[q], seen = shown[q], g = dout[q];
            const T opened = g * seen * (show * (T(1) - show));
            T d = dcell[q] + g * show * (T(1) - seen * seen);
            if constexpr (PEEPHOLES) d += opened * peeps[2 * size + q];
            const T written = d * candidate * (in * (T(1) - in)), kept = d * before[q] * (forget * (T(1) - forget));
            dg[q] = d * in * (T(1) - candidate * candidate);
            din[q] = written;
            dforget[q] = kept;
            dshow[q] = opened;
            dcell[q] = d * forget;
            if constexpr (PEEPHOLES) dcell[q] += written * peeps[q] + kept * peeps[size + q];
        }
    }

    /* For any activations and bounds. */
    void any_row_grad(const T *FL_RESTRICT gates, const T *FL_RESTRICT before, const T *FL_RESTRICT cell,
                      const T *FL_RESTRICT shown, const T *FL_RESTRICT dout, T *FL_RESTRICT dg, T *FL_RESTRICT dcell) const {
        const T *FL_RESTRICT candidate = gates, *FL_RESTRICT in = gates + size, *FL_RESTRICT forget = gates + 2 * size,
                *FL_RESTRICT show = gates + 3 * size;
        T *FL_RESTRICT din = dg + size, *FL_RESTRICT dforget = dg + 2 * size, *FL_RESTRICT dshow = dg + 3 * size;
        for (int64_t q = 0; q < size; ++q) {
            dshow[q] = dout[q] * shown[q];
            dg[q] = dout[q] * show[q];
        }
        apply_slope(gate_act, show, dshow, size);
        apply_slope(cell_act, shown, dg, size);
        if (peepholes != nullptr) {
            for (int64_t q = 0; q < size; ++q) dcell[q] += dshow[q] * peepholes[2 * size + q];
        }
        for (int64_t q = 0; q < size; ++q) dcell[q] += dg[q];
        apply_clip_slope(cell_bound, cell, dcell, size);
        for (int64_t q = 0; q < size; ++q) {
            const T d = dcell[q];
            dg[q] = d * in[q];
            din[q] = d * candidate[q];
            dforget[q] = d * before[q];
            dcell[q] = d * forget[q];
        }
        apply_slope(candidate_act, candidate, dg, size);
        apply_slope(gate_act, in, din, 2 * size);
        if (peepholes == nullptr) return;
        for (int64_t q = 0; q < size; ++q) dcell[q] += din[q] * peepholes[q] + dforget[q] * peepholes[size + q];
    }
};

/* operands: X, offsets, initial state?, initial cell?, weight, projection?, bias; state, cell, gates (packed), activated cells
 * (packed), states before the projection (packed)? */
template <class T> int lstm(fl_call *call) {
    const T *x = at<T>(call, 0), *state0 = at<T>(call, 2), *cell0 = at<T>(call, 3), *weight = at<T>(call, 4),
            *projection = at<T>(call, 5);
    T *out = at<T>(call, 7), *cell = at<T>(call, 8), *gates = at<T>(call, 9), *shown = at<T>(call, 10), *hidden = at<T>(call, 11);
    const Lstm<T> rule(call, at<T>(call, 6));
    Steps steps(rule.sequences, rule.rows);
    const int64_t size = rule.size, state = rule.state, wide = rule.wide;
    Packed<T> recurrent(state, wide), projecting(size, projection == nullptr ? 0 : state);
    T *packed = nullptr, *zeros = nullptr;
    // `sequences` by value: with a reference to `rule`, GCC fuses other products and sums below, and last bits change.
    const int laid = in_scratch(call, [&, sequences = rule.sequences](Arena &arena) {
        steps.take(arena);
        packed = arena.take<T>(2 * sequences * state);
        zeros = arena.take<T>(size);
        recurrent.take(arena);
        projecting.take(arena);
    });
    if (laid != FL_OK) return laid;
    if (projection != nullptr && hidden == nullptr) return missing(call, 11);
    steps.arrange(offsets_at(call, 1), rule.reverse);
    zero(zeros, size);
    const T *none = zeros;
    recurrent.pack(weight, false, steps.longest);
    projecting.pack(projection, false, steps.longest);
    T *previous = packed, *made = packed + rule.sequences * state; /* the states of two steps change places */
    steps.gather_before(0, static_cast<const T *>(nullptr), state0, state, previous);
    for (int64_t t = 0; t < steps.longest; ++t) {
        const int64_t from = steps.first[t], n = steps.count(t);
        const int64_t *source = steps.source + from;
        T *sums = gates + from * wide;
        for (int64_t k = 0; k < n; ++k) {
            const T *row = x + source[k] * wide;
            for (int64_t q = 0; q < wide; ++q) sums[k * wide + q] = row[q] + rule.bias[q];
        }
        if (t > 0 || state0 != nullptr) recurrent.multiply(n, previous, T(1), sums);
        T *unprojected = projection == nullptr ? made : hidden + from * size;
        for (int64_t k = 0; k < n; ++k) {
            const T *old = steps.before(t, k, static_cast<const T *>(cell), cell0, size, none);
            rule.row(sums + k * wide, old, cell + source[k] * size, shown + (from + k) * size, unprojected + k * size);
        }
        if (projection != nullptr) {
            projecting.multiply(n, unprojected, T(0), made);
            activate(rule.projection_act, made, n * state);
            clip(rule.projection_bound, made, n * state);
        }
        for (int64_t k = 0; k < n; ++k) copy_row(made + k * state, state, out + source[k] * state);
        std::swap(previous, made);
    }
    return FL_OK;
}

/* operands: offsets, initial state?, initial cell?, weight, projection?, bias; state, cell, gates, activated cells, states before
 * the projection?, gradient of the state; gradients of X?, weight?, projection?, bias?, initial state?, initial cell? */
template <class T> int lstm_grad(fl_call *call) {
    const T *state0 = at<T>(call, 1), *cell0 = at<T>(call, 2), *weight = at<T>(call, 3), *projection = at<T>(call, 4);
    const T *out = at<T>(call, 6), *cell = at<T>(call, 7), *gates = at<T>(call, 8), *shown = at<T>(call, 9),
            *hidden = at<T>(call, 10), *g = at<T>(call, 11);
    T *dx = at<T>(call, 12), *dweight = at<T>(call, 13), *dprojection = at<T>(call, 14), *dbias = at<T>(call, 15),
      *dstate0 = at<T>(call, 16), *dcell0 = at<T>(call, 17);
    const Lstm<T> rule(call, at<T>(call, 5));
    Steps steps(rule.sequences, rule.rows);
    const int64_t size = rule.size, state = rule.state, wide = rule.wide, rows = rule.rows;
    const int64_t peephole_width = rule.peepholes == nullptr ? 0 : 3 * size;
    Packed<T> recurrent(wide, state), projecting(projection == nullptr ? 0 : state, size);
    T *dgates = nullptr, *kept = nullptr, *first = nullptr, *before = nullptr, *none = nullptr;
    T *dstates = nullptr, *dcells = nullptr, *dhidden = nullptr;
    double *sums = nullptr;
    // `sequences` by value: with a reference to `rule`, GCC fuses other products and sums below, and last bits change.
    const int laid = in_scratch(call, [&, sequences = rule.sequences](Arena &arena) {
        steps.take(arena);
        dgates = arena.take<T>(sequences * wide);
        kept = arena.take<T>(dx == nullptr && dweight != nullptr ? rows * wide : 0);
        before = arena.take<T>(dweight != nullptr ? rows * state : 0);
        first = arena.take<T>(dstate0 != nullptr ? sequences * state : 0);
        dstates = arena.take<T>((projection == nullptr ? sequences : rows) * state);
        dhidden = arena.take<T>(projection == nullptr ? 0 : sequences * size);
        dcells = arena.take<T>(sequences * size);
        none = arena.take<T>(std::max(size, state));
        recurrent.take(arena);
        projecting.take(arena);
        sums = arena.take<double>(wide + peephole_width);
    });
    if (laid != FL_OK) return laid;
    if (projection != nullptr && hidden == nullptr) return missing(call, 10);
    steps.arrange(offsets_at(call, 0), rule.reverse);
    zero(dcells, rule.sequences * size);
    zero(none, std::max(size, state));
    recurrent.pack(weight, true, steps.longest);
    projecting.pack(projection, true, steps.longest);
    zero(sums, wide + peephole_width);
    T *all = dx != nullptr ? dx : dweight != nullptr ? kept : nullptr; /* the gradients of all gates, in X's order */
    /* Asks for what row k of step t reads. */
    const auto fetch = [&](int64_t t, int64_t k) {
        const int64_t place = steps.first[t] + k;
        fetch_row(gates + place * wide, wide);
        fetch_row(shown + place * size, size);
        if (t > 0) fetch_row(cell + steps.source[steps.first[t - 1] + k] * size, size);
    };
    for (int64_t t = steps.longest - 1; t >= 0; --t) {
        const int64_t from = steps.first[t], n = steps.count(t), after = steps.count(t + 1);
        const int64_t *source = steps.source + from;
        /* With a projection the gradients of all steps are kept, for that of its weights. */
        T *dstate = projection == nullptr ? dstates : dstates + from * state;
        for (int64_t k = 0; k < n; ++k) copy_row(g + source[k] * state, state, dstate + k * state);
        recurrent.multiply(after, dgates, T(1), dstate); /* those of the step after this one */
        const T *dout = dstate;
        if (projection != nullptr) {
            for (int64_t k = 0; k < n; ++k) {
                const T *made = out + source[k] * state;
                apply_clip_slope(rule.projection_bound, made, dstate + k * state, state);
                apply_slope(rule.projection_act, made, dstate + k * state, state);
            }
            projecting.multiply(n, dstate, T(0), dhidden);
            dout = dhidden;
        }
        for (int64_t k = 0; k < n; ++k) {
            const T *old = steps.before(t, k, cell, cell0, size, static_cast<const T *>(none));
            T *dg = dgates + k * wide;
            /* Rows are short, and no processor foresees the next ones. */
            if (k + 2 < n) {
                fetch(t, k + 2);
            } else if (t > 0) {
                fetch(t - 1, k + 2 - n);
            }
            rule.row_grad(gates + (from + k) * wide, old, cell + source[k] * size, shown + (from + k) * size, dout + k * size, dg,
                          dcells + k * size, dbias == nullptr ? nullptr : sums + wide);
            if (all != nullptr) copy_row(dg, wide, all + source[k] * wide);
            if (dweight != nullptr) {
                const T *from_state = steps.before(t, k, out, state0, state, static_cast<const T *>(none));
                copy_row(from_state, state, before + source[k] * state);
            }
        }
        if (dbias != nullptr) add_rows(sums, dgates, n, wide);
    }
    if (dweight != nullptr) {
        if (const int code = sum_over_rows<T>(call, rows, state, wide, before, all, dweight)) return code;
    }
    if (dprojection != nullptr) {
        if (const int code = sum_over_rows<T>(call, rows, size, state, hidden, dstates, dprojection)) return code;
    }
    for (int64_t q = 0; dbias != nullptr && q < wide + peephole_width; ++q) dbias[q] = static_cast<T>(sums[q]);
    if (dcell0 != nullptr) steps.scatter_initial(dcells, size, dcell0);
    if (dstate0 != nullptr) {
        recurrent.multiply(steps.count(0), dgates, T(0), first);
        steps.scatter_initial(first, state, dstate0);
    }
    return FL_OK;
}

/* One step whose sums are given: those of input, forget and output gate and candidate stand side by side.
 * operands: X, cell before; cell, state. ints: rows, size, 4 times the size. floats: what is added to the forget gate. */
template <class T> int lstm_unit(fl_call *call) {
    const T *x = at<T>(call, 0), *before = at<T>(call, 1);
    T *FL_RESTRICT cell = at<T>(call, 2), *FL_RESTRICT state = at<T>(call, 3);
    const int64_t size = call->i[1];
    const T forget_bias = static_cast<T>(call->f[0]);
    for (int64_t r = 0; r < call->i[0]; ++r, x += 4 * size, before += size, cell += size, state += size) {
        for (int64_t q = 0; q < size; ++q) {
            const T in = vm::sigmoid(x[q]), forget = vm::sigmoid(x[size + q] + forget_bias);
            cell[q] = forget * before[q] + in * vm::tanh(x[3 * size + q]);
        }
        for (int64_t q = 0; q < size; ++q) state[q] = vm::sigmoid(x[2 * size + q]) * vm::tanh(cell[q]);
    }
    return FL_OK;
}

/* operands: X, cell before, cell, gradients of cell and state; gradients of X? and the cell before?. */
template <class T> int lstm_unit_grad(fl_call *call) {
    const T *x = at<T>(call, 0), *before = at<T>(call, 1), *cell = at<T>(call, 2), *dcell = at<T>(call, 3), *dstate = at<T>(call, 4);
    T *FL_RESTRICT dx = at<T>(call, 5), *FL_RESTRICT dbefore = at<T>(call, 6);
    const int64_t size = call->i[1];
    const T forget_bias = static_cast<T>(call->f[0]);
    for (int64_t row = 0; row < call->i[0]; ++row) {
        const int64_t at_row = row * size;
        const T *gates = x + 4 * at_row;
        for (int64_t p = at_row; dbefore != nullptr && p < at_row + size; ++p) {
            const T shown = vm::tanh(cell[p]), show = vm::sigmoid(gates[2 * size + p - at_row]);
            const T d = dcell[p] + dstate[p] * show * (T(1) - shown * shown);
            dbefore[p] = d * vm::sigmoid(gates[size + p - at_row] + forget_bias);
        }
        if (dx == nullptr) continue;
        T *FL_RESTRICT to = dx + 4 * at_row;
        for (int64_t q = 0; q < size; ++q) {
            const T in = vm::sigmoid(gates[q]), forget = vm::sigmoid(gates[size + q] + forget_bias),
                    show = vm::sigmoid(gates[2 * size + q]), candidate = vm::tanh(gates[3 * size + q]), shown = vm::tanh(cell[at_row + q]);
            const T g = dstate[at_row + q], d = dcell[at_row + q] + g * show * (T(1) - shown * shown);
            to[q] = d * candidate * in * (T(1) - in);
            to[size + q] = d * before[at_row + q] * forget * (T(1) - forget);
            to[2 * size + q] = g * shown * show * (T(1) - show);
            to[3 * size + q] = d * in * (T(1) - candidate * candidate);
        }
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry lstm_table[] = {
    FL_REAL("lstm", lstm, "xxnnxnxxxxxn|zzzzzziiiii|ff|be,a+L,ad,ac,de,cd,f,bd,bc,be,bc,bc")
    FL_REAL("lstm_grad", lstm_grad,
            "xnnxnxxxxxnxnnnnnn|zzzzzziiiii|ff|a+L,ad,ac,de,cd,f,bd,bc,be,bc,bc,bd,be,de,cd,f,ad,ac")
    FL_REAL("lstm_unit", lstm_unit, "xxxx|zzz|f|ac,ab,ab,ab")
    FL_REAL("lstm_unit_grad", lstm_unit_grad, "xxxxxnn|zzz|f|ac,ab,ab,ab,ab,ac,ab")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
