/* Memory of large results, which goes from those that are gone to the next of their size: fresh pages cost the system as much
 * as many a kernel takes. */
#ifndef FLUIDLITE_EAGER_RESULT_MEMORY_H
#define FLUIDLITE_EAGER_RESULT_MEMORY_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace fl {

/* What is in use and what is kept for others take at most a quarter more than was in use at one time lately. Any thread may
 * ask and give back; if another one is at it just then, or was when the process was forked, nothing is kept. */
class ResultMemory {
  public:
    static constexpr size_t from = 1 << 17; /* bytes from which results have their memory from here */

    /* That of the process. It is never destroyed, because arrays may outlive everything else, and takes no memory to be made. */
    static ResultMemory &here() {
        alignas(ResultMemory) static char place[sizeof(ResultMemory)];
        static ResultMemory *const memory = new (place) ResultMemory;
        return *memory;
    }

    /* Memory for so many bytes, of any content; nullptr if there is none. */
    void *take(size_t bytes) noexcept {
        const size_t size = rounded(bytes);
        if (size < bytes) return nullptr;
        const Turn turn(busy_);
        Block *block = turn ? kept(size) : nullptr;
        if (block == nullptr) block = fresh(size, static_cast<bool>(turn));
        if (block == nullptr) return nullptr;
        const size_t live = live_ += size; /* what was refused is no use of memory, which others might be kept for */
        if (turn) next_period(live);
        if (turn) trim();
        return block->data(bytes);
    }

    void give_back(void *data) noexcept {
        if (data == nullptr) return;
        Block *block = Block::of(data);
        block->data(0);
        live_ -= block->size;
        const Turn turn(busy_);
        if (!turn || !keep(block)) return std::free(block);
        trim();
    }

    /* The same bytes in memory for so many; nullptr, and nothing changes, if there is none. */
    void *resized(void *data, size_t bytes) noexcept {
        if (data == nullptr) return take(bytes);
        const size_t room = Block::of(data)->size - sizeof(Block);
        if (bytes <= room) return Block::of(data)->data(bytes);
        void *found = take(bytes);
        if (found == nullptr) return nullptr;
        Block::of(data)->data(room);
        std::memcpy(found, data, room);
        give_back(data);
        return found;
    }

    /* Give all that is kept to the system. */
    void let_go() noexcept {
        const Turn turn(busy_);
        if (turn) drop(0);
    }

    size_t live() const noexcept { return live_; }
    size_t kept() const noexcept { return kept_bytes_; }

  private:
    /* Stands in front of what others write to. */
    struct alignas(64) Block {
        size_t size;   /* with this */
        uint64_t time; /* when it was given back */

        /* What others may write so many bytes to. */
        void *data([[maybe_unused]] size_t bytes) noexcept {
#ifdef __SANITIZE_ADDRESS__
            ASAN_UNPOISON_MEMORY_REGION(this + 1, size - sizeof(Block));
            ASAN_POISON_MEMORY_REGION(reinterpret_cast<char *>(this + 1) + bytes, size - sizeof(Block) - bytes);
#endif
            return this + 1;
        }
        static Block *of(void *data) noexcept { return static_cast<Block *>(data) - 1; }
    };

    /* The turn of one thread, if no other has it. */
    class Turn {
      public:
        explicit Turn(std::atomic_flag &busy) noexcept : busy_(busy), mine_(!busy.test_and_set(std::memory_order_acquire)) {}
        ~Turn() {
            if (mine_) busy_.clear(std::memory_order_release);
        }
        Turn(const Turn &) = delete;
        Turn &operator=(const Turn &) = delete;
        explicit operator bool() const noexcept { return mine_; }

      private:
        std::atomic_flag &busy_;
        bool mine_;
    };

    static constexpr int period = 4096; /* how many results are "lately" */

    /* Sizes in steps of an eighth, so that results of about one size can have each other's memory. */
    static size_t rounded(size_t bytes) noexcept {
        const size_t size = bytes + sizeof(Block);
        size_t step = 4096;
        while (step << 4 <= size && step << 4 != 0) step <<= 1;
        return (size + step - 1) / step * step;
    }

    void next_period(size_t live) noexcept {
        if (++taken_ == period) {
            taken_ = 0;
            before_ = most_;
            most_ = 0;
        }
        most_ = std::max(most_, live);
    }

    Block *kept(size_t size) noexcept {
        const auto found = kept_.find(size);
        if (found == kept_.end() || found->second.empty()) return nullptr;
        Block *block = found->second.back();
        found->second.pop_back();
        kept_bytes_ -= size;
        return block;
    }

    Block *fresh(size_t size, bool may_drop) noexcept {
        auto *block = static_cast<Block *>(std::aligned_alloc(alignof(Block), size));
        if (block == nullptr && may_drop) {
            drop(0);
            block = static_cast<Block *>(std::aligned_alloc(alignof(Block), size));
        }
        if (block != nullptr) block->size = size;
        return block;
    }

    bool keep(Block *block) noexcept {
        block->time = ++time_;
        try {
            kept_[block->size].push_back(block);
        } catch (...) {
            return false;
        }
        kept_bytes_ += block->size;
        return true;
    }

    void trim() noexcept {
        const size_t most = std::max(most_, before_), live = live_;
        drop(most + most / 4 > live ? most + most / 4 - live : 0);
    }

    /* Give what has been here longest to the system, until at most so many bytes are kept. */
    void drop(size_t bytes) noexcept {
        while (kept_bytes_ > bytes) {
            std::deque<Block *> *oldest = nullptr;
            for (auto &[size, blocks] : kept_)
                if (!blocks.empty() && (oldest == nullptr || blocks.front()->time < oldest->front()->time)) oldest = &blocks;
            kept_bytes_ -= oldest->front()->size;
            std::free(oldest->front());
            oldest->pop_front();
        }
    }

    std::atomic<size_t> live_{0}, kept_bytes_{0};
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    std::map<size_t, std::deque<Block *>> kept_;
    size_t most_ = 0, before_ = 0; /* in use at one time, in this period and in the one before */
    int taken_ = 0;
    uint64_t time_ = 0;
};

/* What NumPy calls. */
inline void *take_result(void *, size_t bytes) { return ResultMemory::here().take(bytes); }

inline void *take_zeros(void *, size_t count, size_t bytes) {
    if (bytes != 0 && count > SIZE_MAX / bytes) return nullptr;
    void *data = ResultMemory::here().take(count * bytes);
    if (data != nullptr) std::memset(data, 0, count * bytes);
    return data;
}

inline void *resize_result(void *, void *data, size_t bytes) { return ResultMemory::here().resized(data, bytes); }

inline void give_result_back(void *, void *data, size_t) { ResultMemory::here().give_back(data); }

} // namespace fl

#endif
