/* Compiles the including file, FL_SELF, once for every instruction set, each time in a namespace of its own.
 *
 * A file of kernels has two halves: outside (FL_NS undefined) it includes this header and lists its tables; inside
 * (FL_NS defined) it defines the kernels in namespace fl::FL_NS. No include guard: every file of kernels needs it.
 *
 * AVX-512 pays for elementary functions and products alone (the rest waits for memory): files with these define FL_WIDE, others
 * are compiled for AVX2 in its place. What common.h leaves out is not compiled, and nobody asks for its table.
 *
 * What stands in FL_NARROW(...) is compiled for AVX2 in the place of AVX-512 in these files, too: loops without elementary functions.
 * What stands in FL_ONCE(...), and in `#if FL_EVERY_TYPE`, is compiled for one set alone: the default one, or that of a build without it.
 */
#define FL_EVERY_TYPE !FL_BASELINE
#if FL_BASELINE
#undef FL_ONCE
#define FL_ONCE(...) nullptr
#endif
#if FL_AVX512 && defined(FL_WIDE)
#if FL_AVX2
#undef FL_NARROW
#define FL_NARROW(...) nullptr
#endif
#pragma GCC push_options
#pragma GCC target("prefer-vector-width=256,avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,bmi,bmi2")
#define FL_NS avx512
#include FL_SELF
#undef FL_NS
#undef FL_NARROW
#define FL_NARROW(...) __VA_ARGS__
#pragma GCC pop_options
#define FL_ON_AVX512(name) avx512::name
#else
#define FL_ON_AVX512(name) FL_ON_AVX2(name)
#endif
#if FL_AVX2 || (FL_AVX512 && !defined(FL_WIDE))
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2")
#define FL_NS avx2
#include FL_SELF
#undef FL_NS
#pragma GCC pop_options
#define FL_ON_AVX2(name) avx2::name
#else
#define FL_ON_AVX2(name) nullptr
#endif
#if FL_BASELINE
#undef FL_EVERY_TYPE
#define FL_EVERY_TYPE 1
#undef FL_ONCE
#define FL_ONCE(...) __VA_ARGS__
#define FL_NS baseline
#include FL_SELF
#undef FL_NS
#define FL_ON_BASELINE(name) baseline::name
#else
#define FL_ON_BASELINE(name) nullptr
#endif
#define FL_TOPIC(name) {FL_ON_BASELINE(name), FL_ON_AVX2(name), FL_ON_AVX512(name)}
