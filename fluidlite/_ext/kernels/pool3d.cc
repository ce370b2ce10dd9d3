/* Max and average pooling over three dimensions, of images with channels first or last, in windows or adaptive bins. What has
 * two dimensions has a depth of 1. Places of an image are vectors: of the channels, or of one element where channels come first
 * and each is an image. */
#ifndef FL_NS

#include "kernels/by_rows.h"
#include "kernels/topics.h"

#define FL_SELF "kernels/pool3d.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_pool3d = FL_TOPIC(pool3d_table);

#else

namespace fl::FL_NS {
namespace {

enum Share { whole_window, inside_only, bins };

/* The windows along one dimension. */
struct PoolAxis {
    int64_t n, size, stride, pad, out;
    bool adaptive;

    int64_t begin(int64_t k) const {
        const int64_t at = adaptive ? k * n / out : k * stride - pad;
        return at < 0 ? 0 : at;
    }
    int64_t end(int64_t k) const {
        const int64_t at = adaptive ? ((k + 1) * n + out - 1) / out : k * stride - pad + size;
        return at > n ? n : at;
    }
};

struct Pool {
    int64_t images, vector, window, places;
    PoolAxis axes[3];
    bool inside;

    explicit Pool(const fl_call *call) : images(call->i[0]), vector(call->i[4]), window(1), places(1), inside(call->i[17] != whole_window) {
        for (int k = 0; k < 3; ++k) {
            axes[k] = {call->i[1 + k], call->i[5 + k], call->i[8 + k], call->i[11 + k], call->i[14 + k], call->i[17] == bins};
            window *= axes[k].size;
            places *= axes[k].n;
        }
    }

    /* Calls visit(begin, end) with the first and last places of each window of an image, in their order, dimension by dimension. */
    template <class V> void each_window(V visit) const {
        for (int64_t a = 0; a < axes[0].out; ++a) {
            for (int64_t b = 0; b < axes[1].out; ++b) {
                for (int64_t c = 0; c < axes[2].out; ++c) {
                    const int64_t begin[] = {axes[0].begin(a), axes[1].begin(b), axes[2].begin(c)};
                    const int64_t end[] = {axes[0].end(a), axes[1].end(b), axes[2].end(c)};
                    visit(begin, end);
                }
            }
        }
    }

    /* Calls visit(place) for each place in a window. */
    template <class V> void each_place(const int64_t *begin, const int64_t *end, V visit) const {
        for (int64_t z = begin[0]; z < end[0]; ++z) {
            for (int64_t y = begin[1]; y < end[1]; ++y) {
                const int64_t row = (z * axes[1].n + y) * axes[2].n;
                for (int64_t x = row + begin[2]; x < row + end[2]; ++x) visit(x);
            }
        }
    }

    template <class T> T share(const int64_t *begin, const int64_t *end) const {
        if (!inside) return T(1) / static_cast<T>(window);
        int64_t count = 1;
        for (int k = 0; k < 3; ++k) count *= end[k] > begin[k] ? end[k] - begin[k] : 0;
        return count > 0 ? T(1) / static_cast<T>(count) : T(0);
    }
};

template <class T> int pool3d_max(fl_call *call) {
    const Pool p(call);
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    const int64_t n = p.vector;
    for (int64_t image = 0; image < p.images; ++image, x += p.places * n) {
        p.each_window([&](const int64_t *begin, const int64_t *end) {
            if (n == 1) {
                T best = std::numeric_limits<T>::lowest();
                p.each_place(begin, end, [&](int64_t place) { best = larger(x[place], best); });
                *out++ = best;
                return;
            }
            for (int64_t k = 0; k < n; ++k) out[k] = std::numeric_limits<T>::lowest();
            p.each_place(begin, end, [&](int64_t place) {
                const T *from = x + place * n;
                FL_LOOP
                for (int64_t k = 0; k < n; ++k) out[k] = larger(from[k], out[k]);
            });
            out += n;
        });
    }
    return FL_OK;
}

/* The gradient goes to the first place of the window that equals the maximum. */
template <class T> int pool3d_max_grad(fl_call *call) {
    const Pool p(call);
    const T *x = at<T>(call, 0), *out = at<T>(call, 1), *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    constexpr int64_t strip = 64;
    const int64_t n = p.vector;
    for (int64_t k = 0; k < p.images * p.places * n; ++k) dx[k] = 0;
    for (int64_t image = 0; image < p.images; ++image, x += p.places * n, dx += p.places * n) {
        p.each_window([&](const int64_t *begin, const int64_t *end) {
            if (n == 1) {
                const T best = *out++;
                T left = *g++;
                p.each_place(begin, end, [&](int64_t place) {
                    const bool found = x[place] == best;
                    dx[place] += found ? left : T(0);
                    left = found ? T(0) : left;
                });
                return;
            }
            for (int64_t first = 0; first < n; first += strip) {
                const int64_t count = n - first < strip ? n - first : strip;
                const T *best = out + first;
                T left[strip];
                for (int64_t k = 0; k < count; ++k) left[k] = g[first + k];
                p.each_place(begin, end, [&](int64_t place) {
                    const T *from = x + place * n + first;
                    T *to = dx + place * n + first;
                    for (int64_t k = 0; k < count; ++k) {
                        const bool found = from[k] == best[k];
                        to[k] += found ? left[k] : T(0);
                        left[k] = found ? T(0) : left[k];
                    }
                });
            }
            out += n;
            g += n;
        });
    }
    return FL_OK;
}

template <class T> int pool3d_avg(fl_call *call) {
    const Pool p(call);
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    const int64_t n = p.vector;
    for (int64_t image = 0; image < p.images; ++image, x += p.places * n) {
        p.each_window([&](const int64_t *begin, const int64_t *end) {
            const T share = p.share<T>(begin, end);
            if (n == 1) {
                T sum = 0;
                p.each_place(begin, end, [&](int64_t place) { sum += x[place]; });
                *out++ = sum * share;
                return;
            }
            for (int64_t k = 0; k < n; ++k) out[k] = 0;
            p.each_place(begin, end, [&](int64_t place) {
                const T *from = x + place * n;
                FL_LOOP
                for (int64_t k = 0; k < n; ++k) out[k] += from[k];
            });
            for (int64_t k = 0; k < n; ++k) *out++ *= share;
        });
    }
    return FL_OK;
}

template <class T> int pool3d_avg_grad(fl_call *call) {
    const Pool p(call);
    const T *g = at<T>(call, 0);
    T *dx = at<T>(call, 1);
    const int64_t n = p.vector;
    for (int64_t k = 0; k < p.images * p.places * n; ++k) dx[k] = 0;
    for (int64_t image = 0; image < p.images; ++image, dx += p.places * n) {
        p.each_window([&](const int64_t *begin, const int64_t *end) {
            const T share = p.share<T>(begin, end);
            if (n == 1) {
                const T value = *g++ * share;
                p.each_place(begin, end, [&](int64_t place) { dx[place] += value; });
                return;
            }
            p.each_place(begin, end, [&](int64_t place) {
                T *to = dx + place * n;
                FL_LOOP
                for (int64_t k = 0; k < n; ++k) to[k] += g[k] * share;
            });
            g += n;
        });
    }
    return FL_OK;
}

/* An image, before and after. */
template <class T> using Volume = Each<T, 1, 2, 3, 4>;
template <class T> using Pooled = Each<T, 14, 15, 16, 4>;

template <class T> constexpr fl_kernel max_by_rows = by_rows<pool3d_max<T>, Volume<T>, Pooled<T>>;
template <class T> constexpr fl_kernel max_grad_by_rows = by_rows<pool3d_max_grad<T>, Volume<T>, Pooled<T>, Pooled<T>, Volume<T>>;
template <class T> constexpr fl_kernel avg_by_rows = by_rows<pool3d_avg<T>, Volume<T>, Pooled<T>>;
template <class T> constexpr fl_kernel avg_grad_by_rows = by_rows<pool3d_avg_grad<T>, Pooled<T>, Volume<T>>;

}  // namespace

extern const fl_entry pool3d_table[] = {
    FL_REAL("pool3d_max", max_by_rows, "xx|zzzzzddddddiiizzzz||abcde,aopqe")
    FL_REAL("pool3d_max_grad", max_grad_by_rows, "xxxx|zzzzzddddddiiizzzz||abcde,aopqe,aopqe,abcde")
    FL_REAL("pool3d_avg", avg_by_rows, "xx|zzzzzddddddiiizzzz||abcde,aopqe")
    FL_REAL("pool3d_avg_grad", avg_grad_by_rows, "xx|zzzzzddddddiiizzzz||aopqe,abcde")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
