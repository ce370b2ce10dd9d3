// Images of two or three spatial dimensions taken apart into patches and put together again, and convolutions in which
// each channel has filters of its own. Images of two dimensions have a depth of one.

struct Geometry {
    int size[3], kernel[3], stride[3], dilation[3], pad[3], out[3];
};

#define GEOMETRY                                                                                                      \
    int s0, int s1, int s2, int k0, int k1, int k2, int t0, int t1, int t2, int d0, int d1, int d2, int p0, int p1,   \
        int p2, int o0, int o1, int o2
#define GATHERED                                                                                                      \
    {{s0, s1, s2}, {k0, k1, k2}, {t0, t1, t2}, {d0, d1, d2}, {p0, p1, p2}, {o0, o1, o2}}

// The place along an axis that the window at `out` reads with element `k`; outside of the image if not in [0, size).
__device__ inline int read_at(const Geometry &g, int axis, int out, int k) {
    return out * g.stride[axis] - g.pad[axis] + k * g.dilation[axis];
}

// The window along an axis that reads place `at` with element `k`; -1 if there is none.
__device__ inline int window_of(const Geometry &g, int axis, int at, int k) {
    const int ahead = at + g.pad[axis] - k * g.dilation[axis];
    if (ahead < 0 || ahead % g.stride[axis]) return -1;
    const int out = ahead / g.stride[axis];
    return out < g.out[axis] ? out : -1;
}

// patches[c * K + k, n * L + l] = what window l reads with element k of channel c of image n, 0 outside of the image.
extern "C" __global__ void gather(const SCALAR *x, SCALAR *patches, i64 batch, i64 channels, GEOMETRY) {
    const Geometry g = GATHERED;
    const i64 places = (i64)o0 * o1 * o2, columns = batch * places, total = columns * channels;
    const i64 plane = (i64)s0 * s1 * s2;
    EACH(i, total) {
        const i64 c = quotient(i, columns), column = i - c * columns, n = quotient(column, places);
        const Place at(column - n * places, o1, o2);
        const SCALAR *image = x + (n * channels + c) * plane;
        SCALAR *to = patches + c * k0 * k1 * k2 * columns + column;
        for (int a = 0; a < k0; ++a) {
            const int iz = read_at(g, 0, at.z, a);
            for (int b = 0; b < k1; ++b) {
                const int iy = read_at(g, 1, at.y, b);
                const bool row = iz >= 0 && iz < s0 && iy >= 0 && iy < s1;
                for (int e = 0; e < k2; ++e, to += columns) {
                    const int ix = read_at(g, 2, at.x, e);
                    *to = row && ix >= 0 && ix < s2 ? image[((i64)iz * s1 + iy) * s2 + ix] : (SCALAR)0;
                }
            }
        }
    }
}

// The adjoint of gather: every element of the image adds up what the windows that read it hold.
extern "C" __global__ void scatter(const SCALAR *patches, SCALAR *x, i64 batch, i64 channels, GEOMETRY) {
    const Geometry g = GATHERED;
    const i64 plane = (i64)s0 * s1 * s2, total = batch * channels * plane;
    const i64 places = (i64)o0 * o1 * o2, columns = batch * places;
    EACH(i, total) {
        const i64 image = quotient(i, plane), n = quotient(image, channels), c = image - n * channels;
        const Place at(i - image * plane, s1, s2);
        const SCALAR *rows = patches + c * k0 * k1 * k2 * columns + n * places;
        SCALAR sum = 0;
        for (int a = 0; a < k0; ++a) {
            const int oz = window_of(g, 0, at.z, a);
            for (int b = 0; b < k1 && oz >= 0; ++b) {
                const int oy = window_of(g, 1, at.y, b);
                for (int e = 0; e < k2 && oy >= 0; ++e) {
                    const int ox = window_of(g, 2, at.x, e);
                    if (ox >= 0) sum += rows[((i64)(a * k1 + b) * k2 + e) * columns + ((i64)oz * o1 + oy) * o2 + ox];
                }
            }
        }
        x[i] = sum;
    }
}

// Image channel c has filters [c * share, (c + 1) * share): out = the convolution.
extern "C" __global__ void depthwise(const SCALAR *x, const SCALAR *filters, SCALAR *out, i64 batch, i64 channels,
                                     i64 share, GEOMETRY) {
    const Geometry g = GATHERED;
    const i64 places = (i64)o0 * o1 * o2, maps = channels * share;
    const i64 total = batch * maps * places;
    const i64 plane = (i64)s0 * s1 * s2;
    EACH(i, total) {
        const i64 row = quotient(i, places), n = quotient(row, maps), m = row - n * maps;
        const Place at(i - row * places, o1, o2);
        const SCALAR *image = x + (n * channels + quotient(m, share)) * plane;
        const SCALAR *filter = filters + m * k0 * k1 * k2;
        SCALAR sum = 0;
        for (int a = 0; a < k0; ++a) {
            const int iz = read_at(g, 0, at.z, a);
            if (iz < 0 || iz >= s0) continue;
            for (int b = 0; b < k1; ++b) {
                const int iy = read_at(g, 1, at.y, b);
                if (iy < 0 || iy >= s1) continue;
                for (int e = 0; e < k2; ++e) {
                    const int ix = read_at(g, 2, at.x, e);
                    if (ix >= 0 && ix < s2) sum += image[((i64)iz * s1 + iy) * s2 + ix] * filter[(a * k1 + b) * k2 + e];
                }
            }
        }
        out[i] = sum;
    }
}

// The gradient of depthwise for the image.
extern "C" __global__ void depthwise_spread(const SCALAR *out, const SCALAR *filters, SCALAR *x, i64 batch,
                                            i64 channels, i64 share, GEOMETRY) {
    const Geometry g = GATHERED;
    const i64 plane = (i64)s0 * s1 * s2, total = batch * channels * plane;
    const i64 places = (i64)o0 * o1 * o2;
    const int elements = k0 * k1 * k2;
    EACH(i, total) {
        const i64 image = quotient(i, plane), n = quotient(image, channels), c = image - n * channels;
        const Place at(i - image * plane, s1, s2);
        const SCALAR *from = out + (n * channels + c) * share * places, *filter = filters + c * share * elements;
        SCALAR sum = 0;
        for (int a = 0; a < k0; ++a) {
            const int oz = window_of(g, 0, at.z, a);
            for (int b = 0; b < k1 && oz >= 0; ++b) {
                const int oy = window_of(g, 1, at.y, b);
                for (int e = 0; e < k2 && oy >= 0; ++e) {
                    const int ox = window_of(g, 2, at.x, e);
                    if (ox < 0) continue;
                    const i64 place = ((i64)oz * o1 + oy) * o2 + ox;
                    for (i64 j = 0; j < share; ++j) {
                        sum += from[j * places + place] * filter[j * elements + (a * k1 + b) * k2 + e];
                    }
                }
            }
        }
        x[i] = sum;
    }
}

// The gradient of depthwise for the filters: one block for each element of a filter.
extern "C" __global__ void depthwise_filters(const SCALAR *x, const SCALAR *out, SCALAR *filters, i64 batch,
                                             i64 channels, i64 share, GEOMETRY) {
    const Geometry g = GATHERED;
    const int elements = k0 * k1 * k2;
    const i64 places = (i64)o0 * o1 * o2, columns = batch * places;
    const i64 plane = (i64)s0 * s1 * s2, maps = channels * share;
    for (i64 which = blockIdx.x; which < maps * elements; which += gridDim.x) {
        const i64 m = quotient(which, elements);
        const int k = (int)(which - m * elements), a = k / (k1 * k2), b = k / k2 % k1, e = k % k2;
        SCALAR sum = 0;
        for (i64 i = threadIdx.x; i < columns; i += blockDim.x) {
            const i64 n = quotient(i, places), l = i - n * places;
            const Place at(l, o1, o2);
            const int iz = read_at(g, 0, at.z, a), iy = read_at(g, 1, at.y, b), ix = read_at(g, 2, at.x, e);
            if (iz < 0 || iz >= s0 || iy < 0 || iy >= s1 || ix < 0 || ix >= s2) continue;
            sum += x[(n * channels + m / share) * plane + ((i64)iz * s1 + iy) * s2 + ix] *
                   out[(n * maps + m) * places + l];
        }
        sum = across_block(sum, Sum(), (SCALAR)0);
        if (threadIdx.x == 0) filters[which] = sum;
    }
}
