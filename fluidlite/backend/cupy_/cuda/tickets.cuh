// What blocks that share work ask: which entry of a table is mine, am I the last one?

// Whether this block is the last of `blocks` to get here, which all its threads learn. What they have read before is
// then not needed by any other; the ticket is zero before and after.
__device__ inline bool last(u32 *ticket, u32 blocks) {
    __shared__ bool answer;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        answer = atomicAdd(ticket, 1u) == blocks - 1;
        __threadfence();  // what the other blocks have written before their tickets is seen from here on
        if (answer) *ticket = 0;
    }
    __syncthreads();
    return answer;
}

// The number of the entry of a table that this block works on: entries have `first`, the number of their first block.
template <class Table> __device__ inline int mine(const Table &table) {
    int low = 0, high = (int)table.count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (table.entries[middle].first <= (i64)blockIdx.x) low = middle;
        else high = middle - 1;
    }
    return low;
}
