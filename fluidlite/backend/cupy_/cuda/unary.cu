// Activations and the commonest functions of one array, with their gradients.

#include "unary.cuh"

__device__ inline real sigmoid(real x) {
    const real small = exp(-fabs(x));
    return x >= R(0) ? R(1) / (R(1) + small) : small / (R(1) + small);
}

__device__ inline real softplus(real x) { return (x < R(0) ? R(0) : x) + log1p(exp(-fabs(x))); }

// NaN stays NaN.
__device__ inline real within(real x, real low, real high) { return x < low ? low : x > high ? high : x; }

__device__ inline real swish_slope(real x, real beta) {
    const real gate = sigmoid(beta * x);
    return gate + beta * x * gate * (R(1) - gate);
}

__device__ inline real mish_slope(real x) {
    const real inner = tanh(softplus(x));
    return inner + x * sigmoid(x) * (R(1) - inner * inner);
}

__device__ inline real hard_swish_slope(real x, real threshold, real scale, real offset) {
    const real moved = x + offset;
    if (moved <= R(0)) return R(0);
    return moved >= threshold ? R(1) : (R(2) * x + offset) / scale;
}

#define TANH_SCALE R(0.79788456080286536)
#define TANH_CUBE R(0.044715)

__device__ inline real gelu_of(real x, real approximate) {
    if (approximate != R(0)) return R(0.5) * x * (R(1) + tanh(TANH_SCALE * (x + TANH_CUBE * x * x * x)));
    return R(0.5) * x * (R(1) + erf(x * R(0.70710678118654752)));
}

__device__ inline real gelu_slope(real x, real approximate) {
    if (approximate != R(0)) {
        const real inner = tanh(TANH_SCALE * (x + TANH_CUBE * x * x * x));
        const real slope = TANH_SCALE * (R(1) + R(3) * TANH_CUBE * x * x) * (R(1) - inner * inner);
        return R(0.5) * (R(1) + inner + x * slope);
    }
    const real density = exp(R(-0.5) * x * x) * R(0.39894228040143268);
    return R(0.5) * (R(1) + erf(x * R(0.70710678118654752))) + x * density;
}

__device__ inline real soft_relu_slope(real out, real threshold) {
    return out > softplus(-threshold) && out < softplus(threshold) ? -expm1(-out) : R(0);
}

UNARY(relu, x < R(0) ? R(0) : x, k > R(0) ? g : R(0))
UNARY(relu6, within(x, R(0), a), k > R(0) && k < a ? g : R(0))
UNARY(leaky_relu, x > R(0) ? x : x * a, k > R(0) ? g : g * a)
UNARY(brelu, within(x, a, b), k > a && k < b ? g : R(0))
UNARY(hard_sigmoid, within(x * a + b, R(0), R(1)), k > R(0) && k < R(1) ? g * a : R(0))
UNARY(softshrink, x > a ? x - a : x < -a ? x + a : R(0) * x, fabs(k) > a ? g : R(0))
UNARY(hard_shrink, x * R(fabs(x) > a), fabs(k) > a ? g : R(0))
UNARY(thresholded_relu, x * R(x > a), k > a ? g : R(0))
UNARY(sigmoid, sigmoid(x), g * k * (R(1) - k))
UNARY(tanh, tanh(x), g * (R(1) - k * k))
UNARY(elu, x > R(0) ? x : a * expm1(x), k > R(0) ? g : g * a * exp(k))
UNARY(selu, a * (x > R(0) ? x : b * expm1(x)), g * (k > R(0) ? a : k + a * b))
UNARY(softsign, x / (R(1) + fabs(x)), g / ((R(1) + fabs(k)) * (R(1) + fabs(k))))
UNARY(softplus, softplus(x), g * sigmoid(k))
UNARY(logsigmoid, -softplus(-x), g * sigmoid(-k))
UNARY(soft_relu, softplus(within(x, -a, a)), g * soft_relu_slope(k, a))
UNARY(tanh_shrink, x - tanh(x), g * tanh(k) * tanh(k))
UNARY(stanh, b * tanh(a * x), g * a * b * (R(1) - tanh(a * k) * tanh(a * k)))
UNARY(swish, x * sigmoid(a * x), g * swish_slope(k, a))
UNARY(silu, x * sigmoid(x), g * swish_slope(k, R(1)))
UNARY(hard_swish, x * within(x + c, R(0), a) / b, g * hard_swish_slope(k, a, b, c))
UNARY(mish, x * tanh(softplus(x)), g * mish_slope(k))
UNARY(gelu, gelu_of(x, a), g * gelu_slope(k, a))
UNARY(abs, fabs(x), g * sign(k))
UNARY(exp, exp(x), g * k)
UNARY(sqrt, sqrt(x), g * R(0.5) / k)
UNARY(square, x * x, g * k * R(2))
UNARY(log, log(x), g / k)
