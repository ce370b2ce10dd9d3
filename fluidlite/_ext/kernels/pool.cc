/* Max and average pooling of NCHW images. */
#ifndef FL_NS

#include "kernels/topics.h"

#define FL_SELF "kernels/pool.cc"
#include "kernels/targets.h"

namespace fl {
const Topic topic_pool = FL_TOPIC(pool_table);
}

#else

namespace fl {
namespace FL_NS {
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

    bool halves() const {
        return kh == 2 && kw == 2 && stride_h == 2 && stride_w == 2 && pad_top == 0 && pad_left == 0 && oh * 2 <= h &&
               ow * 2 <= w;
    }
};

/* What is not a number wins, so that it does not vanish. */
template <class T> FL_INLINE T larger(T a, T b) { return a > b || a != a ? a : b; }

/* The usual 2 x 2 window with stride 2, a row at a time. */
template <class T> void max_of_quads(const Shape &s, const T *x, T *out) {
    for (int64_t plane = 0; plane < s.planes; ++plane, x += s.h * s.w) {
        for (int64_t r = 0; r < s.oh; ++r, out += s.ow) {
            const T *FL_RESTRICT a = x + 2 * r * s.w, *FL_RESTRICT b = a + s.w;
            for (int64_t c = 0; c < s.ow; ++c) {
                out[c] = larger(larger(b[2 * c + 1], b[2 * c]), larger(a[2 * c + 1], a[2 * c]));
            }
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

}  // namespace

#define FL_REAL(NAME, F, OPERANDS, SIZES) \
    {NAME ".f32", F<float>, OPERANDS POOL SIZES}, {NAME ".f64", F<double>, OPERANDS POOL SIZES},
#define POOL "|zzzzddddiizzi||"

extern const fl_entry pool_table[] = {
    FL_REAL("pool2d_max", pool_max, "xx", "abcd,abkl")
    FL_REAL("pool2d_max_grad", pool_max_grad, "xxxx", "abcd,abkl,abkl,abcd")
    FL_REAL("pool2d_avg", pool_avg, "xx", "abcd,abkl")
    FL_REAL("pool2d_avg_grad", pool_avg_grad, "xx", "abkl,abcd")
    {nullptr, nullptr, nullptr}};

#undef FL_REAL
#undef POOL

}  // namespace FL_NS
}  // namespace fl

#endif
