/* The scalar rules of the operators with one operand, and of their gradients.
 *
 * A rule is built from the call's real arguments, `numbers` of them; `f` is the operator, `dx` its gradient from the input, the output and
 * the gradient of the output, of which it reads what `reads` says.
 */
#ifndef FLUIDLITE_KERNELS_UNARY_OPS_H
#define FLUIDLITE_KERNELS_UNARY_OPS_H

#include "kernels/by_rows.h"
#include "kernels/vec_math.h"

namespace fl::unary {

enum Reads { reads_nothing = 0, reads_x = 1, reads_out = 2 };

#define FL_RULE(NAME, READS)                    \
    template <class T> struct NAME {            \
        static constexpr int reads = READS;     \
        static constexpr int numbers = 0;       \
        FL_INLINE explicit NAME(const double *) {}
#define FL_RULE_1(NAME, READS, A)               \
    template <class T> struct NAME {            \
        static constexpr int reads = READS;     \
        static constexpr int numbers = 1;       \
        T A;                                    \
        FL_INLINE explicit NAME(const double *arg) : A(static_cast<T>(arg[0])) {}
#define FL_RULE_2(NAME, READS, A, B)            \
    template <class T> struct NAME {            \
        static constexpr int reads = READS;     \
        static constexpr int numbers = 2;       \
        T A, B;                                 \
        FL_INLINE explicit NAME(const double *arg) : A(static_cast<T>(arg[0])), B(static_cast<T>(arg[1])) {}
#define FL_RULE_3(NAME, READS, A, B, C)         \
    template <class T> struct NAME {            \
        static constexpr int reads = READS;     \
        static constexpr int numbers = 3;       \
        T A, B, C;                              \
        FL_INLINE explicit NAME(const double *arg)  \
            : A(static_cast<T>(arg[0])), B(static_cast<T>(arg[1])), C(static_cast<T>(arg[2])) {}
#define FL_F FL_INLINE T f(T x) const
#define FL_DX FL_INLINE T dx([[maybe_unused]] T x, [[maybe_unused]] T out, [[maybe_unused]] T g) const

FL_RULE(Relu, reads_out)
    FL_F { return vm::relu(x); }
    FL_DX { return out > T(0) ? g : T(0); }
};
FL_RULE(Sigmoid, reads_out)
    FL_F { return vm::sigmoid(x); }
    FL_DX { return g * out * (T(1) - out); }
};
FL_RULE(Tanh, reads_out)
    FL_F { return vm::tanh(x); }
    FL_DX { return g * (T(1) - out * out); }
};
FL_RULE(Exp, reads_out)
    FL_F { return vm::exp(x); }
    FL_DX { return g * out; }
};
FL_RULE(Sqrt, reads_out)
    FL_F { return std::sqrt(x); }
    FL_DX { return T(0.5) * g / out; }
};
FL_RULE(Rsqrt, reads_out)
    FL_F { return T(1) / std::sqrt(x); }
    FL_DX { return T(-0.5) * g * out * out * out; }
};
FL_RULE(Reciprocal, reads_out)
    FL_F { return T(1) / x; }
    FL_DX { return -g * out * out; }
};
FL_RULE_1(Relu6, reads_out, threshold)
    FL_F { return x < T(0) ? T(0) : (x > threshold ? threshold : x); }
    FL_DX { return out > T(0) && out < threshold ? g : T(0); }
};
FL_RULE(Log, reads_x)
    FL_F { return vm::log(x); }
    FL_DX { return g / x; }
};
FL_RULE(Square, reads_x)
    FL_F { return x * x; }
    FL_DX { return T(2) * g * x; }
};
template <class T> FL_INLINE T sign_of(T x) { return x > T(0) ? T(1) : (x < T(0) ? T(-1) : T(0)); }
FL_RULE(Abs, reads_x)
    FL_F { return std::fabs(x); }
    FL_DX { return g * sign_of(x); }
};
FL_RULE(Sign, reads_nothing)
    FL_F { return sign_of(x); }
    FL_DX { return T(0); }
};
FL_RULE(Softsign, reads_x)
    FL_F { return x / (T(1) + std::fabs(x)); }
    FL_DX { const T w = T(1) + std::fabs(x); return g / (w * w); }
};
FL_RULE(Softplus, reads_x)
    FL_F { return (x > T(0) ? x : T(0)) + vm::log1p(vm::exp(-std::fabs(x))); }
    FL_DX { return g * vm::sigmoid(x); }
};
FL_RULE(LogSigmoid, reads_x)
    FL_F { return (x < T(0) ? x : T(0)) - vm::log1p(vm::exp(-std::fabs(x))); }
    FL_DX { return g * vm::sigmoid(-x); }
};
FL_RULE(TanhShrink, reads_x)
    FL_F { return x - vm::tanh(x); }
    FL_DX { const T t = vm::tanh(x); return g * t * t; }
};
FL_RULE(Floor, reads_nothing)
    FL_F { return std::floor(x); }
    FL_DX { return T(0); }
};
FL_RULE(Ceil, reads_nothing)
    FL_F { return std::ceil(x); }
    FL_DX { return T(0); }
};
FL_RULE(Round, reads_nothing)
    FL_F { return std::round(x); } /* halves away from zero, as in Fluid */
    FL_DX { return T(0); }
};
FL_RULE_1(LeakyRelu, reads_x, alpha)
    FL_F { return alpha * x > x ? alpha * x : x; }
    FL_DX { return x > T(0) ? g : alpha * g; }
};
FL_RULE_1(Elu, reads_x, alpha)
    FL_F { return x > T(0) ? x : alpha * (vm::exp(x) - T(1)); }
    FL_DX { return x > T(0) ? g : alpha * g * vm::exp(x); }
};
FL_RULE_1(Swish, reads_x, beta)
    FL_F { return x * vm::sigmoid(beta * x); }
    FL_DX { const T s = vm::sigmoid(beta * x); return g * (s + beta * x * s * (T(1) - s)); }
};
FL_RULE_2(Stanh, reads_x, a, b)
    FL_F { return b * vm::tanh(a * x); }
    FL_DX { const T t = vm::tanh(a * x); return g * a * b * (T(1) - t * t); }
};
FL_RULE_2(HardSigmoid, reads_out, slope, offset)
    FL_F { const T y = slope * x + offset; return y < T(0) ? T(0) : (y > T(1) ? T(1) : y); }
    FL_DX { return out > T(0) && out < T(1) ? g * slope : T(0); }
};
FL_RULE_2(Clip, reads_x, low, high)
    FL_F { return x < low ? low : (x > high ? high : x); }
    FL_DX { return x > low && x < high ? g : T(0); }
};
FL_RULE_1(Power, reads_x, factor)
    FL_F { return std::pow(x, factor); }
    FL_DX { return g * factor * std::pow(x, factor - T(1)); }
};
FL_RULE(Sin, reads_x)
    FL_F { return std::sin(x); }
    FL_DX { return g * std::cos(x); }
};
FL_RULE(Cos, reads_x)
    FL_F { return std::cos(x); }
    FL_DX { return -g * std::sin(x); }
};
/* x times the normal distribution function, which tanh may approximate. */
FL_RULE_1(Gelu, reads_x, approximate)
    static constexpr double root_2_by_pi = 0.79788456080286536, cubic = 0.044715;
    FL_INLINE T tanh_part(T x) const { return vm::tanh(T(root_2_by_pi) * (x + T(cubic) * x * x * x)); }
    FL_INLINE T erf_part(T x) const { return vm::erf(x * T(0.70710678118654752)); }
    FL_F { return T(0.5) * x * (T(1) + (approximate != T(0) ? tanh_part(x) : erf_part(x))); }
    FL_DX {
        if (approximate != T(0)) {
            const T t = tanh_part(x);
            const T slope = T(root_2_by_pi) * (T(1) + T(3 * cubic) * x * x);
            return g * T(0.5) * (T(1) + t + x * (T(1) - t * t) * slope);
        }
        return g * (T(0.5) * (T(1) + erf_part(x)) + x * T(0.5 * root_2_by_pi) * vm::exp(T(-0.5) * x * x));
    }
};
FL_RULE(Erf, reads_x)
    FL_F { return vm::erf(x); }
    FL_DX { return g * T(1.1283791670955126) * vm::exp(-x * x); } /* 2 / sqrt(pi) */
};
FL_RULE(Silu, reads_x)
    FL_F { return x * vm::sigmoid(x); }
    FL_DX { const T s = vm::sigmoid(x); return g * (s + x * s * (T(1) - s)); }
};
FL_RULE_1(SoftShrink, reads_x, lambda)
    FL_F { return x > lambda ? x - lambda : (x < -lambda ? x + lambda : T(0) * x); } /* NaN stays NaN */
    FL_DX { return std::fabs(x) > lambda ? g : T(0); }
};
FL_RULE_1(HardShrink, reads_x, threshold)
    FL_F { return x * (std::fabs(x) > threshold ? T(1) : T(0)); } /* what is no number stays none */
    FL_DX { return std::fabs(x) > threshold ? g : T(0); }
};
FL_RULE_1(ThresholdedRelu, reads_x, threshold)
    FL_F { return x * (x > threshold ? T(1) : T(0)); }
    FL_DX { return x > threshold ? g : T(0); }
};
FL_RULE_2(Selu, reads_out, scale, alpha)
    FL_F { return scale * (x > T(0) ? x : alpha * (vm::exp(x) - T(1))); }
    FL_DX { return g * (out > T(0) ? scale : out + scale * alpha); }
};
FL_RULE_3(HardSwish, reads_x, threshold, scale, offset)
    FL_F { const T y = x + offset; return x * (y < T(0) ? T(0) : (y > threshold ? threshold : y)) / scale; }
    FL_DX { /* beyond the threshold Fluid takes 1 for the slope, which threshold / scale need not be */
        const T y = x + offset;
        return y <= T(0) ? T(0) : g * (y >= threshold ? T(1) : (T(2) * x + offset) / scale);
    }
};
/* x tanh(softplus(x)), where softplus is x above the threshold and exp(x) below its negative. */
FL_RULE_1(Mish, reads_x, threshold)
    FL_INLINE T soft(T x) const {
        const T plus = (x > T(0) ? x : T(0)) + vm::log1p(vm::exp(-std::fabs(x)));
        const T small = vm::exp(x < T(0) ? x : T(0));
        return x > threshold ? x : (x < -threshold ? small : plus);
    }
    FL_F { return x * vm::tanh(soft(x)); }
    FL_DX {
        const T inner = soft(x), t = vm::tanh(inner);
        return g * (t + x * (T(1) - vm::exp(-inner)) * (T(1) - t * t));
    }
};

#undef FL_RULE
#undef FL_RULE_1
#undef FL_RULE_2
#undef FL_RULE_3
#undef FL_F
#undef FL_DX

}  // namespace fl::unary

#endif
