/* Softmax within sequences, and their rows in another order: reversed, joined, as windows. */
#ifndef FL_NS

#include "kernels/topics.h"
#include "kernels/vec_math.h"

#define FL_SELF "kernels/sequence_rows.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_sequence_rows = FL_TOPIC(sequence_rows_table);

#else

#include "kernels/softmax_row.h"

namespace fl::FL_NS {
namespace {

/* ints: sequences, rows. */
template <class T> int sequence_softmax(fl_call *call) {
    const T *x = at<T>(call, 0);
    const int64_t *offsets = offsets_at(call, 1);
    T *out = at<T>(call, 2);
    for (int64_t s = 0; s < call->i[0]; ++s) {
        softmax_row<false>(x + offsets[s], out + offsets[s], offsets[s + 1] - offsets[s]);
    }
    return FL_OK;
}

template <class T> int sequence_softmax_grad(fl_call *call) {
    const int64_t *offsets = offsets_at(call, 0);
    const T *out = at<T>(call, 1), *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    for (int64_t s = 0; s < call->i[0]; ++s) {
        T dot = 0;
#pragma omp simd reduction(+ : dot)
        for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r) dot += out[r] * g[r];
        FL_LOOP
        for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r) dx[r] = (g[r] - dot) * out[r];
    }
    return FL_OK;
}

template <class T> void mirror(const T *x, T *out, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) out[r] = x[begin + end - 1 - r];
}

/* ints: sequences, rows, bytes of a row. */
int sequence_reverse(fl_call *call) {
    const int64_t *offsets = offsets_at(call, 1);
    const int64_t n = call->i[0], row = call->i[2];
    if (row == 0) return FL_OK;
    for (int64_t s = 0; s < n; ++s) {
        const int64_t begin = offsets[s], end = offsets[s + 1];
        if (row == 4) {
            mirror(at<uint32_t>(call, 0), at<uint32_t>(call, 2), begin, end);
        } else if (row == 8) {
            mirror(at<uint64_t>(call, 0), at<uint64_t>(call, 2), begin, end);
        } else {
            const char *from = at<char>(call, 0) + begin * row;
            char *to = at<char>(call, 2) + end * row;
            for (int64_t r = begin; r < end; ++r, from += row) {
                to -= row;
                std::memcpy(to, from, static_cast<size_t>(row));
            }
        }
    }
    return FL_OK;
}

/* Copies n bytes; n may be 0, and then the addresses NULL. */
FL_INLINE void copy_bytes(char *to, const char *from, int64_t n) {
    if (n > 0) std::memcpy(to, from, static_cast<size_t>(n));
}

/* ints: sequences, bytes of a row, rows of each input. */
int sequence_concat(fl_call *call) {
    const int inputs = (call->n_p - 2) / 2;
    const int64_t n = call->i[0], row = call->i[1];
    char *out = at<char>(call, 2 * inputs);
    int64_t *made = at<int64_t>(call, 2 * inputs + 1);
    made[0] = 0;
    for (int64_t s = 0; s < n; ++s) {
        made[s + 1] = made[s];
        for (int k = 0; k < inputs; ++k) {
            const int64_t *offsets = offsets_at(call, 2 * k + 1);
            const int64_t length = offsets[s + 1] - offsets[s];
            copy_bytes(out, at<char>(call, 2 * k) + offsets[s] * row, length * row);
            out += length * row;
            made[s + 1] += length;
        }
    }
    return FL_OK;
}

int sequence_concat_grad(fl_call *call) {
    const int inputs = (call->n_p - 1) / 2;
    const int64_t n = call->i[0], row = call->i[1];
    const char *g = at<char>(call, 0);
    for (int64_t s = 0; s < n; ++s) {
        for (int k = 0; k < inputs; ++k) {
            const int64_t *offsets = offsets_at(call, 2 * k + 1);
            const int64_t bytes = (offsets[s + 1] - offsets[s]) * row;
            char *dx = at<char>(call, 2 * k + 2);
            if (dx != nullptr) copy_bytes(dx + offsets[s] * row, g, bytes);
            g += bytes;
        }
    }
    return FL_OK;
}

/* ints: sequences, rows, window, what stands beyond the end. */
template <class T> int sequence_enumerate(fl_call *call) {
    const T *x = at<T>(call, 0);
    const int64_t *offsets = offsets_at(call, 1);
    T *out = at<T>(call, 2);
    const int64_t n = call->i[0], window = call->i[2];
    const T pad = static_cast<T>(call->i[3]);
    for (int64_t s = 0; s < n; ++s) {
        for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r, out += window) {
            const int64_t left = offsets[s + 1] - r, count = left < window ? left : window;
            for (int64_t k = 0; k < count; ++k) out[k] = x[r + k];
            for (int64_t k = count; k < window; ++k) out[k] = pad;
        }
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry sequence_rows_table[] = {
    FL_REAL("sequence_softmax", sequence_softmax, "xxx|zz||b,a+L,b")
    FL_REAL("sequence_softmax_grad", sequence_softmax_grad, "xxxx|zz||a+L,b,b,b")
    {"sequence_reverse", sequence_reverse, "xxx|zzz||bc,a+L,bc"},
    {"sequence_concat", sequence_concat, "(xx)xx|zz(z)||?"},
    {"sequence_concat_grad", sequence_concat_grad, "x(xn)|zz(z)||?"},
    FL_INTEGER("sequence_enumerate", sequence_enumerate, "xxx|zzzi||b,a+L,bc")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
