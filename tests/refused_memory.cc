/* Memory that is refused once: how tests/refused_memory.py tries what native code does without it.
 *
 * Loaded into a running Python, it puts itself in the place of the functions by which fluidlite's extensions and NumPy ask for
 * memory (in the tables through which these call other libraries), whoever has them: the C library, or a sanitizer. Requests of
 * Python and of other libraries are none of fluidlite's. */
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> wanted{0}, made{0}; /* which request is refused, how many there have been */

bool refused() {
    return wanted.load(std::memory_order_relaxed) != 0 && ++made == wanted;
}

/* What stands in the place of a function, and that function. */
struct Replaced {
    const char *name;
    void *by;
    void *real;
};

extern Replaced replaced[];

template <int AT, class F> F real() { return reinterpret_cast<F>(replaced[AT].real); }

void *refusing_malloc(size_t size) { return refused() ? nullptr : real<0, void *(*)(size_t)>()(size); }
void *refusing_calloc(size_t count, size_t size) { return refused() ? nullptr : real<1, void *(*)(size_t, size_t)>()(count, size); }
void *refusing_realloc(void *data, size_t size) { return refused() ? nullptr : real<2, void *(*)(void *, size_t)>()(data, size); }
void *refusing_aligned(size_t alignment, size_t size) { return refused() ? nullptr : real<3, void *(*)(size_t, size_t)>()(alignment, size); }
int refusing_memalign(void **data, size_t alignment, size_t size) {
    return refused() ? ENOMEM : real<4, int (*)(void **, size_t, size_t)>()(data, alignment, size);
}
void *refusing_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    if (!refused()) return real<5, decltype(&mmap)>()(address, size, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}
template <int AT> void *refusing_new(size_t size) {
    if (refused()) throw std::bad_alloc();
    return real<AT, void *(*)(size_t)>()(size);
}
template <int AT> void *refusing_quiet_new(size_t size, const std::nothrow_t &tag) {
    return refused() ? nullptr : real<AT, void *(*)(size_t, const std::nothrow_t &)>()(size, tag);
}
template <int AT> void *refusing_aligned_new(size_t size, std::align_val_t alignment) {
    if (refused()) throw std::bad_alloc();
    return real<AT, void *(*)(size_t, std::align_val_t)>()(size, alignment);
}

template <class F> void *address(F function) { return reinterpret_cast<void *>(function); }

Replaced replaced[] = {
    {"malloc", address(refusing_malloc), nullptr},
    {"calloc", address(refusing_calloc), nullptr},
    {"realloc", address(refusing_realloc), nullptr},
    {"aligned_alloc", address(refusing_aligned), nullptr},
    {"posix_memalign", address(refusing_memalign), nullptr},
    {"mmap", address(refusing_mmap), nullptr},
    {"_Znwm", address(refusing_new<6>), nullptr},
    {"_Znam", address(refusing_new<7>), nullptr},
    {"_ZnwmRKSt9nothrow_t", address(refusing_quiet_new<8>), nullptr},
    {"_ZnamRKSt9nothrow_t", address(refusing_quiet_new<9>), nullptr},
    {"_ZnwmSt11align_val_t", address(refusing_aligned_new<10>), nullptr},
    {"_ZnamSt11align_val_t", address(refusing_aligned_new<11>), nullptr},
};

/* Puts `by` where a library has the address of `real`. */
void replace(void **place, const Replaced &one) {
    if (*place == one.by) return;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), begin = reinterpret_cast<uintptr_t>(place) / page * page;
    if (mprotect(reinterpret_cast<void *>(begin), page, PROT_READ | PROT_WRITE) == 0) *place = one.by;
}

int take(dl_phdr_info *info, size_t, void *) {
    if (std::strstr(info->dlpi_name, "/_ext/") == nullptr && std::strstr(info->dlpi_name, "_multiarray_umath") == nullptr) return 0;
    const ElfW(Dyn) *entry = nullptr;
    for (int k = 0; k < info->dlpi_phnum; ++k) {
        if (info->dlpi_phdr[k].p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn) *>(info->dlpi_addr + info->dlpi_phdr[k].p_vaddr);
    }
    const ElfW(Sym) *symbols = nullptr;
    const char *names = nullptr;
    struct {
        const ElfW(Rela) *first;
        size_t bytes;
    } tables[2] = {};
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
            case DT_SYMTAB: symbols = reinterpret_cast<const ElfW(Sym) *>(entry->d_un.d_ptr); break;
            case DT_STRTAB: names = reinterpret_cast<const char *>(entry->d_un.d_ptr); break;
            case DT_JMPREL: tables[0].first = reinterpret_cast<const ElfW(Rela) *>(entry->d_un.d_ptr); break;
            case DT_PLTRELSZ: tables[0].bytes = entry->d_un.d_val; break;
            case DT_RELA: tables[1].first = reinterpret_cast<const ElfW(Rela) *>(entry->d_un.d_ptr); break;
            case DT_RELASZ: tables[1].bytes = entry->d_un.d_val; break;
            default: break;
        }
    }
    for (const auto &table : tables) {
        for (size_t k = 0; table.first != nullptr && k < table.bytes / sizeof(ElfW(Rela)); ++k) {
            const ElfW(Rela) &each = table.first[k];
            const size_t symbol = ELF64_R_SYM(each.r_info);
            if (symbol == 0 || each.r_addend != 0) continue;
            for (const Replaced &one : replaced) {
                if (std::strcmp(names + symbols[symbol].st_name, one.name) == 0) replace(reinterpret_cast<void **>(info->dlpi_addr + each.r_offset), one);
            }
        }
    }
    return 0;
}

}  // namespace

/* Refuses request `which` from now on, none if that is 0; returns how many there have been since the last call. */
extern "C" long fl_refuse(long which) {
    if (which > 0) {
        for (Replaced &one : replaced) {
            if (one.real == nullptr) one.real = dlsym(RTLD_DEFAULT, one.name);
        }
        dl_iterate_phdr(take, nullptr); /* extensions may have been loaded meanwhile */
    }
    wanted = 0;
    const long before = made.exchange(0);
    wanted = which;
    return before;
}
