/* Images of another size: one axis after the other is made of taps, old elements and how much they count, by the nearest, by two
 * or, cubic, by four. */
#ifndef FL_NS

#include <algorithm>
#include <atomic>

#include "kernels/common.h"
#include "kernels/topics.h"
#include "parallel.h"
#include "workspace.h"

#define FL_SELF "kernels/resize.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_resize = FL_TOPIC(resize_table);

#else

namespace fl::FL_NS {
namespace {

constexpr int most_axes = 3, most_taps = 4;
enum Method { nearest, linear, cubic };

struct Resize {
    int method;
    bool corners, centred; /* whether corners stay where they are; whether elements stand in the middle of their share */
    int64_t images, inner;
    int axes;
    const int64_t *old_sizes, *new_sizes;

    explicit Resize(const fl_call *call)
        : method(static_cast<int>(call->i[0])), corners(call->i[1] != 0), centred(call->i[2] != 0), images(call->i[3]),
          inner(call->i[4]), axes(static_cast<int>(call->i[5])), old_sizes(call->i + 6), new_sizes(old_sizes + axes) {}

    int taps() const { return method == nearest ? 1 : method == linear ? 2 : 4; }

    static int64_t elements(const int64_t *sizes, int axes, int64_t inner) {
        for (int k = 0; k < axes; ++k) inner *= sizes[k];
        return inner;
    }
    int64_t old_elements() const { return elements(old_sizes, axes, inner); }
    int64_t new_elements() const { return elements(new_sizes, axes, inner); }

    /* What an image takes at most between two axes. */
    int64_t between() const {
        int64_t most = 0;
        for (int k = 1; k < axes; ++k) {
            const int64_t mixed = elements(old_sizes + k, axes - k, elements(new_sizes, k, inner));
            const int64_t other = elements(new_sizes + k, axes - k, elements(old_sizes, k, inner));
            most = std::max({most, mixed, other});
        }
        return most;
    }

    float ratio(int axis) const {
        const int64_t n = old_sizes[axis], m = new_sizes[axis];
        if (m <= 1) return 0;
        return corners ? static_cast<float>(n - 1) / static_cast<float>(m - 1) : static_cast<float>(n) / static_cast<float>(m);
    }
};

double cubic_share(double x) {
    constexpr double slope = -0.75; /* of the cubic's outer parts (Keys 1981) */
    x = std::fabs(x);
    if (x <= 1) return ((slope + 2) * x - (slope + 3)) * x * x + 1;
    return x < 2 ? ((slope * x - 5 * slope) * x + 8 * slope) * x - 4 * slope : 0;
}

/* The taps of element `k` of the axis: where they stand, and how much they count. */
template <class T> void taps_of(const Resize &r, int axis, int64_t k, int64_t *places, T *shares) {
    const int64_t last = r.old_sizes[axis] - 1;
    const float ratio = r.ratio(axis), at = ratio * static_cast<float>(k);
    if (r.method == nearest) {
        places[0] = std::min(static_cast<int64_t>(at + (r.corners ? 0.5f : 0.0f)), last);
        shares[0] = 1;
        return;
    }
    const double wide = static_cast<double>(ratio), step = static_cast<double>(k);
    if (r.method == cubic) {
        const double exact = r.corners ? wide * step : wide * (step + 0.5) - 0.5, first = std::floor(exact);
        for (int t = 0; t < most_taps; ++t) {
            places[t] = std::clamp(static_cast<int64_t>(first) + t - 1, int64_t(0), last);
            shares[t] = static_cast<T>(cubic_share(exact - first - (t - 1)));
        }
        return;
    }
    const double exact = r.centred && !r.corners ? std::max(wide * (step + 0.5) - 0.5, 0.0) : static_cast<double>(at);
    places[0] = std::min(static_cast<int64_t>(exact), last);
    places[1] = std::min(places[0] + 1, last);
    const double share = exact - static_cast<double>(places[0]);
    shares[0] = static_cast<T>(1 - share);
    shares[1] = static_cast<T>(share);
}

/* All taps of all axes, in memory of the calling thread that holds until another kernel asks for it. */
template <class T> struct Taps {
    const int64_t *places[most_axes];
    const T *shares[most_axes];
    T *buffers[2];

    static size_t bytes(const Resize &r) {
        int64_t count = 0;
        for (int k = 0; k < r.axes; ++k) count += r.new_sizes[k] * r.taps() + 1;
        return static_cast<size_t>(count) * (sizeof(int64_t) + sizeof(T)) + 2 * static_cast<size_t>(r.between()) * sizeof(T);
    }

    explicit Taps(const Resize &r) {
        char *memory = Workspace<>::of_this_thread(bytes(r));
        for (int axis = 0; axis < r.axes; ++axis) {
            const int64_t count = r.new_sizes[axis] * r.taps();
            int64_t *at = reinterpret_cast<int64_t *>(memory);
            T *much = reinterpret_cast<T *>(at + count);
            /* Places of the next axis stay aligned: there is an even number of shares of four bytes, or they have eight. */
            memory += count * static_cast<int64_t>(sizeof(int64_t)) + (count + count % 2) * static_cast<int64_t>(sizeof(T));
            for (int64_t k = 0; k < r.new_sizes[axis]; ++k) taps_of(r, axis, k, at + k * r.taps(), much + k * r.taps());
            places[axis] = at;
            shares[axis] = much;
        }
        buffers[0] = reinterpret_cast<T *>(memory);
        buffers[1] = buffers[0] + r.between();
    }
};

/* An axis of n elements, of `before` times as many rows of `width`, made of its taps. */
template <int TAPS, class T>
void along(const T *x, T *out, int64_t before, int64_t n, int64_t m, int64_t width, const int64_t *places, const T *shares) {
    for (int64_t b = 0; b < before; ++b, x += n * width) {
        if (width == 1) {
            for (int64_t k = 0; k < m; ++k) {
                T sum = x[places[k * TAPS]] * shares[k * TAPS];
                for (int t = 1; t < TAPS; ++t) sum += x[places[k * TAPS + t]] * shares[k * TAPS + t];
                *out++ = sum;
            }
            continue;
        }
        for (int64_t k = 0; k < m; ++k, out += width) {
            const T *rows[TAPS];
            T much[TAPS];
            for (int t = 0; t < TAPS; ++t) {
                rows[t] = x + places[k * TAPS + t] * width;
                much[t] = shares[k * TAPS + t];
            }
            FL_LOOP
            for (int64_t c = 0; c < width; ++c) {
                T sum = rows[0][c] * much[0];
                for (int t = 1; t < TAPS; ++t) sum += rows[t][c] * much[t];
                out[c] = sum;
            }
        }
    }
}

/* The other way round: what new elements are given goes to their taps. */
template <int TAPS, class T>
void along_grad(const T *g, T *dx, int64_t before, int64_t n, int64_t m, int64_t width, const int64_t *places, const T *shares) {
    for (int64_t k = 0; k < before * n * width; ++k) dx[k] = 0;
    for (int64_t b = 0; b < before; ++b, dx += n * width) {
        for (int64_t k = 0; k < m; ++k, g += width) {
            for (int t = 0; t < TAPS; ++t) {
                T *to = dx + places[k * TAPS + t] * width;
                const T share = shares[k * TAPS + t];
                FL_LOOP
                for (int64_t c = 0; c < width; ++c) to[c] += g[c] * share;
            }
        }
    }
}

template <int TAPS, bool BACK, class T> void resize_images(const Resize &r, const T *x, T *out, int64_t begin, int64_t end) {
    const Taps<T> taps(r);
    const int64_t *from = BACK ? r.new_sizes : r.old_sizes, *to = BACK ? r.old_sizes : r.new_sizes;
    const int64_t taken = Resize::elements(from, r.axes, r.inner), made = Resize::elements(to, r.axes, r.inner);
    for (int64_t image = begin; image < end; ++image) {
        const T *source = x + image * taken;
        int64_t before = 1, width = taken;
        for (int axis = 0; axis < r.axes; ++axis) {
            T *target = axis + 1 == r.axes ? out + image * made : taps.buffers[axis % 2];
            width /= from[axis];
            (BACK ? along_grad<TAPS, T> : along<TAPS, T>)(source, target, before, r.old_sizes[axis], r.new_sizes[axis], width,
                                                         taps.places[axis], taps.shares[axis]);
            before *= to[axis];
            source = target;
        }
    }
}

template <bool BACK, class T> int resize_by(fl_call *call) {
    const Resize r(call);
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    if (r.axes > most_axes) {
        call->err[0] = r.axes;
        call->err[1] = most_axes;
        return FL_TOO_LARGE;
    }
    if (r.images == 0 || r.old_elements() == 0 || r.new_elements() == 0) return FL_OK;
    const auto run = r.method == nearest  ? resize_images<1, BACK, T>
                     : r.method == linear ? resize_images<2, BACK, T>
                                          : resize_images<4, BACK, T>;
    std::atomic<bool> failed{false};
    in_ranges(r.images, (r.old_elements() + r.new_elements()) * static_cast<int64_t>(sizeof(T)), [&](int64_t begin, int64_t end) {
        try {
            run(r, x, out, begin, end);
        } catch (const std::bad_alloc &) {
            failed.store(true);
        }
    });
    if (!failed.load()) return FL_OK;
    call->err[0] = static_cast<int64_t>(Taps<T>::bytes(r));
    return FL_NO_MEMORY;
}

template <class T> constexpr fl_kernel resize = resize_by<false, T>;
template <class T> constexpr fl_kernel resize_grad = resize_by<true, T>;

}  // namespace

extern const fl_entry resize_table[] = {
    FL_REAL("resize", resize, "xx|iiizzr(dd)||?")
    FL_REAL("resize_grad", resize_grad, "xx|iiizzr(dd)||?")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
