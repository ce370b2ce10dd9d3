/* SelectedRows: merging rows, tables from them, and updates that touch only the rows named. Rows of -1 hold nothing. */
#ifndef FL_NS

#include "kernels/topics.h"
#include "parallel.h"

#define FL_SELF "kernels/rows.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_rows = FL_TOPIC(rows_table);

#else

namespace fl::FL_NS {
namespace {

/* ints: n, height, width. */
FL_INLINE int check_rows(fl_call *call, const int64_t *rows) {
    const int64_t n = call->i[0], height = call->i[1];
    int64_t smallest = -1, largest = -1;
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) {
        smallest = rows[k] < smallest ? rows[k] : smallest;
        largest = rows[k] > largest ? rows[k] : largest;
    }
    for (int64_t k = 0; (smallest < -1 || largest >= height) && k < n; ++k) {
        if (rows[k] < -1 || rows[k] >= height) return out_of_range(call, rows[k], k, height);
    }
    return FL_OK;
}

constexpr int64_t ahead = 8; /* rows of tables that are asked for before they are read */

/* Asks for the row of a table that comes next but some; rows of several lines the processor foresees from the second on. */
template <class T> FL_INLINE void ask(const T *table, int64_t row, int64_t width) {
    if (row < 0 || width == 0) return;
    const T *const begin = table + row * width;
    __builtin_prefetch(begin, 1);
    __builtin_prefetch(begin + (width < 16 ? width - 1 : 16), 1);
}

/* Adds up the values of equal rows. Where the sum of a row stands is found by hashing, in a table that stays in the second cache for
 * the rows of a batch; `where`, if there is one, has an element for each row of the table and is -1 between runs. */
template <class T> struct Merger {
    int32_t *places = nullptr, *where = nullptr;
    int64_t *rows = nullptr;
    T *values = nullptr;
    int64_t count = 0, slots = 2;
    int shift = 63;

    explicit Merger(int64_t n) {
        for (; slots < 2 * n; slots *= 2) --shift;
    }

    ~Merger() {
        delete[] places;
        delete[] where;
        delete[] rows;
        delete[] values;
    }

    /* The place of a row among those found so far, or where it goes (-1). */
    FL_INLINE int32_t &place_of(int64_t row, const int64_t *found) {
        uint64_t slot = (static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15u) >> shift;
        while (places[slot] >= 0 && found[places[slot]] != row) slot = (slot + 1) & static_cast<uint64_t>(slots - 1);
        return places[slot];
    }

    void run(const int64_t *from, const T *g, int64_t n, int64_t width, int64_t *to, T *sums) {
        count = 0;
        std::fill(places, places + slots, -1);
        for (int64_t k = 0; k < n; ++k, g += width) {
            if (from[k] < 0) continue;
            int32_t &place = place_of(from[k], to);
            if (place < 0) {
                place = static_cast<int32_t>(count);
                to[count] = from[k];
                if (width > 0) std::memcpy(sums + count * width, g, static_cast<size_t>(width) * sizeof(T));
                ++count;
            } else {
                T *sum = sums + place * width;
                FL_LOOP
                for (int64_t j = 0; j < width; ++j) sum[j] += g[j];
            }
        }
    }

    /* Until `forget`, `where` says which of the sums belongs to a row. */
    void remember() {
        for (int64_t k = 0; k < count; ++k) where[rows[k]] = static_cast<int32_t>(k);
    }

    void forget() {
        for (int64_t k = 0; k < count; ++k) where[rows[k]] = -1;
    }
};

template <class T> void free_merger(void *state) { delete static_cast<Merger<T> *>(state); }

/* The state of this call, made at the first run; `scratch`: with memory for the result, `whole`: with `where`. */
template <class T> Merger<T> *merger(fl_call *call, bool scratch, bool whole = false) {
    if (call->state != nullptr) return static_cast<Merger<T> *>(call->state);
    const size_t n = static_cast<size_t>(call->i[0]), height = static_cast<size_t>(call->i[1]);
    const size_t width = static_cast<size_t>(call->i[2]);
    Merger<T> *made = new (std::nothrow) Merger<T>(call->i[0]);
    if (made == nullptr) return nullptr;
    made->places = new (std::nothrow) int32_t[static_cast<size_t>(made->slots)];
    if (whole) made->where = new (std::nothrow) int32_t[height];
    if (scratch) {
        made->rows = new (std::nothrow) int64_t[n];
        made->values = new (std::nothrow) T[n * width];
    }
    if (made->places == nullptr || (whole && made->where == nullptr) ||
        (scratch && (made->rows == nullptr || made->values == nullptr))) {
        delete made;
        return nullptr;
    }
    if (whole) std::fill(made->where, made->where + height, -1);
    call->state = made;
    call->free_state = free_merger<T>;
    return made;
}

/* What an update of a row touches, of which the first line of each table takes longest. */
template <class T> int64_t row_bytes(int64_t width) { return 7 * width * static_cast<int64_t>(sizeof(T)) + 256; }

template <class T> int64_t merger_bytes(const fl_call *call, bool whole = false) {
    return (whole ? call->i[1] * 4 : 0) + call->i[0] * (16 + call->i[2] * static_cast<int64_t>(sizeof(T)));
}

template <class T> int merge_rows(fl_call *call) {
    const int64_t *rows = at<int64_t>(call, 0);
    const T *values = at<T>(call, 1);
    int64_t *out_rows = at<int64_t>(call, 2);
    T *out = at<T>(call, 3);
    const int64_t n = call->i[0], width = call->i[2];
    if (const int code = check_rows(call, rows)) return code;
    Merger<T> *state = merger<T>(call, false);
    if (state == nullptr) return no_memory(call, merger_bytes<T>(call));
    state->run(rows, values, n, width, out_rows, out);
    for (int64_t k = state->count; k < n; ++k) out_rows[k] = -1;
    for (int64_t k = state->count * width; k < n * width; ++k) out[k] = 0;
    return FL_OK;
}

template <class T> int rows_to_dense(fl_call *call) {
    const int64_t *rows = at<int64_t>(call, 0);
    const T *g = at<T>(call, 1);
    T *out = at<T>(call, 2);
    const int64_t n = call->i[0], height = call->i[1], width = call->i[2];
    if (const int code = check_rows(call, rows)) return code;
    for (int64_t k = 0; k < height * width; ++k) out[k] = 0;
    for (int64_t k = 0; k < n; ++k, g += width) {
        if (rows[k] < 0) continue;
        T *row = out + rows[k] * width;
        FL_LOOP
        for (int64_t j = 0; j < width; ++j) row[j] += g[j];
    }
    return FL_OK;
}

template <class T> int sgd_rows(fl_call *call) {
    const T rate = *at<T>(call, 0);
    T *param = at<T>(call, 1);
    const int64_t *rows = at<int64_t>(call, 2);
    const T *g = at<T>(call, 3);
    const int64_t n = call->i[0], width = call->i[2];
    if (const int code = check_rows(call, rows)) return code;
    for (int64_t k = 0; k < n; ++k, g += width) {
        if (k + ahead < n) ask(param, rows[k + ahead], width);
        if (rows[k] < 0) continue;
        T *row = param + rows[k] * width;
        FL_LOOP
        for (int64_t j = 0; j < width; ++j) row[j] -= rate * g[j];
    }
    return FL_OK;
}

template <class T> int adagrad_rows(fl_call *call) {
    const T rate = *at<T>(call, 0), epsilon = static_cast<T>(call->f[0]);
    T *param = at<T>(call, 1), *moment = at<T>(call, 4);
    const int64_t *rows = at<int64_t>(call, 2);
    const int64_t width = call->i[2];
    if (const int code = check_rows(call, rows)) return code;
    Merger<T> *state = merger<T>(call, true);
    if (state == nullptr) return no_memory(call, merger_bytes<T>(call));
    state->run(rows, at<T>(call, 3), call->i[0], width, state->rows, state->values);
    in_ranges(state->count, row_bytes<T>(width), [=](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            if (k + ahead < end) {
                ask(param, state->rows[k + ahead], width);
                ask(moment, state->rows[k + ahead], width);
            }
            const T *g = state->values + k * width;
            T *p = param + state->rows[k] * width, *m = moment + state->rows[k] * width;
            FL_LOOP
            for (int64_t j = 0; j < width; ++j) {
                const T sum = m[j] + g[j] * g[j];
                m[j] = sum;
                p[j] -= rate * g[j] / (std::sqrt(sum) + epsilon);
            }
        }
    });
    return FL_OK;
}

/* One row of Adam; g is NULL for a gradient of zeros. */
template <class T>
FL_INLINE void adam_row(T *p, T *m1, T *m2, const T *g, int64_t width, T step, T beta1, T beta2, T epsilon) {
    FL_LOOP
    for (int64_t j = 0; j < width; ++j) {
        const T x = g == nullptr ? T(0) : g[j];
        const T first = beta1 * m1[j] + (T(1) - beta1) * x;
        const T second = beta2 * m2[j] + (T(1) - beta2) * x * x;
        m1[j] = first;
        m2[j] = second;
        p[j] -= step * (first / (std::sqrt(second) + epsilon));
    }
}

/* The powers are carried on before they are used, unlike in `adam`: so does Fluid 1.8 with sparse gradients. */
template <class T> int adam_rows(fl_call *call) {
    T *param = at<T>(call, 1), *moment1 = at<T>(call, 4), *moment2 = at<T>(call, 5);
    T &power1 = *at<T>(call, 6), &power2 = *at<T>(call, 7);
    const int64_t *rows = at<int64_t>(call, 2);
    const int64_t height = call->i[1], width = call->i[2];
    const T beta1 = static_cast<T>(call->f[0]), beta2 = static_cast<T>(call->f[1]);
    const T epsilon = static_cast<T>(call->f[2]);
    const bool lazy = call->i[3] != 0;
    if (const int code = check_rows(call, rows)) return code;
    Merger<T> *state = merger<T>(call, true, !lazy);
    if (state == nullptr) return no_memory(call, merger_bytes<T>(call, !lazy));
    state->run(rows, at<T>(call, 3), call->i[0], width, state->rows, state->values);
    if (!lazy) state->remember();
    power1 *= beta1;
    power2 *= beta2;
    const T step = *at<T>(call, 0) * std::sqrt(T(1) - power2) / (T(1) - power1);
    const int64_t count = lazy ? state->count : height;
    in_ranges(count, lazy ? row_bytes<T>(width) : 7 * width * static_cast<int64_t>(sizeof(T)) + 4, [=](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            if (lazy && k + ahead < end) {
                for (const T *table : {param, moment1, moment2}) ask(table, state->rows[k + ahead], width);
            }
            const int64_t row = lazy ? state->rows[k] : k;
            const int64_t place = lazy ? k : state->where[row];
            const T *g = place < 0 ? nullptr : state->values + place * width;
            const int64_t start = row * width;
            adam_row(param + start, moment1 + start, moment2 + start, g, width, step, beta1, beta2, epsilon);
        }
    });
    if (!lazy) state->forget();
    return FL_OK;
}

}  // namespace

extern const fl_entry rows_table[] = {
    FL_REAL("merge_rows", merge_rows, "xxxx|mzz||aL,ac,aL,ac")
    FL_REAL("rows_to_dense", rows_to_dense, "xxx|mzz||aL,ac,bc")
    FL_REAL("sgd_rows", sgd_rows, "xxxx|mzz||1,bc,aL,ac")
    FL_REAL("adagrad_rows", adagrad_rows, "xxxxx|mzz|f|1,bc,aL,ac,bc")
    FL_REAL("adam_rows", adam_rows, "xxxxxxxx|mzzi|fff|1,bc,aL,ac,bc,bc,1,1")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
