/* The patches of images as sequences, and the gradient. */
#ifndef FL_NS

#include "kernels/topics.h"

#define FL_SELF "kernels/im2sequence.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_im2sequence = FL_TOPIC(im2sequence_table);

#else

namespace fl::FL_NS {
namespace {

/* Calls act(part of a patch, place in the images or -1, n) for each line of each patch of images [n, c, h, w]: n elements
 * that stand there or, where the place is -1, beyond the images. ints: n, c, h, w, kh, kw, strides, pads above and left,
 * how many patches downwards and across. */
template <class Act> FL_INLINE void each_line(const int64_t *i, Act act) {
    const int64_t n = i[0], c = i[1], h = i[2], w = i[3], kh = i[4], kw = i[5];
    int64_t at = 0;
    for (int64_t image = 0; image < n; ++image) {
        for (int64_t y = 0; y < i[10]; ++y) {
            for (int64_t x = 0; x < i[11]; ++x) {
                const int64_t top = y * i[6] - i[8], left = x * i[7] - i[9];
                const int64_t low = left < 0 ? (-left < kw ? -left : kw) : 0;
                const int64_t end = w - left < kw ? w - left : kw, high = end < low ? low : end;
                for (int64_t channel = 0; channel < c; ++channel) {
                    for (int64_t k = 0; k < kh; ++k, at += kw) {
                        const int64_t line = top + k;
                        if (line < 0 || line >= h) {
                            act(at, int64_t{-1}, kw);
                            continue;
                        }
                        act(at, int64_t{-1}, low);
                        act(at + low, ((image * c + channel) * h + line) * w + left + low, high - low);
                        act(at + high, int64_t{-1}, kw - high);
                    }
                }
            }
        }
    }
}

template <class T> int im2sequence(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    int64_t *offsets = at<int64_t>(call, 2);
    for (int64_t k = 0; k <= call->i[0]; ++k) offsets[k] = k * call->i[10] * call->i[11];
    each_line(call->i, [&](int64_t to, int64_t from, int64_t n) {
        for (int64_t k = 0; k < n; ++k) out[to + k] = from < 0 ? T(0) : x[from + k];
    });
    return FL_OK;
}

template <class T> int im2sequence_grad(fl_call *call) {
    const T *g = at<T>(call, 0);
    T *dx = at<T>(call, 1);
    const int64_t *i = call->i;
    for (int64_t k = 0; k < i[0] * i[1] * i[2] * i[3]; ++k) dx[k] = 0;
    each_line(call->i, [&](int64_t from, int64_t to, int64_t n) {
        for (int64_t k = 0; to >= 0 && k < n; ++k) dx[to + k] += g[from + k];
    });
    return FL_OK;
}

}  // namespace

extern const fl_entry im2sequence_table[] = {
    FL_REAL("im2sequence", im2sequence, "xxx|zzzzzzddiizz||abcd,aklbef,a+L")
    FL_REAL("im2sequence_grad", im2sequence_grad, "xx|zzzzzzddiizz||aklbef,abcd")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
