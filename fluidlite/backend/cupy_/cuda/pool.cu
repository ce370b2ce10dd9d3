// Max and average pooling of images, seen as [outer, depth, height, width, inner]: channels in front are a part of
// `outer`, channels at the end are `inner`.

struct Pool {
    int size[3], kernel[3], stride[3], pad[3], out[3];
    bool adaptive;

    // The part of an axis that window `at` covers, within the image.
    __device__ inline void window(int axis, int at, int &begin, int &end) const {
        const int n = size[axis];
        if (adaptive) {
            begin = (int)((i64)at * n / out[axis]);
            end = (int)(((i64)(at + 1) * n + out[axis] - 1) / out[axis]);
            return;
        }
        begin = at * stride[axis] - pad[axis];
        end = begin + kernel[axis];
        begin = begin < 0 ? 0 : begin;
        end = end > n ? n : end;
    }

    // The windows [begin, end) of an axis that cover place `at`.
    __device__ inline void covering(int axis, int at, int &begin, int &end) const {
        const int n = size[axis], count = out[axis];
        if (adaptive) {
            begin = (int)((i64)at * count / n);
            end = (int)(((i64)(at + 1) * count + n - 1) / n);
            return;
        }
        const int ahead = at + pad[axis];
        begin = ahead < kernel[axis] ? 0 : (ahead - kernel[axis]) / stride[axis] + 1;
        end = ahead / stride[axis] + 1;
        end = end > count ? count : end;
    }
};

#define POOL                                                                                                          \
    int s0, int s1, int s2, int k0, int k1, int k2, int t0, int t1, int t2, int p0, int p1, int p2, int o0, int o1,   \
        int o2, int adaptive
#define GATHERED {{s0, s1, s2}, {k0, k1, k2}, {t0, t1, t2}, {p0, p1, p2}, {o0, o1, o2}, adaptive != 0}

struct Box {
    int z0, z1, y0, y1, x0, x1;
    __device__ inline int count() const {
        return z0 < z1 && y0 < y1 && x0 < x1 ? (z1 - z0) * (y1 - y0) * (x1 - x0) : 0;
    }
};

__device__ inline Box window_box(const Pool &pool, const Place &at) {
    Box b;
    pool.window(0, at.z, b.z0, b.z1);
    pool.window(1, at.y, b.y0, b.y1);
    pool.window(2, at.x, b.x0, b.x1);
    return b;
}

__device__ inline Box covering_box(const Pool &pool, const Place &at) {
    Box b;
    pool.covering(0, at.z, b.z0, b.z1);
    pool.covering(1, at.y, b.y0, b.y1);
    pool.covering(2, at.x, b.x0, b.x1);
    return b;
}

// What the sum over a window is divided by: its elements in the image, or all of them.
__device__ inline SCALAR divisor(const Pool &pool, const Box &b, bool exclusive) {
    const int inside = exclusive ? b.count() : pool.kernel[0] * pool.kernel[1] * pool.kernel[2];
    return (SCALAR)(inside > 1 ? inside : 1);
}

#define LOWEST (sizeof(SCALAR) == 4 ? (SCALAR)-3.40282346638528860e+38 : (SCALAR)-1.79769313486231571e+308)

// Where element i of [outer, volume, inner] lies: in which plane, and where there.
#define SPLIT(i, volume)                                                                                              \
    const i64 line = quotient(i, inner), channel = i - line * inner, plane = quotient(line, volume);                  \
    const i64 place = line - plane * (volume)

// The maximum of each window, at least the lowest finite number, and, where `mask` is not null, its first place in the
// plane. NaN is larger than everything.
extern "C" __global__ void pool_max(const SCALAR *x, SCALAR *out, int *mask, i64 outer, i64 inner, POOL) {
    const Pool pool = GATHERED;
    const i64 places = (i64)o0 * o1 * o2, volume = (i64)s0 * s1 * s2;
    EACH(i, outer * places * inner) {
        SPLIT(i, places);
        const Box b = window_box(pool, Place(place, o1, o2));
        const SCALAR *image = x + plane * volume * inner + channel;
        SCALAR best = LOWEST;
        i64 found = -1;
        for (int z = b.z0; z < b.z1; ++z) {
            for (int y = b.y0; y < b.y1; ++y) {
                const i64 row = ((i64)z * s1 + y) * s2;
                for (int w = b.x0; w < b.x1; ++w) {
                    const SCALAR value = image[(row + w) * inner];
                    if (!(value > best || (value != value && best == best))) continue;
                    best = value;
                    found = row + w;
                }
            }
        }
        out[i] = best;
        if (mask) mask[i] = (int)found;
    }
}

extern "C" __global__ void pool_avg(const SCALAR *x, SCALAR *out, i64 outer, i64 inner, int exclusive, POOL) {
    const Pool pool = GATHERED;
    const i64 places = (i64)o0 * o1 * o2, volume = (i64)s0 * s1 * s2;
    EACH(i, outer * places * inner) {
        SPLIT(i, places);
        const Box b = window_box(pool, Place(place, o1, o2));
        const SCALAR *image = x + plane * volume * inner + channel;
        SCALAR sum = 0;
        for (int z = b.z0; z < b.z1; ++z) {
            for (int y = b.y0; y < b.y1; ++y) {
                const i64 row = ((i64)z * s1 + y) * s2;
                for (int w = b.x0; w < b.x1; ++w) sum += image[(row + w) * inner];
            }
        }
        out[i] = sum / divisor(pool, b, exclusive != 0);
    }
}

// The same for windows of the whole image: a block for each plane.
extern "C" __global__ void pool_max_whole(const SCALAR *x, SCALAR *out, i64 outer, i64 volume) {
    for (i64 plane = blockIdx.x; plane < outer; plane += gridDim.x) {
        const SCALAR *image = x + plane * volume;
        SCALAR best = LOWEST;
        for (i64 k = threadIdx.x; k < volume; k += blockDim.x) best = Largest()(best, image[k]);
        best = across_block(best, Largest(), LOWEST);
        if (threadIdx.x == 0) out[plane] = best;
    }
}

extern "C" __global__ void pool_avg_whole(const SCALAR *x, SCALAR *out, i64 outer, i64 volume) {
    for (i64 plane = blockIdx.x; plane < outer; plane += gridDim.x) {
        const SCALAR *image = x + plane * volume;
        SCALAR sum = 0;
        for (i64 k = threadIdx.x; k < volume; k += blockDim.x) sum += image[k];
        sum = across_block(sum, Sum(), (SCALAR)0);
        if (threadIdx.x == 0) out[plane] = sum / (SCALAR)volume;
    }
}

// Whether no element of a window before place `end` equals its maximum.
__device__ inline bool is_first(const SCALAR *image, i64 inner, const Box &b, int s1, int s2, i64 end, SCALAR best) {
    for (int z = b.z0; z < b.z1; ++z) {
        for (int y = b.y0; y < b.y1; ++y) {
            const i64 row = ((i64)z * s1 + y) * s2;
            for (int w = b.x0; w < b.x1; ++w) {
                if (row + w >= end) return true;
                if (image[(row + w) * inner] == best) return false;
            }
        }
    }
    return true;
}

// The gradient of pool_max: each element of the image adds up what goes to the windows whose first maximum it is (none
// where that is NaN). The mask tells that where there is one (x and out may be null then), otherwise the window is looked through.
extern "C" __global__ void pool_max_grad(const SCALAR *x, const SCALAR *out, const int *mask, const SCALAR *dout,
                                         SCALAR *dx, i64 outer, i64 inner, POOL) {
    const Pool pool = GATHERED;
    const i64 places = (i64)o0 * o1 * o2, volume = (i64)s0 * s1 * s2;
    EACH(i, outer * volume * inner) {
        SPLIT(i, volume);
        const Box windows = covering_box(pool, Place(place, s1, s2));
        const i64 base = plane * places * inner + channel;
        const SCALAR *image = mask ? (const SCALAR *)0 : x + plane * volume * inner + channel;
        SCALAR sum = 0;
        for (int z = windows.z0; z < windows.z1; ++z) {
            for (int y = windows.y0; y < windows.y1; ++y) {
                for (int w = windows.x0; w < windows.x1; ++w) {
                    const i64 at = ((i64)z * o1 + y) * o2 + w, k = base + at * inner;
                    bool mine;
                    if (mask) {
                        mine = mask[k] == place;
                    } else {
                        const SCALAR best = out[k];
                        mine = image[place * inner] == best &&
                               is_first(image, inner, window_box(pool, Place(at, o1, o2)), s1, s2, place, best);
                    }
                    if (mine) sum += dout[k];
                }
            }
        }
        dx[i] = sum;
    }
}

// The gradient of pool_avg: each element of the image adds up its shares of the windows that cover it.
extern "C" __global__ void pool_avg_grad(const SCALAR *dout, SCALAR *dx, i64 outer, i64 inner, int exclusive, POOL) {
    const Pool pool = GATHERED;
    const i64 places = (i64)o0 * o1 * o2, volume = (i64)s0 * s1 * s2;
    EACH(i, outer * volume * inner) {
        SPLIT(i, volume);
        const Box windows = covering_box(pool, Place(place, s1, s2));
        const SCALAR *from = dout + plane * places * inner + channel;
        SCALAR sum = 0;
        for (int z = windows.z0; z < windows.z1; ++z) {
            for (int y = windows.y0; y < windows.y1; ++y) {
                for (int w = windows.x0; w < windows.x1; ++w) {
                    const i64 at = ((i64)z * o1 + y) * o2 + w;
                    sum += from[at * inner] / divisor(pool, window_box(pool, Place(at, o1, o2)), exclusive != 0);
                }
            }
        }
        dx[i] = sum;
    }
}
