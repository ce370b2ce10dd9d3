/* What windows of convolutions (`convolution.cc`) show of images, and how a batch of these is cut into pieces. Included once for every
 * instruction set, hence no guard. */
#include "kernels/product.h"
#include "windows.h"

namespace fl::FL_NS {
namespace {

constexpr int64_t unit = 8;                    /* floats that are copied at a time, also where a run is shorter */
constexpr int64_t strip = strip_width<float>; /* places that are multiplied at a time */
constexpr int64_t most_copied = 1 << 18;       /* floats of the copies of several small images */

/* So many places of the window one behind the other: in memory from `from` on, in a strip from `to` on. */
struct Run {
    int64_t from, to, size;
};

/* Where the places of images lie: `line` of them one behind the other, such lines `pitch` apart, images `image` apart. */
struct ImagePositions {
    int64_t each, line, pitch, image; /* `each`: how many an image has */

    /* Of `count` places from the first one on; at most as many runs. */
    int64_t runs(int64_t first, int64_t count, Run *out) const {
        int64_t made = 0;
        for (int64_t to = 0; to < count;) {
            const int64_t which = (first + to) / each, rest = (first + to) % each, x = rest % line;
            const int64_t size = std::min(line - x, count - to);
            out[made++] = {which * image + rest / line * pitch + x, to, size};
            to += size;
        }
        return made;
    }
};

/* What pieces work on: parts of the images, and parts of what is made of each. */
struct BatchCut {
    int64_t images, channels;

    int64_t pieces() const { return images * channels; }
};

/* The largest power of two that is not above `count`; at least 1. */
int64_t power_of_two(int64_t count) {
    int64_t power = 1;
    while (2 * power <= count) power *= 2;
    return power;
}

struct ConvShape {
    int64_t n, c, h, w, oc, kh, kw, sh, sw, top, left, dh, dw, oh, ow;
    /* What windows read: rows of parts with every phases-th column each, `part` apart, of which `kept` are read; windows are `down` rows
     * apart; `row`, `plane`, `image` floats. */
    bool copied;
    int64_t phases, kept, part, down, row, plane, image;

    explicit ConvShape(const int64_t *i)
        : n(i[0]), c(i[1]), h(i[2]), w(i[3]), oc(i[4]), kh(i[5]), kw(i[6]), sh(i[7]), sw(i[8]), top(i[9]), left(i[11]), dh(i[13]), dw(i[14]) {
        oh = count_windows(h, top, i[10], kh, dh, sh);
        ow = count_windows(w, left, i[12], kw, dw, sw);
        const bool bordered = top != 0 || i[10] != 0 || left != 0 || i[12] != 0;
        copied = bordered || sw != 1 || (ow % unit != 0 && !(sh == 1 && w == ow));
        phases = sw;
        kept = kw == 1 ? 1 : phases;
        down = copied && kh == 1 ? 1 : sh;
        part = copied ? ((ow - 1) * sw + (kw - 1) * dw) / sw + 1 : w;
        row = copied ? kept * part : w;
        plane = copied ? row * ((oh - 1) * down + (kh - 1) * dh + 1) : h * w;
        image = c * plane;
    }

    bool empty() const { return n == 0 || c == 0 || oc == 0 || kh == 0 || kw == 0; }

    /* Reports that no window fits into the images. */
    int refuse(fl_call *call) const { return oh == 0 ? too_large(call, (kh - 1) * dh + 1, h + top + call->i[10]) : too_large(call, (kw - 1) * dw + 1, w + left + call->i[12]); }
    bool impossible() const { return oh == 0 || ow == 0; }
    int64_t depth_of_window() const { return c * kh * kw; }
    int64_t weights() const { return oc * depth_of_window(); }

    /* How far from what the window shows first element k of it is. */
    void offsets(int64_t *out) const {
        for (int64_t ch = 0; ch < c; ++ch) {
            for (int64_t y = 0; y < kh; ++y) {
                for (int64_t x = 0; x < kw; ++x) *out++ = ch * plane + y * dh * row + x * dw % phases * part + x * dw / phases;
            }
        }
    }

    ImagePositions read() const {
        const bool flat = down * row == ow;
        return {oh * ow, flat ? oh * ow : ow, flat ? 0 : down * row, image};
    }

    ImagePositions made() const { return {oh * ow, oh * ow, 0, oc * oh * ow}; }

    /* Images whose places are gone through together: small ones, until they fill strips. */
    int64_t group() const {
        const int64_t wanted = depth / (oh * ow) + 1, room = std::max<int64_t>(1, most_copied / image);
        return std::min({n, wanted, room});
    }

    /* Pieces that there is work for: multiply-adds, and what is read and written, which takes as long as 16. */
    int64_t worth() const {
        return (n * oh * ow * weights() + 16 * n * (c * h * w + oc * oh * ow)) >> 22;
    }

    /* How many pieces a batch is cut into; `largest` floats belong to each. */
    int64_t pieces(int64_t largest) const {
        const int64_t by_memory = std::max<int64_t>((1 << 22) / (largest + 1), 2);
        return power_of_two(std::min({n * oh * ow >> 6, worth(), by_memory, int64_t(16), n}));
    }

    /* Into images, or where these are few also into parts of `channels` that are made, of 32 or more. */
    BatchCut cut(int64_t channels) const {
        const int64_t images = pieces(0), wanted = power_of_two(std::min<int64_t>(worth(), 4));
        return {images, power_of_two(std::min(wanted / images, channels / 32))};
    }

    int64_t first_image(int64_t which, int64_t count) const { return which * n / count; }

    /* Whether each element is read by one window, or by none. */
    bool once() const { return kh == 1 && kw == 1 && (copied || sh == 1); }

    /* Calls f(row of an image, row of its copy) for some channels: where they begin, and -1 where the copy shows nothing of the image. */
    template <class F> void rows_of_copy(int64_t first, int64_t end, F f) const {
        const int64_t rows = plane / row;
        for (int64_t ch = first; ch < end; ++ch) {
            for (int64_t r = 0; r < rows; ++r) {
                const int64_t y = r * (sh / down) - top;
                f(y >= 0 && y < h ? (ch * h + y) * w : -1, ch * plane + r * row);
            }
        }
    }

    /* Part f of a copied row: its elements `begin` to `end` show columns from `first` on, `phases` apart. */
    struct Shown {
        int64_t begin, end, first;
    };
    Shown shown(int64_t f) const {
        const int64_t before = left - f, begin = before > 0 ? (before + phases - 1) / phases : 0; /* q * phases + f >= left */
        const int64_t beyond = w + left - f, end = beyond > 0 ? (beyond + phases - 1) / phases : 0;
        return {std::min(begin, part), std::max(std::min(end, part), std::min(begin, part)), begin * phases + f - left};
    }

    void copy_image(const float *x, float *out) const {
        for (int64_t f = 0; f < kept; ++f) {
            const Shown within = shown(f);
            rows_of_copy(0, c, [&](int64_t from, int64_t to) {
                float *const made = out + to + f * part;
                const Shown s = from < 0 ? Shown{part, part, 0} : within;
                for (int64_t q = 0; q < s.begin; ++q) made[q] = 0;
                const float *const row_of_x = x + from + s.first;
                if (phases == 1) {
                    std::memcpy(made + s.begin, row_of_x, static_cast<size_t>(s.end - s.begin) * sizeof(float));
                } else {
                    for (int64_t q = s.begin; q < s.end; ++q) made[q] = row_of_x[(q - s.begin) * phases];
                }
                for (int64_t q = s.end; q < part; ++q) made[q] = 0;
            });
        }
    }

    /* Channels of the image whose copy that is: zero where no window has read. */
    void image_of_copy(const float *copy, float *x, int64_t first, int64_t end) const {
        std::memset(x + first * h * w, 0, static_cast<size_t>((end - first) * h * w) * sizeof(float));
        for (int64_t f = 0; f < kept; ++f) {
            const Shown s = shown(f);
            rows_of_copy(first, end, [&](int64_t from, int64_t to) {
                if (from < 0) return;
                const float *const made = copy + to + f * part;
                for (int64_t q = s.begin; q < s.end; ++q) x[from + s.first + (q - s.begin) * phases] = made[q];
            });
        }
    }
};

/* What `lay(arena)` makes of the workspace of a thread. */
template <int USE, class F> auto in_workspace(const F &lay) {
    Arena arena;
    lay(arena);
    arena.begin(Workspace<USE>::of_this_thread(static_cast<size_t>(arena.bytes())));
    return lay(arena);
}

/* For each offset a row of what is there from it on, in units of so many floats. What a row has too much then, the next run or row writes
 * over, and in the end it stands behind all. */
template <int UNIT>
void gather_rows(const float *from, const int64_t *offsets, int64_t rows, const Run *runs, int64_t n, float *to, int64_t pitch) {
    for (int64_t k = 0; k < rows; ++k, to += pitch) {
        const float *const row = from + offsets[k];
        for (const Run *r = runs; r < runs + n; ++r) {
            const float *const a = row + r->from;
            float *const b = to + r->to;
            for (int64_t t = 0; t < r->size; t += UNIT) std::memcpy(b + t, a + t, UNIT * sizeof(float));
        }
    }
}

/* `copied`: it is read out of a copy, behind which there is room. */
void gather(bool copied, const float *from, const int64_t *offsets, int64_t rows, const Run *runs, int64_t n, float *to, int64_t pitch) {
    int64_t sizes = 0; /* whose last bits say what all sizes are multiples of */
    for (int64_t k = 0; k < n; ++k) sizes |= runs[k].size;
    if (copied || sizes % unit == 0) return gather_rows<unit>(from, offsets, rows, runs, n, to, pitch);
    if (sizes % 4 == 0) return gather_rows<4>(from, offsets, rows, runs, n, to, pitch);
    gather_rows<1>(from, offsets, rows, runs, n, to, pitch);
}

/* Adds rows of a strip to where the window has read, or puts them there. */
template <bool ADD>
void scatter_rows(const float *from, const int64_t *offsets, int64_t rows, const Run *runs, int64_t n, float *to) {
    for (int64_t k = 0; k < rows; ++k, from += strip) {
        float *const row = to + offsets[k];
        for (const Run *r = runs; r < runs + n; ++r) {
            float *const b = row + r->from;
            const float *const a = from + r->to;
            const int64_t units = r->size / unit * unit;
            for (int64_t t = 0; t < units; t += unit) {
                FL_LOOP
                for (int64_t s = t; s < t + unit; ++s) b[s] = ADD ? b[s] + a[s] : a[s];
            }
            for (int64_t t = units; t < r->size; ++t) b[t] = ADD ? b[t] + a[t] : a[t];
        }
    }
}

/* The images of a group as windows read them. */
const float *as_read(const ConvShape &g, const float *x, int64_t first, int64_t images, float *copy) {
    if (!g.copied) return x + first * g.image;
    for (int64_t k = 0; k < images; ++k) g.copy_image(x + (first + k) * g.c * g.h * g.w, copy + k * g.image);
    return copy;
}

/* Room for the copies of a group, and what is read too much at their end. */
int64_t room_for_copies(const ConvShape &g) { return g.copied ? g.group() * g.image + unit : 0; }

/* Calls f(first image, images) for the groups of a piece. */
template <class F> void in_groups(const ConvShape &g, int64_t piece, int64_t pieces, F f) {
    const int64_t end = g.first_image(piece + 1, pieces), most = g.group();
    for (int64_t first = g.first_image(piece, pieces); first < end; first += most) f(first, std::min(most, end - first));
}

}  // namespace
}  // namespace fl::FL_NS
