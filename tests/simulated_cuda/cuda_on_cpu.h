// CUDA C++ for a host compiler: what kernels may use. Threads of a block are fibers (cuda_on_cpu.cc), so that
// they can wait for each other; blocks run one after the other.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
// Shared memory is one piece, so that every block can find garbage in it, and that its size is known.
#define __shared__ static __attribute__((section("simshared")))

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };
struct alignas(8) float2 { float x, y; };
struct float3 { float x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(8) int2 { int x, y; };
struct int3 { int x, y, z; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) longlong2 { long long x, y; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

extern "C" {
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
extern char *sim_dynamic_shared;
void sim_barrier(int predicate, int *count, int *all, int *any);
void sim_exchange(unsigned mask, const void *value, unsigned size, int source, void *result);
unsigned sim_ballot(unsigned mask, int predicate);
unsigned sim_active();
int sim_lane();
[[noreturn]] void sim_trap(const char *what);
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
extern char __start_simshared[] __attribute__((weak, visibility("hidden")));
extern char __stop_simshared[] __attribute__((weak, visibility("hidden")));
}
static const int warpSize = 32;

inline void __syncthreads() { sim_barrier(0, nullptr, nullptr, nullptr); }
inline int __syncthreads_count(int p) { int n; sim_barrier(p, &n, nullptr, nullptr); return n; }
inline int __syncthreads_and(int p) { int n; sim_barrier(p, nullptr, &n, nullptr); return n; }
inline int __syncthreads_or(int p) { int n; sim_barrier(p, nullptr, nullptr, &n); return n; }
inline void __syncwarp(unsigned mask = 0xffffffffu) { sim_ballot(mask, 0); }
inline unsigned __ballot_sync(unsigned mask, int p) { return sim_ballot(mask, p); }
inline int __any_sync(unsigned mask, int p) { return sim_ballot(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return sim_ballot(mask, !p) == 0; }
inline unsigned __activemask() { return sim_active(); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __trap() { sim_trap("__trap() was called"); }
#define assert(condition) ((condition) ? (void)0 : sim_trap("assertion failed: " #condition))

template <class T> T sim_shuffle(unsigned mask, T value, int source) {
    static_assert(sizeof(T) <= 16, "too large to shuffle");
    T result = value;
    sim_exchange(mask, &value, sizeof(T), source, &result);
    return result;
}
template <class T> T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
    const int lane = sim_lane();
    return sim_shuffle(mask, v, (lane & ~(width - 1)) + (source & (width - 1)));
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
    const int lane = sim_lane(), from = lane - (int)delta;
    return sim_shuffle(mask, v, from < (lane & ~(width - 1)) ? lane : from);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
    const int lane = sim_lane(), from = lane + (int)delta;
    return sim_shuffle(mask, v, from > (lane | (width - 1)) ? lane : from);
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
    const int lane = sim_lane(), from = lane ^ bits;
    return sim_shuffle(mask, v, from > (lane | (width - 1)) ? lane : from);
}

// Only one thread runs at a time, so that plain code is atomic. These overloads are those that CUDA has.
#define SIM_ATOMIC(NAME, TYPE, EXPRESSION) \
    inline TYPE NAME(TYPE *p, TYPE v) { const TYPE old = *p; *p = EXPRESSION; return old; }
#define SIM_ATOMIC_INTEGER(TYPE) \
    SIM_ATOMIC(atomicMin, TYPE, old < v ? old : v) \
    SIM_ATOMIC(atomicMax, TYPE, old > v ? old : v) \
    SIM_ATOMIC(atomicAnd, TYPE, old & v) SIM_ATOMIC(atomicOr, TYPE, old | v) SIM_ATOMIC(atomicXor, TYPE, old ^ v)
SIM_ATOMIC(atomicAdd, int, old + v)
SIM_ATOMIC(atomicAdd, unsigned, old + v)
SIM_ATOMIC(atomicAdd, unsigned long long, old + v)
SIM_ATOMIC(atomicAdd, float, old + v)
SIM_ATOMIC(atomicAdd, double, old + v)
SIM_ATOMIC(atomicSub, int, old - v)
SIM_ATOMIC(atomicSub, unsigned, old - v)
SIM_ATOMIC(atomicExch, int, v)
SIM_ATOMIC(atomicExch, unsigned, v)
SIM_ATOMIC(atomicExch, unsigned long long, v)
SIM_ATOMIC(atomicExch, float, v)
SIM_ATOMIC(atomicInc, unsigned, old >= v ? 0 : old + 1)
SIM_ATOMIC(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
SIM_ATOMIC_INTEGER(int)
SIM_ATOMIC_INTEGER(unsigned)
SIM_ATOMIC_INTEGER(unsigned long long)
SIM_ATOMIC(atomicMin, long long, old < v ? old : v)
SIM_ATOMIC(atomicMax, long long, old > v ? old : v)
#define SIM_CAS(TYPE) \
    inline TYPE atomicCAS(TYPE *p, TYPE expected, TYPE v) { const TYPE old = *p; if (old == expected) *p = v; return old; }
SIM_CAS(int)
SIM_CAS(unsigned)
SIM_CAS(unsigned long long)
SIM_CAS(unsigned short)

template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> void __stcs(T *p, T v) { *p = v; }
using std::abs, std::acos, std::asin, std::atan, std::atan2, std::ceil, std::cos, std::cosh, std::erf, std::erfc;
using std::exp, std::exp2, std::expm1, std::fabs, std::floor, std::fma, std::fmax, std::fmin, std::fmod, std::isfinite;
using std::isinf, std::isnan, std::lgamma, std::log, std::log10, std::log1p, std::log2, std::pow, std::rint, std::round;
using std::sin, std::sinh, std::sqrt, std::tan, std::tanh, std::tgamma, std::trunc, std::copysign, std::signbit;
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __fmul_rn(float x, float y) { volatile float r = x * y; return r; }
inline float __fadd_rn(float x, float y) { volatile float r = x + y; return r; }
inline float __fsub_rn(float x, float y) { volatile float r = x - y; return r; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline double __dmul_rn(double x, double y) { volatile double r = x * y; return r; }
inline double __dadd_rn(double x, double y) { volatile double r = x + y; return r; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline int __float2int_rn(float x) { return (int)rintf(x); }
inline int __float2int_rd(float x) { return (int)floorf(x); }
inline int __float_as_int(float x) { int r; __builtin_memcpy(&r, &x, 4); return r; }
inline unsigned __float_as_uint(float x) { unsigned r; __builtin_memcpy(&r, &x, 4); return r; }
inline float __int_as_float(int x) { float r; __builtin_memcpy(&r, &x, 4); return r; }
inline float __uint_as_float(unsigned x) { float r; __builtin_memcpy(&r, &x, 4); return r; }
inline long long __double_as_longlong(double x) { long long r; __builtin_memcpy(&r, &x, 8); return r; }
inline double __longlong_as_double(long long x) { double r; __builtin_memcpy(&r, &x, 8); return r; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class T, class U> auto min(T a, U b) -> decltype(a + b) { return a < b ? a : b; }
template <class T, class U> auto max(T a, U b) -> decltype(a + b) { return a > b ? a : b; }

// How the host calls a kernel, and what it is told of its parameters.
template <class T> constexpr char sim_kind() {
    return std::is_pointer_v<T> ? 'p' : std::is_floating_point_v<T> ? 'f' : std::is_integral_v<T> || std::is_enum_v<T> ? 'i' : 's';
}
template <class... A, size_t... I>
__attribute__((no_sanitize_address, no_sanitize_undefined)) void sim_apply(void (*f)(A...), void **a, std::index_sequence<I...>) {
    f(*(std::remove_reference_t<A> *)a[I]...);
}
template <class... A> void sim_call(void (*f)(A...), void **a) { sim_apply(f, a, std::index_sequence_for<A...>()); }
template <class... A> int sim_describe(void (*)(A...), char *kinds, int *sizes) {
    const char k[] = {sim_kind<A>()..., 0};
    const int s[] = {(int)sizeof(A)..., 0};
    for (unsigned i = 0; i < sizeof...(A); i++) kinds[i] = k[i], sizes[i] = s[i];
    return sizeof...(A);
}
