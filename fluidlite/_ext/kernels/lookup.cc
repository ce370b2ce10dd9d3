/* Table lookup, one-hot and accuracy. */
#include <algorithm>
#include <memory>

#include "kernels/topics.h"
#include "parallel.h"

namespace fl {
namespace {

/* Ids must be in [0, bound) or, if that lies beyond, be `padding`. */
int check_ids(fl_call *call, const int64_t *ids, int64_t n, int64_t bound, int64_t padding = -1) {
    bool outside = false;
    for (int64_t k = 0; k < n; ++k) outside |= static_cast<uint64_t>(ids[k]) >= static_cast<uint64_t>(bound);
    for (int64_t k = 0; outside && k < n; ++k) {
        if (ids[k] < 0 || (ids[k] >= bound && ids[k] != padding)) return out_of_range(call, ids[k], k, bound);
    }
    return FL_OK;
}

constexpr int64_t ahead = 16; /* rows of the table that are asked for before they are read */

template <class T> int lookup_table(fl_call *call) {
    const T *w = at<T>(call, 0);
    const int64_t *ids = at<int64_t>(call, 1);
    T *out = at<T>(call, 2);
    const int64_t n = call->i[0], height = call->i[1], width = call->i[2], padding = call->i[3];
    if (const int code = check_ids(call, ids, n, height, padding)) return code;
    const size_t bytes = static_cast<size_t>(width) * sizeof(T);
    if (bytes == 0) return FL_OK;
    in_ranges(n, 2 * static_cast<int64_t>(bytes) + 64, [=](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            if (k + ahead < end) {
                const T *const next = w + ids[k + ahead] * width;
                __builtin_prefetch(next);
                __builtin_prefetch(next + width - 1);
            }
            if (ids[k] == padding) {
                std::memset(out + k * width, 0, bytes);
            } else if (width == 1) {
                out[k] = w[ids[k]];
            } else {
                std::memcpy(out + k * width, w + ids[k] * width, bytes);
            }
        }
    });
    return FL_OK;
}

template <class T> int lookup_table_grad(fl_call *call) {
    const int64_t *ids = at<int64_t>(call, 0);
    const T *g = at<T>(call, 1);
    T *dw = at<T>(call, 2);
    const int64_t n = call->i[0], height = call->i[1], width = call->i[2], padding = call->i[3];
    if (const int code = check_ids(call, ids, n, height, padding)) return code;
    for (int64_t k = 0; k < height * width; ++k) dw[k] = 0;
    for (int64_t k = 0; k < n; ++k, g += width) {
        if (ids[k] == padding) continue;
        T *row = dw + ids[k] * width;
        for (int64_t j = 0; j < width; ++j) row[j] += g[j];
    }
    return FL_OK;
}

template <class T> int one_hot(fl_call *call) {
    const int64_t *x = at<int64_t>(call, 0);
    T *out = at<T>(call, 1);
    const int64_t n = call->i[0], depth = call->i[1];
    if (!call->i[2]) {
        if (const int code = check_ids(call, x, n, depth)) return code;
    }
    for (int64_t k = 0; k < n * depth; ++k) out[k] = 0;
    for (int64_t k = 0; k < n; ++k, out += depth) {
        if (x[k] >= 0 && x[k] < depth) out[x[k]] = 1;
    }
    return FL_OK;
}

int accuracy(fl_call *call) {
    const int64_t *indices = at<int64_t>(call, 0), *label = at<int64_t>(call, 1);
    const int64_t rows = call->i[0], k = call->i[1];
    int32_t correct = 0;
    for (int64_t r = 0; r < rows; ++r, indices += k) {
        bool found = false;
        for (int64_t j = 0; j < k; ++j) found |= indices[j] == label[r];
        correct += found;
    }
    *at<float>(call, 2) = rows > 0 ? static_cast<float>(correct) / static_cast<float>(rows) : 0.0f;
    *at<int32_t>(call, 3) = correct;
    *at<int32_t>(call, 4) = static_cast<int32_t>(rows);
    return FL_OK;
}

const fl_entry table[] = {
    FL_REAL("lookup_table", lookup_table, "xxx|zzzi||bc,aL,ac")
    FL_REAL("lookup_table_grad", lookup_table_grad, "xxx|zzzi||aL,ac,bc")
    FL_REAL("one_hot", one_hot, "xx|zzi||aL,ab")
    {"accuracy.f32", accuracy, "xxxxx|mz||abL,aL,1,1I,1I"},
    {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_lookup = {table, table, table};

}  // namespace fl
