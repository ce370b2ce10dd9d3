/* Layers of long short-term memories over padded batches, time first, in one or both directions; and their gradients.
 *
 * The flat weights hold for each layer and direction a matrix for the input [4 * size, width] and one for the state [4 * size,
 * size], then for each of them two biases. Gates stand side by side: input and forget gate, candidate, output gate.
 */
#ifndef FL_NS

#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_WIDE
#define FL_SELF "kernels/cudnn_lstm.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_cudnn_lstm = FL_TOPIC(cudnn_lstm_table);

#else

#include "kernels/masks.h"
#include "kernels/rnn_steps.h"

namespace fl::FL_NS {
namespace {

/* ints: steps, batch, width of the input, size, layers, directions, elements of the flat weights; the seed of dropout. */
struct Layers {
    int64_t steps, batch, width, size, layers, ways;

    explicit Layers(const int64_t *i) : steps(i[0]), batch(i[1]), width(i[2]), size(i[3]), layers(i[4]), ways(i[5]) {}

    int64_t rows() const { return steps * batch; }
    int64_t wide() const { return 4 * size; }
    int64_t state() const { return batch * size; }
    int64_t out_width() const { return ways * size; }
    int64_t width_of(int64_t layer) const { return layer == 0 ? width : out_width(); }

    /* Where the matrices of a layer and direction, and where its biases begin in the flat weights. */
    int64_t matrices(int64_t layer, int64_t way) const {
        const int64_t first = layer == 0 ? way : ways, others = layer * ways + way - first;
        return wide() * (first * (width + size) + others * (out_width() + size));
    }
    int64_t biases(int64_t layer, int64_t way) const { return matrices(layers, 0) + (layer * ways + way) * 2 * wide(); }
};

/* Dropout between layers. Masks follow from the weights, which each step of training changes: the gradient, which is given
 * none of them, draws the same. */
template <class T> struct Between {
    float prob;
    uint32_t key;

    Between(const fl_call *call, const Layers &net, const T *flat) : prob(static_cast<float>(call->f[0])), key(0) {
        if (prob == 0 || net.layers < 2) return;
        const char *bytes = reinterpret_cast<const char *>(flat);
        uint32_t sum = 0;
        FL_LOOP
        for (int64_t k = 0; k < call->i[6] * static_cast<int64_t>(sizeof(T) / 4); ++k) {
            uint32_t word;
            std::memcpy(&word, bytes + 4 * k, 4);
            sum += word * static_cast<uint32_t>(2 * k + 1);
        }
        key = scramble(sum ^ static_cast<uint32_t>(call->i[7]));
    }

    /* What layer `layer` > 0 gets, or the gradient of what it got. */
    void apply(int64_t layer, int64_t n, T *x) const {
        if (prob == 0) return;
        const uint32_t mine = scramble(key + static_cast<uint32_t>(layer));
        const int32_t threshold = dropped_below(prob);
        const T scale = prob < 1 ? T(1) / (T(1) - static_cast<T>(prob)) : T(0);
        FL_LOOP
        for (int64_t k = 0; k < n; ++k) x[k] = is_kept(static_cast<uint32_t>(k), mine, threshold) ? x[k] * scale : T(0);
    }
};

/* One layer in one direction. */
template <class T> struct Direction {
    const Layers &net;
    int64_t width, weights, biases;
    bool reverse;
    T *gates, *states, *cells; /* states and cells: those of all steps with the initial ones in front, or behind if reversed */

    Direction(const Layers &layers, int64_t layer, int64_t way)
        : net(layers),
          width(layers.width_of(layer)),
          weights(layers.matrices(layer, way)),
          biases(layers.biases(layer, way)),
          reverse(way != 0),
          gates(nullptr),
          states(nullptr),
          cells(nullptr) {}

    void take(Arena &arena) {
        gates = arena.take<T>(net.rows() * net.wide());
        states = arena.take<T>((net.steps + 1) * net.state());
        cells = arena.take<T>((net.steps + 1) * net.state());
    }

    int64_t time(int64_t step) const { return reverse ? net.steps - 1 - step : step; }
    int64_t before(int64_t t) const { return (t + reverse) * net.state(); }
    int64_t made(int64_t t) const { return (t + !reverse) * net.state(); }
    int64_t initial() const { return reverse ? net.steps * net.state() : 0; }
    int64_t last() const { return reverse ? 0 : net.steps * net.state(); }

    /* `out`: rows of which this direction's part begins there. */
    int forward(fl_call *call, const T *x, const T *state0, const T *cell0, const T *flat, Packed<T> &recurrent, T *out) const {
        const int64_t size = net.size, wide = net.wide(), rows = net.rows();
        const T *bias = flat + biases;
        copy_row(state0, net.state(), states + initial());
        copy_row(cell0, net.state(), cells + initial());
        if (rows == 0) return FL_OK;
        const Product<T> given = {rows, wide, width, false, true, T(1), T(0), x, flat + weights, gates};
        if (const int code = multiply(call, given)) return code;
        recurrent.pack(flat + weights + wide * width, true, net.steps);
        for (int64_t step = 0; step < net.steps; ++step) {
            const int64_t t = time(step);
            T *sums = gates + t * net.batch * wide;
            for (int64_t b = 0; b < net.batch; ++b) {
                for (int64_t q = 0; q < wide; ++q) sums[b * wide + q] += bias[q] + bias[wide + q];
            }
            recurrent.multiply(net.batch, states + before(t), T(1), sums);
            for (int64_t b = 0; b < net.batch; ++b) {
                T *gate = sums + b * wide;
                activate(act_unbounded_sigmoid, gate, 2 * size);
                activate(act_tanh, gate + 2 * size, size);
                activate(act_unbounded_sigmoid, gate + 3 * size, size);
                const T *old = cells + before(t) + b * size;
                T *FL_RESTRICT cell = cells + made(t) + b * size, *FL_RESTRICT state = states + made(t) + b * size;
                for (int64_t q = 0; q < size; ++q) {
                    cell[q] = gate[size + q] * old[q] + gate[q] * gate[2 * size + q];
                    state[q] = gate[3 * size + q] * vm::tanh(cell[q]);
                }
                copy_row(state, size, out + (t * net.batch + b) * net.out_width());
            }
        }
        return FL_OK;
    }

    /* `g`: that of the direction's part of the output; dstate and dcell, those of the last step, become those of the initial
     * ones. The gradient of x is added to dx if `add`; `dflat` and dx may be NULL. */
    int backward(fl_call *call, const T *x, const T *flat, const T *g, Packed<T> &recurrent, T *dstate, T *dcell, T *dgates,
                 double *sums, T *dflat, T *dx, bool add) const {
        const int64_t size = net.size, wide = net.wide(), rows = net.rows();
        recurrent.pack(flat + weights + wide * width, false, net.steps);
        zero(sums, wide);
        for (int64_t step = net.steps - 1; step >= 0; --step) {
            const int64_t t = time(step);
            T *dsums = dgates + t * net.batch * wide;
            for (int64_t b = 0; b < net.batch; ++b) {
                const T *row = g + (t * net.batch + b) * net.out_width();
                row_grad(gates + (t * net.batch + b) * wide, cells + before(t) + b * size, cells + made(t) + b * size, row,
                         dstate + b * size, dcell + b * size, dsums + b * wide);
            }
            add_rows(sums, dsums, net.batch, wide);
            recurrent.multiply(net.batch, dsums, T(0), dstate);
        }
        if (dflat != nullptr) {
            T *to = dflat + weights, *dbias = dflat + biases;
            if (const int code = sum_over_rows<T>(call, rows, wide, width, dgates, x, to)) return code;
            if (const int code = sum_over_rows<T>(call, rows, wide, size, dgates, states + before(0), to + wide * width)) return code;
            for (int64_t q = 0; q < wide; ++q) dbias[q] = dbias[wide + q] = static_cast<T>(sums[q]);
        }
        if (dx == nullptr || rows == 0) return FL_OK;
        return multiply(call, Product<T>{rows, width, wide, false, false, T(1), T(add), dgates, flat + weights, dx});
    }

    void row_grad(const T *FL_RESTRICT gate, const T *FL_RESTRICT old, const T *FL_RESTRICT cell, const T *FL_RESTRICT g,
                  const T *FL_RESTRICT dstate, T *FL_RESTRICT dcell, T *FL_RESTRICT dsums) const {
        const int64_t size = net.size;
        for (int64_t q = 0; q < size; ++q) {
            const T in = gate[q], forget = gate[size + q], candidate = gate[2 * size + q], show = gate[3 * size + q];
            const T shown = vm::tanh(cell[q]), arriving = dstate[q] + g[q];
            const T d = dcell[q] + arriving * show * (T(1) - shown * shown);
            dsums[q] = d * candidate * in * (T(1) - in);
            dsums[size + q] = d * old[q] * forget * (T(1) - forget);
            dsums[2 * size + q] = d * in * (T(1) - candidate * candidate);
            dsums[3 * size + q] = arriving * shown * show * (T(1) - show);
            dcell[q] = d * forget;
        }
    }
};

/* operands: X, initial states, initial cells, flat weights; states of the last layer, last states and cells of all. */
template <class T> int cudnn_lstm(fl_call *call) {
    const T *state0 = at<T>(call, 1), *cell0 = at<T>(call, 2), *flat = at<T>(call, 3);
    const Layers net(call->i);
    T *between[2] = {nullptr, nullptr};
    Packed<T> recurrent(net.size, net.wide());
    Direction<T> used(net, 0, 0); /* its memory serves all, one after the other */
    const int laid = in_scratch(call, [&](Arena &arena) {
        for (T *&one : between) one = arena.take<T>(net.layers > 1 ? net.rows() * net.out_width() : 0);
        recurrent.take(arena);
        used.take(arena);
    });
    if (laid != FL_OK) return laid;
    const T *x = at<T>(call, 0);
    const Between<T> dropout(call, net, flat);
    for (int64_t layer = 0; layer < net.layers; ++layer) {
        T *out = layer + 1 == net.layers ? at<T>(call, 4) : between[layer % 2];
        for (int64_t way = 0; way < net.ways; ++way) {
            const int64_t place = (layer * net.ways + way) * net.state();
            Direction<T> one(net, layer, way);
            one.gates = used.gates, one.states = used.states, one.cells = used.cells;
            if (const int code = one.forward(call, x, state0 + place, cell0 + place, flat, recurrent, out + way * net.size)) return code;
            copy_row(one.states + one.last(), net.state(), at<T>(call, 5) + place);
            copy_row(one.cells + one.last(), net.state(), at<T>(call, 6) + place);
        }
        if (layer + 1 < net.layers) dropout.apply(layer + 1, net.rows() * net.out_width(), out);
        x = out;
    }
    return FL_OK;
}

/* What layer and direction number `k` has made before, as `taken` of the memory of one after the other. */
template <class T> Direction<T> direction(const Layers &net, int64_t k, T *gates, T *states, T *cells) {
    Direction<T> one(net, k / net.ways, k % net.ways);
    one.gates = gates + k * net.rows() * net.wide();
    one.states = states + k * (net.steps + 1) * net.state();
    one.cells = cells + k * (net.steps + 1) * net.state();
    return one;
}

/* operands: X, initial states, initial cells, flat weights, gradients of states, last states and last cells; gradients of X?,
 * initial states?, initial cells?, flat weights?. Runs forward once more. */
template <class T> int cudnn_lstm_grad(fl_call *call) {
    const T *state0 = at<T>(call, 1), *cell0 = at<T>(call, 2), *flat = at<T>(call, 3), *g = at<T>(call, 4);
    const Layers net(call->i);
    const int64_t all = net.layers * net.ways, of_layer = net.rows() * net.out_width();
    Packed<T> recurrent(net.size, net.wide()), back(net.wide(), net.size);
    T *gates = nullptr, *states = nullptr, *cells = nullptr, *outs = nullptr, *dgates = nullptr, *dstate = nullptr, *dcell = nullptr;
    T *between[2] = {nullptr, nullptr};
    double *sums = nullptr;
    const int laid = in_scratch(call, [&](Arena &arena) {
        gates = arena.take<T>(all * net.rows() * net.wide());
        states = arena.take<T>(all * (net.steps + 1) * net.state());
        cells = arena.take<T>(all * (net.steps + 1) * net.state());
        outs = arena.take<T>(net.layers * of_layer);
        for (T *&one : between) one = arena.take<T>(net.layers > 1 ? of_layer : 0);
        dgates = arena.take<T>(net.rows() * net.wide());
        dstate = arena.take<T>(net.state());
        dcell = arena.take<T>(net.state());
        sums = arena.take<double>(net.wide());
        recurrent.take(arena);
        back.take(arena);
    });
    if (laid != FL_OK) return laid;
    const Between<T> dropout(call, net, flat);
    for (int64_t k = 0; k < all; ++k) {
        const int64_t layer = k / net.ways, place = k * net.state();
        const T *x = layer == 0 ? at<T>(call, 0) : outs + (layer - 1) * of_layer;
        const Direction<T> one = direction(net, k, gates, states, cells);
        T *out = outs + layer * of_layer + k % net.ways * net.size;
        if (const int code = one.forward(call, x, state0 + place, cell0 + place, flat, recurrent, out)) return code;
        if ((k + 1) % net.ways == 0 && layer + 1 < net.layers) dropout.apply(layer + 1, of_layer, outs + layer * of_layer);
    }
    for (int64_t layer = net.layers - 1; layer >= 0; --layer) {
        const T *x = layer == 0 ? at<T>(call, 0) : outs + (layer - 1) * of_layer;
        T *dx = layer == 0 ? at<T>(call, 7) : between[layer % 2];
        for (int64_t way = 0; way < net.ways; ++way) {
            const int64_t k = layer * net.ways + way, place = k * net.state();
            const Direction<T> one = direction(net, k, gates, states, cells);
            copy_row(at<T>(call, 5) + place, net.state(), dstate);
            copy_row(at<T>(call, 6) + place, net.state(), dcell);
            if (const int code = one.backward(call, x, flat, g + way * net.size, back, dstate, dcell, dgates, sums, at<T>(call, 10), dx,
                                              way > 0)) return code;
            if (at<T>(call, 8) != nullptr) copy_row(dstate, net.state(), at<T>(call, 8) + place);
            if (at<T>(call, 9) != nullptr) copy_row(dcell, net.state(), at<T>(call, 9) + place);
        }
        if (layer > 0) dropout.apply(layer, of_layer, dx);
        g = dx;
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry cudnn_lstm_table[] = {
    FL_REAL("cudnn_lstm", cudnn_lstm, "xxxxxxx|zzzzzzzi|f|abc,bdef,bdef,g,abdf,bdef,bdef")
    FL_REAL("cudnn_lstm_grad", cudnn_lstm_grad, "xxxxxxxnnnn|zzzzzzzi|f|abc,bdef,bdef,g,abdf,bdef,bdef,abc,bdef,bdef,g")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
