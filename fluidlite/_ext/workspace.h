/* Memory that a thread needs while a kernel runs. */
#ifndef FLUIDLITE_WORKSPACE_H
#define FLUIDLITE_WORKSPACE_H

#include <cstdlib>
#include <new>

namespace fl {

/* The same memory for all kernels that run on a thread: as much as the largest has asked for. What of it has a `USE` stays as it is
 * while memory of another use is asked for. */
template <int USE = 0> class Workspace {
  public:
    static constexpr size_t alignment = 4096;

    /* Throws std::bad_alloc if there is no such memory. */
    static char *of_this_thread(size_t size) {
        thread_local Workspace workspace;
        return workspace.sized((size + alignment - 1) / alignment * alignment);
    }
    ~Workspace() { std::free(memory_); }

  private:
    char *sized(size_t size) {
        if (size > size_) {
            std::free(memory_);
            size_ = 0;
            memory_ = static_cast<char *>(std::aligned_alloc(alignment, size));
            if (memory_ == nullptr) throw std::bad_alloc();
            size_ = size;
        }
        return memory_;
    }

    char *memory_ = nullptr;
    size_t size_ = 0;
};

}  // namespace fl

#endif
