/* Convolutions of images as they lie (NCHW; filters OIHW), without groups, by the tiles of products.
 *
 * A convolution is a product of the filters and a matrix that has a column for each place of the window, with what the window
 * shows there. Here that matrix is never in memory: a strip of its columns at a time is put together in the first cache, where
 * all filters are multiplied by it. The gradient of the images is the product of the transposed filters with a strip of what
 * comes back, added to where the window has read; that of the filters has the places as depth. Where windows look beyond the
 * borders, or skip columns, they read a copy with borders, in which columns that follow each other in a strip are neighbours. A
 * batch is cut into pieces of images by its size, and one of few places by channels of what is made.
 */
#ifndef FL_NS

#include <algorithm>
#include <atomic>

#include "kernels/topics.h"
#include "kernels/vec_math.h"
#include "parallel.h"
#include "workspace.h"

#define FL_WIDE
#define FL_SELF "kernels/convolution.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_convolution = FL_TOPIC(convolution_table);

#else

#include "kernels/image_windows.h"

namespace fl::FL_NS {
namespace {

/* Result = activation(product * factor + shift) of each channel. */
struct Ending {
    const float *factor, *shift;
    int64_t act;
};

template <int ACT>
void put_rows(const float *from, int64_t rows, const Ending &end, const Run *runs, int64_t n, float *to, int64_t pitch) {
    for (int64_t k = 0; k < rows; ++k, from += strip, to += pitch) {
        const float factor = end.factor[k], shift = end.shift[k];
        for (const Run *r = runs; r < runs + n; ++r) {
            const float *const a = from + r->to;
            float *const b = to + r->from;
            FL_LOOP
            for (int64_t t = 0; t < r->size; ++t) b[t] = vm::activate<ACT>(a[t] * factor + shift);
        }
    }
}

void put(const float *from, int64_t rows, const Ending &end, const Run *runs, int64_t n, float *to, int64_t pitch) {
    switch (end.act) {
        case act_relu: return put_rows<act_relu>(from, rows, end, runs, n, to, pitch);
        case act_sigmoid: return put_rows<act_sigmoid>(from, rows, end, runs, n, to, pitch);
        case act_tanh: return put_rows<act_tanh>(from, rows, end, runs, n, to, pitch);
        default: return put_rows<act_none>(from, rows, end, runs, n, to, pitch);
    }
}

void forward_piece(const ConvShape &g, BatchCut cut, int64_t piece, const float *x, const float *filter, const int64_t *offsets, Ending end, float *y) {
    struct Room {
        float *copy, *window, *sums;
    };
    const Room room = in_workspace<0>([&g](Arena &arena) {
        return Room{arena.take<float>(room_for_copies(g)), arena.take<float>(depth * strip + unit),
                    arena.take<float>(g.oc * strip)};
    });
    const ImagePositions read = g.read(), made = g.made();
    const int64_t in_window = g.depth_of_window(), channel = piece % cut.channels;
    const int64_t begin = channel * g.oc / cut.channels, filters = (channel + 1) * g.oc / cut.channels - begin;
    filter += begin * in_window, end.factor += begin, end.shift += begin, y += begin * made.each;
    Run from[strip], to[strip];
    in_groups(g, piece / cut.channels, cut.images, [&](int64_t first_image, int64_t images) {
        const float *const seen = as_read(g, x, first_image, images, room.copy);
        for (int64_t first = 0; first < images * read.each; first += strip) {
            const int64_t count = std::min(strip, images * read.each - first), pitch = padded<float>(count);
            const int64_t n_from = read.runs(first, count, from), n_to = made.runs(first, count, to);
            for (int64_t k = 0; k < in_window; k += depth) {
                const int64_t rows = std::min(depth, in_window - k);
                gather(g.copied, seen, offsets + k, rows, from, n_from, room.window, pitch);
                all_rows(filters, TileOperands<float>{rows, filter + k, in_window, 1, room.window, pitch, 1, k == 0 ? 0.0f : 1.0f, room.sums, strip, pitch});
            }
            put(room.sums, filters, end, to, n_to, y + first_image * made.image, made.each);
        }
    });
}

/* Rows of a transposed filter that are multiplied together: tiles of about the same height. */
int64_t rows_together(int64_t rows) {
    const int64_t tiles = (rows + tile_rows - 1) / tile_rows;
    return (rows + tiles - 1) / tiles;
}

/* Filters [oc, window] as tiles of `height` of their columns: of each tile row by row. */
void transpose_filter(const ConvShape &g, const float *filter, int64_t height, float *out) {
    const int64_t in_window = g.depth_of_window();
    in_ranges((in_window + height - 1) / height, 2 * height * g.oc * static_cast<int64_t>(sizeof(float)), [=](int64_t begin, int64_t end) {
        const int64_t last = std::min(end * height, in_window);
        constexpr int64_t together = 16; /* filters, of which lines of the cache are used up */
        for (int64_t first = 0; first < g.oc; first += together) {
            for (int64_t k = begin * height; k < last; k += height) {
                const int64_t rows = std::min(height, in_window - k);
                for (int64_t o = first; o < std::min(first + together, g.oc); ++o) {
                    for (int64_t t = 0; t < rows; ++t) out[k * g.oc + o * rows + t] = filter[o * in_window + k + t];
                }
            }
        }
    });
}

void input_piece(const ConvShape &g, BatchCut cut, int64_t piece, const float *tiles, int64_t height, const float *dy,
                 const int64_t *offsets, const int64_t *channels, float *dx) {
    struct Room {
        float *copy, *back, *sums;
    };
    const Room room = in_workspace<0>([&g](Arena &arena) {
        return Room{arena.take<float>(room_for_copies(g)), arena.take<float>(g.oc * strip + unit),
                    arena.take<float>(tile_rows * strip)};
    });
    const ImagePositions read = g.read(), made = g.made();
    const int64_t in_window = g.depth_of_window(), window = g.kh * g.kw, heights = (in_window + height - 1) / height, part = piece % cut.channels;
    const int64_t begin = part * heights / cut.channels * height, end = std::min(in_window, (part + 1) * heights / cut.channels * height);
    const bool once = g.once();
    Run from[strip], to[strip];
    in_groups(g, piece / cut.channels, cut.images, [&](int64_t first_image, int64_t images) {
        float *const target = g.copied ? room.copy : dx + first_image * g.image;
        if (!once) std::memset(target, 0, static_cast<size_t>(images * g.image) * sizeof(float));
        for (int64_t first = 0; first < images * read.each; first += strip) {
            const int64_t count = std::min(strip, images * read.each - first), pitch = padded<float>(count);
            const int64_t n_to = read.runs(first, count, to), n_from = made.runs(first, count, from);
            gather(false, dy + first_image * made.image, channels, g.oc, from, n_from, room.back, pitch);
            for (int64_t k = begin; k < end; k += height) {
                const int64_t rows = std::min(height, end - k);
                for (int64_t o = 0; o < g.oc; o += depth) {
                    all_rows(rows, TileOperands<float>{std::min(depth, g.oc - o), tiles + k * g.oc + o * rows, 1, rows, room.back + o * pitch, pitch, 1,
                                                   o == 0 ? 0.0f : 1.0f, room.sums, strip, pitch});
                }
                if (once) {
                    scatter_rows<false>(room.sums, offsets + k, rows, to, n_to, target);
                } else {
                    scatter_rows<true>(room.sums, offsets + k, rows, to, n_to, target);
                }
            }
        }
        for (int64_t k = 0; g.copied && k < images; ++k) {
            g.image_of_copy(room.copy + k * g.image, dx + (first_image + k) * g.c * g.h * g.w, begin / window, end / window);
        }
    });
}

/* The gradient of filters is made as [window, oc], so that places of the window are gathered row by row; where the window has one element, as it is. */
struct Sides {
    bool swapped; /* [window, oc] */
    int64_t rows, columns, pitch;

    explicit Sides(const ConvShape &g) : swapped(g.kh * g.kw > 1), rows(swapped ? g.depth_of_window() : g.oc), columns(swapped ? g.oc : g.c) {
        pitch = (columns / strip * strip) + (columns % strip > 0 ? padded<float>(columns % strip) : 0);
    }
    int64_t size() const { return rows * pitch; }
};

constexpr int64_t rows_gathered = 4 * tile_rows, gathered_pitch = depth + 2 * unit; /* not a multiple of the cache's lines */

/* A part of the gradient: `height` rows from the first one on, and strips of columns. */
struct GradBlock {
    int64_t row, height, strip_begin, strip_end;
};

/* How the gradient is cut: into sums over parts of the images, which stay with the thread that has made them, as long as the sums have no
 * more elements than these; or into blocks, for which threads read all images. */
struct Blocks {
    int64_t images, down = 1, across = 1;

    Blocks(const ConvShape &g, const Sides &sides) : images(g.pieces(sides.size())) {
        if (sides.swapped) return;
        images = power_of_two(std::min(images, g.n * (g.c * g.h * g.w + g.oc * g.oh * g.ow) / sides.size()));
        const int64_t wanted = power_of_two(std::min<int64_t>(g.worth(), 8)), strips = (sides.columns + strip - 1) / strip;
        const int64_t by_column = power_of_two(std::min(strips, wanted)), by_row = power_of_two(std::min(wanted / by_column, sides.rows / 16));
        if (images < std::min<int64_t>(wanted, 4) && images < by_column * by_row) images = 1, across = by_column, down = by_row;
    }

    int64_t pieces() const { return images * down * across; }

    GradBlock block(const Sides &sides, int64_t piece) const {
        const int64_t y = piece / across % down, x = piece % across, strips = (sides.columns + strip - 1) / strip;
        const int64_t row = y * sides.rows / down;
        return {row, (y + 1) * sides.rows / down - row, x * strips / across, (x + 1) * strips / across};
    }
};

void filter_piece(const ConvShape &g, const Sides &sides, const Blocks &blocks, int64_t piece, const float *x, const float *dy, const int64_t *offsets,
                  const int64_t *channels, float *sums) {
    struct Room {
        float *copy, *rows, *columns;
        Run *seen, *back;
    };
    const Room room = in_workspace<0>([&](Arena &arena) {
        return Room{arena.take<float>(room_for_copies(g)), arena.take<float>(rows_gathered * gathered_pitch + unit),
                    arena.take<float>(depth * sides.pitch), arena.take<Run>(depth), arena.take<Run>(depth)};
    });
    const ImagePositions read = g.read(), made = g.made();
    const GradBlock block = blocks.block(sides, piece);
    const int64_t first_column = block.strip_begin * strip, end_column = std::min(block.strip_end * strip, sides.columns);
    bool begun = false;
    in_groups(g, piece / (blocks.down * blocks.across), blocks.images, [&](int64_t first_image, int64_t images) {
        const float *const seen = as_read(g, x, first_image, images, room.copy), *const back = dy + first_image * made.image;
        for (int64_t first = 0; first < images * read.each; first += depth) {
            const int64_t count = std::min(depth, images * read.each - first);
            const int64_t n_seen = read.runs(first, count, room.seen), n_back = made.runs(first, count, room.back);
            const Run *const by_column = sides.swapped ? room.back : room.seen, *const by_row = sides.swapped ? room.seen : room.back;
            const int64_t n_columns = sides.swapped ? n_back : n_seen, n_rows = sides.swapped ? n_seen : n_back;
            const float *const of_columns = sides.swapped ? back : seen, *const of_rows = sides.swapped ? seen : back;
            const int64_t across = sides.swapped ? made.each : g.plane, *const places = sides.swapped ? offsets : channels;
            for (int64_t o = first_column; o < end_column; o += strip) {
                const int64_t width = std::min(strip, sides.columns - o), pitch = padded<float>(width);
                for (const Run *r = by_column; r < by_column + n_columns; ++r) {
                    pack_strip(of_columns + o * across + r->from, across, int64_t(1), r->size, width, room.columns + o * depth + r->to * pitch);
                }
            }
            for (int64_t k = block.row; k < block.row + block.height; k += rows_gathered) {
                const int64_t rows = std::min(rows_gathered, block.row + block.height - k);
                gather(sides.swapped && g.copied, of_rows, places + k, rows, by_row, n_rows, room.rows, gathered_pitch);
                for (int64_t o = first_column; o < end_column; o += strip) {
                    const int64_t pitch = padded<float>(std::min(strip, sides.columns - o));
                    all_rows(rows, TileOperands<float>{count, room.rows, gathered_pitch, 1, room.columns + o * depth, pitch, 1, begun ? 1.0f : 0.0f,
                                                   sums + k * sides.pitch + o, sides.pitch, pitch});
                }
            }
            begun = true;
        }
    });
}

/* Adds up the sums of pieces in their order and puts them into the order of filters. */
void add_up(const ConvShape &g, const Sides &sides, const float *sums, int64_t pieces, float *filter) {
    const int64_t in_window = g.depth_of_window(), size = sides.size();
    const auto line = [=](const float *from, int64_t count, float *to) {
        std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
        for (int64_t p = 1; p < pieces; ++p) {
            FL_LOOP
            for (int64_t t = 0; t < count; ++t) to[t] += from[p * size + t];
        }
    };
    in_ranges(g.oc, in_window * pieces * static_cast<int64_t>(sizeof(float)), [=](int64_t begin, int64_t end) {
        if (!sides.swapped) {
            for (int64_t o = begin; o < end; ++o) line(sums + o * sides.pitch, in_window, filter + o * in_window);
            return;
        }
        constexpr int64_t most = 64; /* filters whose sums stay in the first cache */
        float lines[16][most];
        for (int64_t o = begin; o < end; o += most) {
            const int64_t filters = std::min(most, end - o);
            for (int64_t k = 0; k < in_window; k += 16) {
                const int64_t rows = std::min<int64_t>(16, in_window - k);
                for (int64_t j = 0; j < rows; ++j) line(sums + (k + j) * sides.pitch + o, filters, lines[j]);
                for (int64_t i = 0; i < filters; ++i) {
                    for (int64_t j = 0; j < rows; ++j) filter[(o + i) * in_window + k + j] = lines[j][i];
                }
            }
        }
    });
}

/* Calls f(piece) for all pieces; false if one found no memory. */
template <class F> bool all_pieces(int64_t pieces, const F &f) {
    std::atomic<bool> failed{false};
    in_pieces(pieces, [&](int64_t k) {
        try {
            f(k);
        } catch (const std::bad_alloc &) {
            failed.store(true);
        }
    });
    return !failed.load();
}

/* How far channels of a result are apart. */
void channel_offsets(const ConvShape &g, int64_t *out) {
    for (int64_t o = 0; o < g.oc; ++o) out[o] = o * g.oh * g.ow;
}

/* `norm`: the place of the scale, shift, mean and variance of a normalisation among the operands, or 0. */
int forward(fl_call *call, int norm) {
    const ConvShape g(call->i);
    if (g.impossible()) return g.refuse(call);
    float *const y = at<float>(call, 3);
    if (g.empty()) {
        std::memset(y, 0, static_cast<size_t>(g.n * g.oc * g.oh * g.ow) * sizeof(float));
        return FL_OK;
    }
    try {
        struct Room {
            int64_t *offsets;
            float *factor, *shift;
        };
        const Room room = in_workspace<1>([&g](Arena &arena) {
            return Room{arena.take<int64_t>(g.depth_of_window()), arena.take<float>(g.oc), arena.take<float>(g.oc)};
        });
        g.offsets(room.offsets);
        const float *const bias = at<float>(call, 2);
        for (int64_t o = 0; o < g.oc; ++o) {
            double factor = 1, shift = bias != nullptr ? static_cast<double>(bias[o]) : 0;
            if (norm != 0) {
                const auto of = [&](int k) { return static_cast<double>(at<float>(call, norm + k)[o]); };
                factor = of(0) / std::sqrt(of(3) + call->f[0]);
                shift = of(1) + (shift - of(2)) * factor;
            }
            room.factor[o] = static_cast<float>(factor);
            room.shift[o] = static_cast<float>(shift);
        }
        const Ending end = {room.factor, room.shift, activation(call, 15)};
        const float *const x = at<float>(call, 0), *const filter = at<float>(call, 1);
        const int64_t *const offsets = room.offsets;
        const BatchCut cut = g.cut(g.oc);
        if (all_pieces(cut.pieces(), [&](int64_t k) { forward_piece(g, cut, k, x, filter, offsets, end, y); })) return FL_OK;
    } catch (const std::bad_alloc &) {
    }
    return no_memory(call, g.oc * strip);
}

int conv2d_plain(fl_call *call) { return forward(call, 0); }
int conv2d_plain_norm(fl_call *call) { return forward(call, 4); }

int conv2d_plain_grad_input(fl_call *call) {
    const ConvShape g(call->i);
    if (g.impossible()) return g.refuse(call);
    float *const dx = at<float>(call, 2);
    if (g.empty()) {
        std::memset(dx, 0, static_cast<size_t>(g.n * g.c * g.h * g.w) * sizeof(float));
        return FL_OK;
    }
    try {
        struct Room {
            int64_t *offsets, *channels;
            float *tiles;
        };
        const Room room = in_workspace<1>([&g](Arena &arena) {
            return Room{arena.take<int64_t>(g.depth_of_window()), arena.take<int64_t>(g.oc), arena.take<float>(g.weights())};
        });
        g.offsets(room.offsets);
        channel_offsets(g, room.channels);
        const int64_t height = rows_together(g.depth_of_window());
        const BatchCut cut = g.cut(g.once() ? g.c : 1);
        transpose_filter(g, at<float>(call, 0), height, room.tiles);
        const float *const dy = at<float>(call, 1);
        if (all_pieces(cut.pieces(), [&](int64_t k) { input_piece(g, cut, k, room.tiles, height, dy, room.offsets, room.channels, dx); })) return FL_OK;
    } catch (const std::bad_alloc &) {
    }
    return no_memory(call, g.weights());
}

int conv2d_plain_grad_filter(fl_call *call) {
    const ConvShape g(call->i);
    if (g.impossible()) return g.refuse(call);
    float *const filter = at<float>(call, 2);
    if (g.empty()) {
        std::memset(filter, 0, static_cast<size_t>(g.weights()) * sizeof(float));
        return FL_OK;
    }
    try {
        const Sides sides(g);
        const Blocks blocks(g, sides);
        const bool direct = blocks.images == 1 && !sides.swapped && sides.pitch == sides.columns; /* there is nothing to add up or to put into order */
        struct Room {
            int64_t *offsets, *channels;
            float *sums;
        };
        const Room room = in_workspace<1>([&](Arena &arena) {
            return Room{arena.take<int64_t>(g.depth_of_window()), arena.take<int64_t>(g.oc), arena.take<float>(direct ? 0 : blocks.images * sides.size())};
        });
        g.offsets(room.offsets);
        channel_offsets(g, room.channels);
        const float *const x = at<float>(call, 0), *const dy = at<float>(call, 1);
        float *const sums = direct ? filter : room.sums;
        if (all_pieces(blocks.pieces(), [&](int64_t k) {
                filter_piece(g, sides, blocks, k, x, dy, room.offsets, room.channels, sums + k / (blocks.down * blocks.across) * sides.size());
            })) {
            if (!direct) add_up(g, sides, sums, blocks.images, filter);
            return FL_OK;
        }
    } catch (const std::bad_alloc &) {
    }
    return no_memory(call, g.weights());
}

}  // namespace

extern const fl_entry convolution_table[] = {
    {"conv2d_plain.f32", conv2d_plain, "xxnx|mmmmmmmddiiiidd[i]||?"},
    {"conv2d_plain_norm.f32", conv2d_plain_norm, "xxnxxxxx|mmmmmmmddiiiidd[i]|f|?"},
    {"conv2d_plain_grad_input.f32", conv2d_plain_grad_input, "xxx|mmmmmmmddiiiidd||?"},
    {"conv2d_plain_grad_filter.f32", conv2d_plain_grad_filter, "xxx|mmmmmmmddiiiidd||?"},
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
