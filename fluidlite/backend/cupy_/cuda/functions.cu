// Functions of one array that few programs have, with their gradients.

#include "unary.cuh"

__device__ inline real nearest(real x) {
    const real whole = trunc(x);
    return fabs(x - whole) >= R(0.5) ? whole + sign(x) : whole;
}

UNARY(sign, sign(x), R(0))
UNARY(ceil, ceil(x), R(0))
UNARY(floor, floor(x), R(0))
UNARY(round, nearest(x), R(0))
UNARY(expm1, expm1(x), g * (k + R(1)))
UNARY(rsqrt, R(1) / sqrt(x), g * k * k * k * R(-0.5))
UNARY(reciprocal, R(1) / x, -g * k * k)
UNARY(log1p, log1p(x), g / (R(1) + k))
UNARY(log2, log2(x), g / (k * R(0.69314718055994531)))
UNARY(log10, log10(x), g / (k * R(2.30258509299404568)))
UNARY(sin, sin(x), g * cos(k))
UNARY(cos, cos(x), -g * sin(k))
UNARY(tan, tan(x), g * (R(1) + k * k))
UNARY(sinh, sinh(x), g * cosh(k))
UNARY(cosh, cosh(x), g * sinh(k))
UNARY(asin, asin(x), g / sqrt(R(1) - k * k))
UNARY(acos, acos(x), -g / sqrt(R(1) - k * k))
UNARY(atan, atan(x), g / (R(1) + k * k))
UNARY(erf, erf(x), g * exp(-k * k) * R(1.12837916709551257))
UNARY(pow, pow(x, a), g * a * pow(k, a - R(1)))
