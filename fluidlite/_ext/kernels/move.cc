/* Kernels that move elements without looking at them: concat, split, transpose, slice, expand. */
#include "kernels/topics.h"
#include "parallel.h"

namespace fl {
namespace {

constexpr int max_rank = FL_MAX_RANK;

int concat(fl_call *call) {
    const int count = call->n_p - 1;
    char *out = at<char>(call, count);
    const int64_t pre = call->i[0], *bytes = call->i + 1;
    for (int64_t p = 0; p < pre; ++p) {
        for (int k = 0; k < count; ++k) {
            if (bytes[k] == 0) continue;
            std::memcpy(out, at<char>(call, k) + p * bytes[k], static_cast<size_t>(bytes[k]));
            out += bytes[k];
        }
    }
    return FL_OK;
}

int split(fl_call *call) {
    const int count = call->n_p - 1;
    const char *x = at<char>(call, 0);
    const int64_t pre = call->i[0], *bytes = call->i + 1;
    for (int64_t p = 0; p < pre; ++p) {
        for (int k = 0; k < count; ++k) {
            char *out = at<char>(call, k + 1);
            if (out != nullptr && bytes[k] != 0) std::memcpy(out + p * bytes[k], x, static_cast<size_t>(bytes[k]));
            x += bytes[k];
        }
    }
    return FL_OK;
}

/* Walks an n-dimensional box whose last axis is handled as a row: `row(a, b)` gets element offsets into two arrays. */
struct Box {
    int rank = 0;
    int64_t size[max_rank], a[max_rank], b[max_rank]; /* sizes and element strides in both arrays */

    void push(int64_t n, int64_t stride_a, int64_t stride_b) {
        size[rank] = n;
        a[rank] = stride_a;
        b[rank] = stride_b;
        ++rank;
    }

    template <class Row> void walk(const Row &row) const {
        for (int axis = 0; axis < rank; ++axis) {
            if (size[axis] == 0) return;
        }
        int64_t index[max_rank] = {}, from = 0, to = 0;
        while (true) {
            row(from, to);
            int axis = rank - 2;
            for (; axis >= 0; --axis) {
                from += a[axis];
                to += b[axis];
                if (++index[axis] < size[axis]) break;
                from -= a[axis] * size[axis];
                to -= b[axis] * size[axis];
                index[axis] = 0;
            }
            if (axis < 0) return;
        }
    }
};

/* A plain matrix is transposed in square tiles, so that both sides stay within a few cache lines. */
template <class T> void transpose_matrix(const T *x, T *out, int64_t rows, int64_t columns) {
    constexpr int64_t tile = 16;
    for (int64_t r0 = 0; r0 < rows; r0 += tile) {
        const int64_t r1 = r0 + tile < rows ? r0 + tile : rows;
        for (int64_t c0 = 0; c0 < columns; c0 += tile) {
            const int64_t c1 = c0 + tile < columns ? c0 + tile : columns;
            for (int64_t c = c0; c < c1; ++c) {
                for (int64_t r = r0; r < r1; ++r) out[c * rows + r] = x[r * columns + c];
            }
        }
    }
}

template <class T> void transpose_typed(const T *x, T *out, int rank, const int64_t *shape, const int64_t *perm) {
    int64_t stride[max_rank];
    int64_t total = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
        stride[axis] = total;
        total *= shape[axis];
    }
    if (total == 0) return;
    /* Output axes that follow each other in the input too are merged; axes of one element vanish. */
    int64_t size[max_rank], from[max_rank];
    int merged = 0;
    for (int k = 0; k < rank; ++k) {
        const int64_t n = shape[perm[k]], s = stride[perm[k]];
        if (n == 1) continue;
        if (merged > 0 && from[merged - 1] == n * s) {
            size[merged - 1] *= n;
            from[merged - 1] = s;
        } else {
            size[merged] = n;
            from[merged++] = s;
        }
    }
    if (merged <= 1) {
        std::memcpy(out, x, static_cast<size_t>(total) * sizeof(T));
        return;
    }
    int64_t out_stride[max_rank], to = 1;
    for (int k = merged - 1; k >= 0; --k) {
        out_stride[k] = to;
        to *= size[k];
    }
    /* [.., columns, rows] out of [.., rows, columns]: one matrix after the other. */
    const bool in_matrices = from[merged - 1] == size[merged - 2] && from[merged - 2] == 1;
    const int64_t n = size[merged - 1], columns = size[merged - 2], s = from[merged - 1];
    const auto part = [&](int64_t begin, int64_t end) {
        Box box;
        const int axes = in_matrices ? merged - 2 : merged;
        for (int k = 0; k < axes; ++k) box.push(k == 0 ? end - begin : size[k], from[k], out_stride[k]);
        if (in_matrices) box.push(1, 0, 0);
        box.walk([&](int64_t at_x, int64_t at_out) {
            const T *const a = x + begin * from[0] + at_x;
            T *const b = out + begin * out_stride[0] + at_out;
            if (in_matrices) {
                transpose_matrix(a, b, n, columns);
            } else if (s == 1) {
                std::memcpy(b, a, static_cast<size_t>(n) * sizeof(T));
            } else {
                for (int64_t j = 0; j < n; ++j) b[j] = a[j * s];
            }
        });
    };
    if (in_matrices && merged == 2) return part(0, 0);
    in_ranges(size[0], 2 * out_stride[0] * static_cast<int64_t>(sizeof(T)), part);
}

int transpose(fl_call *call) {
    const int64_t itemsize = call->i[0];
    const int rank = static_cast<int>(call->i[1]);
    const int64_t *shape = call->i + 2, *perm = shape + rank;
    unsigned seen = 0;
    for (int k = 0; k < rank; ++k) {
        if (perm[k] >= rank || (seen >> perm[k] & 1u) != 0) return out_of_range(call, perm[k], k, rank);
        seen |= 1u << perm[k];
    }
    switch (itemsize) {
        case 1: transpose_typed(at<uint8_t>(call, 0), at<uint8_t>(call, 1), rank, shape, perm); break;
        case 2: transpose_typed(at<uint16_t>(call, 0), at<uint16_t>(call, 1), rank, shape, perm); break;
        case 4: transpose_typed(at<uint32_t>(call, 0), at<uint32_t>(call, 1), rank, shape, perm); break;
        default: transpose_typed(at<uint64_t>(call, 0), at<uint64_t>(call, 1), rank, shape, perm);
    }
    return FL_OK;
}

/* The box of a slice: `a` walks the whole array from the first element of the slice, `b` the slice. */
struct Slice {
    Box box;
    int64_t first = 0, row = 1, whole = 1; /* offset of the first element, length of a row, size of the whole array */

    explicit Slice(const fl_call *call) {
        const int rank = static_cast<int>(call->i[1]);
        const int64_t *shape = call->i + 2, *start = shape + rank, *end = start + rank;
        int64_t a[max_rank], b[max_rank], part = 1;
        for (int k = rank - 1; k >= 0; --k) {
            a[k] = whole;
            b[k] = part;
            first += start[k] * whole;
            whole *= shape[k];
            part *= end[k] - start[k];
        }
        for (int k = 0; k < rank; ++k) box.push(end[k] - start[k], a[k], b[k]);
        if (rank == 0) {
            box.push(1, 1, 1);
        } else {
            row = end[rank - 1] - start[rank - 1];
        }
    }
};

/* Whether every slice is within its axis. */
int check_slices(fl_call *call) {
    const int64_t rank = call->i[1], *shape = call->i + 2, *start = shape + rank, *end = start + rank;
    for (int64_t k = 0; k < rank; ++k) {
        if (end[k] > shape[k]) return out_of_range(call, end[k], k, shape[k] + 1);
        if (start[k] > end[k]) return out_of_range(call, start[k], k, end[k] + 1);
    }
    return FL_OK;
}

int slice(fl_call *call) {
    const int64_t itemsize = call->i[0];
    if (const int code = check_slices(call)) return code;
    const Slice part(call);
    const char *x = at<char>(call, 0) + part.first * itemsize;
    char *out = at<char>(call, 1);
    part.box.walk([&](int64_t a, int64_t b) {
        std::memcpy(out + b * itemsize, x + a * itemsize, static_cast<size_t>(part.row * itemsize));
    });
    return FL_OK;
}

int slice_grad(fl_call *call) {
    const int64_t itemsize = call->i[0];
    if (const int code = check_slices(call)) return code;
    const Slice part(call);
    const char *g = at<char>(call, 0);
    char *dx = at<char>(call, 1);
    if (part.whole > 0) std::memset(dx, 0, static_cast<size_t>(part.whole * itemsize));
    dx += part.first * itemsize;
    part.box.walk([&](int64_t a, int64_t b) {
        std::memcpy(dx + a * itemsize, g + b * itemsize, static_cast<size_t>(part.row * itemsize));
    });
    return FL_OK;
}

/* Where a slice is by the numbers in the first operand, those where it starts and those where it ends, as Fluid understands
 * them. ints: for each axis its length, and which of the numbers are meant, counted from 1: twice that, and 1 more where the
 * axis is dropped (from -1 to 0 is its last place there); 0 for all of the axis. The second operand: how long the slice is on
 * each axis, 0 if nothing is left, then where it starts. */
template <class Index> int slice_find(fl_call *call) {
    const int64_t rank = call->i[0], *shape = call->i + 1, *which = shape + rank;
    const Index *numbers = at<Index>(call, 0);
    int64_t *length = at<int64_t>(call, 1), *first = length + rank;
    int64_t count = 0;
    for (int64_t k = 0; k < rank; ++k) count = std::max(count, which[k] / 2);
    for (int64_t k = 0; k < rank; ++k) {
        int64_t start = 0, end = shape[k];
        if (which[k] != 0) {
            const int64_t place = which[k] / 2 - 1;
            start = static_cast<int64_t>(numbers[place]);
            end = static_cast<int64_t>(numbers[count + place]);
            if (which[k] % 2 == 1 && start == -1 && end == 0) end = shape[k];
            start = std::max<int64_t>(start < 0 ? start + shape[k] : start, 0);
            end = std::min(std::max<int64_t>(end < 0 ? end + shape[k] : end, 0), shape[k]);
        }
        length[k] = std::max<int64_t>(end - start, 0);
        first[k] = std::min(start, shape[k]);
    }
    return FL_OK;
}

/* ints: bytes of an element, rank, then for each axis the length of the whole and that of the slice, which has to be as
 * `slice_find` has it in `place`. Calls copy(whole offset, slice offset, bytes) for each row of the slice. */
template <class Copy> int found_slice(fl_call *call, const int64_t *place, const Copy &copy) {
    const int64_t itemsize = call->i[0], rank = call->i[1], *shape = call->i + 2, *length = shape + rank;
    int64_t numbers[2 + 3 * max_rank] = {itemsize, rank};
    for (int64_t k = 0; k < rank; ++k) {
        const int64_t start = place[rank + k];
        if (place[k] != length[k]) return out_of_range(call, place[k], k, length[k] + 1);
        if (start < 0 || start > shape[k] - length[k]) return out_of_range(call, start, k, shape[k] - length[k] + 1);
        numbers[2 + k] = shape[k];
        numbers[2 + rank + k] = start;
        numbers[2 + 2 * rank + k] = start + length[k];
    }
    fl_call whole = *call;
    whole.i = numbers;
    copy(Slice(&whole));
    return FL_OK;
}

int slice_at(fl_call *call) {
    const int64_t itemsize = call->i[0];
    const char *x = at<char>(call, 0);
    char *out = at<char>(call, 2);
    return found_slice(call, at<int64_t>(call, 1), [&](const Slice &part) {
        part.box.walk([&](int64_t a, int64_t b) {
            std::memcpy(out + b * itemsize, x + (part.first + a) * itemsize, static_cast<size_t>(part.row * itemsize));
        });
    });
}

int slice_at_grad(fl_call *call) {
    const int64_t itemsize = call->i[0];
    const char *g = at<char>(call, 0);
    char *dx = at<char>(call, 2);
    return found_slice(call, at<int64_t>(call, 1), [&](const Slice &part) {
        if (part.whole > 0) std::memset(dx, 0, static_cast<size_t>(part.whole * itemsize));
        part.box.walk([&](int64_t a, int64_t b) {
            std::memcpy(dx + (part.first + a) * itemsize, g + b * itemsize, static_cast<size_t>(part.row * itemsize));
        });
    });
}

/* Calls row(x offset, out offset, length, times) for every row of x, repeated so often; x stands still along an axis that
 * repeats it. */
template <class Row> void walk_expanded(int rank, const int64_t *shape, const int64_t *times, const Row &row) {
    int64_t index[max_rank] = {};
    int64_t rows = 1;
    for (int k = 0; k < rank; ++k) {
        if (shape[k] == 0 || times[k] == 0) return;
        if (k < rank - 1) rows *= shape[k] * times[k];
    }
    const int64_t length = rank > 0 ? shape[rank - 1] : 1, repeat = rank > 0 ? times[rank - 1] : 1;
    int64_t out = 0;
    for (int64_t r = 0; r < rows; ++r) {
        int64_t x = 0;
        for (int k = 0; k < rank - 1; ++k) x = x * shape[k] + index[k] % shape[k];
        row(x * length, out, length, repeat);
        out += length * repeat;
        for (int k = rank - 2; k >= 0; --k) {
            if (++index[k] < shape[k] * times[k]) break;
            index[k] = 0;
        }
    }
}

/* Writes `bytes` bytes `times` times, one behind the other: what is there already is copied at once. */
void repeat_bytes(char *out, const char *x, int64_t bytes, int64_t times) {
    const int64_t whole = bytes * times;
    std::memcpy(out, x, static_cast<size_t>(bytes));
    for (int64_t done = bytes; done < whole;) {
        const int64_t next = done < whole - done ? done : whole - done;
        std::memcpy(out + done, out, static_cast<size_t>(next));
        done += next;
    }
}

int expand(fl_call *call) {
    const int64_t itemsize = call->i[0];
    const int rank = static_cast<int>(call->i[1]);
    const char *x = at<char>(call, 0);
    char *out = at<char>(call, 1);
    walk_expanded(rank, call->i + 2, call->i + 2 + rank, [&](int64_t from, int64_t to, int64_t length, int64_t times) {
        repeat_bytes(out + to * itemsize, x + from * itemsize, length * itemsize, times);
    });
    return FL_OK;
}

template <class T> int expand_grad(fl_call *call) {
    const int rank = static_cast<int>(call->i[0]);
    const T *g = at<T>(call, 0);
    T *dx = at<T>(call, 1);
    int64_t total = 1;
    for (int k = 0; k < rank; ++k) total *= call->i[1 + k];
    for (int64_t k = 0; k < total; ++k) dx[k] = 0;
    walk_expanded(rank, call->i + 1, call->i + 1 + rank, [&](int64_t to, int64_t from, int64_t length, int64_t times) {
        for (int64_t t = 0; t < times; ++t, from += length) {
            for (int64_t j = 0; j < length; ++j) dx[to + j] += g[from + j];
        }
    });
    return FL_OK;
}

/* Out, Mask, and arrays of so many bytes, of which Mask says the one that Out is a copy of. */
int choose(fl_call *call) {
    const int64_t place = *at<int32_t>(call, 1), count = call->n_p - 2;
    if (place < 0 || place >= count) return out_of_range(call, place, 0, count);
    if (call->i[0] > 0) std::memcpy(at<char>(call, 0), at<char>(call, static_cast<int>(2 + place)), static_cast<size_t>(call->i[0]));
    return FL_OK;
}

const fl_entry table[] = {
    {"concat", concat, "(x)x|z(z)||?"},
    {"split", split, "x(n)|z(z)||?"},
    {"transpose", transpose, "xx|dr(zz)||?"},
    {"slice", slice, "xx|dr(zzz)||?"},
    {"slice_grad", slice_grad, "xx|dr(zzz)||?"},
    FL_INTEGER("slice_find", slice_find, "xx|r(zz)||?")
    {"slice_at", slice_at, "xxx|dr(zz)||?"},
    {"slice_at_grad", slice_at_grad, "xxx|dr(zz)||?"},
    {"expand", expand, "xx|dr(zz)||?"},
    {"choose", choose, "xx(x)|z||aB,1I,(aB)"},
    FL_REAL("expand_grad", expand_grad, "xx|r(zz)||?")
    {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_move = {table, table, table};

}  // namespace fl
