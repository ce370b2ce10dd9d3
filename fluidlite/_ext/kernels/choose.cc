/* Elements chosen by conditions (bytes, 0 or not): where, its gradient, and the gradient of masked_select; by places:
 * gather_nd, its reverse scatter_nd, and gather_tree; by scores: beam_search. */
#ifndef FL_NS

#include "kernels/topics.h"

#define FL_SELF "kernels/choose.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_choose = FL_TOPIC(choose_table);

#else

namespace fl::FL_NS {
namespace {

template <class T> void choose(fl_call *call) {
    const uint8_t *condition = at<uint8_t>(call, 0);
    const T *x = at<T>(call, 1), *y = at<T>(call, 2);
    T *out = at<T>(call, 3);
    const int64_t n = call->i[0];
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) {
        const T yes = x[k], no = y[k];
        out[k] = condition[k] ? yes : no;
    }
}

template <class T> void choose_grad(fl_call *call) {
    const uint8_t *condition = at<uint8_t>(call, 0);
    const T *g = at<T>(call, 1);
    T *dx = at<T>(call, 2), *dy = at<T>(call, 3);
    const int64_t n = call->i[0];
    for (int64_t k = 0; k < n && dx != nullptr; ++k) dx[k] = condition[k] ? g[k] : T(0);
    for (int64_t k = 0; k < n && dy != nullptr; ++k) dy[k] = condition[k] ? T(0) : g[k];
}

template <class T> void unmask(fl_call *call) {
    const T *g = at<T>(call, 0);
    const uint8_t *mask = at<uint8_t>(call, 1);
    T *dx = at<T>(call, 2);
    const int64_t n = call->i[0];
    for (int64_t k = 0; k < n; ++k) dx[k] = mask[k] ? *g++ : T(0);
}

/* Elements are moved as they are, so that only their size matters: ints[PLACE]. */
#define FL_BY_SIZE(F, PLACE)                         \
    switch (call->i[PLACE]) {                        \
        case 1: F<uint8_t>(call); break;             \
        case 2: F<uint16_t>(call); break;            \
        case 4: F<uint32_t>(call); break;            \
        case 8: F<uint64_t>(call); break;            \
        default: return too_large(call, call->i[PLACE], 8); \
    }                                                \
    return FL_OK

int where(fl_call *call) { FL_BY_SIZE(choose, 1); }

int where_grad(fl_call *call) { FL_BY_SIZE(choose_grad, 1); }

int masked_select_grad(fl_call *call) {
    const uint8_t *mask = at<uint8_t>(call, 1);
    const int64_t n = call->i[0];
    int64_t chosen = 0;
    for (int64_t k = 0; k < n; ++k) chosen += mask[k] != 0;
    if (chosen != call->i[1]) return out_of_range(call, chosen, 0, call->i[1] + 1);
    FL_BY_SIZE(unmask, 2);
}

#undef FL_BY_SIZE

template <class T> struct Candidate {
    T score;
    int64_t row, token;
    /* Of equal scores those of later rows are better. */
    bool below(const Candidate &other) const {
        return score < other.score || (score == other.score && row < other.row);
    }
};

/* The best so far, best first. Where equal ones of a row meet the limit, the last that came has the last place. */
template <class T> void offer(Candidate<T> *best, int64_t &count, int64_t width, const Candidate<T> &next) {
    if (count < width) {
        ++count;
    } else if (next.below(best[count - 1])) {
        return;
    }
    int64_t place = count - 1;
    for (; place > 0 && best[place - 1].below(next); --place) best[place] = best[place - 1];
    best[place] = next;
}

/* ints: sources, rows, candidates, width, end, accumulated. Offsets says how many of each row were chosen; Ids, Scores
 * and Rows, which have room for `width` of each source, hold them in the order of the rows. */
template <class T> int beam_search(fl_call *call) {
    const int64_t sources = call->i[0], rows = call->i[1], width = call->i[3], end = call->i[4];
    const int64_t candidates = call->i[2];
    const bool accumulated = call->i[5] != 0;
    const int64_t *before = at<int64_t>(call, 0), *tokens = at<int64_t>(call, 2), *begins = offsets_at(call, 4);
    const T *totals = at<T>(call, 1), *scores = at<T>(call, 3);
    int64_t *ids = at<int64_t>(call, 5), *offsets = at<int64_t>(call, 8);
    T *values = at<T>(call, 6);
    int32_t *parents = at<int32_t>(call, 7);
    const int64_t bytes = width * static_cast<int64_t>(sizeof(Candidate<T>));
    auto *best = static_cast<Candidate<T> *>(scratch(call, bytes));
    if (best == nullptr) return no_memory(call, bytes);
    int64_t chosen = 0;
    for (int64_t row = 0; row <= rows; ++row) offsets[row] = 0;
    for (int64_t source = 0; source < sources; ++source) {
        int64_t count = 0;
        for (int64_t row = begins[source]; row < begins[source + 1]; ++row) {
            if (before[row] == end) {
                offer<T>(best, count, width, {totals[row], row, end});
                continue;
            }
            for (int64_t k = 0; k < candidates; ++k) {
                const int64_t place = row * candidates + k;
                const T score = accumulated ? scores[place] : totals[row] + std::log(scores[place]);
                offer<T>(best, count, width, {score, row, tokens == nullptr ? k : tokens[place]});
            }
        }
        bool over = true;
        for (int64_t k = 0; k < count; ++k) over = over && best[k].token == end && before[best[k].row] == end;
        if (over) continue;
        for (int64_t row = begins[source]; row < begins[source + 1]; ++row) {
            for (int64_t k = 0; k < count; ++k) {
                if (best[k].row != row) continue;
                ids[chosen] = best[k].token;
                values[chosen] = best[k].score;
                parents[chosen++] = static_cast<int32_t>(row);
                ++offsets[row + 1];
            }
        }
    }
    for (int64_t row = 0; row < rows; ++row) offsets[row + 1] += offsets[row];
    return FL_OK;
}

/* ints: steps, rows, width. */
template <class T> int gather_tree(fl_call *call) {
    const int64_t steps = call->i[0], rows = call->i[1], width = call->i[2], step = rows * width;
    const T *ids = at<T>(call, 0), *parents = at<T>(call, 1);
    T *out = at<T>(call, 2);
    for (int64_t k = 0; k < steps * step; ++k) {
        if (parents[k] < 0 || parents[k] >= width) return out_of_range(call, parents[k], k, width);
    }
    for (int64_t place = 0; steps > 0 && place < step; ++place) {
        const int64_t row = place / width * width;
        int64_t from = place;
        for (int64_t t = steps - 1; t >= 0; --t) {
            out[t * step + place] = ids[t * step + from];
            from = row + static_cast<int64_t>(parents[t * step + from]);
        }
    }
    return FL_OK;
}

/* ints: points, bytes of an element, size of each indexed dimension. */
template <class I> int gather_nd(fl_call *call) {
    const char *x = at<char>(call, 0);
    const I *index = at<I>(call, 1);
    char *out = at<char>(call, 2);
    const int64_t points = call->i[0], bytes = call->i[1];
    const int depth = call->n_i - 2;
    for (int64_t point = 0; point < points; ++point, index += depth, out += bytes) {
        int64_t place = 0;
        for (int k = 0; k < depth; ++k) {
            const int64_t size = call->i[2 + k], value = static_cast<int64_t>(index[k]);
            if (value < 0 || value >= size) return out_of_range(call, value, point * depth + k, size);
            place = place * size + value;
        }
        std::memcpy(out, x + place * bytes, static_cast<size_t>(bytes));
    }
    return FL_OK;
}

enum ScatterMode { scatter_overwrites = 0, scatter_adds = 1, scatter_replaces = 2 };

/* Base (NULL: zeros) with updates at the points of Index: the last of each place, added to it, or their sum instead of it.
 * ints: points, elements of one, bytes of an index, mode, size of each indexed dimension. */
template <class T, class I> int scatter_points(fl_call *call) {
    const T *base = at<T>(call, 0), *updates = at<T>(call, 2);
    const I *index = at<I>(call, 1);
    T *out = at<T>(call, 3);
    const int64_t points = call->i[0], width = call->i[1], mode = call->i[3], *sizes = call->i + 4;
    const int depth = call->n_i - 4;
    int64_t places = 1;
    for (int k = 0; k < depth; ++k) places *= sizes[k];
    for (int64_t k = 0; k < points * depth; ++k) {
        const int64_t value = static_cast<int64_t>(index[k]), size = sizes[k % depth];
        if (value < 0 || value >= size) return out_of_range(call, value, k, size);
    }
    const size_t bytes = static_cast<size_t>(places * width) * sizeof(T);
    if (base == nullptr) {
        if (bytes > 0) std::memset(out, 0, bytes);
    } else if (base != out && bytes > 0) {
        std::memcpy(out, base, bytes);
    }
    const auto row = [&](int64_t point) {
        int64_t place = 0;
        for (int k = 0; k < depth; ++k) place = place * sizes[k] + static_cast<int64_t>(index[point * depth + k]);
        return out + place * width;
    };
    for (int64_t point = 0; mode == scatter_replaces && point < points; ++point) {
        T *to = row(point);
        for (int64_t j = 0; j < width; ++j) to[j] = 0;
    }
    for (int64_t point = 0; point < points; ++point, updates += width) {
        T *to = row(point);
        if (mode == scatter_overwrites) {
            FL_LOOP
            for (int64_t j = 0; j < width; ++j) to[j] = updates[j];
        } else {
            FL_LOOP
            for (int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(to[j] + updates[j]);
        }
    }
    return FL_OK;
}

template <class T> int scatter_nd(fl_call *call) {
    return call->i[2] == 4 ? scatter_points<T, int32_t>(call) : scatter_points<T, int64_t>(call);
}

}  // namespace

extern const fl_entry choose_table[] = {
    {"where", where, "xxxx|zd||a,ab,ab,ab"},
    {"where_grad", where_grad, "xxnn|zd||a,ab,ab,ab"},
    {"masked_select_grad", masked_select_grad, "xxx|zzd||bc,a,ac"},
    FL_REAL("beam_search", beam_search, "xxnxxxxxx|zzzdii||bL,b,bcL,bc,aL+,adL,ad,adI,bL+")
    FL_INTEGER("gather_tree", gather_tree, "xxx|zzz||abc,abc,abc")
    FL_INTEGER("gather_nd", gather_nd, "xxx|zz(z)||?")
    FL_NUMBER("scatter_nd", scatter_nd, "nxxx|zzdi(z)||?")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
