/* Regions of feature maps pooled to a grid of bins: means of interpolated features, and maxima; with gradients. */
#ifndef FL_NS

#include <algorithm>

#include "kernels/topics.h"

#define FL_SELF "kernels/roi.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_roi = FL_TOPIC(roi_table);

#else

namespace fl::FL_NS {
namespace {

enum { MOST_SAMPLES = 1 << 20 };

/* The integers that all these kernels take. */
struct Maps {
    int64_t images, channels, height, width, regions, down, across;

    explicit Maps(const fl_call *call)
        : images(call->i[0]), channels(call->i[1]), height(call->i[2]), width(call->i[3]), regions(call->i[4]),
          down(call->i[5]), across(call->i[6]) {}

    int64_t plane() const { return height * width; }
    int64_t grid() const { return down * across; }
};

/* What each of `bins` takes of the places along one axis: weights[bin * size + place] within [first, end). */
template <class T> struct BinAxis {
    T *weights;
    int64_t *first, *end;
    int64_t bins, size;

    /* Linear interpolation at `count` samples a bin (as many as a bin is long if that is not positive), each of which counts
     * alike. Returns the number of samples, or -1 if there are too many. */
    int64_t interpolate(T begin, T stop, int64_t count) {
        const T extent = std::max(stop - begin, T(1)), bin = extent / static_cast<T>(bins);
        if (count <= 0) {
            if (!(bin <= T(MOST_SAMPLES))) return -1;
            count = static_cast<int64_t>(std::ceil(bin));
        }
        const T share = T(1) / static_cast<T>(count), step = bin / static_cast<T>(count);
        for (int64_t b = 0; b < bins; ++b) {
            T *own = weights + b * size;
            for (int64_t k = 0; k < size; ++k) own[k] = 0;
            first[b] = size;
            end[b] = 0;
            for (int64_t s = 0; s < count; ++s) {
                const T place = (static_cast<T>(s) + T(0.5)) * step + (begin + static_cast<T>(b) * bin);
                if (!(place >= T(-1) && place <= static_cast<T>(size))) continue;
                const T inside = std::min(std::max(place, T(0)), static_cast<T>(size - 1));
                const int64_t low = static_cast<int64_t>(inside), high = std::min(low + 1, size - 1);
                const T upper = inside - static_cast<T>(low);
                own[low] += (T(1) - upper) * share;
                own[high] += upper * share;
                first[b] = std::min(first[b], low);
                end[b] = std::max(end[b], high + 1);
            }
        }
        return count;
    }
};

/* Both axes of one region, and room for the sums along one of them. */
template <class T> struct Grid {
    BinAxis<T> rows, columns;
    T *sums; /* [height, across] */

    static int64_t bytes(const Maps &m) {
        const int64_t numbers = m.down * m.height + m.across * m.width + m.height * m.across;
        return 2 * (m.down + m.across) * static_cast<int64_t>(sizeof(int64_t)) + numbers * static_cast<int64_t>(sizeof(T));
    }

    Grid(void *memory, const Maps &m) {
        int64_t *places = static_cast<int64_t *>(memory);
        T *numbers = reinterpret_cast<T *>(places + 2 * (m.down + m.across));
        rows = {numbers, places, places + m.down, m.down, m.height};
        places += 2 * m.down;
        columns = {numbers + m.down * m.height, places, places + m.across, m.across, m.width};
        sums = columns.weights + m.across * m.width;
    }

    bool interpolate(const T *region, T scale, int64_t count) {
        return columns.interpolate(region[0] * scale, region[2] * scale, count) >= 0 &&
               rows.interpolate(region[1] * scale, region[3] * scale, count) >= 0;
    }

    /* The rows that any bin takes something of. */
    int64_t top() const { return *std::min_element(rows.first, rows.first + rows.bins); }
    int64_t bottom() const { return *std::max_element(rows.end, rows.end + rows.bins); }

    void pool(const T *map, T *out) const {
        for (int64_t y = top(); y < bottom(); ++y) {
            for (int64_t b = 0; b < columns.bins; ++b) {
                const T *own = columns.weights + b * columns.size, *row = map + y * columns.size;
                T sum = 0;
                for (int64_t x = columns.first[b]; x < columns.end[b]; ++x) sum += own[x] * row[x];
                sums[y * columns.bins + b] = sum;
            }
        }
        for (int64_t b = 0; b < rows.bins; ++b, out += columns.bins) {
            for (int64_t k = 0; k < columns.bins; ++k) out[k] = 0;
            for (int64_t y = rows.first[b]; y < rows.end[b]; ++y) {
                const T weight = rows.weights[b * rows.size + y], *sum = sums + y * columns.bins;
                for (int64_t k = 0; k < columns.bins; ++k) out[k] += weight * sum[k];
            }
        }
    }

    void spread(const T *g, T *map) const {
        for (int64_t y = top(); y < bottom(); ++y) {
            T *sum = sums + y * columns.bins, *row = map + y * columns.size;
            for (int64_t k = 0; k < columns.bins; ++k) sum[k] = 0;
            for (int64_t b = 0; b < rows.bins; ++b) {
                const T weight = rows.weights[b * rows.size + y];
                for (int64_t k = 0; k < columns.bins; ++k) sum[k] += weight * g[b * columns.bins + k];
            }
            for (int64_t b = 0; b < columns.bins; ++b) {
                const T *own = columns.weights + b * columns.size;
                for (int64_t x = columns.first[b]; x < columns.end[b]; ++x) row[x] += own[x] * sum[b];
            }
        }
    }
};

/* `each(image, region)` for all regions, until one gives another code than FL_OK. */
template <class Each> int for_regions(const Maps &maps, const int64_t *offsets, const Each each) {
    for (int64_t image = 0; image < maps.images; ++image) {
        for (int64_t region = offsets[image]; region < offsets[image + 1]; ++region) {
            if (const int code = each(image, region)) return code;
        }
    }
    return FL_OK;
}

template <bool backward, class T> int align(fl_call *call) {
    const Maps maps(call);
    T *features = at<T>(call, 0), *pooled = at<T>(call, 3); /* X and Out, or their gradients */
    const T *regions = at<T>(call, 1);
    const int64_t count = call->i[7], bytes = Grid<T>::bytes(maps), size = maps.channels * maps.plane();
    const T scale = static_cast<T>(call->f[0]);
    void *memory = scratch(call, bytes);
    if (memory == nullptr) return no_memory(call, bytes);
    Grid<T> grid(memory, maps);
    if (backward && size > 0) std::memset(features, 0, static_cast<size_t>(maps.images * size) * sizeof(T));
    return for_regions(maps, offsets_at(call, 2), [&](int64_t image, int64_t region) {
        if (!grid.interpolate(regions + region * 4, scale, count)) {
            return too_large(call, std::numeric_limits<int64_t>::max(), MOST_SAMPLES);
        }
        for (int64_t c = 0; c < maps.channels; ++c) {
            T *map = features + image * size + c * maps.plane(), *bins = pooled + (region * maps.channels + c) * maps.grid();
            if constexpr (backward) {
                grid.spread(bins, map);
            } else {
                grid.pool(map, bins);
            }
        }
        return static_cast<int>(FL_OK);
    });
}

/* First and last but one of the places of bin `b`, within [0, size). */
template <class T> void whole_bin(T begin, T bin, int64_t b, int64_t size, int64_t *range) {
    const T ends[] = {std::floor(static_cast<T>(b) * bin) + begin, std::ceil(static_cast<T>(b + 1) * bin) + begin};
    for (int k = 0; k < 2; ++k) {
        const T cut = ends[k] > T(0) ? ends[k] : T(0);
        range[k] = cut < static_cast<T>(size) ? static_cast<int64_t>(cut) : size;
    }
}

template <class T> int roi_pool(fl_call *call) {
    const Maps maps(call);
    const T *x = at<T>(call, 0), *regions = at<T>(call, 1);
    T *out = at<T>(call, 3);
    int64_t *where = at<int64_t>(call, 4);
    const T scale = static_cast<T>(call->f[0]);
    return for_regions(maps, offsets_at(call, 2), [&](int64_t image, int64_t region) {
        T corners[4];
        for (int k = 0; k < 4; ++k) corners[k] = std::round(regions[region * 4 + k] * scale);
        const T high = std::max(corners[3] - corners[1] + 1, T(1)) / static_cast<T>(maps.down);
        const T wide = std::max(corners[2] - corners[0] + 1, T(1)) / static_cast<T>(maps.across);
        for (int64_t i = 0; i < maps.down; ++i) {
            int64_t rows[2];
            whole_bin(corners[1], high, i, maps.height, rows);
            for (int64_t j = 0; j < maps.across; ++j) {
                int64_t columns[2];
                whole_bin(corners[0], wide, j, maps.width, columns);
                for (int64_t c = 0; c < maps.channels; ++c) {
                    const T *map = x + (image * maps.channels + c) * maps.plane();
                    int64_t best = -1;
                    for (int64_t y = rows[0]; y < rows[1]; ++y) {
                        for (int64_t k = y * maps.width + columns[0]; k < y * maps.width + columns[1]; ++k) {
                            if (best < 0 || map[k] > map[best] || (map[k] != map[k] && map[best] == map[best])) best = k;
                        }
                    }
                    const int64_t at_ = (region * maps.channels + c) * maps.grid() + i * maps.across + j;
                    where[at_] = best;
                    out[at_] = best < 0 ? T(0) : map[best];
                }
            }
        }
        return static_cast<int>(FL_OK);
    });
}

template <class T> int roi_pool_grad(fl_call *call) {
    const Maps maps(call);
    const int64_t *where = at<int64_t>(call, 1);
    const T *g = at<T>(call, 2);
    T *dx = at<T>(call, 3);
    const int64_t size = maps.channels * maps.plane();
    if (size > 0) std::memset(dx, 0, static_cast<size_t>(maps.images * size) * sizeof(T));
    return for_regions(maps, offsets_at(call, 0), [&](int64_t image, int64_t region) {
        for (int64_t k = region * maps.channels * maps.grid(); k < (region + 1) * maps.channels * maps.grid(); ++k) {
            if (where[k] < 0) continue;
            if (where[k] >= maps.plane()) return out_of_range(call, where[k], k, maps.plane());
            dx[image * size + k / maps.grid() % maps.channels * maps.plane() + where[k]] += g[k];
        }
        return static_cast<int>(FL_OK);
    });
}

template <class T> constexpr fl_kernel roi_align = align<false, T>;
template <class T> constexpr fl_kernel roi_align_grad = align<true, T>;

}  // namespace

extern const fl_entry roi_table[] = {
    FL_REAL("roi_align", roi_align, "xxxx|zzddzddi|f|abcd,e,aL+,ebfg")
    FL_REAL("roi_align_grad", roi_align_grad, "xxxx|zzddzddi|f|abcd,e,aL+,ebfg")
    FL_REAL("roi_pool", roi_pool, "xxxxx|zzddzdd|f|abcd,e,aL+,ebfg,ebfgL")
    FL_REAL("roi_pool_grad", roi_pool_grad, "xxxx|zzddzdd||aL+,ebfgL,ebfg,abcd")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
