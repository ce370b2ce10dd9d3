// What losses have in common.

typedef SCALAR real;

// Losses stay finite: the logarithm of 0 counts as -1e20, as in Fluid. NaN stays NaN.
__device__ inline real bounded(real x) { return x > real(1e20) ? real(1e20) : x < real(-1e20) ? real(-1e20) : x; }
