// One thing done to many arrays in one launch.

#include "tickets.cuh"

typedef SCALAR real;

#define ENTRIES 96  // so that a table fits into the 4096 bytes that a kernel's arguments may take
#define SHARE 8192  // elements that a block takes

struct Entry {
    const real *from;
    real *to;
    i64 size;
    i64 first;  // the number of its first block
};

struct Table {
    Entry entries[ENTRIES];
    i64 count;
};

// This block's threads' shares of the elements of an entry.
#define SHARES(i, entry)                                                                                            \
    for (i64 i = ((i64)blockIdx.x - (entry).first) * SHARE + threadIdx.x,                                           \
             behind = ((i64)blockIdx.x - (entry).first + 1) * SHARE;                                                \
         i < behind && i < (entry).size; i += blockDim.x)

// The sum of the squares of each array; `part` has an element for each block.
extern "C" __global__ void sums_of_squares(const Table table, real *part, real *out, u32 *ticket) {
    const Entry entry = table.entries[mine(table)];
    real sum = 0;
    SHARES(i, entry) sum += entry.from[i] * entry.from[i];
    sum = across_block(sum, Sum(), real(0));
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
    if (!last(ticket, gridDim.x)) return;
    const int lane = threadIdx.x % 32;
    for (i64 k = threadIdx.x / 32; k < table.count; k += blockDim.x / 32) {
        const i64 end = k + 1 < table.count ? table.entries[k + 1].first : (i64)gridDim.x;
        real total = 0;
        for (i64 b = table.entries[k].first + lane; b < end; b += 32) total += ((volatile real *)part)[b];
        total = across_warp(total, Sum());
        if (lane == 0) out[k] = total;
    }
}

// Each array times the one element of `factor`.
extern "C" __global__ void scaled(const Table table, const real *factor) {
    const Entry entry = table.entries[mine(table)];
    const real by = *factor;
    SHARES(i, entry) entry.to[i] = entry.from[i] * by;
}
