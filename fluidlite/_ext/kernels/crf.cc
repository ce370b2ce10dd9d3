/* Linear-chain conditional random fields (Lafferty et al. 2001): cost, gradients, and the best tags.
 *
 * Scores stay logarithms, in double, from step to step. Within a step they are brought to a largest element of 1, so that
 * the sums over tags are products with a matrix of exponentials that is computed once; a sum that all but vanishes, as
 * transitions that are as good as forbidden make it, is taken once more over logarithms.
 */
#ifndef FL_NS

#include "kernels/sequences.h"
#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_SELF "kernels/crf.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_crf = FL_TOPIC(crf_table);

#else

namespace fl::FL_NS {
namespace {

constexpr double vanishing = 1e-200; /* what a double has lost of a sum above it is of no account */
constexpr double steep = 400;        /* exponents up to which nothing that underflows can come back */

/* The logarithm of the sum of the exponentials of n numbers. */
template <class F> double log_sum(int64_t n, F number) {
    double best = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < n; ++k) best = number(k) > best ? number(k) : best;
    if (best == -std::numeric_limits<double>::infinity()) best = 0;
    for (int64_t k = 0; k < n; ++k) sum += std::exp(number(k) - best);
    return std::log(sum) + best;
}

/* ints: sequences, rows, tags, steps of a padded sequence (0 with offsets). Transition: scores of the first tag, of the last
 * one, then of a tag (column) behind another (row). */
template <class T> struct Field {
    Sequences spans;
    int64_t rows, tags;
    const T *emission, *first, *last, *moves;
    double largest = 0; /* of the scores of moves */
    double *forward = nullptr, *backward = nullptr; /* exponentials of moves over the largest: rows from tags, and to tags */
    double *rest = nullptr;

    Field(const fl_call *call, const void *offsets, const void *lengths)
        : spans{static_cast<const int64_t *>(offsets), static_cast<const int64_t *>(lengths), call->i[0], call->i[3]},
          rows(call->i[1]),
          tags(call->i[2]),
          emission(at<T>(call, 0)),
          first(at<T>(call, 3)),
          last(first + tags),
          moves(last + tags) {}

    int verify(fl_call *call, const int64_t *label) const {
        if (const int code = spans.verify(call)) return code;
        for (int64_t s = 0; s < spans.count; ++s) {
            for (int64_t r = spans.begin(s); r < spans.begin(s) + spans.length(s); ++r) {
                if (label[r] < 0 || label[r] >= tags) return out_of_range(call, label[r], r, tags);
            }
        }
        return FL_OK;
    }

    static constexpr int64_t item = static_cast<int64_t>(sizeof(double));

    /* Takes memory for the exponentials, and for `more` numbers behind them. */
    int prepare(fl_call *call, int64_t more) {
        const int64_t bytes = item * (2 * tags * tags + more);
        forward = static_cast<double *>(scratch(call, bytes));
        if (forward == nullptr) return no_memory(call, bytes);
        backward = forward + tags * tags;
        rest = backward + tags * tags;
        largest = moves[0];
        for (int64_t k = 1; k < tags * tags; ++k) largest = moves[k] > largest ? moves[k] : largest;
        for (int64_t i = 0; i < tags; ++i) {
            for (int64_t j = 0; j < tags; ++j) {
                forward[i * tags + j] = backward[j * tags + i] = std::exp(moves[i * tags + j] - largest);
            }
        }
        return FL_OK;
    }

    /* The exponentials of scores over the largest of them, which is returned. */
    FL_INLINE double exponentials(const double *scores, double *out) const {
        double best = scores[0];
        for (int64_t j = 1; j < tags; ++j) best = scores[j] > best ? scores[j] : best;
        for (int64_t j = 0; j < tags; ++j) out[j] = std::exp(scores[j] - best);
        return best;
    }

    /* sums = vector * matrix. */
    FL_INLINE void sums_of(const double *vector, const double *matrix, double *sums) const {
        for (int64_t j = 0; j < tags; ++j) sums[j] = 0;
        for (int64_t i = 0; i < tags; ++i) {
            const double factor = vector[i], *row = matrix + i * tags;
#pragma omp simd
            for (int64_t j = 0; j < tags; ++j) sums[j] += factor * row[j];
        }
    }

    /* The score of everything that leads to each tag of the first row of a sequence. */
    FL_INLINE void start(const T *x, double *a) const {
        for (int64_t j = 0; j < tags; ++j) a[j] = static_cast<double>(first[j]) + x[j];
    }

    /* The same for a row x and the scores `a` of the row before, with their exponentials p over their largest, m. */
    FL_INLINE void step(const T *x, const double *a, const double *p, double m, double *next) const {
        sums_of(p, forward, next);
        for (int64_t j = 0; j < tags; ++j) {
            next[j] = x[j] + (next[j] >= vanishing ? std::log(next[j]) + m + largest
                                                   : log_sum(tags, [&](int64_t i) { return a[i] + moves[i * tags + j]; }));
        }
    }

    FL_INLINE double total(const double *a) const {
        return log_sum(tags, [&](int64_t j) { return a[j] + last[j]; });
    }

    double score(const T *x, const int64_t *label, int64_t n) const {
        double sum = static_cast<double>(first[label[0]]) + last[label[n - 1]];
        for (int64_t t = 0; t < n; ++t) sum += x[t * tags + label[t]];
        for (int64_t t = 1; t < n; ++t) sum += moves[label[t - 1] * tags + label[t]];
        return sum;
    }
};

template <class T> void exponential_rows(const T *x, int64_t n, int64_t tags, T *out) {
    for (int64_t t = 0; t < n; ++t, x += tags, out += tags) {
        T best = x[0];
        for (int64_t j = 1; j < tags; ++j) best = x[j] > best ? x[j] : best;
        for (int64_t j = 0; j < tags; ++j) out[j] = vm::exp(x[j] - best);
    }
}

template <class T> void clear(T *x, int64_t n) {
    for (int64_t k = 0; k < n; ++k) x[k] = 0;
}

/* Alpha: for each row the shares of all that leads to its tags. */
template <class T> int linear_chain_crf(fl_call *call) {
    Field<T> field(call, call->p[1], call->p[2]);
    const int64_t *label = at<int64_t>(call, 4), tags = field.tags;
    T *alpha = at<T>(call, 5), *rows = at<T>(call, 6), *moves = at<T>(call, 7), *cost = at<T>(call, 8);
    if (const int code = field.verify(call, label)) return code;
    if (const int code = field.prepare(call, 3 * tags)) return code;
    double *a = field.rest, *p = a + tags, *next = p + tags;
    for (int64_t k = 0; k < (tags + 2) * tags; ++k) moves[k] = vm::exp(field.first[k]);
    exponential_rows(field.emission, field.rows, tags, rows);
    for (int64_t s = 0; s < field.spans.count; ++s) {
        const int64_t n = field.spans.length(s), begin = field.spans.begin(s);
        const T *x = field.emission + begin * tags;
        T *out = alpha + begin * tags;
        if (field.spans.offsets == nullptr) clear(out + n * tags, (field.spans.steps - n) * tags);
        cost[s] = 0;
        if (n == 0) continue;
        field.start(x, a);
        for (int64_t t = 0; t < n; ++t) {
            const double m = field.exponentials(a, p);
            double sum = 0;
            for (int64_t j = 0; j < tags; ++j) sum += p[j];
            for (int64_t j = 0; j < tags; ++j) out[t * tags + j] = static_cast<T>(p[j] / sum);
            if (t + 1 == n) break;
            field.step(x + (t + 1) * tags, a, p, m, next);
            std::memcpy(a, next, static_cast<size_t>(tags) * sizeof *a);
        }
        cost[s] = static_cast<T>(field.total(a) - field.score(x, label + begin, n));
    }
    return FL_OK;
}

/* How likely two tags stand beside each other is c * p[i] * forward[i, j] * q[j]; the exponentials of moves are the same for
 * all rows, so that `pairs` adds up the rest. `steps` adds up what has to be taken from logarithms. */
template <class T> int linear_chain_crf_grad(fl_call *call) {
    Field<T> field(call, call->p[1], call->p[2]);
    const int64_t *label = at<int64_t>(call, 4), tags = field.tags, square = tags * tags;
    const T *g = at<T>(call, 5);
    T *dx = at<T>(call, 6), *dw = at<T>(call, 7);
    if (const int code = field.verify(call, label)) return code;
    const int64_t most = field.spans.longest() * tags;
    if (const int code = field.prepare(call, 2 * most + field.spans.longest() + 2 * square + 7 * tags)) return code;
    double *scores = field.rest, *shares = scores + most, *bests = shares + most, *pairs = bests + field.spans.longest(),
           *steps = pairs + square, *b = steps + square + 2 * tags, *q = b + tags, *v = q + tags, *sums = v + tags,
           *likely = sums + tags; /* `steps` is shaped like Transition */
    clear(pairs, 2 * square + 2 * tags);
    if (dx != nullptr && field.spans.offsets == nullptr) clear(dx, field.rows * tags);
    for (int64_t s = 0; s < field.spans.count; ++s) {
        const int64_t n = field.spans.length(s), begin = field.spans.begin(s), *own = label + begin;
        const T *x = field.emission + begin * tags;
        const double factor = g[s];
        if (n == 0) continue;
        field.start(x, scores);
        for (int64_t t = 0; t < n; ++t) {
            double *a = scores + t * tags, *p = shares + t * tags;
            bests[t] = field.exponentials(a, p);
            if (t + 1 < n) field.step(x + (t + 1) * tags, a, p, bests[t], a + tags);
        }
        const double total = field.total(scores + (n - 1) * tags);
        for (int64_t j = 0; j < tags; ++j) {
            b[j] = field.last[j];
            likely[j] = std::exp(scores[(n - 1) * tags + j] + b[j] - total);
            steps[tags + j] += factor * likely[j];
        }
        for (int64_t t = n - 1;; --t) {
            if (dx != nullptr) {
                T *out = dx + (begin + t) * tags;
                for (int64_t j = 0; j < tags; ++j) out[j] = static_cast<T>(factor * (likely[j] - (own[t] == j)));
            }
            if (t == 0) break;
            const double *a = scores + (t - 1) * tags, *p = shares + (t - 1) * tags;
            for (int64_t j = 0; j < tags; ++j) v[j] = x[t * tags + j] + b[j];
            const double m = field.exponentials(v, q), exponent = m + bests[t - 1] + field.largest - total;
            field.sums_of(q, field.backward, sums);
            for (int64_t i = 0; i < tags; ++i) {
                b[i] = sums[i] >= vanishing
                           ? std::log(sums[i]) + m + field.largest
                           : log_sum(tags, [&](int64_t j) { return v[j] + field.moves[i * tags + j]; });
            }
            if (exponent < steep) {
                const double c = std::exp(exponent);
                for (int64_t i = 0; i < tags; ++i) {
                    const double weight = factor * c * p[i];
                    double *row = pairs + i * tags;
                    likely[i] = c * p[i] * sums[i];
#pragma omp simd
                    for (int64_t j = 0; j < tags; ++j) row[j] += weight * q[j];
                }
            } else {
                for (int64_t i = 0; i < tags; ++i) {
                    likely[i] = std::exp(a[i] + b[i] - total);
                    for (int64_t j = 0; j < tags; ++j) {
                        const double both = a[i] + field.moves[i * tags + j] + v[j] - total;
                        steps[(i + 2) * tags + j] += factor * std::exp(both);
                    }
                }
            }
            steps[(own[t - 1] + 2) * tags + own[t]] -= factor;
        }
        for (int64_t j = 0; j < tags; ++j) steps[j] += factor * likely[j];
        steps[own[0]] -= factor;
        steps[tags + own[n - 1]] -= factor;
    }
    if (dw == nullptr) return FL_OK;
    for (int64_t k = 0; k < square; ++k) steps[2 * tags + k] += pairs[k] * field.forward[k];
    for (int64_t k = 0; k < square + 2 * tags; ++k) dw[k] = static_cast<T>(steps[k]);
    return FL_OK;
}

/* The best tags (Viterbi 1967), or with labels whether they are those; of equally good ones the first. Sums are of type T and
 * in Fluid's order, which decides between tags that are all but equally good. */
template <class T> int crf_decoding(fl_call *call) {
    Field<T> field(call, call->p[1], call->p[2]);
    const int64_t *label = at<int64_t>(call, 4), tags = field.tags;
    int64_t *path = at<int64_t>(call, 5);
    if (const int code = field.spans.verify(call)) return code;
    T *best = nullptr, *next = nullptr;
    int32_t *from = nullptr;
    const int code = in_scratch(call, [&, longest = field.spans.longest()](Arena &arena) {
        best = arena.take<T>(tags), next = arena.take<T>(tags), from = arena.take<int32_t>(longest * tags);
    });
    if (code != FL_OK) return code;
    if (field.spans.offsets == nullptr) clear(path, field.rows);
    for (int64_t s = 0; s < field.spans.count; ++s) {
        const int64_t n = field.spans.length(s), begin = field.spans.begin(s);
        const T *x = field.emission + begin * tags;
        if (n == 0) continue;
        for (int64_t j = 0; j < tags; ++j) best[j] = field.first[j] + x[j];
        for (int64_t t = 1; t < n; ++t) {
            int32_t *back = from + t * tags;
            x += tags;
            for (int64_t j = 0; j < tags; ++j) {
                next[j] = best[0] + field.moves[j];
                back[j] = 0;
            }
            for (int64_t i = 1; i < tags; ++i) {
                const T *row = field.moves + i * tags, score = best[i];
                const int32_t here = static_cast<int32_t>(i);
                FL_LOOP
                for (int64_t j = 0; j < tags; ++j) {
                    const T found = score + row[j];
                    const bool better = found > next[j];
                    next[j] = better ? found : next[j];
                    back[j] = better ? here : back[j];
                }
            }
            for (int64_t j = 0; j < tags; ++j) best[j] = next[j] + x[j];
        }
        int64_t tag = 0;
        for (int64_t j = 1; j < tags; ++j) tag = best[j] + field.last[j] > best[tag] + field.last[tag] ? j : tag;
        for (int64_t t = n - 1; t >= 0; --t) {
            const int64_t r = begin + t;
            path[r] = label == nullptr ? tag : label[r] == tag;
            if (t > 0) tag = from[t * tags + tag];
        }
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry crf_table[] = {
    FL_REAL("linear_chain_crf", linear_chain_crf, "xnnxxxxxx|zzdz||?")
    FL_REAL("linear_chain_crf_grad", linear_chain_crf_grad, "xnnxxxnn|zzdz||?")
    FL_REAL("crf_decoding", crf_decoding, "xnnxnx|zzdz||?")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
