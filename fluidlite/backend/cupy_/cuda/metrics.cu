// The largest elements of rows, and how many predictions are right.

typedef SCALAR real;

// One element of a row; `at` < 0: none.
struct Candidate {
    real value;
    i64 at;
};

// Whether a stands before b: larger ones first, of equal ones the first, NaN at the end.
__device__ inline bool before(real a, i64 at_a, real b, i64 at_b) {
    if (a != a || b != b) return a == a || (b != b && at_a < at_b);
    return a > b || (a == b && at_a < at_b);
}

struct Better {
    __device__ Candidate operator()(Candidate a, Candidate b) const {
        if (a.at < 0) return b;
        return b.at < 0 || before(a.value, a.at, b.value, b.at) ? a : b;
    }
};

__device__ inline Candidate other_candidate(Candidate c, int k) {
    Candidate other;
    other.value = __shfl_xor_sync(0xffffffffu, c.value, k);
    other.at = __shfl_xor_sync(0xffffffffu, c.at, k);
    return other;
}

__device__ inline Candidate best_of_warp(Candidate c) {
    for (int k = 16; k > 0; k >>= 1) c = Better()(c, other_candidate(c, k));
    return c;
}

// A warp takes a row and finds one element after the other.
extern "C" __global__ void top_k_warp(const real *x, real *out, i64 *at, i64 rows, i64 n, i64 k) {
    const int lane = threadIdx.x % 32;
    typedef Team<false> T;
    for (i64 r = T::first(); r < rows; r += T::count()) {
        Candidate last = {real(0), -1};
        for (i64 place = 0; place < k; ++place) {
            Candidate best = {real(0), -1};
            for (i64 j = lane; j < n; j += 32) {
                const Candidate here = {x[r * n + j], j};
                if (last.at < 0 || before(last.value, last.at, here.value, j)) best = Better()(best, here);
            }
            last = best_of_warp(best);
            if (lane == 0) {
                out[r * k + place] = last.value;
                at[r * k + place] = last.at;
            }
        }
    }
}

// The same with a block for each row.
extern "C" __global__ void top_k_block(const real *x, real *out, i64 *at, i64 rows, i64 n, i64 k) {
    __shared__ Candidate part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        Candidate last = {real(0), -1};
        for (i64 place = 0; place < k; ++place) {
            Candidate best = {real(0), -1};
            for (i64 j = threadIdx.x; j < n; j += blockDim.x) {
                const Candidate here = {x[r * n + j], j};
                if (last.at < 0 || before(last.value, last.at, here.value, j)) best = Better()(best, here);
            }
            best = best_of_warp(best);
            __syncthreads();
            if (lane == 0) part[warp] = best;
            __syncthreads();
            last = part[0];
            for (int w = 1; w < warps; ++w) last = Better()(last, part[w]);
            if (threadIdx.x == 0) {
                out[r * k + place] = last.value;
                at[r * k + place] = last.at;
            }
        }
    }
}

// One block counts the rows whose label is among their k candidates.
extern "C" __global__ void accuracy(
    const void *candidates, i64 wide, const void *label, i64 wide_label, float *share, int *correct, int *total,
    i64 rows, i64 k) {
    int hits = 0;
    for (i64 r = threadIdx.x; r < rows; r += blockDim.x) {
        const i64 wanted = index_at(label, r, wide_label);
        bool hit = false;
        for (i64 j = 0; j < k; ++j) hit = hit || index_at(candidates, r * k + j, wide) == wanted;
        hits += hit;
    }
    hits = across_block(hits, Sum(), 0);
    if (threadIdx.x == 0) {
        *share = (float)hits / (float)(rows > 0 ? rows : 1);
        *correct = hits;
        *total = (int)rows;
    }
}
