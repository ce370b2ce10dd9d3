/* Memory that is refused once, to be preloaded: how tests/refused_memory.py tries what native code does without it.
 *
 * Requests of fluidlite's extensions and of NumPy count, as their addresses in memory tell; those of Python and of other
 * libraries are none of fluidlite's. */
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

struct Range {
    uintptr_t begin, end;
};

constexpr int most_ranges = 64;
Range ranges[most_ranges];
std::atomic<int> n_ranges{0};
std::atomic<long> wanted{0}, made{0}; /* which request is refused, how many there have been */

int take_ranges(dl_phdr_info *info, size_t, void *) {
    if (std::strstr(info->dlpi_name, "/_ext/") == nullptr && std::strstr(info->dlpi_name, "_multiarray_umath") == nullptr) return 0;
    for (int k = 0; k < info->dlpi_phnum; ++k) {
        const auto &part = info->dlpi_phdr[k];
        if (part.p_type != PT_LOAD || !(part.p_flags & PF_X) || n_ranges == most_ranges) continue;
        ranges[n_ranges] = {info->dlpi_addr + part.p_vaddr, info->dlpi_addr + part.p_vaddr + part.p_memsz};
        ++n_ranges;
    }
    return 0;
}

bool refused(void *caller) {
    if (wanted.load(std::memory_order_relaxed) == 0) return false;
    const auto at = reinterpret_cast<uintptr_t>(caller);
    for (int k = 0; k < n_ranges; ++k) {
        if (at >= ranges[k].begin && at < ranges[k].end) return ++made == wanted;
    }
    return false;
}

/* What is asked for while the real functions are looked for. */
alignas(64) char first[1 << 14];
size_t used = 0;
thread_local bool looking = false;

void *early(size_t size) {
    void *found = first + used;
    used += (size + 63) / 64 * 64;
    return used <= sizeof first ? found : nullptr;
}
bool is_early(const void *data) { return data >= first && data < first + sizeof first; }

template <class F> F next(std::atomic<F> &known, const char *name) {
    F found = known.load(std::memory_order_relaxed);
    if (found == nullptr) {
        looking = true;
        found = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
        looking = false;
        known.store(found);
    }
    return found;
}

}  // namespace

#define NEXT(NAME, ...)                             \
    static std::atomic<decltype(&NAME)> known{nullptr}; \
    return next(known, #NAME)(__VA_ARGS__)
#define CALLER __builtin_return_address(0)

extern "C" {

/* Refuses request `which` from now on, none if that is 0; returns how many there have been since the last call. */
long fl_refuse(long which) {
    wanted = 0;
    n_ranges = 0;
    if (which > 0) dl_iterate_phdr(take_ranges, nullptr);
    const long before = made.exchange(0);
    wanted = which;
    return before;
}

void *malloc(size_t size) {
    if (looking) return early(size);
    if (refused(CALLER)) return nullptr;
    NEXT(malloc, size);
}

void *calloc(size_t count, size_t size) {
    if (looking) return early(count * size);
    if (refused(CALLER)) return nullptr;
    NEXT(calloc, count, size);
}

void *realloc(void *data, size_t size) {
    if (is_early(data)) return std::memcpy(malloc(size), data, std::min(size, static_cast<size_t>(first + used - static_cast<char *>(data))));
    if (refused(CALLER)) return nullptr;
    NEXT(realloc, data, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    if (refused(CALLER)) return nullptr;
    NEXT(aligned_alloc, alignment, size);
}

int posix_memalign(void **data, size_t alignment, size_t size) {
    if (refused(CALLER)) return ENOMEM;
    NEXT(posix_memalign, data, alignment, size);
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) noexcept {
    if (refused(CALLER)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    NEXT(mmap, address, size, protection, flags, file, offset);
}

void free(void *data) {
    if (is_early(data)) return;
    NEXT(free, data);
}

}  // extern "C"

#define FL_NEW(SYMBOL, TYPES, NAMES, REFUSAL)                                           \
    {                                                                                   \
        if (refused(CALLER)) REFUSAL;                                                   \
        static std::atomic<void *(*) TYPES> known{nullptr};                             \
        return next(known, SYMBOL) NAMES;                                               \
    }

void *operator new(size_t size) FL_NEW("_Znwm", (size_t), (size), throw std::bad_alloc())
void *operator new[](size_t size) FL_NEW("_Znam", (size_t), (size), throw std::bad_alloc())
void *operator new(size_t size, const std::nothrow_t &tag) noexcept
    FL_NEW("_ZnwmRKSt9nothrow_t", (size_t, const std::nothrow_t &), (size, tag), return nullptr)
void *operator new[](size_t size, const std::nothrow_t &tag) noexcept
    FL_NEW("_ZnamRKSt9nothrow_t", (size_t, const std::nothrow_t &), (size, tag), return nullptr)
void *operator new(size_t size, std::align_val_t alignment)
    FL_NEW("_ZnwmSt11align_val_t", (size_t, std::align_val_t), (size, alignment), throw std::bad_alloc())
void *operator new[](size_t size, std::align_val_t alignment)
    FL_NEW("_ZnamSt11align_val_t", (size_t, std::align_val_t), (size, alignment), throw std::bad_alloc())
