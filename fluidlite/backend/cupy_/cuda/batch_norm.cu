// Batch normalisation of [n, c, hw] and its gradients, in blocks of at most 256 threads: threadIdx.x tells channels
// apart, threadIdx.y the elements of one. Channels with many elements are cut into parts, one for each blockIdx.y;
// what a first kernel finds out about the parts, the second joins, always in the same order.

struct Layout {
    i64 n, c, hw;
    __device__ i64 count() const { return n * hw; }
    // Where element k of a channel lies.
    __device__ i64 at(i64 k, i64 channel) const {
        const i64 image = hw == 1 ? k : quotient(k, hw);
        return (image * c + channel) * hw + (k - image * hw);
    }
};

// Number, mean and sum of squared deviations of some elements.
struct Moments {
    SCALAR count, mean, squares;
    __device__ void add(SCALAR value) {
        const SCALAR ahead = value - mean;
        count += 1;
        mean += ahead / count;
        squares += ahead * (value - mean);
    }
    __device__ void join(const Moments &other) {
        if (other.count == 0) return;
        const SCALAR total = count + other.count, ahead = other.mean - mean, part = other.count / total;
        mean += ahead * part;
        squares += other.squares + ahead * ahead * count * part;
        count = total;
    }
};

// What follows a normalisation: another image is added, if there is one, and negative numbers become 0, if wanted.
__device__ SCALAR ended(SCALAR y, const SCALAR *other, i64 at, i64 relu) {
    if (other) y += other[at];
    return relu && y < 0 ? (SCALAR)0 : y;
}

// The gradient before a relu that made `out`, if there was one.
__device__ SCALAR slope_at(const SCALAR *dy, const SCALAR *out, i64 at) {
    return out && !(out[at] > 0) ? (SCALAR)0 : dy[at];
}

// Sums of the gradient, and of the gradient times the deviation.
struct Slopes {
    SCALAR sum, product;
    __device__ void join(const Slopes &other) {
        sum += other.sum;
        product += other.product;
    }
};

// What the threads of each channel hold, joined; all of them get it.
template <class T> __device__ T joined(T own, T *room) {
    const int at = threadIdx.y * blockDim.x + threadIdx.x;
    __syncthreads();
    room[at] = own;
    __syncthreads();
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        if ((int)threadIdx.y < half) room[at].join(room[at + half * blockDim.x]);
        __syncthreads();
    }
    return room[threadIdx.x];
}

// What was found in the parts of a channel, joined; all of its threads get it.
template <class T> __device__ T joined_parts(const T *parts, i64 count, i64 channel, i64 c, T *room) {
    T own = {};
    if (channel < c) {
        for (i64 part = threadIdx.y; part < count; part += blockDim.y) own.join(parts[part * c + channel]);
    }
    return joined(own, room);
}

__device__ i64 channel_here() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

#define PART(k, count, chunk)                                                                                         \
    for (i64 k = (i64)blockIdx.y * (chunk) + threadIdx.y, k##_end = (i64)(blockIdx.y + 1) * (chunk);                  \
         k < (count) && k < k##_end; k += blockDim.y)

__device__ Moments moments_of(const SCALAR *x, const Layout &l, i64 channel, i64 chunk, Moments *room) {
    Moments own = {0, 0, 0};
    if (channel < l.c) {
        PART(k, l.count(), chunk) own.add(x[l.at(k, channel)]);
    }
    return joined(own, room);
}

__device__ Slopes slopes_of(const SCALAR *x, const SCALAR *dy, const SCALAR *out, SCALAR mean, const Layout &l,
                            i64 channel, i64 chunk, Slopes *room) {
    Slopes own = {0, 0};
    if (channel < l.c) {
        PART(k, l.count(), chunk) {
            const i64 at = l.at(k, channel);
            const SCALAR slope = slope_at(dy, out, at);
            own.sum += slope;
            own.product += slope * (x[at] - mean);
        }
    }
    return joined(own, room);
}

// parts[part, channel]: the moments of each part of a channel.
extern "C" __global__ void moments(const SCALAR *x, Moments *parts, i64 n, i64 c, i64 hw, i64 chunk) {
    __shared__ Moments room[256];
    const Layout l = {n, c, hw};
    const i64 channel = channel_here();
    const Moments whole = moments_of(x, l, channel, chunk, room);
    if (threadIdx.y == 0 && channel < c) parts[blockIdx.y * c + channel] = whole;
}

// y = (x - mean) * scale / deviation + bias, and what follows, with the statistics of the batch, from `count` parts
// or, if that is 0 (and there is one part for all), found here; and what is kept of them.
extern "C" __global__ void normalize(const SCALAR *x, const SCALAR *scale, const SCALAR *bias, const Moments *parts,
                                     i64 count, SCALAR *y, SCALAR *moving_mean, SCALAR *moving_variance,
                                     SCALAR *saved_mean, SCALAR *saved_inverse, double epsilon, double momentum,
                                     const SCALAR *given_momentum, const SCALAR *other, i64 relu, i64 n, i64 c,
                                     i64 hw, i64 chunk) {
    __shared__ Moments room[256];
    const Layout l = {n, c, hw};
    const i64 channel = channel_here();
    const Moments whole =
        count ? joined_parts(parts, count, channel, c, room) : moments_of(x, l, channel, chunk, room);
    if (channel >= c) return;
    const double variance = whole.squares / whole.count, inverse = 1 / sqrt(variance + epsilon);
    if (blockIdx.y == 0 && threadIdx.y == 0) {
        const double keep = given_momentum ? (double)given_momentum[0] : momentum;
        moving_mean[channel] = (SCALAR)(moving_mean[channel] * keep + whole.mean * (1 - keep));
        moving_variance[channel] = (SCALAR)(moving_variance[channel] * keep + variance * (1 - keep));
        saved_mean[channel] = whole.mean;
        saved_inverse[channel] = (SCALAR)inverse;
    }
    const SCALAR factor = (SCALAR)inverse * scale[channel], shift = bias[channel];
    PART(k, l.count(), chunk) {
        const i64 at = l.at(k, channel);
        y[at] = ended((x[at] - whole.mean) * factor + shift, other, at, relu);
    }
}

// The same with moving statistics.
extern "C" __global__ void normalize_moving(const SCALAR *x, const SCALAR *scale, const SCALAR *bias,
                                            const SCALAR *moving_mean, const SCALAR *moving_variance, SCALAR *y,
                                            SCALAR *saved_mean, SCALAR *saved_inverse, double epsilon,
                                            const SCALAR *other, i64 relu, i64 n, i64 c, i64 hw, i64 chunk) {
    const Layout l = {n, c, hw};
    const i64 channel = channel_here();
    if (channel >= c) return;
    const SCALAR mean = moving_mean[channel], inverse = (SCALAR)(1 / sqrt(moving_variance[channel] + epsilon));
    const SCALAR factor = inverse * scale[channel], shift = bias[channel];
    if (blockIdx.y == 0 && threadIdx.y == 0) {
        saved_mean[channel] = mean;
        saved_inverse[channel] = inverse;
    }
    PART(k, l.count(), chunk) {
        const i64 at = l.at(k, channel);
        y[at] = ended((x[at] - mean) * factor + shift, other, at, relu);
    }
}

// parts[part, channel]: the sums of each part of a channel.
extern "C" __global__ void slopes(const SCALAR *x, const SCALAR *dy, const SCALAR *out, const SCALAR *mean,
                                  Slopes *parts, i64 n, i64 c, i64 hw, i64 chunk) {
    __shared__ Slopes room[256];
    const Layout l = {n, c, hw};
    const i64 channel = channel_here();
    const Slopes whole = slopes_of(x, dy, out, channel < c ? mean[channel] : (SCALAR)0, l, channel, chunk, room);
    if (threadIdx.y == 0 && channel < c) parts[blockIdx.y * c + channel] = whole;
}

// The gradients, from `count` parts or, if that is 0, from sums made here. `spread` is 1 / deviation, or with `moving`
// the variance, and the statistics are constants then. `out`: what a relu has made of the result, if there was one.
// Those of dx, dscale and dbias that are null are left out.
extern "C" __global__ void gradients(const SCALAR *x, const SCALAR *dy, const SCALAR *out, const SCALAR *scale,
                                     const SCALAR *mean, const SCALAR *spread, const Slopes *parts, i64 count,
                                     SCALAR *dx, SCALAR *dscale, SCALAR *dbias, double epsilon, i64 moving,
                                     i64 n, i64 c, i64 hw, i64 chunk) {
    __shared__ Slopes room[256];
    const Layout l = {n, c, hw};
    const i64 channel = channel_here();
    const SCALAR centre = channel < c ? mean[channel] : (SCALAR)0;
    const Slopes whole =
        count ? joined_parts(parts, count, channel, c, room) : slopes_of(x, dy, out, centre, l, channel, chunk, room);
    if (channel >= c) return;
    const SCALAR inverse = moving ? (SCALAR)(1 / sqrt(spread[channel] + epsilon)) : spread[channel];
    if (blockIdx.y == 0 && threadIdx.y == 0) {
        if (dscale) dscale[channel] = whole.product * inverse;
        if (dbias) dbias[channel] = whole.sum;
    }
    if (!dx) return;
    const SCALAR total = (SCALAR)l.count(), factor = scale[channel] * inverse;
    const SCALAR average = moving ? (SCALAR)0 : whole.sum / total;
    const SCALAR slant = moving ? (SCALAR)0 : whole.product / total * inverse * inverse;
    PART(k, l.count(), chunk) {
        const i64 at = l.at(k, channel);
        dx[at] = (slope_at(dy, out, at) - average - (x[at] - centre) * slant) * factor;
    }
}
