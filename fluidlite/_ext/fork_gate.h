/* Keeps forks and the work of libraries with threads of their own apart.
 *
 * OpenBLAS ends its threads before a fork and starts new ones after it. If they are at work for another thread at that
 * moment, that one waits for ever. OpenMP's and oneDNN's locks, if held then, stay held in the child. */
#ifndef FLUIDLITE_FORK_GATE_H
#define FLUIDLITE_FORK_GATE_H

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>

namespace fl {

class ForkGate {
  public:
    /* Goes in; waits while a fork is about to happen, but for `seconds` at most. */
    void enter(double seconds) {
        std::unique_lock<std::mutex> lock(mutex_);
        opened_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return forks_ == 0; });
        ++inside_;
    }

    void enter() {
        std::unique_lock<std::mutex> lock(mutex_);
        opened_.wait(lock, [this] { return forks_ == 0; });
        ++inside_;
    }

    /* Goes in if that needs no waiting. */
    bool try_enter() {
        std::lock_guard<std::mutex> lock(mutex_);
        if (forks_ == 0) ++inside_;
        return forks_ == 0;
    }

    void leave() {
        std::lock_guard<std::mutex> lock(mutex_);
        if (--inside_ == 0 || forks_ > 0) left_.notify_all();
    }

    /* Before a fork: lets nobody in any more and waits until all have left but `own` of the thread that forks. */
    void close(int own) {
        std::unique_lock<std::mutex> lock(mutex_);
        ++forks_;
        left_.wait(lock, [this, own] { return inside_ <= own; });
    }

    /* After it, in the parent. */
    void open() {
        std::lock_guard<std::mutex> lock(mutex_);
        if (--forks_ == 0) opened_.notify_all();
    }

    /* After it, in the child, where the other threads are not there. */
    void reset(int own) {
        new (this) ForkGate;
        inside_ = own;
    }

    /* The same for forks of which Python does not know; between the two nobody can touch the gate. */
    void close_and_lock() {
        close(0);
        mutex_.lock();
    }
    void unlock_and_open() {
        mutex_.unlock();
        open();
    }

  private:
    std::mutex mutex_;
    std::condition_variable opened_, left_;
    int inside_ = 0; /* how many are in */
    int forks_ = 0;  /* how many are about to fork */
};

/* The gate of work that is done without Python: it needs no lock but this one, so that a fork waits for it safely. */
inline ForkGate &library_gate() {
    static ForkGate *const gate = [] {
        pthread_atfork([] { library_gate().close_and_lock(); }, [] { library_gate().unlock_and_open(); },
                       [] { library_gate().reset(0); });
        return new ForkGate;
    }();
    return *gate;
}

/* Exists while such a library is at work; in a piece of work whoever gave it out is in already. */
class LibraryCall {
  public:
    explicit LibraryCall(bool in_piece) : entered_(!in_piece) {
        if (entered_) library_gate().enter();
    }
    ~LibraryCall() {
        if (entered_) library_gate().leave();
    }
    LibraryCall(const LibraryCall &) = delete;
    LibraryCall &operator=(const LibraryCall &) = delete;

  private:
    const bool entered_;
};

}  // namespace fl

#endif
