/* Max and average pooling of NCHW images. */
#ifndef FL_NS

#include "kernels/by_rows.h"
#include "kernels/topics.h"

#define FL_WIDE
#define FL_SELF "kernels/pool.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_pool = FL_TOPIC(pool_table);

#else

namespace fl::FL_NS {
namespace {

struct Window {
    int64_t h0, h1, w0, w1;
};

struct Shape {
    int64_t planes, h, w, kh, kw, stride_h, stride_w, pad_top, pad_left, oh, ow;
    bool exclusive;

    explicit Shape(const fl_call *call)
        : planes(call->i[0] * call->i[1]), h(call->i[2]), w(call->i[3]), kh(call->i[4]), kw(call->i[5]),
          stride_h(call->i[6]), stride_w(call->i[7]), pad_top(call->i[8]), pad_left(call->i[9]), oh(call->i[10]),
          ow(call->i[11]), exclusive(call->i[12] != 0) {}

    FL_INLINE Window window(int64_t r, int64_t c) const {
        const int64_t h0 = r * stride_h - pad_top, w0 = c * stride_w - pad_left;
        return {h0 < 0 ? 0 : h0, h0 + kh > h ? h : h0 + kh, w0 < 0 ? 0 : w0, w0 + kw > w ? w : w0 + kw};
    }

    /* What an average divides by: the elements inside the image, or the whole window. */
    template <class T> FL_INLINE T share(const Window &v) const {
        if (!exclusive) return T(1) / static_cast<T>(kh * kw);
        return v.h1 > v.h0 && v.w1 > v.w0 ? T(1) / static_cast<T>((v.h1 - v.h0) * (v.w1 - v.w0)) : T(0);
    }

    /* Whether going through the places of windows, and for each through a row of outputs, makes the longer loops. */
    bool by_places() const { return ow >= kw; }

    bool halves() const {
        return kh == 2 && kw == 2 && stride_h == 2 && stride_w == 2 && pad_top == 0 && pad_left == 0 && oh * 2 <= h &&
               ow * 2 <= w;
    }
};

/* Calls visit(row, begin, end) for each place in the windows of a row of outputs, in their order: of outputs begin to
 * end - 1 that place is inside of the image, and output c has it at row[c * stride_w]. */
template <class E, class V> FL_INLINE void each_place(const Shape &s, E *plane, int64_t r, V visit) {
    const Window v = s.window(r, 0);
    for (int64_t y = v.h0; y < v.h1; ++y) {
        for (int64_t z = 0; z < s.kw; ++z) {
            const int64_t before = s.pad_left - z, behind = s.w - 1 + before;
            if (behind < 0) continue;
            const int64_t begin = before > 0 ? (before + s.stride_w - 1) / s.stride_w : 0, end = behind / s.stride_w + 1;
            visit(plane + y * s.w - before, begin, end < s.ow ? end : s.ow);
        }
    }
}

/* Calls visit(c, row[c * stride]) for the outputs from begin to end - 1; loops of the usual strides are made for these. */
template <class E, class V> FL_INLINE void each_output(int64_t stride, E *row, int64_t begin, int64_t end, V visit) {
    if (stride == 1) {
        FL_LOOP
        for (int64_t c = begin; c < end; ++c) visit(c, row[c]);
    } else if (stride == 2) {
        FL_LOOP
        for (int64_t c = begin; c < end; ++c) visit(c, row[2 * c]);
    } else {
        for (int64_t c = begin; c < end; ++c) visit(c, row[c * stride]);
    }
}

/* The usual 2 x 2 window with stride 2: first the larger of two rows, of several pairs of rows that fit in `width`, so that
 * the second loop, which takes neighbours, is a long one for small images, too. */
template <class T> void max_of_quads(const Shape &s, const T *x, T *out) {
    constexpr int64_t width = 512;
    T highest[width];
    for (int64_t plane = 0; plane < s.planes; ++plane, x += s.h * s.w) {
        for (int64_t r = 0; r < s.oh;) {
            const int64_t fit = width / (2 * s.ow), left = s.oh - r, pairs = fit < 1 ? 1 : fit < left ? fit : left;
            for (int64_t begin = 0; begin < s.ow; begin += width / 2) {
                const int64_t count = s.ow - begin < width / 2 ? s.ow - begin : width / 2;
                for (int64_t p = 0; p < pairs; ++p) {
                    const T *a = x + 2 * (r + p) * s.w + 2 * begin, *b = a + s.w;
                    T *to = highest + p * 2 * s.ow;
                    for (int64_t t = 0; t < 2 * count; ++t) to[t] = larger(b[t], a[t]);
                }
                T *FL_RESTRICT to = out + begin;
                for (int64_t t = 0; t < pairs * count; ++t) to[t] = larger(highest[2 * t + 1], highest[2 * t]);
            }
            r += pairs;
            out += pairs * s.ow;
        }
    }
}

template <class T> int pool_max(fl_call *call) {
    const Shape s(call);
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    if (s.halves()) {
        max_of_quads(s, x, out);
        return FL_OK;
    }
    for (int64_t plane = 0; plane < s.planes; ++plane, x += s.h * s.w) {
        for (int64_t r = 0; r < s.oh; ++r) {
            if (s.by_places()) {
                for (int64_t c = 0; c < s.ow; ++c) out[c] = std::numeric_limits<T>::lowest();
                each_place(s, x, r, [&](const T *row, int64_t begin, int64_t end) {
                    each_output(s.stride_w, row, begin, end, [&](int64_t c, T value) { out[c] = larger(value, out[c]); });
                });
                out += s.ow;
                continue;
            }
            for (int64_t c = 0; c < s.ow; ++c) {
                const Window v = s.window(r, c);
                T best = std::numeric_limits<T>::lowest();
                for (int64_t y = v.h0; y < v.h1; ++y) {
                    for (int64_t z = v.w0; z < v.w1; ++z) best = larger(x[y * s.w + z], best);
                }
                *out++ = best;
            }
        }
    }
    return FL_OK;
}

/* Two rows of the gradient of 2 x 2 windows. The choice and the interleaved stores are separate loops: together
 * they come out as scatters. */
template <class T>
void max_of_quads_grad(const T *a, const T *b, const T *out, const T *g, T *da, T *db, int64_t ow) {
    constexpr int64_t width = 64;
    T first[width], second[width], third[width], fourth[width];
    for (int64_t begin = 0; begin < ow; begin += width) {
        const int64_t count = ow - begin < width ? ow - begin : width;
        for (int64_t t = 0; t < count; ++t) {
            const int64_t c = begin + t;
            const T best = out[c];
            T left = g[c];
            first[t] = a[2 * c] == best ? left : T(0);
            left = a[2 * c] == best ? T(0) : left;
            second[t] = a[2 * c + 1] == best ? left : T(0);
            left = a[2 * c + 1] == best ? T(0) : left;
            third[t] = b[2 * c] == best ? left : T(0);
            left = b[2 * c] == best ? T(0) : left;
            fourth[t] = b[2 * c + 1] == best ? left : T(0);
        }
        for (int64_t t = 0; t < count; ++t) {
            da[2 * (begin + t)] = first[t];
            da[2 * (begin + t) + 1] = second[t];
            db[2 * (begin + t)] = third[t];
            db[2 * (begin + t) + 1] = fourth[t];
        }
    }
}

/* The gradient goes to the first element of the window that equals the maximum. */
template <class T> int pool_max_grad(fl_call *call) {
    const Shape s(call);
    const T *x = at<T>(call, 0), *out = at<T>(call, 1), *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    const bool halves = s.halves();
    constexpr int64_t width = 512;
    T left[width];
    for (int64_t plane = 0; plane < s.planes; ++plane, x += s.h * s.w, dx += s.h * s.w) {
        for (int64_t k = 0; k < s.h * s.w; ++k) dx[k] = 0;
        for (int64_t r = 0; r < s.oh; ++r) {
            if (halves) {
                const int64_t row = 2 * r * s.w;
                max_of_quads_grad(x + row, x + row + s.w, out, g, dx + row, dx + row + s.w, s.ow);
                out += s.ow;
                g += s.ow;
                continue;
            }
            if (s.by_places() && s.ow <= width) {
                for (int64_t c = 0; c < s.ow; ++c) left[c] = g[c];
                each_place(s, x, r, [&](const T *row, int64_t begin, int64_t end) {
                    T *to = dx + (row - x);
                    each_output(s.stride_w, row, begin, end, [&](int64_t c, T value) {
                        const bool found = value == out[c];
                        to[c * s.stride_w] += found ? left[c] : T(0);
                        left[c] = found ? T(0) : left[c];
                    });
                });
                out += s.ow;
                g += s.ow;
                continue;
            }
            for (int64_t c = 0; c < s.ow; ++c, ++out, ++g) {
                const Window v = s.window(r, c);
                bool found = false;
                for (int64_t y = v.h0; y < v.h1 && !found; ++y) {
                    for (int64_t z = v.w0; z < v.w1 && !found; ++z) {
                        found = x[y * s.w + z] == *out;
                        if (found) dx[y * s.w + z] += *g;
                    }
                }
            }
        }
    }
    return FL_OK;
}

template <class T> int pool_avg(fl_call *call) {
    const Shape s(call);
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    for (int64_t plane = 0; plane < s.planes; ++plane, x += s.h * s.w) {
        for (int64_t r = 0; r < s.oh; ++r) {
            if (s.by_places()) {
                for (int64_t c = 0; c < s.ow; ++c) out[c] = 0;
                each_place(s, x, r, [&](const T *row, int64_t begin, int64_t end) {
                    each_output(s.stride_w, row, begin, end, [&](int64_t c, T value) { out[c] += value; });
                });
                for (int64_t c = 0; c < s.ow; ++c) *out++ *= s.share<T>(s.window(r, c));
                continue;
            }
            for (int64_t c = 0; c < s.ow; ++c) {
                const Window v = s.window(r, c);
                T sum = 0;
                for (int64_t y = v.h0; y < v.h1; ++y) {
                    for (int64_t z = v.w0; z < v.w1; ++z) sum += x[y * s.w + z];
                }
                *out++ = sum * s.share<T>(v);
            }
        }
    }
    return FL_OK;
}

template <class T> int pool_avg_grad(fl_call *call) {
    const Shape s(call);
    const T *g = at<T>(call, 0);
    T *dx = at<T>(call, 1);
    for (int64_t plane = 0; plane < s.planes; ++plane, dx += s.h * s.w) {
        for (int64_t k = 0; k < s.h * s.w; ++k) dx[k] = 0;
        for (int64_t r = 0; r < s.oh; ++r) {
            for (int64_t c = 0; c < s.ow; ++c) {
                const Window v = s.window(r, c);
                const T value = *g++ * s.share<T>(v);
                for (int64_t y = v.h0; y < v.h1; ++y) {
                    for (int64_t z = v.w0; z < v.w1; ++z) dx[y * s.w + z] += value;
                }
            }
        }
    }
    return FL_OK;
}

/* An image, before and after. */
template <class T> using Image = Each<T, 1, 2, 3>;
template <class T> using Pooled = Each<T, 1, 10, 11>;

template <class T> constexpr fl_kernel pool2d_max = by_rows<pool_max<T>, Image<T>, Pooled<T>>;
template <class T> constexpr fl_kernel pool2d_max_grad = by_rows<pool_max_grad<T>, Image<T>, Pooled<T>, Pooled<T>, Image<T>>;
template <class T> constexpr fl_kernel pool2d_avg = by_rows<pool_avg<T>, Image<T>, Pooled<T>>;
template <class T> constexpr fl_kernel pool2d_avg_grad = by_rows<pool_avg_grad<T>, Pooled<T>, Image<T>>;

}  // namespace

extern const fl_entry pool_table[] = {
    FL_REAL("pool2d_max", pool2d_max, "xx|zzzzddddiizzi||abcd,abkl")
    FL_REAL("pool2d_max_grad", pool2d_max_grad, "xxxx|zzzzddddiizzi||abcd,abkl,abkl,abcd")
    FL_REAL("pool2d_avg", pool2d_avg, "xx|zzzzddddiizzi||abcd,abkl")
    FL_REAL("pool2d_avg_grad", pool2d_avg_grad, "xx|zzzzddddiizzi||abkl,abcd")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
