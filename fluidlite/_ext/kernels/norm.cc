/* Normalisation of rows (samples, groups of channels, single channels of images) and its gradients.
 *
 * A row has `channels` of `inner` elements each; scale and bias are per channel, and go on from row to row until they begin
 * anew after `period` rows: (n, 1, 1) for samples of n features, (C / G, H * W, G) for groups, (1, H * W, C) for channels.
 */
#ifndef FL_NS

#include "kernels/topics.h"
#include "parallel.h"
#include "kernels/vec_math.h"

#define FL_SELF "kernels/norm.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_norm = FL_TOPIC(norm_table);

#else

namespace fl::FL_NS {
namespace {

/* `count` numbers that stand for a scale or bias that was left out. */
template <class T> T *constant(void *memory, int64_t count, T value) {
    T *numbers = static_cast<T *>(memory);
    for (int64_t k = 0; k < count; ++k) numbers[k] = value;
    return numbers;
}

/* `inverted`: the spread kept of each row is 1 / deviation, not the variance. */
template <class T> int layer_norm(fl_call *call) {
    const T *x = at<T>(call, 0), *scale = at<T>(call, 1), *bias = at<T>(call, 2);
    T *y = at<T>(call, 3), *means = at<T>(call, 4), *spreads = at<T>(call, 5);
    const int64_t rows = call->i[0], channels = call->i[1], inner = call->i[2], period = call->i[3];
    const bool inverted = call->i[4] != 0;
    const int64_t length = channels * inner, parameters = channels * period;
    if (scale == nullptr || bias == nullptr) {
        const int64_t bytes = 2 * parameters * static_cast<int64_t>(sizeof(T));
        T *numbers = static_cast<T *>(scratch(call, bytes));
        if (numbers == nullptr) return no_memory(call, bytes);
        if (scale == nullptr) scale = constant<T>(numbers, parameters, 1);
        if (bias == nullptr) bias = constant<T>(numbers + parameters, parameters, 0);
    }
    in_ranges(rows, 3 * length * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const T *row = x + r * length;
            T *made = y + r * length;
            double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t j = 0; j < length; ++j) sum += row[j];
            const double mean = sum / static_cast<double>(length);
#pragma omp simd reduction(+ : squares)
            for (int64_t j = 0; j < length; ++j) squares += (row[j] - mean) * (row[j] - mean);
            const double variance = squares / static_cast<double>(length);
            means[r] = static_cast<T>(mean);
            const T centre = means[r], inverse = static_cast<T>(1.0 / std::sqrt(variance + call->f[0]));
            spreads[r] = inverted ? inverse : static_cast<T>(variance);
            const T *s = scale + r % period * channels, *b = bias + r % period * channels;
            if (inner == 1) {
                FL_LOOP
                for (int64_t j = 0; j < length; ++j) made[j] = (row[j] - centre) * inverse * s[j] + b[j];
                continue;
            }
            for (int64_t c = 0; c < channels; ++c) {
                const T *from = row + c * inner, factor = inverse * s[c], shift = b[c];
                T *to = made + c * inner;
                FL_LOOP
                for (int64_t j = 0; j < inner; ++j) to[j] = (from[j] - centre) * factor + shift;
            }
        }
    });
    return FL_OK;
}

/* What the gradients of rows from `begin` to `end` are made of, and what they add to `slopes` and `shifts`. */
template <class T> struct RowGradients {
    const T *x, *scale, *means, *spreads, *g;
    T *dx;
    int64_t channels, inner, period;
    bool inverted, whole; /* the spread kept of each row is 1 / deviation; the mean's part in the gradient counts, too */
    double epsilon;

    void add(int64_t begin, int64_t end, double *slopes, double *shifts) const {
        for (int64_t r = begin; r < end; ++r) row(r, slopes + r % period * channels, shifts + r % period * channels);
    }

    void row(int64_t r, double *slope, double *shift) const {
        const int64_t length = channels * inner;
        const T *from = x + r * length, *back = g + r * length, *s = scale + r % period * channels;
        const double spread = spreads[r];
        const T centre = means[r];
        const T inverse = static_cast<T>(inverted ? spread : 1.0 / std::sqrt(spread + epsilon));
        double sum = 0, product = 0; /* of the gradient of the normal numbers: all of it, and along them */
        if (inner == 1) {
#pragma omp simd reduction(+ : sum, product)
            for (int64_t j = 0; j < length; ++j) {
                const double along = back[j] * ((from[j] - centre) * inverse);
                sum += back[j] * s[j];
                product += along * s[j];
                slope[j] += along;
                shift[j] += back[j];
            }
        }
        for (int64_t c = 0; inner != 1 && c < channels; ++c) {
            const T *values = from + c * inner, *gradients = back + c * inner;
            double along = 0, all = 0;
#pragma omp simd reduction(+ : along, all)
            for (int64_t j = 0; j < inner; ++j) {
                along += gradients[j] * ((values[j] - centre) * inverse);
                all += gradients[j];
            }
            sum += all * s[c];
            product += along * s[c];
            slope[c] += along;
            shift[c] += all;
        }
        if (dx == nullptr) return;
        T *to = dx + r * length;
        const double count = static_cast<double>(length);
        if (whole && length == 1) { /* a number less itself: nothing is left to be rounded */
            *to = back[0] - back[0];
            return;
        }
        const T average = whole ? static_cast<T>(sum / count) : T(0), pull = static_cast<T>(product / count);
        if (inner == 1) {
            FL_LOOP
            for (int64_t j = 0; j < length; ++j) {
                to[j] = (back[j] * s[j] - average - (from[j] - centre) * inverse * pull) * inverse;
            }
        }
        for (int64_t c = 0; inner != 1 && c < channels; ++c) {
            const T *values = from + c * inner, *gradients = back + c * inner, factor = s[c];
            T *out = to + c * inner;
            FL_LOOP
            for (int64_t j = 0; j < inner; ++j) {
                out[j] = (gradients[j] * factor - average - (values[j] - centre) * inverse * pull) * inverse;
            }
        }
    }
};

/* Each piece of rows has sums of its own, which are then added in their order; there are at most so many. */
constexpr int64_t most_pieces = 16;

template <class T> int layer_norm_grad(fl_call *call) {
    RowGradients<T> rule = {at<T>(call, 0), at<T>(call, 1), at<T>(call, 2), at<T>(call, 3), at<T>(call, 4), at<T>(call, 5),
                            call->i[1], call->i[2], call->i[3], call->i[4] != 0, call->i[5] != 0, call->f[0]};
    T *dscale = at<T>(call, 6), *dbias = at<T>(call, 7);
    const int64_t rows = call->i[0], length = rule.channels * rule.inner, parameters = rule.channels * rule.period;
    const int64_t work = rows * length * 3 * static_cast<int64_t>(sizeof(T)) / piece_bytes;
    /* As many rows to a piece as there are in a period at least, which the sums of the piece are as long as. */
    int64_t pieces = work < rows / rule.period ? work : rows / rule.period;
    pieces = pieces < 1 ? 1 : pieces < most_pieces ? pieces : most_pieces;
    const int64_t bytes = (2 * pieces + 1) * parameters * static_cast<int64_t>(sizeof(double));
    double *sums = static_cast<double *>(scratch(call, bytes));
    if (sums == nullptr) return no_memory(call, bytes);
    for (int64_t k = 0; k < 2 * pieces * parameters; ++k) sums[k] = 0;
    if (rule.scale == nullptr) rule.scale = constant<T>(sums + 2 * pieces * parameters, parameters, 1);
    in_pieces(pieces, [&rule, sums, rows, pieces, parameters](int64_t k) {
        double *slopes = sums + 2 * k * parameters;
        rule.add(k * rows / pieces, (k + 1) * rows / pieces, slopes, slopes + parameters);
    });
    for (int64_t k = 0; k < parameters; ++k) {
        double slope = 0, shift = 0;
        for (int64_t piece = 0; piece < pieces; ++piece) {
            slope += sums[2 * piece * parameters + k];
            shift += sums[(2 * piece + 1) * parameters + k];
        }
        if (dscale != nullptr) dscale[k] = static_cast<T>(slope);
        if (dbias != nullptr) dbias[k] = static_cast<T>(shift);
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry norm_table[] = {
    FL_REAL("layer_norm", layer_norm, "xnnxxx|zzzdi|f|abc,bd,bd,abc,a,a")
    FL_REAL("layer_norm_grad", layer_norm_grad, "xnxxxnnn|zzzdii|f|abc,bd,a,a,abc,abc,bd,bd")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
