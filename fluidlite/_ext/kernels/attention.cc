/* Attention, softmax(alpha Q K' + Bias) V for each of many heads, and its gradient, without the matrix that has a number for each
 * query and key: a block of its rows at a time is made, used and forgotten in the cache.
 */
#ifndef FL_NS

#include <algorithm>
#include <atomic>
#include <memory>

#include "kernels/topics.h"
#include "kernels/vec_math.h"
#include "parallel.h"

#define FL_WIDE
#define FL_SELF "kernels/attention.cc"

namespace fl {
namespace {

/* Memory for the pieces of a call that are at work at the same time, which stays from run to run. */
struct Workspaces {
    static constexpr int most = 64;
    std::atomic<bool> taken[most] = {};
    std::unique_ptr<char[]> memory[most];
    int64_t bytes[most] = {};

    /* The first that is free; there are at least as many as pieces. */
    int take() {
        for (int k = 0;; k = (k + 1) % most) {
            if (!taken[k].exchange(true, std::memory_order_acquire)) return k;
        }
    }

    /* The memory of one, at a multiple of 64; NULL if there is not enough. */
    void *at(int k, int64_t wanted) {
        constexpr int64_t line = 64;
        if (bytes[k] < wanted || memory[k] == nullptr) {
            char *grown = new (std::nothrow) char[static_cast<size_t>(wanted + line)];
            if (grown == nullptr) return nullptr;
            memory[k].reset(grown);
            bytes[k] = wanted;
        }
        char *begin = memory[k].get();
        return begin + (line - static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin) % line)) % line;
    }

    void give_back(int k) { taken[k].store(false, std::memory_order_release); }
};

Workspaces *workspaces(fl_call *call) {
    if (call->state == nullptr) {
        call->state = new (std::nothrow) Workspaces;
        call->free_state = [](void *state) { delete static_cast<Workspaces *>(state); };
        call->any_ints = 1;
    }
    return static_cast<Workspaces *>(call->state);
}

}  // namespace
}  // namespace fl

#include "kernels/targets.h"

const fl::Topic fl::topic_attention = FL_TOPIC(attention_table);

#else

#include "kernels/product.h"
#include "kernels/softmax_row.h"

namespace fl::FL_NS {
namespace {

/* A matrix for each head, of rows so many elements apart, stored the other way round if so said. */
template <class T> struct Heads {
    T *first;
    const int64_t *strides; /* from one to the next of the outer ones, of the heads of each, of rows */
    bool transposed = false;

    T *of(int64_t outer, int64_t head) const { return first + outer * strides[0] + head * strides[1]; }
    int64_t row() const { return strides[2]; }
};

/* One matrix as products read it. */
template <class T> struct Factor {
    const T *first;
    int64_t row;
    bool transposed;
};

/* A block has at most so many rows, and as many as so many bytes hold. */
constexpr int64_t most_block = 128, least_block = 24, block_bytes = 1 << 18;

/* Where there are fewer heads than this the rows of each are cut, so that there is something for each thread. */
constexpr int64_t enough_heads = 16, least_part = 128;

template <class T> struct Attention {
    int64_t outer, heads, m, n, k, d;
    Heads<const T> q, keys, values, bias;
    const int64_t bias_column;
    const T *biases;
    const uint8_t *kept; /* whether dropout keeps an element of the matrix; NULL without */
    T alpha, factor;     /* what is kept is multiplied by */
    fl_call *call;

    /* `from`: where the strides of the bias stand among the integers. */
    Attention(fl_call *c, int from)
        : outer(c->i[0]), heads(c->i[1]), m(c->i[2]), n(c->i[3]), k(c->i[4]), d(c->i[5]), q{at<T>(c, 0), c->i + 7},
          keys{at<T>(c, 1), c->i + 10, c->i[6] != 0}, values{at<T>(c, 2), c->i + 13}, bias{at<T>(c, 3), c->i + from},
          bias_column(c->i[from + 3]), biases(at<T>(c, 3)), kept(at<uint8_t>(c, 4)), alpha(static_cast<T>(c->f[0])),
          factor(static_cast<T>(c->f[1])), call(c) {}

    int64_t block() const {
        const int64_t fitting = block_bytes / static_cast<int64_t>(sizeof(T)) / std::max(n, int64_t(1));
        const int64_t rows = std::max(least_block, std::min(most_block, fitting));
        const int64_t blocks = std::max(int64_t(1), (m + rows - 1) / rows);
        return (m + blocks - 1) / blocks;
    }

    /* Calls f(outer, head, first row, last row + 1, memory of so many elements) for all heads, or for parts of these if they may be cut. */
    template <class F> int each_head(int64_t elements, bool cut, const F &f) const {
        Workspaces *spaces = workspaces(call);
        const int64_t bytes = elements * static_cast<int64_t>(sizeof(T)), count = outer * heads;
        if (spaces == nullptr) return no_memory(call, bytes);
        const int64_t wanted = cut && count < enough_heads ? (enough_heads + count - 1) / count : 1;
        const int64_t parts = std::max(int64_t(1), std::min(wanted, m / least_part)), units = count * parts;
        /* A multiply-add counts like a fourth of a byte. */
        const double work = static_cast<double>(count) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k + d) / 4;
        const double enough = std::min(work / static_cast<double>(piece_bytes), static_cast<double>(Workspaces::most));
        const int64_t pieces = std::max(int64_t(1), std::min(units, static_cast<int64_t>(enough)));
        std::atomic<int> failed{FL_OK};
        in_pieces(pieces, [=, &f, &failed](int64_t piece) {
            const int mine = spaces->take();
            T *memory = static_cast<T *>(spaces->at(mine, bytes));
            int code = memory == nullptr ? FL_NO_MEMORY : FL_OK;
            for (int64_t unit = piece * units / pieces; code == FL_OK && unit < (piece + 1) * units / pieces; ++unit) {
                const int64_t which = unit / parts, part = unit % parts;
                code = f(which / heads, which % heads, part * m / parts, (part + 1) * m / parts, memory);
            }
            if (code != FL_OK) failed.store(code);
            spaces->give_back(mine);
        });
        return failed.load() == FL_NO_MEMORY ? no_memory(call, bytes) : failed.load();
    }

    /* c[rows, columns] = factor a b + beta c, where a has rows `lda` elements apart and is transposed or not. */
    int product(int64_t rows, int64_t columns, int64_t depth, const T *a, int64_t lda, bool trans_a, const Factor<T> &b, T by, T beta,
                T *c, int64_t ldc) const {
        if (rows == 0 || columns == 0) return FL_OK;
        return multiply(call, Product<T>{rows, columns, depth, trans_a, b.transposed, by, beta, a, b.first, c, lda, b.row, ldc});
    }

    /* The matrix of a head the other way round, `columns` of `rows` elements as stored. A single product turns it by itself. */
    static Factor<T> turned(const Heads<const T> &of, const T *matrix, int64_t rows, int64_t columns, bool once, T *memory) {
        if (once) return {matrix, of.row(), true};
        constexpr int64_t tile = 16;
        for (int64_t i = 0; i < rows; i += tile) {
            for (int64_t j = 0; j < columns; j += tile) {
                for (int64_t b = j; b < std::min(j + tile, columns); ++b) {
                    for (int64_t a = i; a < std::min(i + tile, rows); ++a) memory[b * rows + a] = matrix[a * of.row() + b];
                }
            }
        }
        return {memory, rows, false};
    }

    /* K' of a head, [k, n], and K, [n, k]: one of them is as it stands, the other is turned. */
    Factor<T> keys_across(const T *matrix, bool once, T *memory) const {
        return keys.transposed ? Factor<T>{matrix, keys.row(), false} : turned(keys, matrix, n, k, once, memory);
    }
    Factor<T> keys_down(const T *matrix, bool once, T *memory) const {
        return keys.transposed ? turned(keys, matrix, k, n, once, memory) : Factor<T>{matrix, keys.row(), false};
    }

    /* Exponentials, as softmax takes them, of products with the keys, to which row `r` of the bias is added; returns 1 / their sum. */
    T exponentials(T *row, int64_t o, int64_t h, int64_t r) const {
        if (biases != nullptr) {
            const T *b = bias.of(o, h) + r * bias.row();
            if (bias_column == 1) {
                FL_LOOP
                for (int64_t j = 0; j < n; ++j) row[j] += b[j];
            } else {
                for (int64_t j = 0; j < n; ++j) row[j] += b[j * bias_column];
            }
        }
        const T most = largest(row, n);
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < n; ++j) {
            row[j] = vm::exp_inside(shifted(row[j], most));
            sum += row[j];
        }
        return T(1) / sum;
    }

    const uint8_t *kept_of(int64_t o, int64_t h, int64_t r) const { return kept + ((o * heads + h) * m + r) * n; }
};

/* Zeros in a matrix of each head, which nothing else is written to where sums have no terms. */
template <class T> void clear(const Attention<T> &a, const Heads<T> &to, int64_t rows, int64_t columns) {
    if (to.first == nullptr) return;
    for (int64_t unit = 0; unit < a.outer * a.heads; ++unit) {
        T *matrix = to.of(unit / a.heads, unit % a.heads);
        for (int64_t r = 0; r < rows; ++r) std::fill_n(matrix + r * to.row(), columns, T(0));
    }
}

template <class T> int attention(fl_call *call) {
    const Attention<T> a(call, 19);
    const Heads<T> out{at<T>(call, 5), call->i + 16};
    if (a.outer * a.heads == 0 || a.m == 0 || a.d == 0) return FL_OK;
    if (a.n == 0) {
        clear(a, out, a.m, a.d);
        return FL_OK;
    }
    const int64_t rows = a.block(), room = rows * a.n;
    return a.each_head(room + a.n * a.k, true, [&a, &out, rows, room](int64_t o, int64_t h, int64_t begin, int64_t end, T *memory) {
        const Factor<T> keys = a.keys_across(a.keys.of(o, h), end - begin <= rows, memory + room);
        const Factor<T> values{a.values.of(o, h), a.values.row(), false};
        for (int64_t first = begin; first < end; first += rows) {
            const int64_t count = std::min(rows, end - first);
            T *made = out.of(o, h) + first * out.row();
            const T *queries = a.q.of(o, h) + first * a.q.row();
            int code = a.product(count, a.n, a.k, queries, a.q.row(), false, keys, a.alpha, T(0), memory, a.n);
            if (code != FL_OK) return code;
            T scales[most_block];
            for (int64_t r = 0; r < count; ++r) {
                T *row = memory + r * a.n;
                scales[r] = a.exponentials(row, o, h, first + r) * a.factor;
                if (a.kept == nullptr) continue;
                const uint8_t *kept = a.kept_of(o, h, first + r);
                FL_LOOP
                for (int64_t j = 0; j < a.n; ++j) row[j] = kept[j] ? row[j] : T(0);
            }
            code = a.product(count, a.d, a.n, memory, a.n, false, values, T(1), T(0), made, out.row());
            if (code != FL_OK) return code;
            for (int64_t r = 0; r < count; ++r, made += out.row()) {
                FL_LOOP
                for (int64_t j = 0; j < a.d; ++j) made[j] *= scales[r];
            }
        }
        return static_cast<int>(FL_OK);
    });
}

/* The probabilities are computed again. Sums over the rows of a head are taken block by block, in their order. */
template <class T> int attention_grad(fl_call *call) {
    const Attention<T> a(call, 28);
    const int64_t *i = call->i;
    const Heads<const T> g{at<T>(call, 5), i + 16};
    const Heads<T> dq{at<T>(call, 6), i + 19}, dk{at<T>(call, 7), i + 22, a.keys.transposed}, dv{at<T>(call, 8), i + 25};
    if (a.outer * a.heads == 0) return FL_OK;
    if (a.m == 0 || a.n == 0) {
        clear(a, dq, a.m, a.k);
        clear(a, dk, dk.transposed ? a.k : a.n, dk.transposed ? a.n : a.k);
        clear(a, dv, a.n, a.d);
        return FL_OK;
    }
    const int64_t rows = a.block(), room = rows * a.n;
    const int64_t elements = 2 * room + a.n * (a.k + a.d);
    return a.each_head(elements, false, [&, rows, room](int64_t o, int64_t h, int64_t, int64_t, T *memory) {
        T *const second = memory + room, *const turned_keys = second + room, *const turned_values = turned_keys + a.n * a.k;
        const bool once = a.m <= rows;
        const T *const stored = a.keys.of(o, h);
        const Factor<T> across = a.keys_across(stored, once, turned_keys), down = a.keys_down(stored, once, turned_keys);
        const Factor<T> values = a.turned(a.values, a.values.of(o, h), a.n, a.d, once, turned_values);
        for (int64_t first = 0; first < a.m; first += rows) {
            const int64_t count = std::min(rows, a.m - first);
            const T beta = first == 0 ? T(0) : T(1);
            const T *const back = g.of(o, h) + first * g.row(), *const queries = a.q.of(o, h) + first * a.q.row();
            int code = a.product(count, a.n, a.k, queries, a.q.row(), false, across, a.alpha, T(0), memory, a.n);
            for (int64_t r = 0; r < count; ++r) {
                T *p = memory + r * a.n, *used = second + r * a.n;
                const T scale = a.exponentials(p, o, h, first + r), factor = a.factor;
                FL_LOOP
                for (int64_t j = 0; j < a.n; ++j) p[j] *= scale;
                const uint8_t *kept = a.kept == nullptr ? nullptr : a.kept_of(o, h, first + r);
                if (kept == nullptr) {
                    FL_LOOP
                    for (int64_t j = 0; j < a.n; ++j) used[j] = p[j] * factor;
                } else {
                    FL_LOOP
                    for (int64_t j = 0; j < a.n; ++j) used[j] = kept[j] ? p[j] * factor : T(0);
                }
            }
            if (dv.first != nullptr && code == FL_OK) {
                code = a.product(a.n, a.d, count, second, a.n, true, {back, g.row(), false}, T(1), beta, dv.of(o, h), dv.row());
            }
            if (code == FL_OK) code = a.product(count, a.n, a.d, back, g.row(), false, values, a.factor, T(0), second, a.n);
            if (code != FL_OK) return code;
            for (int64_t r = 0; r < count; ++r) {
                T *p = memory + r * a.n, *dp = second + r * a.n;
                if (a.kept != nullptr) {
                    const uint8_t *kept = a.kept_of(o, h, first + r);
                    FL_LOOP
                    for (int64_t j = 0; j < a.n; ++j) dp[j] = kept[j] ? dp[j] : T(0);
                }
                T dot = 0;
#pragma omp simd reduction(+ : dot)
                for (int64_t j = 0; j < a.n; ++j) dot += p[j] * dp[j];
                FL_LOOP
                for (int64_t j = 0; j < a.n; ++j) p[j] *= dp[j] - dot;
            }
            if (dq.first != nullptr) {
                code = a.product(count, a.k, a.n, memory, a.n, false, down, a.alpha, T(0), dq.of(o, h) + first * dq.row(), dq.row());
            }
            if (dk.first != nullptr && code == FL_OK) {
                T *const to = dk.of(o, h);
                const int64_t row = a.q.row();
                code = dk.transposed ? a.product(a.k, a.n, count, queries, row, true, {memory, a.n, false}, a.alpha, beta, to, dk.row())
                                     : a.product(a.n, a.k, count, memory, a.n, true, {queries, row, false}, a.alpha, beta, to, dk.row());
            }
            if (code != FL_OK) return code;
        }
        return static_cast<int>(FL_OK);
    });
}

}  // namespace

extern const fl_entry attention_table[] = {
    FL_REAL("attention", attention, "xxxnnx|zzzzzzizzzzzzzzzzzzzzzz|ff|?")
    FL_REAL("attention_grad", attention_grad, "xxxnnxnnn|zzzzzzizzzzzzzzzzzzzzzzzzzzzzzzz|ff|?")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
