#include "slots/records.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>

namespace fluidlite {

namespace {
constexpr size_t kPage = size_t{2} << 20;  // a large one, where the system has them
constexpr size_t kSmall = size_t{1} << 18, kLarge = 2 * kPage;
// Records that are left over move to a block of their own when as many bytes are held for them.
constexpr size_t kWaste = size_t{8} << 20;

// Memory for a block, from the C library.
char* block(size_t size) {
    void* found = nullptr;
    if (size < kPage) {
        found = std::malloc(size);
    } else if (posix_memalign(&found, kPage, size)) {
        found = nullptr;
    }
    if (!found) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (size >= kPage) madvise(found, size, MADV_HUGEPAGE);
#endif
    return static_cast<char*>(found);
}

}  // namespace

char* Records::room(size_t size) {
    if (size_ - used_ < size) {
        // Few samples take little memory, many are in large blocks.
        const size_t taken = std::max(size, bytes_ == 0 ? kSmall : bytes_ < kLarge ? kPage : kLarge);
        blocks_.reserve(blocks_.size() + 1);
        blocks_.emplace_back(block(taken));
        size_ = taken;
        bytes_ += taken;
        used_ = 0;
    }
    return blocks_.back().get() + used_;
}

void Records::commit(size_t size) {
    rows.push_back(blocks_.back().get() + used_);
    used_ += size;
}

void Records::join(Records& other) {
    if (other.blocks_.empty()) return;
    blocks_.reserve(blocks_.size() + other.blocks_.size());
    rows.insert(rows.end(), other.rows.begin(), other.rows.end());
    std::move(other.blocks_.begin(), other.blocks_.end(), std::back_inserter(blocks_));
    bytes_ += other.bytes_;
    used_ = other.used_;
    size_ = other.size_;
    other.clear();
}

void Records::clear() {
    rows.clear();
    blocks_.clear();
    used_ = size_ = bytes_ = 0;
}

void Records::drop(size_t count, const std::vector<uint8_t>& real) {
    if (count >= rows.size()) {
        rows.clear();
        if (blocks_.size() > 1) clear();
        used_ = 0;
        return;
    }
    rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count));
    if (bytes_ < kWaste) return;
    Records kept;
    for (const char* row : rows) {
        size_t size = size_of(row, real);
        std::memcpy(kept.room(size), row, size);
        kept.commit(size);
    }
    *this = std::move(kept);
}

size_t size_of(const char* record, const std::vector<uint8_t>& real) {
    size_t size = real.size() * sizeof(uint32_t);
    for (size_t slot = 0; slot < real.size(); ++slot) size += count_of(record, slot) * width_of(real[slot]);
    return size;
}

void count_numbers(const char* const* rows, size_t count, size_t slots, int64_t* totals) {
    std::fill(totals, totals + slots, 0);
    for (size_t row = 0; row < count; ++row)
        for (size_t slot = 0; slot < slots; ++slot) totals[slot] += count_of(rows[row], slot);
}

void gather(const char* const* rows, size_t count, const std::vector<uint8_t>& real, char* const* values,
            int64_t* const* offsets) {
    size_t slots = real.size();
    for (size_t slot = 0; slot < slots; ++slot) offsets[slot][0] = 0;
    for (size_t row = 0; row < count; ++row) {
        const char* from = rows[row] + slots * sizeof(uint32_t);
        for (size_t slot = 0; slot < slots; ++slot) {
            uint32_t here = count_of(rows[row], slot);
            int64_t at = offsets[slot][row];
            offsets[slot][row + 1] = at + here;
            size_t width = width_of(real[slot]);
            char* to = values[slot] + static_cast<size_t>(at) * width;
            if (here == 1 && width == 8)
                std::memcpy(to, from, 8);
            else if (here == 1)
                std::memcpy(to, from, 4);
            else
                std::memcpy(to, from, here * width);
            from += here * width;
        }
    }
}

void shuffle(std::vector<const char*>& rows, ShuffleEngine& engine) {
    constexpr uint64_t range = 2147483645;  // numbers of the engine, counted from its smallest: 0 ... range
    for (uint64_t last = 1; last < rows.size(); ++last) {
        uint64_t scaling = range / (last + 1), past = scaling * (last + 1), drawn;
        do drawn = engine() - 1u;
        while (drawn >= past);
        std::swap(rows[last], rows[drawn / scaling]);
    }
}

void mix_slots(const std::vector<const char*>& rows, const std::vector<uint8_t>& real, const std::vector<uint8_t>& chosen,
               size_t capacity, ShuffleEngine& engine, Records& out) {
    std::vector<const char*> candidates;
    uint64_t seen = 0;
    size_t slots = real.size();
    for (const char* row : rows) {
        ++seen;
        if (candidates.size() < capacity) {
            candidates.push_back(row);
        } else {
            uint64_t place = engine() % seen;
            if (place < capacity) candidates[place] = row;
        }
        const char* other = candidates[engine() % candidates.size()];
        char* start = out.room(size_of(row, real) + size_of(other, real));
        char* to = start + slots * sizeof(uint32_t);
        const char* own = row + slots * sizeof(uint32_t);
        const char* others = other + slots * sizeof(uint32_t);
        for (size_t slot = 0; slot < slots; ++slot) {
            size_t width = width_of(real[slot]), here = count_of(row, slot) * width, there = count_of(other, slot) * width;
            bool mixed = chosen[slot] && !real[slot];
            uint32_t count = count_of(mixed ? other : row, slot);
            std::memcpy(start + slot * sizeof count, &count, sizeof count);
            std::memcpy(to, mixed ? others : own, mixed ? there : here);
            to += mixed ? there : here;
            own += here;
            others += there;
        }
        out.commit(static_cast<size_t>(to - start));
    }
}

}  // namespace fluidlite
