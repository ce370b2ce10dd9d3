/* Normalisation of rows (samples, groups of channels, single channels of images) and its gradients.
 *
 * A row has `channels` of `inner` elements each; scale and bias are per channel, and go on from row to row until they begin
 * anew after `period` rows: (n, 1, 1) for samples of n features, (C / G, H * W, G) for groups, (1, H * W, C) for channels.
 */
#ifndef FL_NS

#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_SELF "kernels/norm.cc"
#include "kernels/targets.h"

namespace fl {
const Topic topic_norm = FL_TOPIC(norm_table);
}

#else

namespace fl {
namespace FL_NS {
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
    for (int64_t r = 0; r < rows; ++r, x += length, y += length) {
        double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < length; ++j) sum += x[j];
        const double mean = sum / static_cast<double>(length);
#pragma omp simd reduction(+ : squares)
        for (int64_t j = 0; j < length; ++j) squares += (x[j] - mean) * (x[j] - mean);
        const double variance = squares / static_cast<double>(length);
        means[r] = static_cast<T>(mean);
        const T centre = means[r], inverse = static_cast<T>(1.0 / std::sqrt(variance + call->f[0]));
        spreads[r] = inverted ? inverse : static_cast<T>(variance);
        const T *s = scale + r % period * channels, *b = bias + r % period * channels;
        if (inner == 1) {
            FL_LOOP
            for (int64_t j = 0; j < length; ++j) y[j] = (x[j] - centre) * inverse * s[j] + b[j];
            continue;
        }
        for (int64_t c = 0; c < channels; ++c) {
            const T *from = x + c * inner, factor = inverse * s[c], shift = b[c];
            T *to = y + c * inner;
            FL_LOOP
            for (int64_t j = 0; j < inner; ++j) to[j] = (from[j] - centre) * factor + shift;
        }
    }
    return FL_OK;
}

/* `whole`: the mean's part in the gradient counts, too; `inverted` as above. */
template <class T> int layer_norm_grad(fl_call *call) {
    const T *x = at<T>(call, 0), *scale = at<T>(call, 1), *means = at<T>(call, 2), *spreads = at<T>(call, 3),
            *g = at<T>(call, 4);
    T *dx = at<T>(call, 5), *dscale = at<T>(call, 6), *dbias = at<T>(call, 7);
    const int64_t rows = call->i[0], channels = call->i[1], inner = call->i[2], period = call->i[3];
    const bool inverted = call->i[4] != 0, whole = call->i[5] != 0;
    const int64_t length = channels * inner, parameters = channels * period;
    const int64_t bytes = 3 * parameters * static_cast<int64_t>(sizeof(double));
    double *slopes = static_cast<double *>(scratch(call, bytes));
    if (slopes == nullptr) return no_memory(call, bytes);
    double *shifts = slopes + parameters;
    for (int64_t k = 0; k < 2 * parameters; ++k) slopes[k] = 0;
    if (scale == nullptr) scale = constant<T>(shifts + parameters, parameters, 1);
    for (int64_t r = 0; r < rows; ++r, x += length, g += length) {
        const double spread = spreads[r];
        const T centre = means[r];
        const T inverse = static_cast<T>(inverted ? spread : 1.0 / std::sqrt(spread + call->f[0]));
        const int64_t first = r % period * channels;
        const T *s = scale + first;
        double *slope = slopes + first, *shift = shifts + first;
        double sum = 0, product = 0; /* of the gradient of the normal numbers: all of it, and along them */
        if (inner == 1) {
#pragma omp simd reduction(+ : sum, product)
            for (int64_t j = 0; j < length; ++j) {
                const double along = g[j] * ((x[j] - centre) * inverse);
                sum += g[j] * s[j];
                product += along * s[j];
                slope[j] += along;
                shift[j] += g[j];
            }
        }
        for (int64_t c = 0; inner != 1 && c < channels; ++c) {
            const T *from = x + c * inner, *back = g + c * inner;
            double along = 0, all = 0;
#pragma omp simd reduction(+ : along, all)
            for (int64_t j = 0; j < inner; ++j) {
                along += back[j] * ((from[j] - centre) * inverse);
                all += back[j];
            }
            sum += all * s[c];
            product += along * s[c];
            slope[c] += along;
            shift[c] += all;
        }
        if (dx == nullptr) continue;
        const double count = static_cast<double>(length);
        if (whole && length == 1) { /* a number less itself: nothing is left to be rounded */
            *dx++ = g[0] - g[0];
            continue;
        }
        const T average = whole ? static_cast<T>(sum / count) : T(0), pull = static_cast<T>(product / count);
        if (inner == 1) {
            FL_LOOP
            for (int64_t j = 0; j < length; ++j) {
                dx[j] = (g[j] * s[j] - average - (x[j] - centre) * inverse * pull) * inverse;
            }
        }
        for (int64_t c = 0; inner != 1 && c < channels; ++c) {
            const T *from = x + c * inner, *back = g + c * inner, factor = s[c];
            T *to = dx + c * inner;
            FL_LOOP
            for (int64_t j = 0; j < inner; ++j) {
                to[j] = (back[j] * factor - average - (from[j] - centre) * inverse * pull) * inverse;
            }
        }
        dx += length;
    }
    for (int64_t k = 0; k < parameters; ++k) {
        if (dscale != nullptr) dscale[k] = static_cast<T>(slopes[k]);
        if (dbias != nullptr) dbias[k] = static_cast<T>(shifts[k]);
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry norm_table[] = {
    {"layer_norm.f32", layer_norm<float>, "xnnxxx|zzzdi|f|abc,bd,bd,abc,a,a"},
    {"layer_norm.f64", layer_norm<double>, "xnnxxx|zzzdi|f|abc,bd,bd,abc,a,a"},
    {"layer_norm_grad.f32", layer_norm_grad<float>, "xnxxxnnn|zzzdii|f|abc,bd,a,a,abc,abc,bd,bd"},
    {"layer_norm_grad.f64", layer_norm_grad<double>, "xnxxxnnn|zzzdii|f|abc,bd,a,a,abc,abc,bd,bd"},
    {nullptr, nullptr, nullptr}};

}  // namespace FL_NS
}  // namespace fl

#endif
