#include "threads/pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "fork_gate.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#define FL_RELAX() _mm_pause()
#define FL_MODE() _mm_getcsr()
#define FL_SET_MODE(mode) _mm_setcsr(mode)
#elif defined(__aarch64__)
#define FL_RELAX() asm volatile("isb") /* takes about as long; `yield` takes no time where there is one thread to a core */
#define FL_MODE() get_mode()
#define FL_SET_MODE(mode) asm volatile("msr fpcr, %0" : : "r"(static_cast<uint64_t>(mode)))
inline uint64_t get_mode() {
    uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
#else
#define FL_RELAX() ((void)0)
#define FL_MODE() 0
#define FL_SET_MODE(mode) ((void)(mode))
#endif

namespace fl {
namespace {

using Piece = void (*)(void *work, int64_t which);

/* How often a thread looks for work, or for the end of it, before it goes to sleep, because to be woken takes longer: some ten
 * microseconds as fast as it can, then some fifty in which it lets whoever waits for the processor go first, as a thread that reads the
 * next batch. */
constexpr int patience = 400, courtesy = 100;

template <class F> void look_for(const F &there) {
    for (int k = 0; k < patience; ++k) {
        if (there()) return;
        FL_RELAX();
    }
    for (int k = 0; k < courtesy && !there(); ++k) std::this_thread::yield();
}

constexpr int most_threads = 256; /* that share a job */
constexpr int64_t most_pieces = INT32_MAX;

std::atomic<int> wanted{1};
thread_local int own_share = 0;
thread_local bool at_piece = false;

void serially(int64_t pieces, Piece piece, void *work) {
    for (int64_t k = 0; k < pieces; ++k) piece(work, k);
}

/* The pieces of a job that a thread begins with, which lie side by side: it takes them from the front, and whoever has no more of
 * his own from the back. So a thread finds in its caches what it has made of the same part of the batch before. */
class Share {
  public:
    void set(int64_t begin, int64_t end) { range_.store(static_cast<uint64_t>(begin) << 32 | static_cast<uint64_t>(end), std::memory_order_relaxed); }

    /* A piece, or -1 if there is none left. */
    int64_t take(bool front) {
        uint64_t range = range_.load(std::memory_order_relaxed);
        for (;;) {
            const uint64_t begin = range >> 32, end = range & 0xffffffff;
            if (begin == end) return -1;
            const uint64_t rest = front ? range + (uint64_t(1) << 32) : range - 1;
            if (range_.compare_exchange_weak(range, rest, std::memory_order_relaxed)) return static_cast<int64_t>(front ? begin : end - 1);
        }
    }

  private:
    alignas(64) std::atomic<uint64_t> range_{0};
};

/* One job at a time; whoever finds the threads at another does his work alone. */
class Pool {
  public:
    void run(int64_t pieces, Piece piece, void *work, int count) {
        std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
        if (!turn.owns_lock() || !library_gate().try_enter()) return serially(pieces, piece, work);
        start(count - 1);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            piece_ = piece;
            work_ = work;
            helpers_ = count - 1;
            mode_ = FL_MODE();
            for (int k = 0; k < count; ++k) shares_[k].set(k * pieces / count, (k + 1) * pieces / count);
            open_ = true;
            job_.fetch_add(1, std::memory_order_release);
        }
        if (asleep_.load() > 0) wake_.notify_all();
        take(0);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            open_ = false;
        }
        look_for([this] { return inside_.load(std::memory_order_acquire) == 0; });
        if (inside_.load(std::memory_order_acquire) > 0) {
            std::unique_lock<std::mutex> lock(mutex_);
            done_.wait(lock, [this] { return inside_.load(std::memory_order_acquire) == 0; });
        }
        library_gate().leave();
    }

  private:
    void take(int own) {
        const bool before = at_piece;
        at_piece = true;
        for (int k = 0; k <= helpers_; ++k) {
            Share &share = shares_[(own + k) % (helpers_ + 1)];
            for (int64_t which; (which = share.take(k == 0)) >= 0;) piece_(work_, which);
        }
        at_piece = before;
    }

    void start(int count) {
        while (started_ < count) {
            try {
                std::thread([this, number = started_] { serve(number); }).detach();
            } catch (const std::system_error &) {
                return; /* those that are there do it */
            }
            ++started_;
        }
    }

    [[noreturn]] void serve(int number) {
        uint64_t seen = 0;
        for (;;) {
            look_for([this, seen] { return job_.load(std::memory_order_acquire) != seen; });
            {
                std::unique_lock<std::mutex> lock(mutex_);
                asleep_.fetch_add(1);
                wake_.wait(lock, [this, seen] { return job_.load(std::memory_order_relaxed) != seen; });
                asleep_.fetch_sub(1);
                seen = job_.load(std::memory_order_relaxed);
                if (!open_ || number >= helpers_) continue;
                inside_.fetch_add(1, std::memory_order_relaxed);
            }
            FL_SET_MODE(mode_);
            take(number + 1);
            if (inside_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                std::lock_guard<std::mutex> lock(mutex_); /* or the waiting one may miss it */
                done_.notify_one();
            }
        }
    }

    std::mutex turn_, mutex_;
    std::condition_variable wake_, done_;
    std::atomic<uint64_t> job_{0};
    std::atomic<int> asleep_{0}, inside_{0};
    Piece piece_ = nullptr;
    void *work_ = nullptr;
    Share shares_[most_threads];
    decltype(FL_MODE()) mode_{}; /* how the thread whose job it is rounds, and whether it takes the smallest numbers for zero */
    int helpers_ = 0, started_ = 0;
    bool open_ = false;
};

/* Never ended, because its threads never are. A fork waits in the gate until no job runs; the child has none of the
 * threads and begins anew. */
Pool &pool() {
    static Pool *const made = [] {
        library_gate();
        pthread_atfork(nullptr, nullptr, [] {
            new (&pool()) Pool;
            at_piece = false;
        });
        return new Pool;
    }();
    return *made;
}

void run(int64_t pieces, Piece piece, void *work) {
    int count = wanted.load(std::memory_order_relaxed);
    if (own_share > 0 && own_share < count) count = own_share;
    count = static_cast<int>(std::min<int64_t>({count, pieces, most_threads}));
    if (count < 2 || pieces > most_pieces || at_piece) return serially(pieces, piece, work);
    pool().run(pieces, piece, work, count);
}

}  // namespace

Threads *pool_functions() {
    static Threads functions;
    functions.run = run;
    functions.inside = [] { return at_piece; };
    return &functions;
}

void set_thread_count(int count) { wanted.store(count < 1 ? 1 : count); }

int thread_count() { return wanted.load(); }

void set_own_share(int count) { own_share = count; }

}  // namespace fl
