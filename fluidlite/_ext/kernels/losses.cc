/* Cross entropies and their gradients. */
#ifndef FL_NS

#include "kernels/topics.h"
#include "parallel.h"
#include "kernels/vec_math.h"

#define FL_WIDE
#define FL_SELF "kernels/losses.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_losses = FL_TOPIC(losses_table);

#else

#include "kernels/softmax_row.h"

namespace fl::FL_NS {
namespace {

/* Checks labels before anything is written, so that a bad batch leaves no half-made result. */
int check_labels(fl_call *call, const int64_t *label, int64_t rows, int64_t n, int64_t ignored) {
    for (int64_t r = 0; r < rows; ++r) {
        if (label[r] != ignored && (label[r] < 0 || label[r] >= n)) return out_of_range(call, label[r], r, n);
    }
    return FL_OK;
}

/* Losses stay finite: the logarithm of 0 counts as -1e20, as in Fluid. */
template <class T> FL_INLINE T bounded(T x) {
    const T limit = T(1e20);
    return x > limit ? limit : (x < -limit ? -limit : x);
}

template <class T> int cross_entropy(fl_call *call) {
    const T *x = at<T>(call, 0);
    const int64_t *label = at<int64_t>(call, 1);
    T *y = at<T>(call, 2), *match = at<T>(call, 3);
    const int64_t rows = call->i[0], n = call->i[1], ignored = call->i[2];
    if (const int code = check_labels(call, label, rows, n, ignored)) return code;
    for (int64_t r = 0; r < rows; ++r) {
        const bool skip = label[r] == ignored;
        const T p = skip ? T(1) : x[r * n + label[r]];
        y[r] = skip ? T(0) : -bounded(vm::log(p));
        if (match != nullptr) match[r] = skip ? T(0) : p;
    }
    return FL_OK;
}

template <class T> int cross_entropy_grad(fl_call *call) {
    const T *x = at<T>(call, 0), *match = at<T>(call, 1);
    const int64_t *label = at<int64_t>(call, 2);
    const T *g = at<T>(call, 3);
    T *dx = at<T>(call, 4);
    const int64_t rows = call->i[0], n = call->i[1], ignored = call->i[2];
    if (x == nullptr && match == nullptr) return missing(call, 0);
    if (const int code = check_labels(call, label, rows, n, ignored)) return code;
    for (int64_t r = 0; r < rows; ++r, dx += n) {
        const bool skip = label[r] == ignored;
        const T p = skip ? T(1) : (match != nullptr ? match[r] : x[r * n + label[r]]);
        for (int64_t j = 0; j < n; ++j) dx[j] = 0;
        if (!skip) dx[label[r]] = -g[r] / p;
    }
    return FL_OK;
}

template <class T> int cross_entropy_soft(fl_call *call) {
    const T *x = at<T>(call, 0), *label = at<T>(call, 1);
    T *y = at<T>(call, 2);
    const int64_t rows = call->i[0], n = call->i[1];
    for (int64_t r = 0; r < rows; ++r, x += n, label += n) {
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < n; ++j) sum += label[j] * bounded(vm::log(x[j]));
        y[r] = -sum;
    }
    return FL_OK;
}

template <class T> int cross_entropy_soft_grad(fl_call *call) {
    const T *x = at<T>(call, 0), *label = at<T>(call, 1), *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    const int64_t rows = call->i[0], n = call->i[1];
    for (int64_t r = 0; r < rows; ++r, x += n, label += n, dx += n) {
        FL_LOOP
        for (int64_t j = 0; j < n; ++j) dx[j] = -g[r] * label[j] / x[j];
    }
    return FL_OK;
}

template <class T> int softmax_with_cross_entropy(fl_call *call) {
    const T *x = at<T>(call, 0);
    const int64_t *label = at<int64_t>(call, 1);
    T *softmax = at<T>(call, 2), *loss = at<T>(call, 3);
    const int64_t rows = call->i[0], n = call->i[1], ignored = call->i[2];
    if (const int code = check_labels(call, label, rows, n, ignored)) return code;
    in_ranges(rows, 2 * n * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) loss[r] = label[r] == ignored ? T(0) : x[r * n + label[r]]; /* first: Softmax may be Logits */
        softmax_rows(x + begin * n, softmax + begin * n, end - begin, n, [=](int64_t k, const RowScale<T> &scale) {
            T &chosen = loss[begin + k];
            chosen = label[begin + k] == ignored ? T(0) : scale.log_sum - shifted(chosen, scale.largest);
        });
    });
    return FL_OK;
}

template <class T> int softmax_with_cross_entropy_soft(fl_call *call) {
    const T *x = at<T>(call, 0), *label = at<T>(call, 1);
    T *softmax = at<T>(call, 2), *loss = at<T>(call, 3);
    const int64_t rows = call->i[0], n = call->i[1];
    for (int64_t r = 0; r < rows; ++r, x += n, softmax += n, label += n) {
        const T most = largest(x, n);
        T weighted = 0, weight = 0;
#pragma omp simd reduction(+ : weighted, weight)
        for (int64_t j = 0; j < n; ++j) {
            weighted += label[j] * shifted(x[j], most);
            weight += label[j];
        }
        loss[r] = weight * softmax_row(x, softmax, n).log_sum - weighted;
    }
    return FL_OK;
}

template <class T> int softmax_with_cross_entropy_grad(fl_call *call) {
    const T *softmax = at<T>(call, 0);
    const int64_t *label = at<int64_t>(call, 1);
    const T *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    const int64_t rows = call->i[0], n = call->i[1], ignored = call->i[2];
    if (const int code = check_labels(call, label, rows, n, ignored)) return code;
    in_ranges(rows, 2 * n * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const bool skip = label[r] == ignored;
            const T factor = skip ? T(0) : g[r];
            const T *from = softmax + r * n;
            T *to = dx + r * n;
            FL_LOOP
            for (int64_t j = 0; j < n; ++j) to[j] = from[j] * factor;
            if (!skip) to[label[r]] -= factor;
        }
    });
    return FL_OK;
}

template <class T> int softmax_with_cross_entropy_soft_grad(fl_call *call) {
    const T *softmax = at<T>(call, 0), *label = at<T>(call, 1), *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    const int64_t rows = call->i[0], n = call->i[1];
    for (int64_t r = 0; r < rows; ++r, softmax += n, label += n, dx += n) {
        FL_LOOP
        for (int64_t j = 0; j < n; ++j) dx[j] = (softmax[j] - label[j]) * g[r];
    }
    return FL_OK;
}

/* The labels whose whole part is `whole`: those from `low` to `high`. */
template <class T> struct Ignored {
    T low, high;

    explicit Ignored(int64_t whole) : low(static_cast<T>(whole)), high(static_cast<T>(whole)) {
        if (whole <= 0) low = std::nextafter(static_cast<T>(whole - 1), T(1));
        if (whole >= 0) high = std::nextafter(static_cast<T>(whole + 1), T(-1));
    }
    bool has(T label) const { return label >= low && label <= high; }
};

/* 1 / the number of labels that are not `ignored`, compared with their fraction, as in Fluid. */
template <class T> T one_of_counted(const T *label, int64_t n, T ignored) {
    int64_t counted = 0;
    for (int64_t k = 0; k < n; ++k) counted += label[k] != ignored;
    return T(1) / static_cast<T>(counted > 0 ? counted : 1);
}

template <class T> int sigmoid_cross_entropy(fl_call *call) {
    const T *x = at<T>(call, 0), *label = at<T>(call, 1);
    T *out = at<T>(call, 2);
    const int64_t n = call->i[0];
    const Ignored<T> ignored(call->i[1]);
    const T scale = call->i[2] ? one_of_counted(label, n, static_cast<T>(call->i[1])) : T(1);
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) {
        const T loss = vm::relu(x[k]) - x[k] * label[k] + vm::log1p(vm::exp(-std::fabs(x[k])));
        out[k] = ignored.has(label[k]) ? T(0) : loss * scale;
    }
    return FL_OK;
}

template <class T> int sigmoid_cross_entropy_grad(fl_call *call) {
    const T *x = at<T>(call, 0), *label = at<T>(call, 1), *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    const int64_t n = call->i[0];
    const Ignored<T> ignored(call->i[1]);
    const T scale = call->i[2] ? one_of_counted(label, n, static_cast<T>(call->i[1])) : T(1);
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) {
        dx[k] = ignored.has(label[k]) ? T(0) : g[k] * scale * (vm::sigmoid(x[k]) - label[k]);
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry losses_table[] = {
    FL_REAL("cross_entropy", cross_entropy, "xxxn|zzi||ab,aL,a,a")
    FL_REAL("cross_entropy_grad", cross_entropy_grad, "nnxxx|zzi||ab,a,aL,a,ab")
    FL_REAL("cross_entropy_soft", cross_entropy_soft, "xxx|zz||ab,ab,a")
    FL_REAL("cross_entropy_soft_grad", cross_entropy_soft_grad, "xxxx|zz||ab,ab,a,ab")
    FL_REAL("softmax_with_cross_entropy", softmax_with_cross_entropy, "xxxx|zzi||ab,aL,ab,a")
    FL_REAL("softmax_with_cross_entropy_soft", softmax_with_cross_entropy_soft, "xxxx|zz||ab,ab,ab,a")
    FL_REAL("softmax_with_cross_entropy_grad", softmax_with_cross_entropy_grad, "xxxx|zzi||ab,aL,a,ab")
    FL_REAL("softmax_with_cross_entropy_soft_grad", softmax_with_cross_entropy_soft_grad, "xxxx|zz||ab,ab,a,ab")
    /* The gradient of cross entropy and softmax together is the same expression. */
    FL_REAL("softmax_cross_entropy_grad", softmax_with_cross_entropy_grad, "xxxx|zzi||ab,aL,a,ab")
    FL_REAL("sigmoid_cross_entropy_with_logits", sigmoid_cross_entropy, "xxx|zii||a,a,a")
    FL_REAL("sigmoid_cross_entropy_with_logits_grad", sigmoid_cross_entropy_grad, "xxxx|zii||a,a,a,a")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
