/* Scaling, sums of tensors, fills, copies and casts. */
#ifndef FL_NS

#include "kernels/by_rows.h"
#include "kernels/topics.h"

#define FL_SELF "kernels/fill.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_fill = FL_TOPIC(fill_table);

#else

namespace fl::FL_NS {
namespace {

template <class T> int scale(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    const int64_t n = call->i[0];
    /* Integers are scaled in their own type, which a double cannot hold, and overflow as such. */
    using F = typename arithmetic<T>::type;
    const F factor = static_cast<F>(static_cast<T>(call->f[0]));
    /* scale * (x + bias) is scale * x + scale * bias only in exact arithmetic, so both orders are kept. */
    const F bias = static_cast<F>(static_cast<T>(call->f[1]));
    const F before = call->i[1] ? F(0) : bias, after = call->i[1] ? bias : F(0);
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) out[k] = static_cast<T>((static_cast<F>(x[k]) + before) * factor + after);
    return FL_OK;
}

template <class T> int increment(fl_call *call) {
    const T *x = at<T>(call, 0);
    T *out = at<T>(call, 1);
    const T step = static_cast<T>(call->f[0]);
    FL_LOOP
    for (int64_t k = 0; k < call->i[0]; ++k) out[k] = sum_of(x[k], step);
    return FL_OK;
}

/* Block by block, so that Out may be any of the operands and the block stays in the cache. */
template <class T> int sum(fl_call *call) {
    constexpr int64_t width = 1024;
    const int count = call->n_p - 1;
    T *out = at<T>(call, count);
    const int64_t n = call->i[0];
    in_ranges((n + width - 1) / width, (count + 1) * width * static_cast<int64_t>(sizeof(T)), [=](int64_t from, int64_t to) {
        T block[width];
        for (int64_t begin = from * width; begin < n && begin < to * width; begin += width) {
            const int64_t length = n - begin < width ? n - begin : width;
            const T *first = at<T>(call, 0) + begin;
            for (int64_t k = 0; k < length; ++k) block[k] = first[k];
            for (int which = 1; which < count; ++which) {
                const T *x = at<T>(call, which) + begin;
                for (int64_t k = 0; k < length; ++k) block[k] = sum_of(block[k], x[k]);
            }
            std::memcpy(out + begin, block, static_cast<size_t>(length) * sizeof(T));
        }
    });
    return FL_OK;
}

template <class T> int fill(fl_call *call) {
    T *out = at<T>(call, 0);
    T value;
    if constexpr (std::is_floating_point<T>::value) {
        value = static_cast<T>(call->f[0]);
    } else {
        value = static_cast<T>(call->i[1]);
    }
    for (int64_t k = 0; k < call->i[0]; ++k) out[k] = value;
    return FL_OK;
}

/* Start, Start + Step, ... */
template <class T> int range(fl_call *call) {
    using Wide = std::conditional_t<std::is_floating_point<T>::value, double, int64_t>;
    const Wide start = static_cast<Wide>(*at<T>(call, 0)), step = static_cast<Wide>(*at<T>(call, 1));
    T *out = at<T>(call, 2);
    for (int64_t k = 0; k < call->i[0]; ++k) out[k] = static_cast<T>(start + step * static_cast<Wide>(k));
    return FL_OK;
}

int copy(fl_call *call) {
    if (call->p[0] != call->p[1] && call->i[0] > 0) {
        std::memcpy(call->p[1], call->p[0], static_cast<size_t>(call->i[0]));
    }
    return FL_OK;
}

struct Bool; /* stands for bool, of which only 0 and 1 may be written */

template <class T> struct Stored { using type = T; };
template <> struct Stored<Bool> { using type = uint8_t; };

template <class From, class To> int cast(fl_call *call) {
    using Source = typename Stored<From>::type;
    using Target = typename Stored<To>::type;
    const Source *x = at<Source>(call, 0);
    Target *out = at<Target>(call, 1);
    const int64_t n = call->i[0]; /* which bytes that are written might be a part of */
#pragma GCC unroll 4
    for (int64_t k = 0; k < n; ++k) {
        if constexpr (std::is_same<To, Bool>::value) {
            out[k] = x[k] != 0;
        } else if constexpr (std::is_floating_point<Source>::value && !std::is_floating_point<Target>::value) {
            out[k] = static_cast<Target>(whole<std::conditional_t<std::is_same<Target, uint8_t>::value, int32_t, Target>>(x[k]));
        } else {
            out[k] = static_cast<Target>(x[k]);
        }
    }
    return FL_OK;
}

float widened(uint16_t half) {
    const uint32_t magnitude = half & 0x7fffu;
    const uint32_t scaled = magnitude << 13, special = scaled | 0x7f800000u;
    float value;
    std::memcpy(&value, &scaled, 4);
    value *= 0x1p112f; /* from the bias of one exponent to that of the other; exact, also for denormal numbers */
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits = (magnitude >= 0x7c00u ? special : bits) | (half & 0x8000u) << 16;
    std::memcpy(&value, &bits, 4);
    return value;
}

/* Beyond the largest half: infinity, or NaN with what it carries. */
uint32_t beyond_halves(uint32_t magnitude) {
    return magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : 0x7c00u;
}

/* The nearest half. */
uint16_t narrowed(float single) {
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    float small;
    std::memcpy(&small, &magnitude, 4);
    small += 0.5f; /* leaves the bits that a denormal half has, rounded to even */
    uint32_t denormal;
    std::memcpy(&denormal, &small, 4);
    denormal -= 0x3f000000u;
    const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    const uint32_t finite = magnitude < 0x38800000u ? denormal : normal;
    return static_cast<uint16_t>((magnitude >= 0x47800000u ? beyond_halves(magnitude) : finite) | sign);
}

/* The next half toward zero, as `cast` makes it in Fluid on the CPU; infinity above the largest. */
uint16_t cut(float single) {
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    const uint32_t small = magnitude < 0x38800000u ? magnitude : 0u; /* those that are denormal halves */
    float value;
    std::memcpy(&value, &small, 4);
    const uint32_t denormal = static_cast<uint32_t>(value * 0x1p24f), normal = (magnitude - 0x38000000u) >> 13;
    const uint32_t finite = magnitude < 0x38800000u ? denormal : normal;
    return static_cast<uint16_t>((magnitude > 0x477fe000u ? beyond_halves(magnitude) : finite) | sign);
}

int from_half(fl_call *call) {
    const uint16_t *x = at<uint16_t>(call, 0);
    float *out = at<float>(call, 1);
    for (int64_t k = 0; k < call->i[0]; ++k) out[k] = widened(x[k]);
    return FL_OK;
}

template <uint16_t (*half)(float)> int to_half(fl_call *call) {
    const float *x = at<float>(call, 0);
    uint16_t *out = at<uint16_t>(call, 1);
    for (int64_t k = 0; k < call->i[0]; ++k) out[k] = half(x[k]);
    return FL_OK;
}

template <class T> int all_finite(fl_call *call) {
    const int count = call->n_p - 1;
    bool finite = true;
    for (int which = 0; which < count && finite; ++which) {
        const T *x = at<T>(call, which);
        int bad = 0;
#pragma omp simd reduction(| : bad)
        for (int64_t k = 0; k < call->i[which]; ++k) bad |= !(std::fabs(x[k]) <= std::numeric_limits<T>::max());
        finite = bad == 0;
    }
    *at<uint8_t>(call, count) = finite;
    return FL_OK;
}

template <class T> constexpr fl_kernel scale_by_rows = by_rows<scale<T>, Each<T>, Each<T>>;
constexpr fl_kernel copy_by_rows = by_rows<copy, Each<char>, Each<char>>;

}  // namespace

/* Casts from a type, of which only those between floats and whole numbers are frequent. */
#define FL_CASTS(NAME, T)                                                                                                              \
    {"cast." NAME ".f32", cast<T, float>, "xx|z||a,a"}, {"cast." NAME ".f64", FL_ONCE(cast<T, double>), "xx|z||a,a"},                    \
    {"cast." NAME ".i32", cast<T, int32_t>, "xx|z||a,a"}, {"cast." NAME ".i64", cast<T, int64_t>, "xx|z||a,a"},                         \
    {"cast." NAME ".u8", FL_ONCE(cast<T, uint8_t>), "xx|z||a,a"}, {"cast." NAME ".b1", FL_ONCE(cast<T, Bool>), "xx|z||a,a"},

extern const fl_entry fill_table[] = {
    FL_REAL("scale", scale_by_rows, "xx|zi|ff|a,a")
    FL_INTEGER("scale", scale, "xx|zi|ff|a,a")
    FL_NUMBER("increment", increment, "xx|z|f|a,a")
    FL_NUMBER("sum", sum, "(x)x|z||(a)a")
    FL_REAL("fill", fill, "x|z|f|a")
    FL_INTEGER("fill", fill, "x|zi||a")
    {"fill.u8", FL_ONCE(fill<uint8_t>), "x|zi||a"},
    FL_NUMBER("range", range, "xxx|z||1,1,a")
    {"copy", copy_by_rows, "xx|z||aB,aB"},
    FL_CASTS("f32", float)
    FL_CASTS("f64", double)
    FL_CASTS("i32", int32_t)
    FL_CASTS("i64", int64_t)
    FL_CASTS("u8", uint8_t)
    {"cast.f16.f32", from_half, "xx|z||a,a"},
    {"cast.f32.f16", to_half<cut>, "xx|z||a,a"},
    {"round.f32.f16", to_half<narrowed>, "xx|z||a,a"},
    FL_CASTS("b1", Bool)
    FL_REAL("isfinite", all_finite, "(x)x|(z)||(@)1B")
    {nullptr, nullptr, nullptr}};

#undef FL_CASTS

}  // namespace fl::FL_NS

#endif
