/* The elements of a tensor array while a loop turns: what kernels that read and write one work on. */
#ifndef FLUIDLITE_ELEMENTS_H
#define FLUIDLITE_ELEMENTS_H

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace fl {

/* All elements have the same size. Those written stand one behind the other, at `first` and the indices behind it; the
 * others are where they were before, at `before[index]`, which the owner keeps alive. */
struct Elements {
    int64_t bytes = 0;
    int64_t first = -1, count = 0;
    const int64_t *before = nullptr;
    int64_t n_before = 0;

    Elements() = default;
    Elements(const Elements &) = delete;
    Elements &operator=(const Elements &) = delete;
    ~Elements() { std::free(data_); }

    /* Forgets what has been written; elements have so many bytes from now on. */
    void begin(int64_t bytes_each, const int64_t *addresses, int64_t n) noexcept {
        char *old = data_;
        data_ = nullptr;
        room_ = count = 0;
        std::free(old);
        first = -1;
        bytes = bytes_each;
        before = addresses;
        n_before = n;
    }

    const char *data() const noexcept { return data_; }

    /* The element at an index; NULL if there is none. */
    const char *find(int64_t index) const noexcept {
        if (index < 0) return nullptr;
        if (first >= 0 && index >= first && index - first < count) return data_ + (index - first) * bytes;
        return index < n_before ? reinterpret_cast<const char *>(static_cast<intptr_t>(before[index])) : nullptr;
    }

    /* Whether an element may be written at an index: over one that has been, or behind the last. */
    bool admits(int64_t index) const noexcept {
        return index >= 0 && (first < 0 || (index >= first && index - first <= count));
    }

    /* Writes an element; false if there is no memory for it. */
    bool write(int64_t index, const char *element) noexcept {
        if (first < 0) first = index;
        if (index - first == count) {
            if (count == room_ && !grow()) return false;
            ++count;
        }
        if (bytes > 0) std::memcpy(data_ + (index - first) * bytes, element, static_cast<size_t>(bytes));
        return true;
    }

  private:
    bool grow() noexcept {
        const int64_t room = room_ > 0 ? 2 * room_ : 16;
        if (bytes > 0 && room > INT64_MAX / bytes) return false;
        char *grown = static_cast<char *>(std::malloc(static_cast<size_t>(room * bytes + 1)));
        if (grown == nullptr) return false;
        if (count * bytes > 0) std::memcpy(grown, data_, static_cast<size_t>(count * bytes));
        char *old = data_;
        data_ = grown; /* first: the child of a fork may free what it finds here */
        room_ = room;
        std::free(old);
        return true;
    }

    char *data_ = nullptr;
    int64_t room_ = 0;
};

}  // namespace fl

#endif
