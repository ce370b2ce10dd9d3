/* What only the data tell: where elements are true, where they are for the first time, which boxes are left. */
#include <algorithm>
#include <memory>

#include "kernels/topics.h"

namespace fl {
namespace {

/* The indices of what is true in rows of `width`, whose own indices are counted up in `row`; `room` is for that many.
 * Stops where there is no room left, so that nothing needs to be tested before writing. */
template <int rank>
int64_t places(const uint8_t *x, const int64_t *shape, int dims, int64_t *row, int64_t *out, int64_t room) {
    const int64_t width = shape[dims - 1];
    const int lead = (rank == 0 ? dims : rank) - 1;
    int64_t found = 0;
    while (found < room) {
        for (int64_t k = 0; k < width && found < room;) {
            uint64_t eight = 1;
            if (k + 8 <= width) std::memcpy(&eight, x + k, 8);
            if (eight == 0) {
                k += 8;
                continue;
            }
            const int64_t end = std::min(width, k + 8);
            for (; k < end && found < room; ++k) {
                for (int axis = 0; axis < lead; ++axis) out[axis] = row[axis];
                out[lead] = k;
                const int64_t taken = x[k] != 0;
                found += taken;
                out += taken * (lead + 1);
            }
        }
        x += width;
        int axis = lead - 1;
        for (; axis >= 0 && ++row[axis] == shape[axis]; --axis) row[axis] = 0;
        if (axis < 0) break;
    }
    return found;
}

/* ints: elements, dimensions, how many are true. */
int where_index(fl_call *call) {
    const uint8_t *x = at<uint8_t>(call, 0);
    const int64_t *shape = at<int64_t>(call, 1);
    const int64_t n = call->i[0], room = call->i[2];
    const int dims = static_cast<int>(call->i[1]);
    int64_t product = 1;
    for (int axis = 0; axis < dims; ++axis) product *= shape[axis];
    if (dims < 1 || product != n) return too_large(call, product, n);
    int64_t *out = at<int64_t>(call, 2);
    std::unique_ptr<int64_t[]> row(new (std::nothrow) int64_t[static_cast<size_t>(dims)]());
    if (!row) return no_memory(call, 8 * dims);
    const int64_t found = dims == 1   ? places<1>(x, shape, dims, row.get(), out, room)
                          : dims == 2 ? places<2>(x, shape, dims, row.get(), out, room)
                                      : places<0>(x, shape, dims, row.get(), out, room);
    return found == room ? FL_OK : too_large(call, room, found);
}

/* Keys and their numbers by open addressing, at most half full. */
template <class T> class Numbers {
  public:
    /* The number of `key`: `next` if it is new; -1 without memory. */
    int64_t of(T key, int64_t next) {
        if (2 * (next + 1) > capacity_ && !grow()) return -1;
        size_t at = place(key);
        while (slots_[at].number >= 0 && slots_[at].key != key) at = (at + 1) & mask_;
        if (slots_[at].number < 0) slots_[at] = {key, next};
        return slots_[at].number;
    }

  private:
    struct HashSlot {
        T key = 0;
        int64_t number = -1;
    };

    size_t place(T key) const {
        return static_cast<size_t>((static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u) >> shift_);
    }

    bool grow() {
        const int64_t before = capacity_, wanted = before == 0 ? 1024 : 4 * before;
        std::unique_ptr<HashSlot[]> old = std::move(slots_);
        slots_.reset(new (std::nothrow) HashSlot[static_cast<size_t>(wanted)]);
        if (!slots_) return false;
        capacity_ = wanted;
        mask_ = static_cast<size_t>(wanted - 1);
        shift_ = before == 0 ? 54 : shift_ - 2;
        for (int64_t k = 0; k < before; ++k) {
            if (old[static_cast<size_t>(k)].number < 0) continue;
            size_t at = place(old[static_cast<size_t>(k)].key);
            while (slots_[at].number >= 0) at = (at + 1) & mask_;
            slots_[at] = old[static_cast<size_t>(k)];
        }
        return true;
    }

    std::unique_ptr<HashSlot[]> slots_;
    int64_t capacity_ = 0;
    size_t mask_ = 0;
    int shift_ = 54;
};

/* ints: elements. */
template <class T> int first_places(fl_call *call) {
    const T *x = at<T>(call, 0);
    int64_t *first = at<int64_t>(call, 1), *index = at<int64_t>(call, 2), *counts = at<int64_t>(call, 3);
    const int64_t n = call->i[0];
    Numbers<T> numbers;
    int64_t found = 0;
    for (int64_t k = 0; k < n; ++k) {
        const int64_t number = numbers.of(x[k], found);
        if (number < 0) return no_memory(call, 16 * n);
        if (number == found) {
            first[found] = k;
            counts[found++] = 0;
        }
        ++counts[number];
        index[k] = number;
    }
    *at<int64_t>(call, 4) = found;
    return FL_OK;
}

/* `x` as it is in memory: nothing that follows is fused with what made it. */
FL_INLINE float rounded(float x) {
#if defined(__GNUC__)
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    asm("" : "+r"(bits));
    std::memcpy(&x, &bits, sizeof bits);
#endif
    return x;
}

FL_INLINE double rounded(double x) {
#if defined(__GNUC__)
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    asm("" : "+r"(bits));
    std::memcpy(&x, &bits, sizeof bits);
#endif
    return x;
}

/* The intersection over the union of two boxes of finite numbers; `pixel` is 1 where corners are pixels, else 0. */
template <class T> FL_INLINE T overlap(const T *a, const T *b, T area_a, T area_b, T pixel) {
    const T width = std::min(a[2], b[2]) - std::max(a[0], b[0]) + pixel;
    const T height = std::min(a[3], b[3]) - std::max(a[1], b[1]) + pixel;
    if (!(width > 0 && height > 0)) return 0;
    if (pixel != 0 && (a[0] > b[2] || b[0] > a[2] || a[1] > b[3] || b[1] > a[3])) return 0; /* only neighbours */
    const T shared = rounded(width * height), all = area_a + area_b - shared;
    return all > 0 ? shared / all : 0;
}

/* ints: boxes, numbers of each (4), whether corners are pixels, how many are kept at most. floats: threshold, what it is multiplied by. */
template <class T> int suppress(fl_call *call) {
    const T *boxes = at<T>(call, 0), *areas = at<T>(call, 1);
    int64_t *kept = at<int64_t>(call, 2);
    const int64_t n = call->i[0], width = call->i[1], most = call->i[3];
    const T pixel = call->i[2] != 0 ? 1 : 0;
    float limit = static_cast<float>(call->f[0]);
    const float factor = static_cast<float>(call->f[1]);
    if (width < 4) return missing(call, 0);
    int64_t found = 0;
    for (int64_t k = 0; k < n && found < most; ++k) {
        bool alone = true;
        for (int64_t j = 0; j < found && alone; ++j) {
            const int64_t other = kept[j];
            alone = overlap(boxes + width * other, boxes + width * k, areas[other], areas[k], pixel) <= T(limit);
        }
        if (!alone) continue;
        kept[found++] = k;
        if (factor < 1.0f && limit > 0.5f) limit *= factor;
    }
    *at<int64_t>(call, 3) = found;
    return FL_OK;
}

const fl_entry table[] = {
    {"where_index", where_index, "xxx|zzz||aB,bL,bcL"},
    FL_INTEGER("first_places", first_places, "xxxxx|z||a,aL,aL,aL,L")
    FL_REAL("suppress", suppress, "xxxx|zziz|ff|ab,a,aL,L")
    {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_found = {table, table, table};

}  // namespace fl
