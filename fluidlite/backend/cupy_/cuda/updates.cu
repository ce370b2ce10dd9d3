// Updates of parameters, many in one launch. SCALAR: the type of parameters and of what is kept for them; RATE: that of
// the learning rate.

#include "tickets.cuh"

#define ENTRIES 48  // so that a table fits into the 4096 bytes that a kernel's arguments may take
#define SHARE 2048  // elements that a block updates

// One parameter. `decay` times the parameter is added to its gradient; `first`: the number of its first block.
struct Entry {
    SCALAR *param;
    const SCALAR *grad;
    const RATE *rate;
    SCALAR *state[4];
    double decay;
    i64 size;
    i64 first;
};

struct Table {
    Entry entries[ENTRIES];
    i64 count;
};

// step(element, its gradient) for each element that this block updates.
template <class Step> __device__ inline void each(const Entry &entry, Step step) {
    const SCALAR decay = (SCALAR)entry.decay;
    const i64 start = ((i64)blockIdx.x - entry.first) * SHARE;
    const i64 end = start + SHARE < entry.size ? start + SHARE : entry.size;
    for (i64 i = start + threadIdx.x; i < end; i += blockDim.x) {
        const SCALAR grad = entry.grad[i];
        step(i, decay != SCALAR(0) ? grad + decay * entry.param[i] : grad);
    }
}

// The number of blocks that work on an entry; also without elements there is one.
__device__ inline u32 blocks_of(const Entry &entry) {
    return entry.size > 0 ? (u32)((entry.size + SHARE - 1) / SHARE) : 1;
}

extern "C" __global__ void sgd(const Table table) {
    const Entry entry = table.entries[mine(table)];
    const SCALAR rate = (SCALAR)*entry.rate;
    each(entry, [=](i64 i, SCALAR grad) { entry.param[i] -= rate * grad; });
}

extern "C" __global__ void momentum(const Table table, SCALAR mu, i64 nesterov) {
    const Entry entry = table.entries[mine(table)];
    const SCALAR rate = (SCALAR)*entry.rate;
    each(entry, [=](i64 i, SCALAR grad) {
        const SCALAR velocity = mu * entry.state[0][i] + grad;
        entry.state[0][i] = velocity;
        entry.param[i] -= rate * (nesterov ? grad + mu * velocity : velocity);
    });
}

// State: moment1, moment2, beta1's power, beta2's power. The betas are numbers unless they are given as arrays. With
// `ahead` the powers are carried on before they are used.
extern "C" __global__ void adam(
    const Table table, SCALAR beta1, SCALAR rest1, SCALAR beta2, SCALAR rest2, SCALAR epsilon, const SCALAR *given1,
    const SCALAR *given2, i64 ahead, u32 *tickets) {
    const int number = mine(table);
    const Entry entry = table.entries[number];
    if (given1 != nullptr) rest1 = SCALAR(1) - (beta1 = *given1);
    if (given2 != nullptr) rest2 = SCALAR(1) - (beta2 = *given2);
    const SCALAR power1 = *entry.state[2], power2 = *entry.state[3], carried1 = power1 * beta1, carried2 = power2 * beta2;
    const SCALAR used1 = ahead ? carried1 : power1, used2 = ahead ? carried2 : power2;
    const SCALAR rate = (SCALAR)(*entry.rate * sqrt(SCALAR(1) - used2) / (SCALAR(1) - used1));
    each(entry, [=](i64 i, SCALAR grad) {
        const SCALAR first = beta1 * entry.state[0][i] + rest1 * grad;
        const SCALAR second = beta2 * entry.state[1][i] + rest2 * grad * grad;
        entry.state[0][i] = first;
        entry.state[1][i] = second;
        entry.param[i] -= rate * (first / (sqrt(second) + epsilon));
    });
    if (last(&tickets[number], blocks_of(entry)) && threadIdx.x == 0) {
        *entry.state[2] = carried1;
        *entry.state[3] = carried2;
    }
}

// State: moment, infinity norm, beta1's power, which is multiplied by `carry` afterwards.
extern "C" __global__ void adamax(
    const Table table, SCALAR beta1, SCALAR rest1, SCALAR beta2, SCALAR epsilon, SCALAR carry, u32 *tickets) {
    const int number = mine(table);
    const Entry entry = table.entries[number];
    const SCALAR power = *entry.state[2];
    const SCALAR rate = (SCALAR)(*entry.rate / (SCALAR(1) - power));
    each(entry, [=](i64 i, SCALAR grad) {
        const SCALAR moment = beta1 * entry.state[0][i] + rest1 * grad;
        const SCALAR norm = Largest()(abs(grad), beta2 * entry.state[1][i] + epsilon);
        entry.state[0][i] = moment;
        entry.state[1][i] = norm;
        entry.param[i] -= rate * (moment / norm);
    });
    if (last(&tickets[number], blocks_of(entry)) && threadIdx.x == 0) *entry.state[2] = power * carry;
}

extern "C" __global__ void adagrad(const Table table, SCALAR epsilon) {
    const Entry entry = table.entries[mine(table)];
    const SCALAR rate = (SCALAR)*entry.rate;
    each(entry, [=](i64 i, SCALAR grad) {
        const SCALAR moment = entry.state[0][i] + grad * grad;
        entry.state[0][i] = moment;
        entry.param[i] -= rate * grad / (sqrt(moment) + epsilon);
    });
}

extern "C" __global__ void decayed_adagrad(const Table table, SCALAR decay, SCALAR rest, SCALAR epsilon) {
    const Entry entry = table.entries[mine(table)];
    const SCALAR rate = (SCALAR)*entry.rate;
    each(entry, [=](i64 i, SCALAR grad) {
        const SCALAR moment = decay * entry.state[0][i] + rest * grad * grad;
        entry.state[0][i] = moment;
        entry.param[i] -= rate * grad / (sqrt(moment) + epsilon);
    });
}

// State: averages of squared gradients and of squared updates.
extern "C" __global__ void adadelta(const Table table, SCALAR rho, SCALAR rest, SCALAR epsilon) {
    const Entry entry = table.entries[mine(table)];
    each(entry, [=](i64 i, SCALAR grad) {
        const SCALAR before = entry.state[1][i];
        const SCALAR squared = rho * entry.state[0][i] + rest * grad * grad;
        const SCALAR step = sqrt((before + epsilon) / (squared + epsilon)) * grad;
        const SCALAR updates = rho * before + rest * step * step;
        entry.state[0][i] = squared;
        entry.state[1][i] = updates;
        entry.param[i] -= sqrt((updates + epsilon) / (squared + epsilon)) * grad;
    });
}

// State: moment, mean of squares, mean of gradients (used if centered).
extern "C" __global__ void rmsprop(
    const Table table, SCALAR decay, SCALAR rest, SCALAR momentum, SCALAR epsilon, i64 centered) {
    const Entry entry = table.entries[mine(table)];
    const SCALAR rate = (SCALAR)*entry.rate;
    each(entry, [=](i64 i, SCALAR grad) {
        const SCALAR square = decay * entry.state[1][i] + rest * grad * grad;
        SCALAR variance = square;
        if (centered) {
            const SCALAR mean = decay * entry.state[2][i] + rest * grad;
            entry.state[2][i] = mean;
            variance = square - mean * mean;
        }
        const SCALAR moment = momentum * entry.state[0][i] + rate * grad / sqrt(variance + epsilon);
        entry.state[0][i] = moment;
        entry.state[1][i] = square;
        entry.param[i] -= moment;
    });
}

// State: the sum of squared gradients, and what the parameter follows.
extern "C" __global__ void ftrl(const Table table, SCALAR l1, SCALAR l2, SCALAR power) {
    const Entry entry = table.entries[mine(table)];
    const SCALAR rate = (SCALAR)*entry.rate;
    each(entry, [=](i64 i, SCALAR grad) {
        const SCALAR before = entry.state[0][i], param = entry.param[i];
        const SCALAR squared = before + grad * grad, grown = pow(squared, -power);
        const SCALAR linear = entry.state[1][i] + grad - (grown - pow(before, -power)) / rate * param;
        const SCALAR sign = linear > SCALAR(0) ? SCALAR(1) : linear < SCALAR(0) ? SCALAR(-1) : linear;
        const SCALAR pulled = (l1 * sign - linear) / (grown / rate + SCALAR(2) * l2);
        entry.state[0][i] = squared;
        entry.state[1][i] = linear;
        entry.param[i] = abs(linear) > l1 ? pulled : SCALAR(0);
    });
}
