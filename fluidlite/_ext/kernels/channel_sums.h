/* Sums over all that belongs to a channel of images, as they lie or in blocks of channels. Included once for every instruction set, hence
 * no guard. */

namespace fl::FL_NS {
namespace {

struct Pair {
    double a, b;
};

constexpr int lanes = vector_bytes / static_cast<int>(sizeof(double)), side_by_side = 4;
typedef double Wide __attribute__((vector_size(lanes * sizeof(double))));

template <class T> struct Elements {
    typedef T Lanes __attribute__((vector_size(lanes * sizeof(T))));
    typedef T Loose __attribute__((vector_size(lanes * sizeof(T)), aligned(sizeof(T)), may_alias));
};

/* Vectors of a register each. */
template <class T> struct Whole {
    static constexpr int size = vector_bytes / static_cast<int>(sizeof(T));
    typedef T Lanes __attribute__((vector_size(vector_bytes)));
    typedef T Loose __attribute__((vector_size(vector_bytes), aligned(sizeof(T)), may_alias));

    FL_INLINE static Lanes load(const T *from) { return *reinterpret_cast<const Loose *>(from); }
    FL_INLINE static void store(T *to, Lanes value) { *reinterpret_cast<Loose *>(to) = value; }
};

/* `lanes` elements from an address on. */
template <class T> FL_INLINE typename Elements<T>::Lanes some(const T *from) {
    return *reinterpret_cast<const typename Elements<T>::Loose *>(from);
}

template <class V> FL_INLINE Wide wide(V values) { return __builtin_convertvector(values, Wide); }

/* What element k, of this channel, and those behind it, of the same or, `across`, of the next ones, add to two sums: the elements and
 * their squares. */
template <class T> struct Moments {
    const T *x;

    FL_INLINE Pair one(int64_t k, int64_t) const {
        const double value = x[k];
        return {value, value * value};
    }
    FL_INLINE void add(int64_t k, int64_t, Wide &a, Wide &b) const {
        const Wide values = wide(some(x + k));
        a += values;
        b += values * values;
    }
    FL_INLINE void add_across(int64_t k, int64_t channel, Wide &a, Wide &b) const { add(k, channel, a, b); }
};

/* The elements alone. */
template <class T> struct Totals {
    const T *x;

    FL_INLINE Pair one(int64_t k, int64_t) const { return {static_cast<double>(x[k]), 0}; }
    FL_INLINE void add(int64_t k, int64_t, Wide &a, Wide &) const { a += wide(some(x + k)); }
    FL_INLINE void add_across(int64_t k, int64_t, Wide &a, Wide &) const { a += wide(some(x + k)); }
};

/* The same of a gradient, and of its product with how far X is from the mean. */
template <class T> struct Slopes {
    const T *x, *g, *mean;

    FL_INLINE Pair one(int64_t k, int64_t channel) const {
        const double slope = g[k];
        return {slope, slope * (x[k] - mean[channel])};
    }
    FL_INLINE void add(int64_t k, int64_t channel, Wide &a, Wide &b) const {
        const Wide slopes = wide(some(g + k));
        a += slopes;
        b += slopes * wide(some(x + k) - mean[channel]);
    }
    FL_INLINE void add_across(int64_t k, int64_t channel, Wide &a, Wide &b) const {
        const Wide slopes = wide(some(g + k));
        a += slopes;
        b += slopes * wide(some(x + k) - some(mean + channel));
    }
};

/* Two sums over n elements of a channel, from the one numbered `row` on. They are held in vector variables: compilers make no vectors of
 * two sums by themselves. */
template <class Term> FL_INLINE Pair row_sums(const Term &term, int64_t row, int64_t channel, int64_t n) {
    Wide a[side_by_side] = {}, b[side_by_side] = {};
    int64_t j = 0;
    for (; j + side_by_side * lanes <= n; j += side_by_side * lanes) {
#pragma GCC unroll 4
        for (int u = 0; u < side_by_side; ++u) term.add(row + j + u * lanes, channel, a[u], b[u]);
    }
    const Wide first = (a[0] + a[1]) + (a[2] + a[3]), second = (b[0] + b[1]) + (b[2] + b[3]);
    Pair sums{0, 0};
    for (int k = 0; k < lanes; ++k) sums = {sums.a + first[k], sums.b + second[k]};
    for (; j < n; ++j) {
        const Pair pair = term.one(row + j, channel);
        sums = {sums.a + pair.a, sums.b + pair.b};
    }
    return sums;
}

/* The same for n places of BLOCK channels each. */
template <int BLOCK, class Term> FL_INLINE void block_sums(const Term &term, int64_t row, int64_t channel, int64_t n, double *first, double *second) {
    constexpr int vectors = BLOCK / lanes;
    Wide a[vectors] = {}, b[vectors] = {};
    for (int64_t j = 0; j < n; ++j) {
#pragma GCC unroll 8
        for (int u = 0; u < vectors; ++u) term.add_across(row + j * BLOCK + u * lanes, channel + u * lanes, a[u], b[u]);
    }
#pragma GCC unroll 8
    for (int u = 0; u < vectors; ++u) {
        for (int k = 0; k < lanes; ++k) {
            first[u * lanes + k] += a[u][k];
            second[u * lanes + k] += b[u][k];
        }
    }
}

/* Into how many parts a batch is cut for its sums: images stay with the thread that has made them. */
int64_t parts_of(int64_t n, int64_t c, int64_t hw) {
    return std::max<int64_t>(std::min({n, n * c * hw * 4 / piece_bytes, int64_t(16)}), 1);
}

/* Two sums over the batch and the image for every channel, with room for as many of each part of the batch behind them. */
template <class Term> void channel_sums(int64_t n, int64_t c, int64_t hw, int64_t block, double *sums, const Term &term) {
    const int64_t parts = parts_of(n, c, hw);
    in_pieces(parts, [=](int64_t part) {
        double *const first = sums + 2 * part * c, *const second = first + c;
        for (int64_t k = 0; k < 2 * c; ++k) first[k] = 0;
        for (int64_t b = part * n / parts; b < (part + 1) * n / parts; ++b) {
            if (hw == 1) {
                FL_LOOP
                for (int64_t k = 0; k < c; ++k) {
                    const Pair pair = term.one(b * c + k, k);
                    first[k] += pair.a;
                    second[k] += pair.b;
                }
                continue;
            }
            for (int64_t k = 0; block > 1 && k < c; k += block) {
                const int64_t row = (b * c + k) * hw;
                block == 16 ? block_sums<16>(term, row, k, hw, first + k, second + k) : block_sums<8>(term, row, k, hw, first + k, second + k);
            }
            for (int64_t k = 0; block == 1 && k < c; ++k) {
                const Pair pair = row_sums(term, (b * c + k) * hw, k, hw);
                first[k] += pair.a;
                second[k] += pair.b;
            }
        }
    });
    for (int64_t part = 1; part < parts; ++part) {
        for (int64_t k = 0; k < 2 * c; ++k) sums[k] += sums[2 * part * c + k];
    }
}

/* Y = act(X * factor + shift) for every channel. */

}  // namespace
}  // namespace fl::FL_NS
