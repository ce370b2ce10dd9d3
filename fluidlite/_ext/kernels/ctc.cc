/* Connectionist temporal classification (Graves et al. 2006): cost and gradients of labels without known places.
 *
 * The states of a sequence are its labels with blanks before, between and behind them. Forward and backward sums are brought
 * to a sum of 1 at each step, over the states from which the end can still be reached. Where that loses too much to be sure
 * of the result, the sequence is computed once more over logarithms.
 */
#ifndef FL_NS

#include <algorithm>

#include "kernels/sequences.h"
#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_SELF "kernels/ctc.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_ctc = FL_TOPIC(ctc_table);

#else

namespace fl::FL_NS {
namespace {

constexpr double vanishing = 1e-200; /* what a double has lost of a sum above it is of no account */
constexpr double never = -std::numeric_limits<double>::infinity();

FL_INLINE double log_add(double a, double b) {
    const double high = a > b ? a : b, low = a > b ? b : a;
    return a == never && b == never ? never : high + std::log1p(std::exp(low - high));
}

/* Memory for the numbers of one sequence: [steps, states] each, and [states]. */
struct Lattice {
    double *emitted; /* how likely each state emits its label, or the logarithms of that */
    double *before;  /* of all that leads there, the step included */
    double *after;   /* of all that follows */
    double *skip;    /* 1 where the state two before may come directly before a state, else 0 */
    double *logs;    /* [steps]: what is to be subtracted from logits */
    int64_t *label;  /* of each state */

    static int64_t numbers(int64_t steps, int64_t states) { return 3 * steps * (states + 2) + 2 * states + steps; }

    Lattice(double *memory, int64_t steps, int64_t states)
        : emitted(memory),
          before(emitted + steps * (states + 2)),
          after(before + steps * (states + 2)),
          skip(after + steps * (states + 2)),
          logs(skip + states),
          label(reinterpret_cast<int64_t *>(logs + steps)) {}
};

/* One sequence of logits: row t is at x + t * stride, its gradient at as many elements behind g. */
template <class T> struct Frames {
    const T *x;
    T *g;
    int64_t stride, steps, classes, states;

    /* From which state on the end can be reached from step t, and how many states the beginning reaches. */
    FL_INLINE int64_t low(int64_t t) const { return std::max(states - 2 * (steps - t), int64_t{0}); }
    FL_INLINE int64_t high(int64_t t) const { return std::min(2 * t + 2, states); }

    /* g becomes the softmax of x. */
    void softmax(double *logs) const {
        for (int64_t t = 0; t < steps; ++t) {
            const T *row = x + t * stride;
            T *out = g + t * stride, best = row[0], sum = 0;
#pragma omp simd reduction(max : best)
            for (int64_t k = 0; k < classes; ++k) best = row[k] > best ? row[k] : best;
#pragma omp simd reduction(+ : sum)
            for (int64_t k = 0; k < classes; ++k) {
                out[k] = vm::exp(row[k] - best);
                sum += out[k];
            }
            const T share = T(1) / sum;
            for (int64_t k = 0; k < classes; ++k) out[k] *= share;
            logs[t] = static_cast<double>(best) + std::log(static_cast<double>(sum));
        }
    }

    void clear() const {
        for (int64_t t = 0; t < steps; ++t) std::memset(g + t * stride, 0, static_cast<size_t>(classes) * sizeof(T));
    }

    void emit(const Lattice &to, bool logarithms) const {
        for (int64_t t = 0; t < steps; ++t) {
            const T *row = x + t * stride;
            double *out = to.emitted + t * states;
            for (int64_t s = 0; s < states; ++s) {
                const double log = row[to.label[s]] - to.logs[t];
                out[s] = s > 0 && s % 2 == 0 ? out[0] : logarithms ? log : std::exp(log);
            }
        }
    }

    /* Takes what each state emits from the softmax. */
    FL_INLINE void emitted(const Lattice &lattice, int64_t t, const double *shares, double total) const {
        T *out = g + t * stride;
        double blank = 0;
        for (int64_t s = 0; s < states; s += 2) blank += shares[s];
        out[lattice.label[0]] -= static_cast<T>(blank / total);
        for (int64_t s = 1; s < states; s += 2) out[lattice.label[s]] -= static_cast<T>(shares[s] / total);
    }

    /* Adds 2 zeros in front of each row, so that no state needs a case of its own. Returns the cost, or NaN if sums vanish
     * on the way. */
    double by_shares(const Lattice &l) const {
        const int64_t width = states + 2;
        double cost = 0;
        for (int64_t t = 0; t < steps; ++t) {
            double *row = l.before + t * width + 2, sum = 0;
            const double *last = row - width, *y = l.emitted + t * states;
            for (int64_t s = -2; s < states; ++s) row[s] = 0;
            if (t == 0) {
                for (int64_t s = low(0); s < high(0); ++s) row[s] = y[s];
            } else {
#pragma omp simd
                for (int64_t s = low(t); s < high(t); ++s) {
                    row[s] = (last[s] + last[s - 1] + l.skip[s] * last[s - 2]) * y[s];
                }
            }
#pragma omp simd reduction(+ : sum)
            for (int64_t s = low(t); s < high(t); ++s) sum += row[s];
            if (!(sum >= vanishing)) return std::numeric_limits<double>::quiet_NaN();
            for (int64_t s = low(t); s < high(t); ++s) row[s] /= sum;
            cost -= std::log(sum);
        }
        double *row = l.after, *coming = l.after + width, *shares = l.after + 2 * width; /* with 2 zeros behind */
        for (int64_t s = 0; s < width; ++s) row[s] = s == states - 1 || s == states - 2;
        for (int64_t t = steps - 1;; --t) {
            const double *to = l.before + t * width + 2, *y = l.emitted + t * states;
            double total = 0;
#pragma omp simd reduction(+ : total)
            for (int64_t s = 0; s < states; ++s) {
                shares[s] = to[s] * row[s];
                total += shares[s];
            }
            if (!(total >= vanishing)) return std::numeric_limits<double>::quiet_NaN();
            emitted(l, t, shares, total);
            if (t == 0) return cost;
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t s = 0; s < states; ++s) {
                coming[s] = row[s] * y[s];
                sum += coming[s];
            }
            if (!(sum >= vanishing)) return std::numeric_limits<double>::quiet_NaN();
            coming[states] = coming[states + 1] = 0;
            for (int64_t s = 0; s < states; ++s) coming[s] /= sum;
            for (int64_t s = 0; s < states; ++s) {
                const double skipped = s + 2 < states ? l.skip[s + 2] * coming[s + 2] : 0;
                row[s] = coming[s] + coming[s + 1] + skipped;
            }
        }
    }

    double by_logarithms(const Lattice &l) const {
        for (int64_t t = 0; t < steps; ++t) {
            double *row = l.before + t * states;
            const double *last = row - states, *y = l.emitted + t * states;
            for (int64_t s = 0; s < states; ++s) {
                double sum = t > 0 ? last[s] : s < 2 ? 0 : never;
                if (t > 0 && s > 0) sum = log_add(sum, last[s - 1]);
                if (t > 0 && s > 1 && l.skip[s] > 0) sum = log_add(sum, last[s - 2]);
                row[s] = sum + y[s];
            }
        }
        const double *ends = l.before + (steps - 1) * states;
        const double total = states > 1 ? log_add(ends[states - 1], ends[states - 2]) : ends[0];
        for (int64_t t = steps - 1; t >= 0; --t) {
            double *row = l.after + t * states, *shares = l.emitted + t * states;
            const double *next = row + states, *y = shares + states;
            for (int64_t s = 0; s < states; ++s) {
                double sum = s + 2 >= states ? 0 : never;
                if (t + 1 < steps) {
                    sum = next[s] + y[s];
                    if (s + 1 < states) sum = log_add(sum, next[s + 1] + y[s + 1]);
                    if (s + 2 < states && l.skip[s + 2] > 0) sum = log_add(sum, next[s + 2] + y[s + 2]);
                }
                row[s] = sum;
            }
            if (t + 1 < steps) exponentials(l, t + 1, total);
        }
        exponentials(l, 0, total);
        return -total;
    }

    void exponentials(const Lattice &l, int64_t t, double total) const {
        double *shares = l.emitted + t * states;
        for (int64_t s = 0; s < states; ++s) {
            shares[s] = std::exp(l.before[t * states + s] + l.after[t * states + s] - total);
        }
        emitted(l, t, shares, 1);
    }
};

/* The labels of one sequence, int32 or int64. */
struct Labels {
    const char *first;
    int64_t count, item;

    int64_t operator[](int64_t k) const {
        if (item == 8) return reinterpret_cast<const int64_t *>(first)[k];
        return reinterpret_cast<const int32_t *>(first)[k];
    }
};

/* ints: sequences, rows, classes, steps of padded logits, blank, labels, those of a padded sequence, bytes of a label. Padded
 * logits are [steps, sequences, classes]. */
template <class T> int warpctc(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *g = at<T>(call, 6), *loss = at<T>(call, 7);
    const char *label = at<char>(call, 3);
    const int64_t *i = call->i, count = i[0], classes = i[2], blank = i[4], item = i[7];
    const Sequences frames = {at<int64_t>(call, 1), at<int64_t>(call, 2), count, i[3]};
    const Sequences labels = {at<int64_t>(call, 4), at<int64_t>(call, 5), count, i[6]};
    if (blank >= classes) return out_of_range(call, blank, -1, classes);
    if (const int code = frames.verify(call)) return code;
    if (const int code = labels.verify(call)) return code;
    int64_t numbers = 0;
    for (int64_t s = 0; s < count; ++s) {
        const Labels own = {label + labels.begin(s) * item, labels.length(s), item};
        for (int64_t k = 0; k < own.count; ++k) {
            if (own[k] < 0 || own[k] >= classes) return out_of_range(call, own[k], labels.begin(s) + k, classes);
        }
        numbers = std::max(numbers, Lattice::numbers(std::max(frames.length(s), int64_t{3}), 2 * own.count + 1));
    }
    const int64_t bytes = numbers * static_cast<int64_t>(sizeof(double));
    double *memory = static_cast<double *>(scratch(call, bytes));
    if (memory == nullptr) return no_memory(call, bytes);
    const bool padded = frames.offsets == nullptr;
    if (padded) std::memset(g, 0, static_cast<size_t>(i[1] * classes) * sizeof(T));
    for (int64_t s = 0; s < count; ++s) {
        const Labels own = {label + labels.begin(s) * item, labels.length(s), item};
        const int64_t from = (padded ? s : frames.begin(s)) * classes, states = 2 * own.count + 1;
        const Frames<T> f = {x + from, g + from, (padded ? count : 1) * classes, frames.length(s), classes, states};
        const Lattice l(memory, std::max(f.steps, int64_t{3}), states);
        int64_t least = own.count;
        for (int64_t k = 0; k < states; ++k) {
            const int64_t of = k / 2;
            l.label[k] = k % 2 == 0 ? blank : own[of];
            const bool again = k % 2 == 1 && of > 0 && own[of] == own[of - 1];
            l.skip[k] = k % 2 == 1 && of > 0 && !again && own[of] != blank;
            least += again;
        }
        if (f.steps < least || f.steps == 0) { /* too short: no cost, as in Fluid, where nothing at all is impossible */
            loss[s] = f.steps < least ? T(0) : std::numeric_limits<T>::infinity();
            f.clear();
            continue;
        }
        f.softmax(l.logs);
        f.emit(l, false);
        double cost = f.by_shares(l);
        if (!(cost == cost)) {
            f.softmax(l.logs);
            f.emit(l, true);
            cost = f.by_logarithms(l);
            if (cost == -never) f.clear(); /* there is no way at all */
        }
        loss[s] = static_cast<T>(cost);
    }
    return FL_OK;
}

/* ints: sequences, rows, classes, steps of padded logits, whether to divide by the number of steps. */
template <class T> int warpctc_grad(fl_call *call) {
    const int64_t *i = call->i, count = i[0], classes = i[2];
    const T *given = at<T>(call, 2), *loss = at<T>(call, 3);
    T *dx = at<T>(call, 4);
    const Sequences frames = {at<int64_t>(call, 0), at<int64_t>(call, 1), count, i[3]};
    if (const int code = frames.verify(call)) return code;
    for (int64_t s = 0; s < count; ++s) {
        const bool padded = frames.offsets == nullptr;
        const int64_t n = padded ? i[3] : frames.length(s), stride = (padded ? count : 1) * classes;
        const int64_t from = (padded ? s : frames.begin(s)) * classes;
        const T factor = i[4] ? loss[s] / static_cast<T>(std::max(frames.length(s), int64_t{1})) : loss[s];
        for (int64_t t = 0; t < n; ++t) {
            const T *row = given + from + t * stride;
            T *out = dx + from + t * stride;
            FL_LOOP
            for (int64_t k = 0; k < classes; ++k) out[k] = row[k] * factor;
        }
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry ctc_table[] = {
    FL_REAL("warpctc", warpctc, "xnnxnnxx|zzdzzzzd||bc,a+L,aL,fhB,a+L,aL,bc,a")
    FL_REAL("warpctc_grad", warpctc_grad, "nnxxx|zzdzz||a+L,aL,bc,a,bc")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
