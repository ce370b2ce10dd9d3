// Random numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3").
//
// The generator's state is in memory of the device and is moved on by the kernels, so that a graph that is run again draws
// other numbers.

typedef SCALAR real;

struct Generator {
    u64 key;
    u64 step;  // how many kernels have drawn
    u64 done;  // how many blocks of the kernel that is running have finished
};

// Four words for a counter (two halves) and a key.
__device__ inline void philox(u64 low, u64 high, u64 key, u32 *out) {
    u32 c[4] = {(u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32)};
    u32 a = (u32)key, b = (u32)(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const u64 p = (u64)c[0] * 0xD2511F53u, q = (u64)c[2] * 0xCD9E8D57u;
        const u32 next[4] = {(u32)(q >> 32) ^ c[1] ^ a, (u32)q, (u32)(p >> 32) ^ c[3] ^ b, (u32)p};
        for (int k = 0; k < 4; ++k) c[k] = next[k];
        a += 0x9E3779B9u;
        b += 0xBB67AE85u;
    }
    for (int k = 0; k < 4; ++k) out[k] = c[k];
}

// To be called by all threads at their end: the last block moves the generator on.
__device__ inline void finish(Generator *generator) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(&generator->done, 1ull) == gridDim.x - 1) {
        __threadfence();  // the other blocks have read the step
        generator->done = 0;
        generator->step += 1;
    }
}

// How many numbers four words make.
#define HAS (sizeof(real) == 4 ? 4 : 2)

// Evenly spread over [0, 1).
__device__ inline void evenly(const u32 *w, real *out) {
    if (sizeof(real) == 4) {
        for (int k = 0; k < 4; ++k) out[k] = real(w[k] >> 8) * real(1.0 / 16777216);
    } else {
        for (int k = 0; k < 2; ++k) {
            out[k] = real(((u64)w[2 * k] << 32 | w[2 * k + 1]) >> 11) * real(1.0 / 9007199254740992.0);
        }
    }
}

// Normally distributed, by the method of Box and Muller.
__device__ inline void normally(const u32 *w, real *out) {
    const real turn = real(6.283185307179586);
    for (int k = 0; k < HAS; k += 2) {
        real radius, angle;
        if (sizeof(real) == 4) {
            radius = real(w[k]) * real(1.0 / 4294967296) + real(0.5 / 4294967296);
            angle = real(w[k + 1]) * real(1.0 / 4294967296);
        } else {
            radius = real((((u64)w[0] << 32 | w[1]) >> 11) + 1) * real(1.0 / 9007199254740992.0);
            angle = real(((u64)w[2] << 32 | w[3]) >> 11) * real(1.0 / 9007199254740992.0);
        }
        radius = sqrt(real(-2) * log(radius));
        out[k] = radius * cos(turn * angle);
        out[k + 1] = radius * sin(turn * angle);
    }
}

// Runs the body for each thread's share of the groups of `per` elements that four words w make.
#define DRAW(group, n, per)                                                                                          \
    const u64 key = generator->key, step = generator->step;                                                          \
    u32 w[4];                                                                                                        \
    EACH(group, ((n) + (per) - 1) / (per))                                                                           \
    if (philox((u64)group, step, key, w), true)

extern "C" __global__ void uniform(Generator *generator, real *out, i64 n, real low, real high) {
    DRAW(group, n, HAS) {
        real drawn[4];
        evenly(w, drawn);
        for (int k = 0; k < HAS && group * HAS + k < n; ++k) out[group * HAS + k] = low + (high - low) * drawn[k];
    }
    finish(generator);
}

extern "C" __global__ void normal(Generator *generator, real *out, i64 n, real mean, real deviation) {
    DRAW(group, n, HAS) {
        real drawn[4];
        normally(w, drawn);
        for (int k = 0; k < HAS && group * HAS + k < n; ++k) out[group * HAS + k] = mean + deviation * drawn[k];
    }
    finish(generator);
}

// Within two deviations: what lies outside is drawn again, with the number of the try in the upper bits of the counter.
extern "C" __global__ void truncated(Generator *generator, real *out, i64 n, real mean, real deviation) {
    DRAW(i, n, 1) {
        real found = 3;
        for (u64 attempt = 0; fabs(found) > real(2); ++attempt) {
            real drawn[4];
            philox((u64)i, step ^ attempt << 48, key, w);
            normally(w, drawn);
            for (int k = 0; k < HAS && fabs(found) > real(2); ++k) found = drawn[k];
        }
        out[i] = mean + deviation * found;
    }
    finish(generator);
}

// Integers of [low, low + range).
extern "C" __global__ void integers(Generator *generator, void *out, i64 wide, i64 n, i64 low, i64 range) {
    DRAW(group, n, 2) {
        for (int k = 0; k < 2 && group * 2 + k < n; ++k) {
            const i64 drawn = low + (i64)(((u64)w[2 * k] << 32 | w[2 * k + 1]) % (u64)range);
            if (wide) {
                ((i64 *)out)[group * 2 + k] = drawn;
            } else {
                ((int *)out)[group * 2 + k] = (int)drawn;
            }
        }
    }
    finish(generator);
}

// Elements are kept if 24 bits are not less than `threshold`.
extern "C" __global__ void dropout(
    Generator *generator, const real *x, real *out, unsigned char *mask, i64 n, i64 threshold, real scale) {
    DRAW(group, n, 4) {
        for (int k = 0; k < 4 && group * 4 + k < n; ++k) {
            const bool keep = (i64)(w[k] >> 8) >= threshold;
            mask[group * 4 + k] = keep;
            out[group * 4 + k] = keep ? x[group * 4 + k] * scale : real(0);
        }
    }
    finish(generator);
}

extern "C" __global__ void masked(const real *x, const unsigned char *mask, real *out, i64 n, real scale) {
    EACH(i, n) out[i] = mask[i] ? x[i] * scale : real(0);
}
