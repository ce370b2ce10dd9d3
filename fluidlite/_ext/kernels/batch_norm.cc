/* Batch normalisation of [n, c, hw] and its gradients, and what else is a sum over all of a channel in blocks of these. */
#ifndef FL_NS

#include <algorithm>
#include <new>

#include "kernels/topics.h"
#include "parallel.h"
#include "kernels/vec_math.h"

#define FL_SELF "kernels/batch_norm.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_batch_norm = FL_TOPIC(batch_norm_table);

#else

#include "kernels/channel_sums.h"

namespace fl::FL_NS {
namespace {

template <int ACT, class T>
void affine_images(const T *x, T *y, int64_t n, int64_t c, int64_t hw, const T *factor, const T *shift) {
    for (int64_t b = 0; b < n; ++b) {
        if (hw == 1) {
            FL_LOOP
            for (int64_t k = 0; k < c; ++k) y[k] = vm::activate<ACT>(x[k] * factor[k] + shift[k]);
            x += c;
            y += c;
            continue;
        }
        for (int64_t k = 0; k < c; ++k, x += hw, y += hw) {
            const T f = factor[k], s = shift[k];
            FL_LOOP
            for (int64_t j = 0; j < hw; ++j) y[j] = vm::activate<ACT>(x[j] * f + s);
        }
    }
}

/* The same for blocks of BLOCK channels, without an activation or with a relu. Each vector is read before it is written. */
template <bool RELU, int BLOCK, class T>
void affine_blocks(const T *x, T *y, int64_t n, int64_t c, int64_t hw, const T *factor, const T *shift) {
    using V = Whole<T>;
    constexpr int vectors = BLOCK / V::size;
    const typename V::Lanes zero = {};
    for (int64_t row = 0; row < n * c; row += BLOCK, x += BLOCK * hw, y += BLOCK * hw) {
        typename V::Lanes f[vectors], s[vectors];
        for (int u = 0; u < vectors; ++u) {
            f[u] = V::load(factor + row % c + u * V::size);
            s[u] = V::load(shift + row % c + u * V::size);
        }
        for (int64_t j = 0; j < BLOCK * hw; j += BLOCK) {
#pragma GCC unroll 4
            for (int u = 0; u < vectors; ++u) {
                const typename V::Lanes made = V::load(x + j + u * V::size) * f[u] + s[u];
                V::store(y + j + u * V::size, RELU ? (made < zero ? zero : made) : made);
            }
        }
    }
}

template <int BLOCK, class T>
void affine_in_blocks(bool relu, const T *x, T *y, int64_t n, int64_t c, int64_t hw, const T *factor, const T *shift) {
    const int64_t image = c * hw;
    in_ranges(n, 2 * image * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        const auto run = relu ? affine_blocks<true, BLOCK, T> : affine_blocks<false, BLOCK, T>;
        run(x + begin * image, y + begin * image, end - begin, c, hw, factor, shift);
    });
}

template <int ACT, class T>
void affine_loop(const T *x, T *y, int64_t n, int64_t c, int64_t hw, const T *factor, const T *shift) {
    const int64_t image = c * hw;
    in_ranges(n, 2 * image * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        affine_images<ACT>(x + begin * image, y + begin * image, end - begin, c, hw, factor, shift);
    });
}

template <class T>
void affine(int64_t act, const T *x, T *y, int64_t n, int64_t c, int64_t hw, const T *factor, const T *shift) {
    switch (act) {
        case act_relu: affine_loop<act_relu>(x, y, n, c, hw, factor, shift); break;
        case act_sigmoid: affine_loop<act_sigmoid>(x, y, n, c, hw, factor, shift); break;
        case act_tanh: affine_loop<act_tanh>(x, y, n, c, hw, factor, shift); break;
        default: affine_loop<act_none>(x, y, n, c, hw, factor, shift);
    }
}

/* Y from X, its factors and shifts, as images lie. */
template <bool BLOCKS, class T>
void finish(int64_t act, int64_t block, const T *x, T *y, int64_t n, int64_t c, int64_t hw, const T *factor, const T *shift) {
    if (!BLOCKS) return affine(act, x, y, n, c, hw, factor, shift);
    const auto run = block == 16 ? affine_in_blocks<16, T> : affine_in_blocks<8, T>;
    run(act == act_relu, x, y, n, c, hw, factor, shift);
}

/* Room for four numbers a channel, the last two of which become two for each part of a batch. */
double *room(fl_call *call, int64_t channels, int64_t parts = 1) {
    return static_cast<double *>(scratch(call, (2 + 2 * parts) * channels * static_cast<int64_t>(sizeof(double))));
}

/* How many channels a block of images has: 1 where each channel lies by itself. */
FL_INLINE bool fits(int64_t channels, int64_t block) { return (block == 8 || block == 16) && channels % block == 0; }

template <bool BLOCKS> FL_INLINE int64_t block_of(const fl_call *call, int k) { return BLOCKS ? call->i[k] : 1; }

template <bool BLOCKS, class T> int batch_norm(fl_call *call) {
    const T *x = at<T>(call, 0), *scale = at<T>(call, 1), *bias = at<T>(call, 2), *mean = at<T>(call, 3),
            *variance = at<T>(call, 4);
    T *y = at<T>(call, 5), *mean_out = at<T>(call, 6), *variance_out = at<T>(call, 7), *saved_mean = at<T>(call, 8),
      *saved_inverse = at<T>(call, 9);
    const int64_t n = call->i[0], c = call->i[1], hw = call->i[2], act = activation(call, 3), block = block_of<BLOCKS>(call, 4);
    if (BLOCKS && !fits(c, block)) return out_of_range(call, block, 4, c);
    if (BLOCKS && act > act_relu) return out_of_range(call, act, 3, act_relu + 1);
    const double epsilon = call->f[0], momentum = call->f[1];
    double *const space = room(call, c, parts_of(n, c, hw));
    if (space == nullptr) return no_memory(call, 4 * c * static_cast<int64_t>(sizeof(double)));
    T *factor = reinterpret_cast<T *>(space), *shift = factor + c;
    double *const first = space + 2 * c, *const second = first + c;
    channel_sums(n, c, hw, block, first, Moments<T>{x});
    const double count = n * hw > 0 ? static_cast<double>(n * hw) : 1.0;
    for (int64_t k = 0; k < c; ++k) {
        const double m = first[k] / count;
        const double spread = second[k] / count - m * m;
        const double v = spread > 0 ? spread : 0;
        const double inverse = 1.0 / std::sqrt(v + epsilon);
        factor[k] = static_cast<T>(inverse * scale[k]);
        shift[k] = static_cast<T>(bias[k] - m * inverse * scale[k]);
        saved_mean[k] = static_cast<T>(m);
        saved_inverse[k] = static_cast<T>(inverse);
        mean_out[k] = static_cast<T>(mean[k] * momentum + m * (1 - momentum));
        variance_out[k] = static_cast<T>(variance[k] * momentum + v * (1 - momentum));
    }
    finish<BLOCKS>(act, block, x, y, n, c, hw, factor, shift);
    return FL_OK;
}

/* The gradient of a bias for each channel. */
template <class T> int bias_blocks_grad(fl_call *call) {
    const int64_t n = call->i[0], c = call->i[1], hw = call->i[2], block = call->i[3];
    if (!fits(c, block)) return out_of_range(call, block, 3, c);
    double *const sums = room(call, c, parts_of(n, c, hw));
    if (sums == nullptr) return no_memory(call, 4 * c * static_cast<int64_t>(sizeof(double)));
    channel_sums(n, c, hw, block, sums, Totals<T>{at<T>(call, 0)});
    std::transform(sums, sums + c, at<T>(call, 1), [](double sum) { return static_cast<T>(sum); });
    return FL_OK;
}

template <bool BLOCKS, class T> int batch_norm_infer(fl_call *call) {
    const T *scale = at<T>(call, 1), *bias = at<T>(call, 2), *mean = at<T>(call, 3), *variance = at<T>(call, 4);
    const int64_t n = call->i[0], c = call->i[1], hw = call->i[2], act = activation(call, 3), block = block_of<BLOCKS>(call, 4);
    if (BLOCKS && !fits(c, block)) return out_of_range(call, block, 4, c);
    if (BLOCKS && act > act_relu) return out_of_range(call, act, 3, act_relu + 1);
    double *space = room(call, c);
    if (space == nullptr) return no_memory(call, 4 * c * static_cast<int64_t>(sizeof(double)));
    T *factor = reinterpret_cast<T *>(space), *shift = factor + c;
    for (int64_t k = 0; k < c; ++k) {
        const double inverse = 1.0 / std::sqrt(variance[k] + call->f[0]);
        factor[k] = static_cast<T>(inverse * scale[k]);
        shift[k] = static_cast<T>(bias[k] - mean[k] * inverse * scale[k]);
    }
    finish<BLOCKS>(act, block, at<T>(call, 0), at<T>(call, 5), n, c, hw, factor, shift);
    return FL_OK;
}

/* What the gradients of images in blocks are made of, as in `grad`. */
template <class T> struct BlockGradients {
    const T *x, *scale, *mean, *g, *inverse;
    const double *sums, *products;
    T *dx;
    int64_t c, hw;
    double count;

    template <int BLOCK> void rows(int64_t begin, int64_t end) const {
        using V = Whole<T>;
        constexpr int vectors = BLOCK / V::size;
        for (int64_t row = begin; row < end; ++row) {
            T factor[BLOCK], average[BLOCK], centre[BLOCK], slope[BLOCK];
            for (int l = 0; l < BLOCK; ++l) {
                const int64_t k = row * BLOCK % c + l;
                factor[l] = scale[k] * inverse[k];
                average[l] = static_cast<T>(sums[k] / count);
                centre[l] = mean[k];
                slope[l] = static_cast<T>(products[k] / count * inverse[k] * inverse[k]);
            }
            typename V::Lanes f[vectors], a[vectors], m[vectors], s[vectors];
            for (int u = 0; u < vectors; ++u) {
                f[u] = V::load(factor + u * V::size);
                a[u] = V::load(average + u * V::size);
                m[u] = V::load(centre + u * V::size);
                s[u] = V::load(slope + u * V::size);
            }
            const T *from = x + row * BLOCK * hw, *back = g + row * BLOCK * hw;
            T *to = dx + row * BLOCK * hw;
            for (int64_t j = 0; j < BLOCK * hw; j += BLOCK) {
#pragma GCC unroll 4
                for (int u = 0; u < vectors; ++u) {
                    const int64_t k = j + u * V::size;
                    V::store(to + k, (V::load(back + k) - a[u] - (V::load(from + k) - m[u]) * s[u]) * f[u]);
                }
            }
        }
    }
};

/* With the batch's own statistics they depend on X too; with global ones (`stop_gradient`) they are constants. */
template <bool stop_gradient, bool BLOCKS, class T> int grad(fl_call *call) {
    const T *x = at<T>(call, 0), *scale = at<T>(call, 1), *mean = at<T>(call, 2), *spread = at<T>(call, 3),
            *g = at<T>(call, 4);
    T *dx = at<T>(call, 5), *dscale = at<T>(call, 6), *dbias = at<T>(call, 7);
    const int64_t n = call->i[0], c = call->i[1], hw = call->i[2], block = block_of<BLOCKS>(call, 3);
    if (BLOCKS && !fits(c, block)) return out_of_range(call, block, 3, c);
    double *const space = room(call, c, parts_of(n, c, hw));
    if (space == nullptr) return no_memory(call, 4 * c * static_cast<int64_t>(sizeof(double)));
    T *inverse = reinterpret_cast<T *>(space);
    double *const sums = space + 2 * c, *const products = sums + c;
    for (int64_t k = 0; k < c; ++k) {
        inverse[k] = stop_gradient ? static_cast<T>(1.0 / std::sqrt(spread[k] + call->f[0])) : spread[k];
    }
    channel_sums(n, c, hw, block, sums, Slopes<T>{x, g, mean});
    for (int64_t k = 0; k < c; ++k) {
        if (dscale != nullptr) dscale[k] = static_cast<T>(products[k] * inverse[k]);
        if (dbias != nullptr) dbias[k] = static_cast<T>(sums[k]);
    }
    if (dx == nullptr) return FL_OK;
    const double count = static_cast<double>(n * hw);
    if (BLOCKS) {
        const BlockGradients<T> all{x, scale, mean, g, inverse, sums, products, dx, c, hw, count};
        in_ranges(n * c / block, 3 * block * hw * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
            block == 16 ? all.template rows<16>(begin, end) : all.template rows<8>(begin, end);
        });
        return FL_OK;
    }
    in_ranges(n * c, 3 * hw * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const int64_t k = row % c;
            const T *from = x + row * hw, *back = g + row * hw;
            T *to = dx + row * hw;
            const T factor = scale[k] * inverse[k];
            if (stop_gradient) {
                FL_LOOP
                for (int64_t j = 0; j < hw; ++j) to[j] = back[j] * factor;
                continue;
            }
            const T average = static_cast<T>(sums[k] / count), centre = mean[k];
            const T slope = static_cast<T>(products[k] / count * inverse[k] * inverse[k]);
            FL_LOOP
            for (int64_t j = 0; j < hw; ++j) to[j] = (back[j] - average - (from[j] - centre) * slope) * factor;
        }
    });
    return FL_OK;
}

template <class T> constexpr fl_kernel plain = batch_norm<false, T>;
template <class T> constexpr fl_kernel plain_infer = batch_norm_infer<false, T>;
template <class T> constexpr fl_kernel plain_grad = grad<false, false, T>;
template <class T> constexpr fl_kernel plain_infer_grad = grad<true, false, T>;

}  // namespace

extern const fl_entry batch_norm_table[] = {
    FL_REAL("batch_norm", plain, "xxxxxxxxxx|zzz[i]|ff|abc,b,b,b,b,abc,b,b,b,b")
    FL_REAL("batch_norm_infer", plain_infer, "xxxxxx|zzz[i]|f|abc,b,b,b,b,abc")
    FL_REAL("batch_norm_grad", plain_grad, "xxxxxnnn|zzz|f|abc,b,b,b,abc,abc,b,b")
    FL_REAL("batch_norm_infer_grad", plain_infer_grad, "xxxxxnnn|zzz|f|abc,b,b,b,abc,abc,b,b")
    {"batch_norm_blocks.f32", batch_norm<true, float>, "xxxxxxxxxx|zzziz|ff|abc,b,b,b,b,abc,b,b,b,b"},
    {"batch_norm_blocks_infer.f32", batch_norm_infer<true, float>, "xxxxxx|zzziz|f|abc,b,b,b,b,abc"},
    {"batch_norm_blocks_grad.f32", grad<false, true, float>, "xxxxxnnn|zzzz|f|abc,b,b,b,abc,abc,b,b"},
    {"bias_blocks_grad.f32", bias_blocks_grad<float>, "xx|zzzz||abc,b"},
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
