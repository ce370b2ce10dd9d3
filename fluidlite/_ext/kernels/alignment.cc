/* Found sequences beside wanted ones: edit distances, chunks; and what is left of a path without blanks and repetitions. */
#include <algorithm>

#include "kernels/sequences.h"
#include "kernels/topics.h"

namespace fl {
namespace {

/* How many tokens have to be inserted, deleted or replaced to make b of a (Levenshtein 1966); `row` holds m + 1 numbers. */
template <class T> int64_t distance(const T *a, int64_t n, const T *b, int64_t m, int64_t *row) {
    for (int64_t j = 0; j <= m; ++j) row[j] = j;
    for (int64_t i = 0; i < n; ++i) {
        int64_t corner = row[0];
        row[0] = i + 1;
        for (int64_t j = 0; j < m; ++j) {
            const int64_t replaced = corner + (a[i] != b[j]);
            corner = row[j + 1];
            row[j + 1] = std::min(std::min(corner, row[j]) + 1, replaced);
        }
    }
    return row[m];
}

/* ints: sequences, elements of Hyps and of Refs, steps of each where they are padded, whether to divide by the length of the
 * reference. */
template <class T> int edit_distance(fl_call *call) {
    const T *hyps = at<T>(call, 0), *refs = at<T>(call, 3);
    const int64_t *i = call->i;
    const Sequences found = {at<int64_t>(call, 1), at<int64_t>(call, 2), i[0], i[3]};
    const Sequences wanted = {at<int64_t>(call, 4), at<int64_t>(call, 5), i[0], i[4]};
    float *out = at<float>(call, 6);
    if (const int code = found.verify(call)) return code;
    if (const int code = wanted.verify(call)) return code;
    for (int64_t s = 0; s < i[0] && i[5]; ++s) {
        if (wanted.length(s) == 0) return uneven(call, s, 0, 1);
    }
    const int64_t bytes = (wanted.longest() + 1) * static_cast<int64_t>(sizeof(int64_t));
    int64_t *row = static_cast<int64_t *>(scratch(call, bytes));
    if (row == nullptr) return no_memory(call, bytes);
    for (int64_t s = 0; s < i[0]; ++s) {
        const int64_t n = found.length(s), m = wanted.length(s);
        const int64_t steps = distance(hyps + found.begin(s), n, refs + wanted.begin(s), m, row);
        out[s] = i[5] ? static_cast<float>(steps) / static_cast<float>(m) : static_cast<float>(steps);
    }
    at<int64_t>(call, 7)[0] = i[0];
    return FL_OK;
}

/* A scheme says which tags begin a chunk and which end one where the type stays the same, as bits of two tables of the tag
 * before and the tag itself. Label = type * tags + tag; the label behind the last one is in no chunk. */
struct Scheme {
    int64_t tags, types;
    int64_t begins, ends; /* bit 4 * before + tag */

    bool outside(int64_t label) const { return label == tags * types; }

    bool in(int64_t table, int64_t before, int64_t label) const {
        return (table >> (4 * (before % tags) + label % tags)) & 1;
    }

    bool begins_at(int64_t before, int64_t label) const {
        if (outside(label)) return false;
        return outside(before) || before / tags != label / tags || in(begins, before, label);
    }

    bool ends_before(int64_t before, int64_t label) const {
        if (outside(before)) return false;
        return outside(label) || before / tags != label / tags || in(ends, before, label);
    }
};

/* The chunk that a sequence is in, told label by label. */
struct Chunk {
    const Scheme &scheme;
    const int64_t *excluded;
    int64_t n_excluded, before, begin, type;

    Chunk(const Scheme &given, const int64_t *without, int64_t count)
        : scheme(given), excluded(without), n_excluded(count), before(given.tags * given.types), begin(-1), type(0) {}

    bool counts() const {
        return begin >= 0 && std::find(excluded, excluded + n_excluded, type) == excluded + n_excluded;
    }

    bool ends_with(int64_t label) const { return begin >= 0 && scheme.ends_before(before, label); }

    void enter(int64_t label, int64_t place, bool ended) {
        if (ended) begin = -1;
        if (scheme.begins_at(before, label)) {
            begin = place;
            type = label / scheme.tags;
        }
        before = label;
    }
};

/* ints: sequences, labels, steps of padded sequences, tags, types, tables of tags that begin and end chunks, one or more
 * types that do not count. */
int chunk_eval(fl_call *call) {
    const int64_t *inference = at<int64_t>(call, 0), *label = at<int64_t>(call, 1), *i = call->i;
    const Sequences spans = {at<int64_t>(call, 2), at<int64_t>(call, 4), i[0], i[2]};
    const int64_t *same = offsets_at(call, 3);
    const Scheme scheme = {i[3], i[4], i[5], i[6]};
    if (scheme.tags > 4) return out_of_range(call, scheme.tags, -1, 5);
    if (const int code = spans.verify(call)) return code;
    for (int64_t s = 0; s < spans.count && same != nullptr && spans.offsets != nullptr; ++s) {
        if (same[s + 1] - same[s] != spans.length(s)) return uneven(call, s, same[s + 1] - same[s], spans.length(s));
    }
    const int64_t outside = scheme.tags * scheme.types;
    int64_t inferred = 0, labelled = 0, correct = 0;
    for (int64_t s = 0; s < spans.count; ++s) {
        Chunk got(scheme, i + 7, call->n_i - 7), want = got;
        const int64_t begin = spans.begin(s), end = begin + spans.length(s);
        for (int64_t r = begin; r <= end; ++r) {
            const int64_t a = r < end ? inference[r] : outside, b = r < end ? label[r] : outside;
            for (const int64_t one : {a, b}) {
                call->err[3] = one != a; /* which input it is in */
                if (one < 0 || one > outside) return out_of_range(call, one, r, outside + 1);
            }
            const bool got_ends = got.ends_with(a), want_ends = want.ends_with(b);
            inferred += got_ends && got.counts();
            labelled += want_ends && want.counts();
            correct += got_ends && want_ends && got.begin == want.begin && got.type == want.type && got.counts();
            got.enter(a, r, got_ends);
            want.enter(b, r, want_ends);
        }
    }
    const float right = static_cast<float>(correct);
    const float precision = inferred ? right / static_cast<float>(inferred) : 0;
    const float recall = labelled ? right / static_cast<float>(labelled) : 0;
    at<float>(call, 5)[0] = precision;
    at<float>(call, 6)[0] = recall;
    at<float>(call, 7)[0] = correct ? 2 * precision * recall / (precision + recall) : 0;
    at<int64_t>(call, 8)[0] = inferred;
    at<int64_t>(call, 9)[0] = labelled;
    at<int64_t>(call, 10)[0] = correct;
    return FL_OK;
}

/* ints: sequences, steps, blank, whether repetitions are one, what is behind the end. */
template <class T> int ctc_align(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 2), *count = at<T>(call, 3);
    const int64_t n = call->i[0], steps = call->i[1];
    const Sequences spans = {nullptr, at<int64_t>(call, 1), n, steps};
    if (const int code = spans.verify(call)) return code;
    for (int64_t s = 0; s < n; ++s, x += steps, out += steps) {
        int64_t kept = 0;
        for (int64_t t = 0; t < spans.length(s); ++t) {
            if (x[t] == call->i[2] || (call->i[3] && t > 0 && x[t] == x[t - 1])) continue;
            out[kept++] = x[t];
        }
        if (count != nullptr) count[s] = static_cast<T>(kept);
        for (; kept < steps; ++kept) out[kept] = static_cast<T>(call->i[4]);
    }
    return FL_OK;
}

const fl_entry entries[] = {
    FL_INTEGER("edit_distance", edit_distance, "xnnxnnxx|zzzzzz||b,a+L,aL,c,a+L,aL,aI,L")
    {"chunk_eval", chunk_eval, "xxnnnxxxxxx|zzzdzzz(i)||bL,bL,a+L,a+L,aL,I,I,I,L,L,L"},
    FL_INTEGER("ctc_align", ctc_align, "xxxn|zziii||ab,aL,ab,a")
    {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_alignment = {entries, entries, entries};

}  // namespace fl
