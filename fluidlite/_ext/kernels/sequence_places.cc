/* Rows of sequences repeated, cut out, padded and scattered, and other offsets over the same rows.
 *
 * Offsets are trusted as far as `offsets_at` says. But the last one of a level above others may disagree with the number
 * of sequences below it, and what is data to a program (lengths, positions, ids) may be anything: that is verified before
 * anything is written.
 */
#include <algorithm>

#include "kernels/topics.h"

namespace fl {
namespace {

void copy_bytes(char *to, const char *from, int64_t bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

void clear_bytes(char *to, int64_t bytes) {
    if (bytes > 0) std::memset(to, 0, static_cast<size_t>(bytes));
}

/* ints: sequences, rows of Out, bytes of a row. */
int sequence_expand(fl_call *call) {
    const char *x = at<char>(call, 0);
    const int64_t *offsets = offsets_at(call, 1);
    char *out = at<char>(call, 2);
    const int64_t n = call->i[0], rows = call->i[1], bytes = call->i[2];
    if (offsets[n] != rows) return uneven(call, -1, offsets[n], rows);
    for (int64_t s = 0; s < n; ++s, x += bytes) {
        for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r, out += bytes) copy_bytes(out, x, bytes);
    }
    return FL_OK;
}

constexpr int64_t strip = 32; /* elements summed up side by side */

/* ints: sequences, rows of DOut, rows of X, width. Without offsets every row of X is a sequence. The copies of a sequence
 * stand one after the other. */
template <class T> int sequence_expand_grad(fl_call *call) {
    const T *g = at<T>(call, 0);
    const int64_t *offsets = offsets_at(call, 1), *times = offsets_at(call, 2);
    T *dx = at<T>(call, 3);
    const int64_t n = call->i[0], rows = call->i[1], width = call->i[3];
    const auto length = [&](int64_t s) { return offsets == nullptr ? 1 : offsets[s + 1] - offsets[s]; };
    if (offsets == nullptr && n != call->i[2]) return uneven(call, -1, n, call->i[2]);
    int64_t total = 0;
    for (int64_t s = 0; s < n; ++s) total += length(s) * (times[s + 1] - times[s]);
    if (total != rows) return uneven(call, -1, total, rows);
    for (int64_t s = 0; s < n; ++s) {
        const int64_t size = length(s) * width, copies = times[s + 1] - times[s];
        for (int64_t first = 0; first < size; first += strip) {
            const int64_t count = std::min(strip, size - first);
            double sum[strip] = {};
            for (int64_t t = 0; t < copies; ++t) {
                const T *from = g + t * size + first;
                for (int64_t k = 0; k < count; ++k) sum[k] += from[k];
            }
            for (int64_t k = 0; k < count; ++k) dx[first + k] = static_cast<T>(sum[k]);
        }
        g += copies * size;
        dx += size;
    }
    return FL_OK;
}

/* ints: sequences, rows of DOut, rows of X, bytes of a row. */
int sequence_slice_grad(fl_call *call) {
    const char *g = at<char>(call, 0);
    const int64_t *offsets = offsets_at(call, 1), *begin = at<int64_t>(call, 2), *count = at<int64_t>(call, 3);
    char *dx = at<char>(call, 4);
    const int64_t n = call->i[0], rows = call->i[1], bytes = call->i[3];
    int64_t total = 0;
    for (int64_t s = 0; s < n; ++s) {
        const int64_t length = offsets[s + 1] - offsets[s];
        if (begin[s] < 0 || begin[s] > length) return uneven(call, s, begin[s], length);
        if (count[s] < 0 || count[s] > length - begin[s]) return uneven(call, s, count[s], length - begin[s]);
        total += count[s];
    }
    if (total != rows) return uneven(call, -1, total, rows);
    clear_bytes(dx, call->i[2] * bytes);
    for (int64_t s = 0; s < n; ++s) {
        copy_bytes(dx + (offsets[s] + begin[s]) * bytes, g, count[s] * bytes);
        g += count[s] * bytes;
    }
    return FL_OK;
}

/* ints: sequences, rows of X, padded length, elements of a row, bytes of an element, elements of PadValue (1 or a row's). */
int sequence_pad(fl_call *call) {
    const char *x = at<char>(call, 0), *value = at<char>(call, 2);
    const int64_t *offsets = offsets_at(call, 1);
    char *out = at<char>(call, 3);
    int64_t *lengths = at<int64_t>(call, 4);
    const int64_t n = call->i[0], padded = call->i[2], width = call->i[3], item = call->i[4], row = width * item;
    int64_t longest = 0;
    for (int64_t s = 0; s < n; ++s) longest = std::max(longest, offsets[s + 1] - offsets[s]);
    if (longest > padded) return uneven(call, -1, longest, padded);
    const char *pad = nullptr; /* the first row of padding, which the others are copied from */
    for (int64_t s = 0; s < n; ++s) {
        lengths[s] = offsets[s + 1] - offsets[s];
        copy_bytes(out, x, lengths[s] * row);
        x += lengths[s] * row;
        out += lengths[s] * row;
        for (int64_t r = lengths[s]; r < padded; ++r, out += row) {
            if (pad != nullptr) {
                copy_bytes(out, pad, row);
                continue;
            }
            const int64_t step = call->i[5] == width ? item : 0;
            for (int64_t k = 0; k < width; ++k) copy_bytes(out + k * item, value + k * step, item);
            pad = out;
        }
    }
    return FL_OK;
}

/* ints: sequences, rows of X, padded length, bytes of a row. */
int sequence_pad_grad(fl_call *call) {
    const char *g = at<char>(call, 0);
    const int64_t *offsets = offsets_at(call, 1);
    char *dx = at<char>(call, 2);
    const int64_t n = call->i[0], padded = call->i[2], bytes = call->i[3];
    for (int64_t s = 0; s < n; ++s) {
        const int64_t length = offsets[s + 1] - offsets[s];
        if (length > padded) return uneven(call, s, length, padded);
    }
    for (int64_t s = 0; s < n; ++s, g += padded * bytes) {
        copy_bytes(dx + offsets[s] * bytes, g, (offsets[s + 1] - offsets[s]) * bytes);
    }
    return FL_OK;
}

/* ints: sequences, rows of DOut, padded length, bytes of a row. */
int sequence_unpad_grad(fl_call *call) {
    const char *g = at<char>(call, 0);
    const int64_t *lengths = at<int64_t>(call, 1);
    char *dx = at<char>(call, 2);
    const int64_t n = call->i[0], rows = call->i[1], padded = call->i[2], bytes = call->i[3];
    int64_t total = 0;
    for (int64_t s = 0; s < n; ++s) {
        if (lengths[s] < 0 || lengths[s] > padded) return uneven(call, s, lengths[s], padded);
        total += lengths[s];
    }
    if (total != rows) return uneven(call, -1, total, rows);
    for (int64_t s = 0; s < n; ++s, dx += padded * bytes) {
        const int64_t size = lengths[s] * bytes;
        copy_bytes(dx, g, size);
        clear_bytes(dx + size, padded * bytes - size);
        g += size;
    }
    return FL_OK;
}

template <class T, class Length> void fill_mask(const Length *x, T *y, int64_t n, int64_t width) {
    for (int64_t k = 0; k < n; ++k, y += width) {
        const int64_t length = x[k];
        for (int64_t j = 0; j < width; ++j) y[j] = static_cast<T>(j < length);
    }
}

/* ints: lengths, width of the mask, bytes of a length (4 or 8). */
template <class T> int sequence_mask(fl_call *call) {
    const int64_t n = call->i[0], width = call->i[1], bytes = call->i[2];
    if (bytes == 8) {
        fill_mask(at<int64_t>(call, 0), at<T>(call, 1), n, width);
    } else if (bytes == 4) {
        fill_mask(at<int32_t>(call, 0), at<T>(call, 1), n, width);
    } else {
        return too_large(call, bytes, 8);
    }
    return FL_OK;
}

/* Whether all ids are columns, and there is a row for each sequence of them. */
int check_spots(fl_call *call, const int64_t *ids, const int64_t *offsets) {
    const int64_t n = call->i[0], m = call->i[1], rows = call->i[2], width = call->i[3];
    if (n > rows) return uneven(call, -1, n, rows);
    if (offsets[n] != m) return uneven(call, -1, offsets[n], m);
    for (int64_t k = 0; k < m; ++k) {
        if (ids[k] < 0 || ids[k] >= width) return out_of_range(call, ids[k], k, width);
    }
    return FL_OK;
}

/* ints: sequences, ids, rows, width. */
template <class T> int sequence_scatter(fl_call *call) {
    const T *x = at<T>(call, 0), *updates = at<T>(call, 3);
    const int64_t *ids = at<int64_t>(call, 1), *offsets = offsets_at(call, 2);
    T *out = at<T>(call, 4);
    const int64_t n = call->i[0], rows = call->i[2], width = call->i[3];
    if (const int code = check_spots(call, ids, offsets)) return code;
    if (out != x) copy_bytes(at<char>(call, 4), at<char>(call, 0), rows * width * static_cast<int64_t>(sizeof(T)));
    for (int64_t s = 0; s < n; ++s, out += width) {
        for (int64_t k = offsets[s]; k < offsets[s + 1]; ++k) out[ids[k]] = static_cast<T>(out[ids[k]] + updates[k]);
    }
    return FL_OK;
}

/* ints: as above. */
template <class T> int sequence_scatter_grad(fl_call *call) {
    const int64_t *ids = at<int64_t>(call, 0), *offsets = offsets_at(call, 1);
    const T *g = at<T>(call, 2);
    T *dx = at<T>(call, 3), *dupdates = at<T>(call, 4);
    const int64_t n = call->i[0], rows = call->i[2], width = call->i[3];
    if (const int code = check_spots(call, ids, offsets)) return code;
    for (int64_t s = 0; s < n && dupdates != nullptr; ++s) {
        for (int64_t k = offsets[s]; k < offsets[s + 1]; ++k) dupdates[k] = g[s * width + ids[k]];
    }
    if (dx != nullptr && dx != g) {
        copy_bytes(at<char>(call, 3), at<char>(call, 2), rows * width * static_cast<int64_t>(sizeof(T)));
    }
    return FL_OK;
}

/* The offsets after the elements of each sequence went into rows of another width. ints: sequences, width, new width. */
int sequence_reshape(fl_call *call) {
    const int64_t *offsets = offsets_at(call, 0);
    int64_t *out = at<int64_t>(call, 1);
    const int64_t n = call->i[0], width = call->i[1], made = call->i[2];
    for (int64_t s = 0; s < n; ++s) {
        const int64_t elements = (offsets[s + 1] - offsets[s]) * width;
        if (elements % made != 0) return uneven(call, s, elements, made);
    }
    for (int64_t s = 0; s <= n; ++s) out[s] = offsets[s] * width / made;
    return FL_OK;
}

/* Offsets that are data. ints: sequences, rows. */
template <class T> int lod_reset(fl_call *call) {
    const T *y = at<T>(call, 0);
    int64_t *out = at<int64_t>(call, 1);
    const int64_t n = call->i[0], rows = call->i[1];
    for (int64_t s = 0; s <= n; ++s) {
        const bool wrong = (s == 0 ? y[0] != 0 : y[s] < y[s - 1]) || (s == n && y[n] != rows);
        if (wrong) return uneven(call, s, static_cast<int64_t>(y[s]), rows);
    }
    for (int64_t s = 0; s <= n; ++s) out[s] = static_cast<int64_t>(y[s]);
    return FL_OK;
}

/* Rows of two parts in the order that a mask of bytes says. ints: rows, rows of the first part, of the second, bytes of
 * a row. */
int merge_rows(fl_call *call) {
    const char *mask = at<char>(call, 0), *parts[] = {at<char>(call, 2), at<char>(call, 1)};
    char *out = at<char>(call, 3);
    const int64_t n = call->i[0], bytes = call->i[3], first = n - std::count(mask, mask + n, 0);
    if (first != call->i[1]) return uneven(call, 0, call->i[1], first);
    if (n - first != call->i[2]) return uneven(call, 1, call->i[2], n - first);
    for (int64_t r = 0; r < n; ++r, out += bytes) {
        const char *&from = parts[mask[r] != 0];
        copy_bytes(out, from, bytes);
        from += bytes;
    }
    return FL_OK;
}

/* Out: how many bytes of a mask are true, and how many are not. ints: rows. */
int count_rows(fl_call *call) {
    const char *mask = at<char>(call, 0);
    int64_t *out = at<int64_t>(call, 1);
    out[1] = std::count(mask, mask + call->i[0], 0);
    out[0] = call->i[0] - out[1];
    return FL_OK;
}

/* Rows in two parts as a mask of bytes says: the inverse of merge_rows. ints: rows, rows of the first part, of the second,
 * bytes of a row. */
int split_rows(fl_call *call) {
    const char *mask = at<char>(call, 0), *x = at<char>(call, 1);
    char *parts[] = {at<char>(call, 3), at<char>(call, 2)};
    const int64_t n = call->i[0], bytes = call->i[3], first = n - std::count(mask, mask + n, 0);
    if (first != call->i[1]) return uneven(call, 0, call->i[1], first);
    if (n - first != call->i[2]) return uneven(call, 1, call->i[2], n - first);
    for (int64_t r = 0; r < n; ++r, x += bytes) {
        char *&to = parts[mask[r] != 0];
        copy_bytes(to, x, bytes);
        to += bytes;
    }
    return FL_OK;
}

/* Offsets that are known. ints: sequences, the offsets. */
int set_offsets(fl_call *call) {
    int64_t *out = at<int64_t>(call, 0);
    const int64_t n = call->i[0];
    if (call->n_i != n + 2) return uneven(call, -1, call->n_i - 2, n);
    for (int64_t s = 0; s <= n; ++s) out[s] = call->i[1 + s];
    return FL_OK;
}


const fl_entry table[] = {
    {"sequence_expand", sequence_expand, "xxx|zzz||ac,a+L,bc"},
    FL_REAL("sequence_expand_grad", sequence_expand_grad, "xnxx|zzzz||bd,a+L,a+L,cd")
    {"sequence_slice_grad", sequence_slice_grad, "xxxxx|zzzz||bd,a+L,aL,aL,cd"},
    {"sequence_pad", sequence_pad, "xxxxx|zzzzdz||bde,a+L,ef,acde,aL"},
    {"sequence_pad_grad", sequence_pad_grad, "xxx|zzzz||acd,a+L,bd"},
    {"sequence_unpad_grad", sequence_unpad_grad, "xxx|zzzz||bd,aL,acd"},
    FL_NUMBER("sequence_mask", sequence_mask, "xx|zzd||acB,ab")
    {"sequence_mask.u8", sequence_mask<uint8_t>, "xx|zzd||acB,ab"},
    FL_NUMBER("sequence_scatter", sequence_scatter, "xxxxx|zzzz||cd,bL,a+L,b,cd")
    FL_REAL("sequence_scatter_grad", sequence_scatter_grad, "xxxnn|zzzz||bL,a+L,cd,cd,b")
    {"merge_rows", merge_rows, "xxxx|zzzz||a,bd,cd,ad"},
    {"count_rows", count_rows, "xx|z||a,+L"},
    {"split_rows", split_rows, "xxxx|zzzz||a,ad,bd,cd"},
    {"sequence_reshape", sequence_reshape, "xx|zzd||a+L,a+L"},
    FL_INTEGER("lod_reset", lod_reset, "xx|zz||a+,a+L")
    {"set_offsets", set_offsets, "x|z(z)||a+L"},
    {nullptr, nullptr, nullptr}};

#undef FL_WHOLE

}  // namespace

const Topic topic_sequence_places = {table, table, table};

}  // namespace fl
