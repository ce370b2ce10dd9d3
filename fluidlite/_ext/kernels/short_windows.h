/* Windows of three and four rows by fewer products (Winograd's minimal filtering). Included once for every instruction set, hence no
 * guard.
 *
 * `results` neighbouring rows of a convolution read `window` rows of X. These, and the rows of the filter, are mixed into `points`
 * rows each, which are multiplied in pairs; the results are sums and differences of these products. A row of four, whose windows have
 * four rows, costs 9 / 4 products in the place of four, one of two whose windows have three rows 2. The gradients are the same backwards:
 * what was mixed one way is mixed the other way. Only rows that a window reads take part in its result, so that what is no number goes no
 * further than it does otherwise; rounding errors are those of the largest element that is read.
 */
#include "kernels/product.h"

namespace fl::FL_NS {
namespace {

template <int ROWS, int COLS> struct Mix {
    float by[ROWS][COLS];

    constexpr Mix<COLS, ROWS> turned() const {
        Mix<COLS, ROWS> out{};
        for (int j = 0; j < ROWS; ++j) {
            for (int t = 0; t < COLS; ++t) out.by[t][j] = by[j][t];
        }
        return out;
    }
};

template <int LENGTH> struct Short;

template <> struct Short<3> {
    static constexpr int length = 3, results = 2, window = 4, points = 4;
    static constexpr Mix<4, 4> data{{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}};
    static constexpr Mix<4, 3> filter{{{1, 0, 0}, {.5f, .5f, .5f}, {.5f, -.5f, .5f}, {0, 0, 1}}};
    static constexpr Mix<2, 4> result{{{1, 1, 1, 0}, {0, 1, -1, -1}}};
};

/* Two rows whose windows have two, three products in the place of four, once for pairs of rows and once within them. */
struct Twice {
    static constexpr int pair_data[3][3] = {{1, -1, 0}, {0, 1, 0}, {0, 1, -1}}, pair_filter[3][2] = {{1, 0}, {1, 1}, {0, 1}},
                         pair_result[2][3] = {{1, 1, 0}, {0, 1, -1}};

    static constexpr Mix<9, 7> mixed_data() {
        Mix<9, 7> out{};
        for (int j = 0; j < 9; ++j) {
            for (int s = 0; s < 3; ++s) {
                for (int t = 0; t < 3; ++t) out.by[j][2 * s + t] += static_cast<float>(pair_data[j / 3][s] * pair_data[j % 3][t]);
            }
        }
        return out;
    }
    static constexpr Mix<9, 4> mixed_filter() {
        Mix<9, 4> out{};
        for (int j = 0; j < 9; ++j) {
            for (int t = 0; t < 4; ++t) out.by[j][t] = static_cast<float>(pair_filter[j / 3][t / 2] * pair_filter[j % 3][t % 2]);
        }
        return out;
    }
    static constexpr Mix<4, 9> mixed_result() {
        Mix<4, 9> out{};
        for (int t = 0; t < 4; ++t) {
            for (int j = 0; j < 9; ++j) out.by[t][j] = static_cast<float>(pair_result[t / 2][j / 3] * pair_result[t % 2][j % 3]);
        }
        return out;
    }
};

template <> struct Short<4> {
    static constexpr int length = 4, results = 4, window = 7, points = 9;
    static constexpr Mix<9, 7> data = Twice::mixed_data();
    static constexpr Mix<9, 4> filter = Twice::mixed_filter();
    static constexpr Mix<4, 9> result = Twice::mixed_result();
};

/* Row j of `to` is the sum of the rows of `from`, each times what the table says (to which it is added, if ADDS). */
template <class Table, bool ADDS, int TO, int FROM> FL_NOINLINE void mix(const float *const (&from)[FROM], float *const (&to)[TO], int64_t n) {
    FL_LOOP
    for (int64_t q = 0; q < n; ++q) {
        float given[FROM];
#pragma GCC unroll 16
        for (int t = 0; t < FROM; ++t) given[t] = from[t][q];
#pragma GCC unroll 16
        for (int j = 0; j < TO; ++j) {
            float sum = ADDS ? to[j][q] : -0.0f; /* adding to -0 changes nothing, and is left out */
#pragma GCC unroll 16
            for (int t = 0; t < FROM; ++t) {
                constexpr auto table = Table::table;
                const float by = table.by[j][t];
                if (by == 1) {
                    sum += given[t];
                } else if (by == -1) {
                    sum -= given[t];
                } else if (by != 0) {
                    sum += by * given[t];
                }
            }
            to[j][q] = sum;
        }
    }
}

template <class S> struct DataTable { static constexpr auto table = S::data; };
template <class S> struct FilterTable { static constexpr auto table = S::filter; };
template <class S> struct ResultTable { static constexpr auto table = S::result; };
template <class Table> struct Turned { static constexpr auto table = Table::table.turned(); };

/* Sizes from which mixing rows and the filter costs clearly less than the products that it saves; the smallest vectors leave larger products
 * to a BLAS. */
constexpr int64_t least_of_short = 32, least_rows_of_short = 128, most_filter_of_short = 1 << 18, bytes_of_short = 1 << 19;

inline bool is_for_short_windows(int64_t rows, int64_t width, int64_t columns, int64_t length) {
    return vector_bytes > 16 && (length == 3 || length == 4) && rows >= least_rows_of_short && width >= least_of_short &&
           columns >= least_of_short && width <= most_filter_of_short / columns && width * columns <= rows << 8;
}

/* A convolution of sequences, whose windows begin `start` rows away from each row. */
template <class S> class ShortWindows {
  public:
    ShortWindows(const int64_t *offsets, int64_t sequences, int64_t width, int64_t columns, int64_t start)
        : offsets_(offsets), sequences_(sequences), width_(width), columns_(columns), start_(start) {
        for (int64_t s = 0; s < sequences; ++s) tiles_ += (offsets[s + 1] - offsets[s] + S::results - 1) / S::results;
        together_ = bytes_of_short / (S::points * (width + columns) * static_cast<int64_t>(sizeof(float))) / 12 * 12;
        together_ = together_ < 48 ? 48 : together_;
        together_ = together_ > tiles_ ? tiles_ : together_;
    }

    /* Takes the memory of a call; FL_NO_MEMORY if there is none. */
    int begin(fl_call *call) {
        const int64_t wide = width_ > columns_ ? width_ : columns_;
        packed_size_ = std::max(Packed<float>::size(width_, columns_), Packed<float>::size(columns_, width_));
        const int code = in_scratch(call, [this, wide](Arena &arena) {
            list_ = arena.take<Tile>(tiles_);
            zeros_ = arena.take<float>(wide), nowhere_ = arena.take<float>(wide), filter_ = arena.take<float>(S::points * width_ * columns_);
            packed_ = arena.take<float>(S::points * packed_size_), data_ = arena.take<float>(S::points * together_ * width_);
            result_ = arena.take<float>(S::points * together_ * columns_);
        });
        if (code != FL_OK) return code;
        std::fill(zeros_, zeros_ + wide, 0.0f);
        std::fill(nowhere_, nowhere_ + wide, 0.0f);
        Tile *next = list_;
        for (int64_t s = 0; s < sequences_; ++s) {
            for (int64_t row = offsets_[s]; row < offsets_[s + 1]; row += S::results) *next++ = {row, offsets_[s], offsets_[s + 1]};
        }
        return FL_OK;
    }

    void forward(const float *x, const float *filter, float *out) {
        pack(filter, false);
        for (int64_t first = 0; first < tiles_; first += together_) {
            const int64_t count = std::min(together_, tiles_ - first);
            mix_data(x, first, count);
            in_pieces(S::points, [this, count](int64_t j) {
                packed(j, width_, columns_).multiply(count, data_ + j * count * width_, 0.0f, result_ + j * count * columns_);
            });
            in_tiles(count, columns_, [=](int64_t tile) {
                const float *from[S::points];
                float *to[S::results];
                const Tile &t = list_[first + tile];
                for (int64_t j = 0; j < S::points; ++j) from[j] = result_ + (j * count + tile) * columns_;
                for (int64_t r = 0; r < S::results; ++r) to[r] = t.row + r < t.end ? out + (t.row + r) * columns_ : nowhere_;
                mix<ResultTable<S>, false>(from, to, columns_);
            });
        }
    }

    /* dx or dfilter may be NULL. */
    void backward(const float *x, const float *filter, const float *dout, float *dx, float *dfilter, int64_t rows) {
        if (dx != nullptr) {
            pack(filter, true);
            std::fill(dx, dx + rows * width_, 0.0f);
        }
        for (int64_t first = 0; first < tiles_; first += together_) {
            const int64_t count = std::min(together_, tiles_ - first);
            if (dfilter != nullptr) mix_data(x, first, count);
            in_tiles(count, columns_, [=](int64_t tile) {
                const float *from[S::results];
                float *to[S::points];
                const Tile &t = list_[first + tile];
                for (int64_t r = 0; r < S::results; ++r) from[r] = t.row + r < t.end ? dout + (t.row + r) * columns_ : zeros_;
                for (int64_t j = 0; j < S::points; ++j) to[j] = result_ + (j * count + tile) * columns_;
                mix<Turned<ResultTable<S>>, false>(from, to, columns_);
            });
            in_pieces(S::points, [=](int64_t j) {
                float *const data = data_ + j * count * width_, *const result = result_ + j * count * columns_;
                if (dfilter != nullptr) {
                    multiply(nullptr, Product<float>{width_, columns_, count, true, false, 1.0f, first > 0 ? 1.0f : 0.0f, data, result,
                                                     filter_ + j * width_ * columns_});
                }
                if (dx != nullptr) packed(j, columns_, width_).multiply(count, result, 0.0f, data);
            });
            for (int64_t tile = 0; dx != nullptr && tile < count; ++tile) { /* neighbours add to the same rows */
                const float *from[S::points];
                float *to[S::window];
                for (int64_t j = 0; j < S::points; ++j) from[j] = data_ + (j * count + tile) * width_;
                rows_of_window(list_[first + tile], dx, nowhere_, to);
                mix<Turned<DataTable<S>>, true>(from, to, width_);
            }
        }
        if (dfilter != nullptr) {
            const int64_t n = width_ * columns_;
            const float *from[S::points];
            float *to[S::length];
            for (int64_t j = 0; j < S::points; ++j) from[j] = filter_ + j * n;
            for (int64_t t = 0; t < S::length; ++t) to[t] = dfilter + t * n;
            mix<Turned<FilterTable<S>>, false>(from, to, n);
        }
    }

  private:
    struct Tile {
        int64_t row, begin, end;
    };

    Packed<float> packed(int64_t j, int64_t k, int64_t n) const {
        Packed<float> found(k, n);
        found.memory = packed_ + j * packed_size_;
        return found;
    }

    void pack(const float *filter, bool transposed) {
        const int64_t n = width_ * columns_;
        const float *from[S::length];
        float *to[S::points];
        for (int64_t t = 0; t < S::length; ++t) from[t] = filter + t * n;
        for (int64_t j = 0; j < S::points; ++j) to[j] = filter_ + j * n;
        mix<FilterTable<S>, false>(from, to, n);
        for (int64_t j = 0; j < S::points; ++j) {
            packed(j, transposed ? columns_ : width_, transposed ? width_ : columns_).pack(to[j], transposed, 2);
        }
    }

    template <class T> void rows_of_window(const Tile &tile, T *x, T *outside, T *(&rows)[S::window]) const {
        for (int64_t t = 0; t < S::window; ++t) {
            const int64_t row = tile.row + start_ + t;
            rows[t] = row >= tile.begin && row < tile.end ? x + row * width_ : outside;
        }
    }

    template <class F> void in_tiles(int64_t count, int64_t width, const F &f) const {
        in_ranges(count, (S::points + S::results) * width * static_cast<int64_t>(sizeof(float)), [&f](int64_t begin, int64_t end) {
            for (int64_t tile = begin; tile < end; ++tile) f(tile);
        });
    }

    void mix_data(const float *x, int64_t first, int64_t count) {
        in_tiles(count, width_, [=](int64_t tile) {
            const float *from[S::window];
            float *to[S::points];
            rows_of_window<const float>(list_[first + tile], x, zeros_, from);
            for (int64_t j = 0; j < S::points; ++j) to[j] = data_ + (j * count + tile) * width_;
            mix<DataTable<S>, false>(from, to, width_);
        });
    }

    const int64_t *offsets_;
    int64_t sequences_, width_, columns_, start_, tiles_ = 0, together_ = 0, packed_size_ = 0;
    Tile *list_ = nullptr;
    float *zeros_ = nullptr, *nowhere_ = nullptr, *filter_ = nullptr, *packed_ = nullptr, *data_ = nullptr,
          *result_ = nullptr;
};

}  // namespace
}  // namespace fl::FL_NS
