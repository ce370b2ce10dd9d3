/* The elements of a tensor array while a loop turns: what kernels that read and write one work on. */
#ifndef FLUIDLITE_ELEMENTS_H
#define FLUIDLITE_ELEMENTS_H

#include <cstdint>
#include <cstring>
#include <vector>

namespace fl {

/* An element: its bytes, and the offsets of its sequences, level by level. */
struct Element {
    const char *data = nullptr;
    int64_t bytes = -1; /* -1: there is none */
    size_t n_levels = 0;
    const int64_t *const *offsets = nullptr;
    const int64_t *counts = nullptr; /* how many offsets each level has */
};

/* Those written stand one behind the other, at `first` and the indices behind it; the
 * others are where they were before, which the owner keeps alive. */
struct Elements {
    static constexpr size_t most_levels = 8;
    static constexpr int spare_most = 512;
    int64_t first = -1;
    int64_t turns = 0; /* how many have begun */
    std::vector<char> data;
    std::vector<int64_t> ends;           /* where the bytes of each element end */
    std::vector<size_t> level_ends;      /* where the levels of each element end in `bounds` */
    std::vector<int64_t> levels, bounds; /* all offsets, and where those of each level end */
    std::vector<Element> before;
    std::vector<const int64_t *> offsets_before; /* what `before` points to */
    std::vector<int64_t> counts_before;

    /* Forgets all elements; lets their memory go if less than half of it has been used again and again. */
    void begin() noexcept {
        spare_ = 2 * data.size() < data.capacity() ? spare_ + 1 : 0;
        if (spare_ == spare_most) {
            std::vector<char>().swap(data);
            spare_ = 0;
        }
        if (2 * slots_used_ < slots.size()) slots.resize(slots_used_);
        for (Slot &slot : slots) slot.there = false;
        slots_used_ = 0;
        first = -1;
        turns = kept_ = 0;
        data.clear();
        ends.clear();
        level_ends.clear();
        levels.clear();
        bounds.clear();
        before.clear();
        offsets_before.clear();
        counts_before.clear();
    }

    int64_t count() const noexcept { return static_cast<int64_t>(ends.size()); }

    /* How many bytes the one of this number has that has been written. */
    int64_t bytes_of(int64_t number) const noexcept {
        const size_t at = static_cast<size_t>(number);
        return ends[at] - (at == 0 ? 0 : ends[at - 1]);
    }

    /* Takes away the last one that has been written, which has no levels. */
    void pop(char *out) noexcept {
        const size_t bytes = static_cast<size_t>(bytes_of(count() - 1)), left = data.size() - bytes;
        if (bytes > 0) std::memcpy(out, data.data() + left, bytes);
        data.resize(left);
        ends.pop_back();
        level_ends.pop_back();
    }

    /* A turn begins: what has been written so far stays. */
    void turn() noexcept {
        ++turns;
        kept_ = ends.size();
    }

    /* Forgets what the turn has written that is under way. */
    void forget_turn() {
        ends.resize(kept_);
        level_ends.resize(kept_);
        bounds.resize(level_ends.empty() ? 0 : level_ends.back());
        data.resize(static_cast<size_t>(ends.empty() ? 0 : ends.back()));
        levels.resize(static_cast<size_t>(bounds.empty() ? 0 : bounds.back()));
        if (ends.empty()) first = -1;
    }

    /* The element at an index. Its offsets stand in `offsets` and `counts`, which have room for all levels. */
    Element find(int64_t index, const int64_t **offsets, int64_t *counts) const noexcept {
        if (first >= 0 && index >= first && index - first < count()) {
            const size_t at = static_cast<size_t>(index - first);
            const int64_t begin = at == 0 ? 0 : ends[at - 1];
            const size_t from = at == 0 ? 0 : level_ends[at - 1], n = level_ends[at] - from;
            for (size_t k = 0; k < n; ++k) {
                const int64_t start = from + k == 0 ? 0 : bounds[from + k - 1];
                offsets[k] = levels.data() + start;
                counts[k] = bounds[from + k] - start;
            }
            return {data.data() + begin, ends[at] - begin, n, offsets, counts};
        }
        return index >= 0 && index < static_cast<int64_t>(before.size()) ? before[static_cast<size_t>(index)] : Element{};
    }

    /* Whether an element may be written at an index: behind the last, or over one of the same size without sequences that has
     * been written, in this turn if turns begin. */
    bool admits(int64_t index, const Element &element) const noexcept {
        if (index < 0 || element.n_levels > most_levels || (first >= 0 && (index < first || index - first > count()))) return false;
        if (first < 0 || index - first == count()) return true;
        const size_t at = static_cast<size_t>(index - first);
        const bool plain = element.n_levels == 0 && level_ends[at] == (at == 0 ? 0 : level_ends[at - 1]);
        return plain && at >= kept_ && element.bytes == ends[at] - (at == 0 ? 0 : ends[at - 1]);
    }

    /* Writes an element that is admitted; throws std::bad_alloc. */
    void write(int64_t index, const Element &element) {
        if (first < 0) first = index;
        if (index - first < count()) {
            const size_t at = static_cast<size_t>(index - first);
            if (element.bytes > 0) {
                std::memcpy(data.data() + ends[at] - element.bytes, element.data, static_cast<size_t>(element.bytes));
            }
            return;
        }
        data.insert(data.end(), element.data, element.data + element.bytes);
        for (size_t k = 0; k < element.n_levels; ++k) {
            levels.insert(levels.end(), element.offsets[k], element.offsets[k] + element.counts[k]);
            bounds.push_back(static_cast<int64_t>(levels.size()));
        }
        level_ends.push_back(bounds.size());
        ends.push_back(static_cast<int64_t>(data.size()));
    }

    /* Elements by index, each in memory of its own, which stays for the next; apart from all of the above. */
    struct Slot {
        std::vector<char> data;
        bool there = false;
    };
    std::vector<Slot> slots;

    /* How many slots there are up to the last one that has been written. */
    int64_t length() const noexcept { return static_cast<int64_t>(slots_used_); }

    /* The element in a slot; NULL if there is none of so many bytes. */
    char *get(int64_t index, int64_t bytes) noexcept {
        if (index < 0 || index >= length()) return nullptr;
        Slot &slot = slots[static_cast<size_t>(index)];
        return slot.there && static_cast<int64_t>(slot.data.size()) == bytes ? slot.data.data() : nullptr;
    }

    /* Whether there is an element of another size in a slot. */
    bool differs(int64_t index, int64_t bytes) const noexcept {
        if (index < 0 || index >= length()) return false;
        const Slot &slot = slots[static_cast<size_t>(index)];
        return slot.there && static_cast<int64_t>(slot.data.size()) != bytes;
    }

    /* Room for an element in a slot, which is there from now on; throws std::bad_alloc. */
    char *put(int64_t index, int64_t bytes) {
        const size_t at = static_cast<size_t>(index), size = static_cast<size_t>(bytes);
        if (at >= slots.size()) slots.resize(at + 1);
        Slot &slot = slots[at];
        if (slot.data.capacity() > 8 * size) std::vector<char>().swap(slot.data);
        slot.data.reserve(1); /* so that there is an address without any bytes, too */
        slot.data.resize(size);
        slot.there = true;
        if (at >= slots_used_) slots_used_ = at + 1;
        return slot.data.data();
    }

    void take_out(int64_t index) noexcept { slots[static_cast<size_t>(index)].there = false; }

  private:
    size_t kept_ = 0, slots_used_ = 0;
    int spare_ = 0; /* how often `begin` has found much memory for little */
};

}  // namespace fl

#endif
