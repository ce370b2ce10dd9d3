/* The largest elements of rows. */
#ifndef FL_NS

#include <algorithm>
#include <utility>

#include "kernels/topics.h"

#define FL_SELF "kernels/top_k.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_top_k = FL_TOPIC(top_k_table);

#else

namespace fl::FL_NS {
namespace {

template <class T> using Ranked = std::pair<T, int64_t>;

/* What is not a number comes last: sorting needs an order. */
template <class T> bool above(T a, T b) { return a > b || (b != b && a == a); }

/* The largest of a row, or less than any of it where one of them is no number. */
template <class T> T largest(const T *x, int64_t n) {
    T most = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < n; ++j) most = x[j] > most ? x[j] : most;
    return most;
}

/* Whether one of them is above `least`, which is a number. */
template <class T> bool any_above(const T *x, int64_t n, T least) {
    int found = 0;
#pragma omp simd reduction(| : found)
    for (int64_t j = 0; j < n; ++j) found |= x[j] > least;
    return found != 0;
}

/* The order of equal values is that of the standard library's partial sort, which Fluid uses too: this is how that finds
 * them, but it looks at blocks of elements, most of which have none that is above the least of the best so far. */
template <class T> int top_k(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    int64_t *indices = at<int64_t>(call, 2);
    const int64_t rows = call->i[0], n = call->i[1], k = call->i[2];
    if (k > n) return out_of_range(call, k, 0, n + 1);
    if (k == 1) {
        for (int64_t r = 0; r < rows; ++r, x += n) {
            const T *const best = std::find(x, x + n, largest(x, n)); /* behind the last if none is a number */
            indices[r] = best == x + n ? 0 : best - x;
            out[r] = x[indices[r]];
        }
        return FL_OK;
    }
    const int64_t bytes = (k + 1) * static_cast<int64_t>(sizeof(Ranked<T>));
    Ranked<T> *best = static_cast<Ranked<T> *>(scratch(call, bytes)); /* a heap, the least in front; and one place more */
    if (best == nullptr) return no_memory(call, bytes);
    const auto before = [](const Ranked<T> &a, const Ranked<T> &b) { return above(a.first, b.first); };
    constexpr int64_t block = 64;
    for (int64_t r = 0; r < rows; ++r, x += n) {
        for (int64_t j = 0; j < k; ++j) best[j] = {x[j], j};
        std::make_heap(best, best + k, before);
        for (int64_t begin = k; k > 0 && begin < n; begin += block) {
            const int64_t end = n - begin < block ? n : begin + block;
            const T least = best[0].first;
            if (least == least && !any_above(x + begin, end - begin, least)) continue;
            for (int64_t j = begin; j < end; ++j) {
                if (!above(x[j], best[0].first)) continue;
                best[k] = {x[j], j};
                std::pop_heap(best, best + k + 1, before);
            }
        }
        std::sort_heap(best, best + k, before);
        for (int64_t j = 0; j < k; ++j) {
            *out++ = best[j].first;
            *indices++ = best[j].second;
        }
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry top_k_table[] = {FL_REAL("top_k", top_k, "xxx|zzz||ab,ac,acL")
                                       {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
