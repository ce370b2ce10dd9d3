/* What every file of kernels needs: access to the operands, loop hints, and the shape of a table of kernels. */
#ifndef FLUIDLITE_KERNELS_COMMON_H
#define FLUIDLITE_KERNELS_COMMON_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "abi.h"

#if defined(__GNUC__)
#define FL_INLINE inline __attribute__((always_inline))
#define FL_NOINLINE __attribute__((noinline))
#define FL_RESTRICT __restrict__
#else
#define FL_INLINE inline
#define FL_NOINLINE
#define FL_RESTRICT
#endif

/* In front of a loop whose iterations are independent even if an output is the very array of an input. */
#if defined(__clang__)
#define FL_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define FL_LOOP _Pragma("GCC ivdep")
#else
#define FL_LOOP
#endif

/* Kernels are compiled once for every instruction set of targets.h; x86 compilers of the GNU kind know them all. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FL_MULTITARGET 1
#else
#define FL_MULTITARGET 0
#endif

/* A build for one machine leaves out what that does not use (setup.py); something is always left. */
#ifndef FL_AVX512
#define FL_AVX512 FL_MULTITARGET
#endif
#ifndef FL_AVX2
#define FL_AVX2 FL_MULTITARGET
#endif
#if !defined(FL_BASELINE) || !(FL_AVX512 || FL_AVX2)
#undef FL_BASELINE
#define FL_BASELINE 1
#endif

namespace fl {

template <class T> FL_INLINE T *at(const fl_call *call, int k) { return static_cast<T *>(call->p[k]); }

/* The offsets of n sequences: n + 1 numbers that go up from 0 to the number of rows. Kernels index memory with them
 * unchecked: those that are fed were checked when they were taken, and kernels that make some make such ones. */
FL_INLINE const int64_t *offsets_at(const fl_call *call, int k) { return static_cast<const int64_t *>(call->p[k]); }

/* Reports a label or id outside [0, bound). */
FL_INLINE int out_of_range(fl_call *call, int64_t value, int64_t position, int64_t bound) {
    call->err[0] = value;
    call->err[1] = position;
    call->err[2] = bound;
    return FL_OUT_OF_RANGE;
}

FL_INLINE int no_memory(fl_call *call, int64_t bytes) {
    call->err[0] = bytes;
    return FL_NO_MEMORY;
}

/* The larger of two. What is not a number wins, so that it does not vanish. Without `||` there is no jump, which would be guessed wrong
 * half of the time. */
template <class T> FL_INLINE T larger(T a, T b) { return static_cast<int>(a > b) | static_cast<int>(a != a) ? a : b; }

/* A real number without its fraction. What I cannot hold, and what is not a number, becomes the smallest I: so says the instruction of
 * x86, whose results Fluid has; others have the nearest I and 0. */
template <class I, class T> FL_INLINE I whole(T x) {
#if !defined(__x86_64__)
    constexpr T lowest = static_cast<T>(std::numeric_limits<I>::min());
    if (!(x >= lowest && x < -lowest)) return std::numeric_limits<I>::min();
#endif
    return static_cast<I>(x);
}

/* Memory of at least `bytes` that a call keeps between runs; NULL if there is none. It grows with the sizes of a run. */
struct Scratch {
    char *memory;
    int64_t bytes;
};

inline void free_scratch(void *state) {
    delete[] static_cast<Scratch *>(state)->memory;
    delete static_cast<Scratch *>(state);
}

inline void *scratch(fl_call *call, int64_t bytes) {
    Scratch *kept = static_cast<Scratch *>(call->state);
    if (kept == nullptr) {
        call->state = kept = new (std::nothrow) Scratch{nullptr, 0};
        call->free_state = free_scratch;
        call->any_ints = 1;
        if (kept == nullptr) return nullptr;
    }
    if (kept->bytes < bytes || kept->memory == nullptr) {
        char *grown = new (std::nothrow) char[static_cast<size_t>(bytes)];
        if (grown == nullptr) return nullptr;
        char *old = kept->memory;
        kept->memory = grown; /* first: the child of a fork may free what it finds here */
        kept->bytes = bytes;
        delete[] old;
    }
    return kept->memory;
}

/* Cuts memory into arrays that begin at multiples of 64 bytes: first counts what is taken, then, after `begin`, hands it out. */
class Arena {
  public:
    template <class T> T *take(int64_t n) {
        char *const part = memory_ == nullptr ? nullptr : memory_ + used_;
        used_ += (n * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
        return reinterpret_cast<T *>(part);
    }

    /* How much memory there has to be for what has been counted. */
    int64_t bytes() const { return used_ + 64; }

    /* Hands out `memory` from now on. */
    void begin(char *memory) {
        memory_ = memory + (64 - reinterpret_cast<uintptr_t>(memory) % 64) % 64;
        used_ = 0;
    }

  private:
    char *memory_ = nullptr;
    int64_t used_ = 0;
};

/* Calls lay(arena) twice: to count, and to take memory that the call keeps between runs. Returns FL_NO_MEMORY if there is none. */
template <class F> int in_scratch(fl_call *call, const F &lay) {
    Arena arena;
    lay(arena);
    const int64_t bytes = arena.bytes();
    void *const memory = scratch(call, bytes);
    if (memory == nullptr) return no_memory(call, bytes);
    arena.begin(static_cast<char *>(memory));
    lay(arena);
    return FL_OK;
}

/* Reports a size that a library's int cannot hold. */
FL_INLINE int too_large(fl_call *call, int64_t size, int64_t most) {
    call->err[0] = size;
    call->err[1] = most;
    return FL_TOO_LARGE;
}

/* Reports a sequence (-1: all of them together) whose size does not fit. */
FL_INLINE int uneven(fl_call *call, int64_t sequence, int64_t size, int64_t wanted) {
    call->err[0] = sequence;
    call->err[1] = size;
    call->err[2] = wanted;
    return FL_UNEVEN;
}

/* Reports that an integer is divided by zero. */
FL_INLINE int zero_divisor(fl_call *call, int64_t position) {
    call->err[0] = position;
    return FL_ZERO;
}

/* Reports that operand `which` was left out and is needed. */
FL_INLINE int missing(fl_call *call, int which) {
    call->err[0] = which;
    return FL_MISSING;
}

/* Sums are taken in double for both real types, and in the type itself for integers. */
template <class T> using sum_t = std::conditional_t<std::is_floating_point<T>::value, double, T>;

/* What integers are added and multiplied in: theirs wrap around, as those of NumPy and Fluid do, and signed ones of C++ must not.
 * T where it is a real number; an unsigned integer of as many bits, and at least those of int, which smaller ones become. */
template <class T, bool real = std::is_floating_point<T>::value> struct arithmetic {
    using type = T;
};
template <class T> struct arithmetic<T, false> {
    using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};
template <class T> using arithmetic_t = typename arithmetic<T>::type;

template <class T> FL_INLINE T sum_of(T a, T b) { return static_cast<T>(static_cast<arithmetic_t<T>>(a) + static_cast<arithmetic_t<T>>(b)); }
template <class T> FL_INLINE T difference_of(T a, T b) { return static_cast<T>(static_cast<arithmetic_t<T>>(a) - static_cast<arithmetic_t<T>>(b)); }
template <class T> FL_INLINE T product_of(T a, T b) { return static_cast<T>(static_cast<arithmetic_t<T>>(a) * static_cast<arithmetic_t<T>>(b)); }

/* How wide the registers of each instruction set are, and the sums that products keep in them: rows, and vectors of a row. Where
 * multiply-adds read no memory, as on AArch64, elements of A need registers as well. */
namespace avx512 {
constexpr int vector_bytes = 64, tile_rows = 6, strip_vectors = 4;
}
namespace avx2 {
constexpr int vector_bytes = 32, tile_rows = 6, strip_vectors = 2;
}
namespace baseline {
#if defined(__aarch64__)
constexpr int vector_bytes = 16, tile_rows = 5, strip_vectors = 4;
#else
constexpr int vector_bytes = 16, tile_rows = 6, strip_vectors = 2;
#endif
}

/* Rows of a table of kernels: F for the types of a group. Types other than float are rare, and compiled for one instruction set alone
 * (FL_ONCE of targets.h), whose rows table.cc puts into the other tables. */
#define FL_ONCE(...) __VA_ARGS__
#define FL_NARROW(...) __VA_ARGS__
#define FL_REAL(NAME, F, TAKES) {NAME ".f32", F<float>, TAKES}, {NAME ".f64", FL_ONCE(F<double>), TAKES},
#define FL_INTEGER(NAME, F, TAKES) {NAME ".i32", FL_ONCE(F<int32_t>), TAKES}, {NAME ".i64", FL_ONCE(F<int64_t>), TAKES},
#define FL_NUMBER(NAME, F, TAKES) FL_REAL(NAME, F, TAKES) FL_INTEGER(NAME, F, TAKES)

/* The kernels of one topic, one table for each instruction set; a table ends with a null name. */
struct Topic {
    const fl_entry *baseline;
    const fl_entry *avx2;
    const fl_entry *avx512;
};

/* Activations that gemm, bias additions and convolutions can apply to their result. */
enum Activation { act_none = 0, act_relu = 1, act_sigmoid = 2, act_tanh = 3 };

/* The activation asked for by the optional integer argument `k`. */
FL_INLINE int64_t activation(const fl_call *call, int k) {
    return call->n_i > k ? call->i[k] : static_cast<int64_t>(act_none);
}

}  // namespace fl

#endif
