/* Tensor arrays of a plan, and the values that the iterations of a loop stash for its gradient. */
#ifndef FLUIDLITE_TENSOR_ARRAY_H
#define FLUIDLITE_TENSOR_ARRAY_H

#include <cstdint>
#include <cstring>
#include <vector>

namespace fl {

/* Elements by index, each in memory of its own; and beside them a stash, a stack of values in one buffer. */
struct TensorArray {
    static constexpr int spare_most = 512;
    std::vector<char> stash;
    std::vector<int64_t> ends; /* the end of each stashed value */

    /* Removes all elements and the stash. The buffer of the stash is freed when `spare_most` calls found it less than
     * half used, so that one long loop does not hold its memory for ever. */
    void clear() noexcept {
        spare_ = 2 * stash.size() < stash.capacity() ? spare_ + 1 : 0;
        if (spare_ == spare_most) {
            std::vector<char>().swap(stash);
            spare_ = 0;
        }
        if (2 * used_ < elements_.size()) elements_.resize(used_);
        for (Element &element : elements_) element.set = false;
        used_ = 0;
        stash.clear();
        ends.clear();
    }

    /* Stashes a value; throws std::bad_alloc. */
    void push(const char *value, int64_t bytes) {
        stash.insert(stash.end(), value, value + bytes);
        ends.push_back(static_cast<int64_t>(stash.size()));
    }

    /* Takes the last stashed value, which must have `bytes` bytes; false if it has not. */
    bool pop(char *out, int64_t bytes) noexcept {
        if (ends.empty() || ends.back() - (ends.size() == 1 ? 0 : ends[ends.size() - 2]) != bytes) return false;
        const size_t left = stash.size() - static_cast<size_t>(bytes);
        if (bytes > 0) std::memcpy(out, stash.data() + left, static_cast<size_t>(bytes));
        stash.resize(left);
        ends.pop_back();
        return true;
    }

    int64_t stashed() const noexcept { return static_cast<int64_t>(ends.size()); }

    /* The number of elements: the highest index that was written, and one more. */
    int64_t length() const noexcept { return static_cast<int64_t>(used_); }

    /* The element at an index; NULL if there is none of `bytes` bytes. */
    char *get(int64_t index, int64_t bytes) noexcept {
        if (index < 0 || index >= length()) return nullptr;
        Element &element = elements_[static_cast<size_t>(index)];
        return element.set && static_cast<int64_t>(element.data.size()) == bytes ? element.data.data() : nullptr;
    }

    /* True if the element at an index has another size. */
    bool differs(int64_t index, int64_t bytes) const noexcept {
        if (index < 0 || index >= length()) return false;
        const Element &element = elements_[static_cast<size_t>(index)];
        return element.set && static_cast<int64_t>(element.data.size()) != bytes;
    }

    /* Memory for the element at an index, which is set from now on; throws std::bad_alloc. */
    char *put(int64_t index, int64_t bytes) {
        const size_t at = static_cast<size_t>(index), size = static_cast<size_t>(bytes);
        if (at >= elements_.size()) elements_.resize(at + 1);
        Element &element = elements_[at];
        if (element.data.capacity() > 8 * size) std::vector<char>().swap(element.data);
        element.data.reserve(1); /* so that an element of no bytes has an address */
        element.data.resize(size);
        element.set = true;
        if (at >= used_) used_ = at + 1;
        return element.data.data();
    }

    void remove(int64_t index) noexcept { elements_[static_cast<size_t>(index)].set = false; }

  private:
    struct Element {
        std::vector<char> data; /* kept for the next element at this index */
        bool set = false;
    };
    std::vector<Element> elements_;
    size_t used_ = 0;
    int spare_ = 0;
};

}  // namespace fl

#endif
