/* Products of which both operands are stored anew, in blocks that the caches hold. Included once for every instruction set,
 * hence no guard.
 *
 *     B   strips of 32 columns, say, one row of a strip behind the other      in the first cache while a column of tiles is made
 *     A   panels of 12 rows, say, one column of a panel behind the other      a group of them in the second cache
 *
 * Each element of C is a sum over the depth in one order, whatever the blocks and whoever computes them.
 */

namespace fl {
namespace FL_NS {
namespace {

constexpr int64_t block_rows = 85 * tile_rows, block_columns = 1024;
/* So many panels and strips are what a thread takes at a time, about a tenth of a millisecond. */
constexpr int64_t group = 8;

inline int64_t parts_of(int64_t length, int64_t most) { return (length + most - 1) / most; }

/* [0, length) in parts of which no two differ by more than 1. */
struct Parts {
    int64_t count, size, larger;

    Parts(int64_t length, int64_t most) : count(parts_of(length, most)), size(length / count), larger(length % count) {}

    /* What is before part `which`. */
    int64_t before(int64_t which) const { return which * size + (which < larger ? which : larger); }
};

/* Panels `from` to `to` of an A that is stored by rows, which are `pitch` elements apart: `k` columns of `m` rows. */
template <class T> void pack_rows(const T *a, int64_t pitch, int64_t m, int64_t k, const Parts &panels, int64_t from, int64_t to, T *out) {
    for (; from < to; ++from, out += k * tile_rows) {
        const int64_t first = panels.before(from), rows = panels.before(from + 1) - first;
        const T *top = a + first * pitch;
        int64_t done = 0;
        for (; done < rows && done + 4 <= tile_rows && first + done + 4 <= m; done += 4) {
            int64_t p = 0;
            for (; p + 4 <= k; p += 4) transpose_square(top + done * pitch + p, pitch, out + p * tile_rows + done, tile_rows);
            for (; p < k; ++p) {
                for (int64_t i = done; i < done + 4; ++i) out[p * tile_rows + i] = top[i * pitch + p];
            }
        }
        for (; done < rows; ++done) {
            for (int64_t p = 0; p < k; ++p) out[p * tile_rows + done] = top[done * pitch + p];
        }
    }
}

/* The same of an A that is stored by columns. */
template <class T> void pack_columns(const T *a, int64_t pitch, int64_t m, int64_t k, const Parts &panels, int64_t from, int64_t to, T *out) {
    for (int64_t p = 0; p < k; ++p, a += pitch, out += tile_rows) {
        T *panel = out;
        for (int64_t which = from; which < to; ++which, panel += k * tile_rows) {
            const int64_t first = panels.before(which), rows = panels.before(which + 1) - first;
            if (first + tile_rows <= m) {
                std::memcpy(panel, a + first, tile_rows * sizeof(T));
            } else {
                for (int64_t i = 0; i < rows; ++i) panel[i] = a[first + i];
            }
        }
    }
}

/* A block of C, `m` x `n` and `k` deep. B is packed, and so is A if `pitch` is 0; or else its rows are so far apart. */
template <class T> struct Block {
    int64_t m, n, k;
    const T *a;
    int64_t pitch;
    const T *b;
    T alpha, beta;
    T *c;
    int64_t ldc;

    /* Stores A in other memory; `apart` is how far apart the rows or columns are that are one behind the other. */
    void pack_a(T *to, bool transposed, int64_t apart) {
        const Parts panels(m, tile_rows);
        in_ranges(panels.count, 2 * k * tile_rows * static_cast<int64_t>(sizeof(T)), [&](int64_t from, int64_t end) {
            const auto pack = transposed ? pack_columns<T> : pack_rows<T>;
            pack(a, apart, m, k, panels, from, end, to + from * k * tile_rows);
        });
        a = to;
        pitch = 0;
    }

    FL_INLINE void tile_at(const Parts &panels, int64_t panel, int64_t strip) const {
        const int64_t row = panels.before(panel), rows = panels.before(panel + 1) - row;
        const int64_t first = strip * strip_width<T>, width = n - first < strip_width<T> ? n - first : strip_width<T>;
        const T *rows_of_a = pitch == 0 ? a + panel * k * tile_rows : a + row * pitch;
        const Operands<T> o = {k, rows_of_a, pitch, 1, b + first * k, padded<T>(width), alpha, beta, c + row * ldc + first, ldc, width};
        if (width > lanes<T>) return pitch == 0 ? tile_of_rows<tile_rows, 2, tile_rows>(rows, o) : tile_of_rows<tile_rows, 2>(rows, o);
        return pitch == 0 ? tile_of_rows<tile_rows, 1, tile_rows>(rows, o) : tile_of_rows<tile_rows, 1>(rows, o);
    }

    void operator()() const {
        const Parts panels(m, tile_rows), down(panels.count, group), across(parts_of(n, strip_width<T>), group);
        in_pieces(down.count * across.count, [&](int64_t which) {
            const int64_t x = which / down.count, y = which % down.count;
            /* What is used again at once is what the first cache has room for: a panel of many rows, or a narrow strip. */
            if (vector_bytes == 64) {
                for (int64_t panel = down.before(y); panel < down.before(y + 1); ++panel) {
                    for (int64_t strip = across.before(x); strip < across.before(x + 1); ++strip) tile_at(panels, panel, strip);
                }
            } else {
                for (int64_t strip = across.before(x); strip < across.before(x + 1); ++strip) {
                    for (int64_t panel = down.before(y); panel < down.before(y + 1); ++panel) tile_at(panels, panel, strip);
                }
            }
        });
    }
};

/* Up to so many columns A is read where it is, if it is stored by rows that do not fall on the same places of a cache. */
constexpr int64_t most_columns_unpacked = 256, page = 4096;

template <class T> int by_blocks(fl_call *call, const Product<T> &g) {
    const int64_t most_rows = g.m < block_rows ? g.m : block_rows, most_columns = g.n < block_columns ? g.n : block_columns;
    const Parts layers(g.k, depth);
    const int64_t most_deep = parts_of(g.k, layers.count);
    const bool in_place = !g.trans_a && g.n <= most_columns_unpacked && g.k * static_cast<int64_t>(sizeof(T)) % page != 0;
    const int64_t of_a = in_place ? 0 : parts_of(most_rows, tile_rows) * tile_rows * most_deep;
    const int64_t of_b = parts_of(most_columns, strip_width<T>) * strip_width<T> * most_deep;
    const int64_t bytes = (of_a + of_b) * static_cast<int64_t>(sizeof(T)) + 64;
    T *const b = static_cast<T *>(product_memory(bytes)), *const a = b + of_b;
    if (b == nullptr) return no_memory(call, bytes);
    const int64_t across = g.trans_b ? g.k : 1, down = g.trans_b ? 1 : g.n;
    for (int64_t column = 0; column < g.n; column += most_columns) {
        const int64_t n = g.n - column < most_columns ? g.n - column : most_columns;
        for (int64_t layer = 0; layer < layers.count; ++layer) {
            const int64_t begin = layers.before(layer), k = layers.before(layer + 1) - begin;
            in_ranges(parts_of(n, strip_width<T>), 2 * k * strip_width<T> * sizeof(T), [=](int64_t from, int64_t to) {
                for (int64_t first = from * strip_width<T>; from < to; ++from, first += strip_width<T>) {
                    const int64_t width = n - first < strip_width<T> ? n - first : strip_width<T>;
                    pack_strip(g.b + (column + first) * across + begin * down, across, down, k, width, b + first * k);
                }
            });
            for (int64_t row = 0; row < g.m; row += most_rows) {
                const int64_t m = g.m - row < most_rows ? g.m - row : most_rows;
                const T *given = g.a + (g.trans_a ? begin * g.m + row : row * g.k + begin);
                Block<T> block = {m, n, k, given, g.k, b, g.alpha, layer == 0 ? g.beta : T(1), g.c + row * g.n + column, g.n};
                if (!in_place) block.pack_a(a, g.trans_a, g.trans_a ? g.m : g.k);
                block();
            }
        }
    }
    return FL_OK;
}

}  // namespace
}  // namespace FL_NS
}  // namespace fl
