// Runs the blocks of a launch: every thread is a fiber, which runs until it waits for others or ends. Blocks, and the
// threads between two barriers, come in a random order, so that code that relies on one gives wrong results.
// Every access to memory is checked (the compiler calls __asan_...), so that what is not a kernel's is not touched.
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>
#ifndef __x86_64__
#include <ucontext.h>
#endif

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };

extern "C" {
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
char *sim_dynamic_shared;
}

namespace {

constexpr size_t STACK = 128 * 1024;
constexpr size_t STACKS = 1025;
constexpr size_t SHARED = 256 * 1024;

enum State { FRESH, READY, BARRIER, WARP, DONE };

struct Thread {
    State state;
    int predicate, source;
    unsigned mask, size, ballot;
    alignas(16) char value[16];
    void *result;
    char *stack;
#ifdef __x86_64__
    void *context;
#else
    ucontext_t context;
#endif
};

std::vector<Thread> threads;
std::vector<char *> stacks;
char *stack_memory;

struct Interval { uintptr_t start, end; };
const Interval *allowed;
unsigned allowed_count;
Interval recent, module_memory, shared_memory;
thread_local bool checking;  // only the thread that runs a launch: others may call what is compiled meanwhile
std::mutex one_launch;
#ifdef __x86_64__
void *scheduler;
#else
ucontext_t scheduler;
#endif
Thread *self;
unsigned current;
void (*entry)(void **);
void **arguments;
uint64_t randomness;
char error[512];
int count_of, all_of, any_of;

uint64_t draw() {
    randomness ^= randomness << 13;
    randomness ^= randomness >> 7;
    return randomness ^= randomness << 17;
}

#ifdef __x86_64__
extern "C" void sim_switch(void **from, void *to);
asm(R"(
.text
.globl sim_switch
.hidden sim_switch
.type sim_switch, @function
sim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
void leave() { sim_switch(&self->context, scheduler); }
#else
void leave() { swapcontext(&self->context, &scheduler); }
#endif

void body() {
    entry(arguments);
    self->state = DONE;
    leave();
}

void resume(unsigned i) {
    self = &threads[i];
    current = i;
    threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
    if (self->state == FRESH) {
        self->stack = stacks.back();
        stacks.pop_back();
#ifdef __x86_64__
        void **top = (void **)(self->stack + STACK);
        *--top = nullptr;
        *--top = (void *)body;
        for (int k = 0; k < 6; k++) *--top = nullptr;
        self->context = top;
#else
        getcontext(&self->context);
        self->context.uc_stack.ss_sp = self->stack;
        self->context.uc_stack.ss_size = STACK;
        self->context.uc_link = nullptr;
        makecontext(&self->context, body, 0);
#endif
    }
    self->state = READY;
#ifdef __x86_64__
    sim_switch(&scheduler, self->context);
#else
    swapcontext(&scheduler, &self->context);
#endif
    if (self->state == DONE) stacks.push_back(self->stack), self->stack = nullptr;
}

// Lets the lanes of a warp go on that all others they named have joined.
bool release_warps() {
    bool any = false;
    const unsigned n = threads.size();
    for (unsigned first = 0; first < n; first += 32) {
        const unsigned lanes = n - first < 32 ? n - first : 32;
        for (unsigned lane = 0; lane < lanes; lane++) {
            if (threads[first + lane].state != WARP) continue;
            const unsigned mask = threads[first + lane].mask;
            bool complete = true;
            unsigned ballot = 0, here = 0;
            for (unsigned k = 0; k < lanes; k++) {
                const Thread &t = threads[first + k];
                if (!(mask >> k & 1) || t.state == DONE) continue;
                complete = complete && t.state == WARP && t.mask == mask;
                ballot |= (unsigned)(t.predicate != 0) << k;
                here |= 1u << k;
            }
            if (!complete) continue;
            any = true;
            for (unsigned k = 0; k < lanes; k++) {
                Thread &t = threads[first + k];
                if (!(here >> k & 1)) continue;
                t.ballot = ballot;
                if (t.result == nullptr) continue;
                // What a lane that is not there would give is garbage.
                if (t.source < 0 || t.source > 31 || !(here >> t.source & 1)) memset(t.result, 0xFF, t.size);
                else memcpy(t.result, threads[first + t.source].value, t.size);
            }
            for (unsigned k = 0; k < lanes; k++)
                if (here >> k & 1) threads[first + k].state = READY;
        }
    }
    return any;
}

bool release_barrier() {
    unsigned waiting = 0, done = 0;
    count_of = 0;
    for (const Thread &t : threads) {
        waiting += t.state == BARRIER;
        done += t.state == DONE;
        count_of += t.state == BARRIER && t.predicate;
    }
    if (waiting != threads.size()) {
        if (!*error)
            snprintf(error, sizeof error, done ? "%u threads wait at __syncthreads() that %u have left without reaching"
                     : "%u threads wait at __syncthreads(), others of the %zu wait for lanes of their warp",
                     waiting, done ? done : (unsigned)threads.size(), threads.size());
        return false;
    }
    all_of = count_of == (int)threads.size();
    any_of = count_of != 0;
    for (Thread &t : threads) t.state = READY;
    return true;
}

void check(uintptr_t at, size_t size, const char *what) {
    if (at >= recent.start && at + size <= recent.end) return;
    if (!checking || *error) return;
    const uintptr_t stack = (uintptr_t)stack_memory;
    if (at >= stack && at + size <= stack + STACK * STACKS) return;
    if (at >= module_memory.start && at + size <= module_memory.end) return;
    if (at >= shared_memory.start && at + size <= shared_memory.end) return;
    unsigned low = 0, high = allowed_count;  // the number of blocks that start at or before the address
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        if (allowed[middle].start <= at) low = middle + 1;
        else high = middle;
    }
    if (low && at + size <= allowed[low - 1].end) {
        recent = allowed[low - 1];
        return;
    }
    const unsigned t = current, b = blockIdx.x;
    if (at < 4096)
        snprintf(error, sizeof error, "thread %u of block %u %s a null pointer", t, b, what);
    else if (at >= shared_memory.end && at < shared_memory.end + 512)
        snprintf(error, sizeof error, "thread %u of block %u %s %zu bytes, %zu bytes behind the end of dynamic shared memory", t, b, what,
                 size, (size_t)(at - shared_memory.end));
    else if (low && at < allowed[low - 1].end + 65536)
        snprintf(error, sizeof error, "thread %u of block %u %s %zu bytes, %ld bytes behind the end of a block of %zu bytes", t, b, what,
                 size, (long)(at - allowed[low - 1].end), (size_t)(allowed[low - 1].end - allowed[low - 1].start));
    else
        snprintf(error, sizeof error, "thread %u of block %u %s %zu bytes at %#zx, which is no memory of this device", t, b, what, size,
                 (size_t)at);
    self->state = DONE;
    leave();
}

template <class T> void shuffle(std::vector<T> &v) {
    for (size_t i = v.size(); i > 1; i--) std::swap(v[i - 1], v[draw() % i]);
}

void run_block(std::vector<unsigned> &order) {
    for (Thread &t : threads) t.state = FRESH;
    while (!*error) {
        shuffle(order);
        bool busy = false, unfinished = false;
        for (unsigned i : order) {
            if (threads[i].state == FRESH || threads[i].state == READY) {
                resume(i);
                busy = true;
                if (*error) return;
            }
            unfinished = unfinished || threads[i].state != DONE;
        }
        if (!unfinished) return;
        if (!busy && !*error) snprintf(error, sizeof error, "threads wait for each other for ever");
        if (!release_warps() && !release_barrier()) return;
    }
}

}  // namespace

extern "C" {

void sim_barrier(int predicate, int *count, int *all, int *any) {
    self->predicate = predicate;
    self->state = BARRIER;
    leave();
    if (count) *count = count_of;
    if (all) *all = all_of;
    if (any) *any = any_of;
}

void sim_exchange(unsigned mask, const void *value, unsigned size, int source, void *result) {
    Thread *const me = self;
    memcpy(me->value, value, size);
    me->size = size;
    me->source = source;
    me->result = result;
    me->mask = mask;
    me->predicate = 0;
    if (!(mask >> (current % 32) & 1) && !*error)
        snprintf(error, sizeof error, "lane %u is not in the mask %08x that it gives", current % 32, mask);
    me->state = WARP;
    leave();
}

unsigned sim_ballot(unsigned mask, int predicate) {
    Thread *const me = self;
    me->result = nullptr;
    me->mask = mask;
    me->predicate = predicate;
    if (!(mask >> (current % 32) & 1) && !*error)
        snprintf(error, sizeof error, "lane %u is not in the mask %08x that it gives", current % 32, mask);
    me->state = WARP;
    leave();
    return me->ballot;
}

unsigned sim_active() { return 1u << (current % 32); }

int sim_lane() { return (int)(current % 32); }

[[noreturn]] void sim_trap(const char *what) {
    if (!*error) snprintf(error, sizeof error, "%s, in thread %u of block %u", what, current, blockIdx.x);
    self->state = DONE;
    leave();
    __builtin_unreachable();
}

#define SIM_ACCESS(N) \
    void __asan_load##N##_noabort(uintptr_t at) { check(at, N, "reads"); } \
    void __asan_store##N##_noabort(uintptr_t at) { check(at, N, "writes"); }
SIM_ACCESS(1)
SIM_ACCESS(2)
SIM_ACCESS(4)
SIM_ACCESS(8)
SIM_ACCESS(16)
void __asan_loadN_noabort(uintptr_t at, size_t size) { check(at, size, "reads"); }
void __asan_storeN_noabort(uintptr_t at, size_t size) { check(at, size, "writes"); }
void __asan_handle_no_return() {}
void __ubsan_handle_type_mismatch_v1_abort(void *, void *at) {
    sim_trap(at == nullptr ? "a null pointer is used" : "a misaligned address is used");
}
void __ubsan_handle_divrem_overflow_abort(void *, void *, void *) { sim_trap("an integer is divided by zero"); }

// Runs all blocks; returns what went wrong, or null.
const char *sim_launch(
    void (*kernel)(void **), void **args, const unsigned *grid, const unsigned *block, unsigned dynamic, uint64_t seed,
    char *shared, unsigned shared_size, const Interval *intervals, unsigned interval_count, const Interval *module) {
    std::lock_guard<std::mutex> alone(one_launch);
    static char *dynamic_shared = nullptr;
    if (dynamic_shared == nullptr)
        dynamic_shared = (char *)mmap(nullptr, SHARED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack_memory == nullptr) {
        stack_memory = (char *)mmap(
            nullptr, STACK * STACKS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (size_t i = STACKS; i-- > 0;) stacks.push_back(stack_memory + i * STACK);
    }
    allowed = intervals;
    allowed_count = interval_count;
    module_memory = *module;
    shared_memory = {(uintptr_t)dynamic_shared, (uintptr_t)dynamic_shared + dynamic};
    recent = {0, 0};
    checking = true;
    sim_dynamic_shared = dynamic_shared;
    entry = kernel;
    arguments = args;
    randomness = seed * 2654435761u + 88172645463325252ull;
    *error = 0;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    const unsigned n = block[0] * block[1] * block[2];
    threads.assign(n, Thread());
    std::vector<unsigned> order(n);
    for (unsigned i = 0; i < n; i++) order[i] = i;
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    std::vector<uint32_t> turn(blocks);
    for (uint64_t i = 0; i < blocks; i++) turn[i] = (uint32_t)i;
    shuffle(turn);
    for (uint32_t b : turn) {
        blockIdx = {b % grid[0], b / grid[0] % grid[1], b / (grid[0] * grid[1])};
        if (shared_size) memset(shared, 0xFF, shared_size);
        memset(dynamic_shared, 0xFF, dynamic);
        run_block(order);
        if (*error) break;
    }
    for (Thread &t : threads)
        if (t.stack) stacks.push_back(t.stack), t.stack = nullptr;
    checking = false;
    recent = {0, 0};
    return *error ? error : nullptr;
}
}
