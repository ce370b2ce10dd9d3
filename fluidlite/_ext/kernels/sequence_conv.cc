/* Convolutions over the rows of sequences, and their gradients. */
#ifndef FL_NS

#include <algorithm>

#include "kernels/topics.h"
#include "parallel.h"

#define FL_WIDE
#define FL_SELF "kernels/sequence_conv.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_sequence_conv = FL_TOPIC(sequence_conv_table);

#else

#include "kernels/short_windows.h"

namespace fl::FL_NS {
namespace {

/* Goes through rows [first, first + count), and tells for each which part of its window of `length` rows, the first of
 * which is the row itself plus `start`, lies in its sequence: rows [low, high) of X, the first of them at place low - from
 * of the window. `sequence` is that of row `first` or an earlier one. */
template <class Act>
FL_INLINE void each_window(const int64_t *offsets, int64_t &sequence, int64_t first, int64_t count, int64_t start,
                           int64_t length, Act act) {
    for (int64_t r = first; r < first + count; ++r) {
        while (offsets[sequence + 1] <= r) ++sequence;
        const int64_t from = r + start, begin = offsets[sequence], end = offsets[sequence + 1];
        const int64_t low = from < begin ? begin : from > end ? end : from;
        const int64_t high = from + length > end ? end : from + length < low ? low : from + length;
        act(r - first, low, high, low - from);
    }
}

/* ints: sequences, rows, width, columns of the filter, start and length of the window. Windows are laid side by side for
 * so many rows at a time that they stay in the second cache, but not for so few that the product is slow. */
template <class T> struct SequenceConvolution {
    const int64_t *offsets;
    int64_t rows, width, columns, start, length, inner, most;
    T *windows;

    SequenceConvolution(fl_call *call, const int64_t *given) : offsets(given) {
        const int64_t *i = call->i;
        rows = i[1], width = i[2], columns = i[3], start = i[4], length = i[5];
        inner = length * width;
        most = (int64_t{1} << 19) / static_cast<int64_t>(sizeof(T)) / (inner > 0 ? inner : 1);
        most = most < 128 ? 128 : most;
        most = most > rows ? rows : most;
        windows = static_cast<T *>(scratch(call, bytes()));
    }

    int64_t bytes() const { return most * inner * static_cast<int64_t>(sizeof(T)); }

    void gather(const T *x, int64_t &sequence, int64_t first, int64_t count) const {
        each_window(offsets, sequence, first, count, start, length,
                    [&](int64_t r, int64_t low, int64_t high, int64_t place) {
                        T *window = windows + r * inner;
                        const int64_t n = (high - low) * width;
                        const int64_t before = n == 0 ? inner : place * width;
                        const T *from = x + low * width;
                        for (int64_t k = 0; k < before; ++k) window[k] = 0;
                        for (int64_t k = 0; k < n; ++k) window[before + k] = from[k];
                        for (int64_t k = before + n; k < inner; ++k) window[k] = 0;
                    });
    }

    void scatter(T *dx, int64_t &sequence, int64_t first, int64_t count) const {
        each_window(offsets, sequence, first, count, start, length,
                    [&](int64_t r, int64_t low, int64_t high, int64_t place) {
                        if (low == high) return;
                        const T *window = windows + r * inner + place * width;
                        T *to = dx + low * width;
                        for (int64_t k = 0; k < (high - low) * width; ++k) to[k] += window[k];
                    });
    }
};

/* Calls f with the convolution of a call if its windows are for `ShortWindows`; whether they are. */
template <class T, class F> bool in_short_windows([[maybe_unused]] fl_call *call, [[maybe_unused]] int &code, [[maybe_unused]] const F &f) {
    if constexpr (std::is_same<T, float>::value && vector_bytes > 16) {
        const int64_t *i = call->i;
        if (!is_for_short_windows(i[1], i[2], i[3], i[5])) return false;
        const auto run = [&](auto windows) {
            code = windows.begin(call);
            if (code == FL_OK) f(windows);
        };
        if (i[5] == 3) {
            run(ShortWindows<Short<3>>(offsets_at(call, 1), i[0], i[2], i[3], i[4]));
        } else {
            run(ShortWindows<Short<4>>(offsets_at(call, 1), i[0], i[2], i[3], i[4]));
        }
        return true;
    }
    return false;
}

template <class T> int sequence_conv(fl_call *call) {
    int code = FL_OK;
    if (in_short_windows<T>(call, code, [call](auto &windows) { windows.forward(at<float>(call, 0), at<float>(call, 2), at<float>(call, 3)); })) {
        return code;
    }
    const SequenceConvolution<T> conv(call, offsets_at(call, 1));
    if (conv.windows == nullptr) return no_memory(call, conv.bytes());
    int64_t sequence = 0;
    for (int64_t first = 0; first < conv.rows && conv.columns > 0; first += conv.most) {
        const int64_t count = conv.rows - first < conv.most ? conv.rows - first : conv.most;
        conv.gather(at<T>(call, 0), sequence, first, count);
        const Product<T> g = {count, conv.columns, conv.inner, false, false, T(1), T(0), conv.windows, at<T>(call, 2),
                              at<T>(call, 3) + first * conv.columns};
        if (const int code = multiply(call, g)) return code;
    }
    return FL_OK;
}

template <class T> int sequence_conv_grad(fl_call *call) {
    int code = FL_OK;
    const auto backward = [call](auto &windows) {
        windows.backward(at<float>(call, 0), at<float>(call, 2), at<float>(call, 3), at<float>(call, 4), at<float>(call, 5), call->i[1]);
    };
    if (in_short_windows<T>(call, code, backward)) return code;
    const SequenceConvolution<T> conv(call, offsets_at(call, 1));
    if (conv.windows == nullptr) return no_memory(call, conv.bytes());
    T *dx = at<T>(call, 4), *dfilter = at<T>(call, 5);
    if (dx != nullptr) {
        for (int64_t k = 0; k < conv.rows * conv.width; ++k) dx[k] = 0;
    }
    if (dfilter != nullptr && conv.rows == 0) {
        for (int64_t k = 0; k < conv.inner * conv.columns; ++k) dfilter[k] = 0;
    }
    if (conv.inner == 0 || conv.columns == 0) return FL_OK;
    int64_t sequence = 0;
    for (int64_t first = 0; first < conv.rows; first += conv.most) {
        const int64_t count = conv.rows - first < conv.most ? conv.rows - first : conv.most;
        const T *g = at<T>(call, 3) + first * conv.columns;
        int64_t again = sequence;
        if (dfilter != nullptr) {
            conv.gather(at<T>(call, 0), sequence, first, count);
            const Product<T> p = {conv.inner, conv.columns, count, true, false, T(1), T(first > 0), conv.windows, g, dfilter};
            if (const int code = multiply(call, p)) return code;
        }
        if (dx != nullptr) {
            const Product<T> p = {count, conv.inner, conv.columns, false, true, T(1), T(0), g, at<T>(call, 2), conv.windows};
            if (const int code = multiply(call, p)) return code;
            conv.scatter(dx, again, first, count);
            sequence = again;
        }
    }
    return FL_OK;
}

/* The sequences of row_conv: those at offsets, or without any of them n of the same length. */
struct Spans {
    const int64_t *offsets;
    int64_t n, length;

    explicit Spans(const fl_call *call)
        : offsets(offsets_at(call, 1)), n(call->i[0]), length(n > 0 ? call->i[1] / n : 0) {}

    FL_INLINE int64_t begin(int64_t s) const { return offsets == nullptr ? s * length : offsets[s]; }
};

/* ints: sequences, rows, width, rows of the filter. */
template <class T> int row_conv(fl_call *call) {
    const T *x = at<T>(call, 0), *filter = at<T>(call, 2);
    T *FL_RESTRICT out = at<T>(call, 3);
    const Spans spans(call);
    const int64_t width = call->i[2], steps = call->i[3];
    for (int64_t s = 0; s < spans.n; ++s) {
        const int64_t end = spans.begin(s + 1);
        for (int64_t r = spans.begin(s); r < end; ++r, out += width) {
            const int64_t count = steps < end - r ? steps : end - r;
            for (int64_t q = 0; q < width; ++q) out[q] = 0;
            for (int64_t k = 0; k < count; ++k) {
                const T *row = x + (r + k) * width, *weights = filter + k * width;
                for (int64_t q = 0; q < width; ++q) out[q] += weights[q] * row[q];
            }
        }
    }
    return FL_OK;
}

constexpr int64_t strip = 32; /* columns of the filter's gradient summed up side by side */

template <class T> FL_INLINE void filter_columns(const T *x, const T *g, const Spans &spans, int64_t k, int64_t width,
                                                 int64_t count, T *out) {
    double sum[strip] = {};
    for (int64_t s = 0; s < spans.n; ++s) {
        const int64_t end = spans.begin(s + 1);
        for (int64_t r = spans.begin(s); r + k < end; ++r) {
            const T *row = x + (r + k) * width, *to = g + r * width;
            for (int64_t t = 0; t < count; ++t) sum[t] += static_cast<double>(row[t]) * static_cast<double>(to[t]);
        }
    }
    for (int64_t t = 0; t < count; ++t) out[t] = static_cast<T>(sum[t]);
}

template <class T> int row_conv_grad(fl_call *call) {
    const T *x = at<T>(call, 0), *filter = at<T>(call, 2), *g = at<T>(call, 3);
    T *FL_RESTRICT dx = at<T>(call, 4);
    T *FL_RESTRICT dfilter = at<T>(call, 5);
    const Spans spans(call);
    const int64_t width = call->i[2], steps = call->i[3];
    for (int64_t s = 0; s < spans.n && dx != nullptr; ++s) {
        const int64_t begin = spans.begin(s), end = spans.begin(s + 1);
        for (int64_t r = begin; r < end; ++r, dx += width) {
            const int64_t count = steps < r - begin + 1 ? steps : r - begin + 1;
            for (int64_t q = 0; q < width; ++q) dx[q] = 0;
            for (int64_t k = 0; k < count; ++k) {
                const T *row = g + (r - k) * width, *weights = filter + k * width;
                for (int64_t q = 0; q < width; ++q) dx[q] += weights[q] * row[q];
            }
        }
    }
    for (int64_t k = 0; k < steps && dfilter != nullptr; ++k, dfilter += width) {
        int64_t first = 0;
        for (; first + strip <= width; first += strip) {
            filter_columns(x + first, g + first, spans, k, width, strip, dfilter + first);
        }
        if (first < width) filter_columns(x + first, g + first, spans, k, width, width - first, dfilter + first);
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry sequence_conv_table[] = {
    FL_REAL("sequence_conv", sequence_conv, "xxxx|zzzziz||bc,a+L,fcd,bd")
    FL_REAL("sequence_conv_grad", sequence_conv_grad, "xxxxnn|zzzziz||bc,a+L,fcd,bd,bc,fcd")
    FL_REAL("row_conv", row_conv, "xnxx|zzzz||bc,a+L,cd,bc")
    FL_REAL("row_conv_grad", row_conv_grad, "xnxxnn|zzzz||bc,a+L,cd,bc,bc,cd")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
