/* Scores of a few rows of a table that are chosen for each row of X: noise-contrastive estimation (nce), with what it
 * draws, and hierarchical sigmoid. */
#ifndef FL_NS

#include <algorithm>
#include <random>

#include "kernels/fresh_seed.h"
#include "kernels/topics.h"

namespace fl {
namespace {

enum Sampler { uniform = 0, log_uniform = 1, custom_dist = 2 };

/* What log_uniform divides logarithms by. */
double log_classes(int64_t classes) { return static_cast<double>(std::log(static_cast<float>(classes))); }

/* A number in [0, n), as the standard library of Fluid's time takes it of an engine. */
template <class Engine> uint64_t below(Engine &engine, int64_t n) {
    const uint64_t scale = static_cast<uint64_t>(Engine::max()) / static_cast<uint64_t>(n);
    for (;;) {
        const uint64_t found = engine() / scale;
        if (found < static_cast<uint64_t>(n)) return found;
    }
}

double unit(std::mt19937_64 &engine) { return static_cast<double>(engine()) / 18446744073709551616.0; }

double unit(std::mt19937 &engine) {
    const double low = static_cast<double>(engine());
    return (low + static_cast<double>(engine()) * 4294967296.0) / 18446744073709551616.0;
}

int check_classes(fl_call *call, const int64_t *numbers, int64_t n, int64_t classes) {
    for (int64_t k = 0; k < n; ++k) {
        if (numbers[k] < 0 || numbers[k] >= classes) return out_of_range(call, numbers[k], k, classes);
    }
    return FL_OK;
}

int nce_samples(fl_call *call) {
    const int64_t rows = call->i[0], width = call->i[1], labels = call->i[2], classes = call->i[3];
    const int64_t sampler = call->i[4], *given = call->i + 6;
    const bool fixed = call->n_i > 6;
    const int64_t *label = at<int64_t>(call, 0);
    const int32_t *alias = at<int32_t>(call, 1);
    const float *own = at<float>(call, 2);
    int64_t *out = at<int64_t>(call, 3);
    if (const int code = check_classes(call, label, rows * labels, classes)) return code;
    if (sampler == custom_dist && !fixed && (alias == nullptr || own == nullptr)) return missing(call, 1);
    uint64_t seed = static_cast<uint64_t>(call->i[5]);
    if (seed == 0) seed = fresh_seed();
    std::mt19937_64 engine(seed);
    std::mt19937 narrow(static_cast<uint32_t>(seed));
    const double span = log_classes(classes);
    for (int64_t row = 0; row < rows; ++row, label += labels, out += width) {
        for (int64_t k = 0; k < width; ++k) {
            if (k < labels) {
                out[k] = label[k];
            } else if (fixed) {
                out[k] = given[k - labels];
            } else if (sampler == uniform) {
                out[k] = static_cast<int64_t>(below(engine, classes));
            } else if (sampler == log_uniform) {
                out[k] = (static_cast<int64_t>(std::exp(unit(engine) * span)) - 1) % classes;
            } else {
                const int64_t column = static_cast<int64_t>(below(narrow, classes));
                out[k] = unit(narrow) > static_cast<double>(own[column]) ? alias[column] : column;
            }
        }
    }
    return FL_OK;
}

const fl_entry drawing[] = {{"nce_samples", nce_samples, "xnnx|zzzdzi(i)||acL,dI,dI,abL"}, {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_drawing = {drawing, drawing, drawing};

}  // namespace fl

#define FL_SELF "kernels/class_scores.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_class_scores = FL_TOPIC(class_scores_table);

#else

namespace fl::FL_NS {
namespace {

template <class T> FL_INLINE T dot(const T *x, const T *y, int64_t n) {
    sum_t<T> sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) sum += static_cast<sum_t<T>>(x[j]) * static_cast<sum_t<T>>(y[j]);
    return static_cast<T>(sum);
}

template <class T> FL_INLINE void add(T *to, const T *x, T factor, int64_t n) {
    FL_LOOP
    for (int64_t j = 0; j < n; ++j) to[j] += factor * x[j];
}

template <class T> FL_INLINE void clear(T *to, int64_t n) {
    if (to != nullptr && n > 0) std::memset(to, 0, static_cast<size_t>(n) * sizeof(T));
}

/* The gradients of scores [rows, most] of rows `chosen` of a table [height, width]; places with -1 have no score. */
template <class T> struct Scores {
    int64_t rows, most, height, width;
    const T *x, *table;
    const int64_t *chosen;
    const T *slope;

    /* `places[k]`: the row of `dtable` that score k adds to. */
    void spread(T *dx, T *dtable, T *dbias, const int64_t *places) const {
        clear(dx, rows * width);
        clear(dbias, height);
        for (int64_t row = 0; row < rows; ++row) {
            for (int64_t k = row * most; k < (row + 1) * most; ++k) {
                const int64_t one = chosen[k];
                if (one < 0) continue;
                if (dx != nullptr) add(dx + row * width, table + one * width, slope[k], width);
                if (dtable != nullptr) add(dtable + places[k] * width, x + row * width, slope[k], width);
                if (dbias != nullptr) dbias[one] += slope[k];
            }
        }
    }

    void dense(T *dx, T *dtable, T *dbias) const {
        clear(dtable, height * width);
        spread(dx, dtable, dbias, chosen);
    }

    /* Each row of the table that is chosen once, in ascending order; -1 behind them. `room`: rows * most numbers. */
    void sparse(T *dx, int64_t *numbers, T *values, T *dbias, int64_t *room) const {
        const int64_t n = rows * most;
        int64_t count = 0;
        for (int64_t k = 0; k < n; ++k) {
            if (chosen[k] >= 0) numbers[count++] = chosen[k];
        }
        std::sort(numbers, numbers + count);
        int64_t *end = std::unique(numbers, numbers + count);
        std::fill(end, numbers + n, int64_t(-1));
        for (int64_t k = 0; k < n; ++k) room[k] = std::lower_bound(numbers, end, chosen[k]) - numbers;
        clear(values, n * width);
        spread(dx, values, dbias, room);
    }
};

/* ints: rows, most, labels, classes, width, sampler, negatives. */
template <class T> struct Noise {
    int64_t classes, sampler;
    double negatives, span;
    const T *chances;

    explicit Noise(const fl_call *call, int place)
        : classes(call->i[3]), sampler(call->i[5]), negatives(static_cast<double>(call->i[6])),
          span(log_classes(classes)), chances(at<T>(call, place)) {}

    double operator()(int64_t one) const {
        if (sampler == custom_dist) return static_cast<double>(chances[one]) * negatives;
        if (sampler == uniform) return negatives / static_cast<double>(classes);
        const double number = static_cast<double>(one);
        return std::log((number + 2.0) / (number + 1.0)) / span * negatives;
    }
};

template <class T> int nce(fl_call *call) {
    const T *x = at<T>(call, 0), *table = at<T>(call, 1), *bias = at<T>(call, 2), *weight = at<T>(call, 3);
    const Noise<T> noise(call, 4);
    const int64_t *samples = at<int64_t>(call, 5);
    T *found = at<T>(call, 6), *cost = at<T>(call, 7);
    const int64_t rows = call->i[0], most = call->i[1], labels = call->i[2], width = call->i[4];
    if (noise.sampler == custom_dist && noise.chances == nullptr) return missing(call, 4);
    if (const int code = check_classes(call, samples, rows * most, noise.classes)) return code;
    for (int64_t row = 0; row < rows; ++row, x += width, samples += most, found += most) {
        double sum = 0;
        for (int64_t k = 0; k < most; ++k) {
            const T score = dot(x, table + samples[k] * width, width) + (bias == nullptr ? T(0) : bias[samples[k]]);
            const T likely = T(1) / (T(1) + std::exp(-score));
            const double other = noise(samples[k]), all = static_cast<double>(likely) + other;
            found[k] = likely;
            sum -= std::log((k < labels ? static_cast<double>(likely) : other) / all);
        }
        cost[row] = static_cast<T>(weight == nullptr ? sum : sum * static_cast<double>(weight[row]));
    }
    return FL_OK;
}

/* operands 0 to 7: X, Weight, Bias?, SampleWeight?, CustomDistProbs?, SampleLogits, SampleLabels, DCost. */
template <class T> int nce_slopes(fl_call *call, Scores<T> &scores, int64_t **room) {
    const int64_t rows = call->i[0], most = call->i[1], labels = call->i[2], n = rows * most;
    const T *weight = at<T>(call, 3), *found = at<T>(call, 5), *dcost = at<T>(call, 7);
    const Noise<T> noise(call, 4);
    const int64_t *samples = at<int64_t>(call, 6);
    if (noise.sampler == custom_dist && noise.chances == nullptr) return missing(call, 4);
    if (const int code = check_classes(call, samples, n, noise.classes)) return code;
    const int64_t bytes = n * static_cast<int64_t>(sizeof(int64_t) + sizeof(T));
    int64_t *memory = static_cast<int64_t *>(scratch(call, bytes));
    if (memory == nullptr) return no_memory(call, bytes);
    T *slope = reinterpret_cast<T *>(memory + n);
    for (int64_t k = 0; k < n; ++k) {
        const int64_t row = k / most;
        const double likely = static_cast<double>(found[k]), other = noise(samples[k]);
        const double factor = static_cast<double>(dcost[row]) * (weight == nullptr ? 1.0 : static_cast<double>(weight[row]));
        slope[k] = static_cast<T>(factor * (1.0 - likely) * (k % most < labels ? -other : likely) / (likely + other));
    }
    scores = {rows, most, noise.classes, call->i[4], at<T>(call, 0), at<T>(call, 1), samples, slope};
    *room = memory;
    return FL_OK;
}

template <class T> int nce_grad(fl_call *call) {
    Scores<T> scores;
    int64_t *room;
    if (const int code = nce_slopes(call, scores, &room)) return code;
    scores.dense(at<T>(call, 8), at<T>(call, 9), at<T>(call, 10));
    return FL_OK;
}

template <class T> int nce_grad_rows(fl_call *call) {
    Scores<T> scores;
    int64_t *room;
    if (const int code = nce_slopes(call, scores, &room)) return code;
    scores.sparse(at<T>(call, 8), at<int64_t>(call, 9), at<T>(call, 10), at<T>(call, 11), room);
    return FL_OK;
}

/* The way to a class: inner nodes, and which way is taken at each. Without tables class c goes as the bits of
 * c + classes say. ints: rows, most, nodes, width, classes. */
struct Ways {
    const int64_t *label, *nodes, *codes;
    int64_t most, height, classes;

    Ways(const fl_call *call, int place)
        : label(at<int64_t>(call, place)), nodes(at<int64_t>(call, place + 1)), codes(at<int64_t>(call, place + 2)),
          most(call->i[1]), height(call->i[2]), classes(call->i[4]) {}

    int check(fl_call *call) const {
        const int64_t rows = call->i[0];
        if (nodes == nullptr) return check_classes(call, label, rows, classes);
        if (codes == nullptr) return missing(call, 4);
        for (int64_t k = 0; k < rows * most; ++k) {
            if (nodes[k] >= height) return out_of_range(call, nodes[k], k, height);
        }
        return FL_OK;
    }

    /* The node at step k of a row's way, or -1 behind its end. */
    FL_INLINE int64_t node(int64_t row, int64_t k) const {
        return nodes != nullptr ? nodes[row * most + k] : ((label[row] + classes) >> (k + 1)) - 1;
    }

    FL_INLINE bool taken(int64_t row, int64_t k) const {
        return nodes != nullptr ? codes[row * most + k] != 0 : (((label[row] + classes) >> k) & 1) != 0;
    }
};

template <class T> int hierarchical_sigmoid(fl_call *call) {
    const T *x = at<T>(call, 0), *table = at<T>(call, 1), *bias = at<T>(call, 5);
    const Ways ways(call, 2);
    T *out = at<T>(call, 6), *costs = at<T>(call, 7);
    const int64_t rows = call->i[0], most = call->i[1], width = call->i[3];
    if (const int code = ways.check(call)) return code;
    for (int64_t row = 0; row < rows; ++row, x += width, costs += most) {
        double sum = 0;
        bool ended = false;
        for (int64_t k = 0; k < most; ++k) {
            const int64_t node = ended ? -1 : ways.node(row, k);
            ended = node < 0;
            T score = 0;
            if (!ended) {
                score = dot(x, table + node * width, width) + (bias == nullptr ? T(0) : bias[node]);
                score = std::min(T(40), std::max(T(-40), score));
                if (ways.taken(row, k)) sum -= static_cast<double>(score);
            }
            costs[k] = static_cast<T>(std::log1p(std::exp(static_cast<double>(score))));
            sum += static_cast<double>(costs[k]);
        }
        out[row] = static_cast<T>(sum);
    }
    return FL_OK;
}

/* operands 0 to 7: X, W, Label, PathTable?, PathCode?, Bias?, PreOut, DOut. */
template <class T> int sigmoid_slopes(fl_call *call, Scores<T> &scores, int64_t **room) {
    const Ways ways(call, 2);
    const T *costs = at<T>(call, 6), *dout = at<T>(call, 7);
    const int64_t rows = call->i[0], most = call->i[1], n = rows * most;
    if (const int code = ways.check(call)) return code;
    const int64_t bytes = n * static_cast<int64_t>(2 * sizeof(int64_t) + sizeof(T));
    int64_t *memory = static_cast<int64_t *>(scratch(call, bytes));
    if (memory == nullptr) return no_memory(call, bytes);
    int64_t *chosen = memory + n;
    T *slope = reinterpret_cast<T *>(memory + 2 * n);
    for (int64_t row = 0; row < rows; ++row) {
        bool ended = false;
        for (int64_t k = 0; k < most; ++k) {
            const int64_t place = row * most + k, node = ended ? -1 : ways.node(row, k);
            ended = node < 0;
            chosen[place] = node;
            if (ended) continue;
            slope[place] = dout[row] * (-std::expm1(-costs[place]) - (ways.taken(row, k) ? T(1) : T(0)));
        }
    }
    scores = {rows, most, ways.height, call->i[3], at<T>(call, 0), at<T>(call, 1), chosen, slope};
    *room = memory;
    return FL_OK;
}

template <class T> int hierarchical_sigmoid_grad(fl_call *call) {
    Scores<T> scores;
    int64_t *room;
    if (const int code = sigmoid_slopes(call, scores, &room)) return code;
    scores.dense(at<T>(call, 8), at<T>(call, 9), at<T>(call, 10));
    return FL_OK;
}

template <class T> int hierarchical_sigmoid_grad_rows(fl_call *call) {
    Scores<T> scores;
    int64_t *room;
    if (const int code = sigmoid_slopes(call, scores, &room)) return code;
    scores.sparse(at<T>(call, 8), at<int64_t>(call, 9), at<T>(call, 10), at<T>(call, 11), room);
    return FL_OK;
}

}  // namespace

extern const fl_entry class_scores_table[] = {
    FL_REAL("nce", nce, "xxnnnxxx|zzzdzzz||ae,de,d,a,d,abL,ab,a")
    FL_REAL("nce_grad", nce_grad, "xxnnnxxxnnn|zzzdzzz||ae,de,d,a,d,ab,abL,a,ae,de,d")
    FL_REAL("nce_grad_rows", nce_grad_rows, "xxnnnxxxnxxn|zzzdzzz||ae,de,d,a,d,ab,abL,a,ae,abL,abe,d")
    FL_REAL("hierarchical_sigmoid", hierarchical_sigmoid, "xxxnnnxx|zzzzz||ad,cd,aL,abL,abL,c,a,ab")
    FL_REAL("hierarchical_sigmoid_grad", hierarchical_sigmoid_grad, "xxxnnnxxnnn|zzzzz||ad,cd,aL,abL,abL,c,ab,a,ad,cd,c")
    FL_REAL("hierarchical_sigmoid_grad_rows", hierarchical_sigmoid_grad_rows,
            "xxxnnnxxnxxn|zzzzz||ad,cd,aL,abL,abL,c,ab,a,ad,abL,abd,c")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
