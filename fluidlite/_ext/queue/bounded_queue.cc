#include "bounded_queue.h"

#include <algorithm>
#include <chrono>

#include <pthread.h>

namespace fluidlite {

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<std::int64_t> queues{0};
std::atomic<std::int64_t> items{0};
std::atomic<unsigned> generation{0};

void begin_child() {
  ++generation;
  queues = 0;
  items = 0;
}

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, begin_child);

// Waits until `ready`, `seconds` at most (negative: for ever), and adds the time to `waited`. False: time is
// up.
template <typename Ready>
bool wait(std::condition_variable& signal, std::unique_lock<std::mutex>& lock, std::size_t& waiters,
          double seconds, double& waited, Ready ready) {
  if (ready()) return true;
  if (seconds == 0.0) return false;
  const auto begin = Clock::now();
  ++waiters;
  bool in_time = true;
  if (seconds < 0.0) {
    signal.wait(lock, ready);
  } else {
    in_time = signal.wait_for(lock, std::chrono::duration<double>(seconds), ready);
  }
  --waiters;
  waited += std::chrono::duration<double>(Clock::now() - begin).count();
  return in_time;
}

}  // namespace

BoundedQueue::BoundedQueue(std::size_t capacity)
    : capacity_(std::max<std::size_t>(capacity, 1)),
      generation_(generation.load(std::memory_order_relaxed)),
      signals_(new Signals),
      ring_(std::min<std::size_t>(capacity_, 16)) {
  ++queues;
}

BoundedQueue::~BoundedQueue() {
  if (forked()) {
    // Destroying a condition variable waits for the threads that wait on it, and here there are none to leave.
    static_cast<void>(signals_.release());
    return;
  }
  items -= static_cast<std::int64_t>(count_);
  --queues;
}

bool BoundedQueue::forked() const { return generation_ != generation.load(std::memory_order_relaxed); }

void BoundedQueue::grow() {
  std::vector<void*> bigger(std::min(capacity_, ring_.size() * 2));
  for (std::size_t i = 0; i < count_; ++i) bigger[i] = ring_[(head_ + i) % ring_.size()];
  ring_.swap(bigger);
  head_ = 0;
}

Outcome BoundedQueue::put(void* item, double seconds) {
  if (forked()) return Outcome::kShut;
  std::unique_lock<std::mutex> lock(signals_->mutex);
  const bool in_time = wait(signals_->room, lock, putters_, seconds, counters_.put_seconds,
                            [this] { return shut_ || count_ < capacity_; });
  if (shut_) return Outcome::kShut;
  if (!in_time) return Outcome::kTimedOut;
  if (count_ == ring_.size()) grow();
  ring_[(head_ + count_) % ring_.size()] = item;
  ++count_;
  ++counters_.put;
  ++items;
  const bool wake = getters_ > 0;
  lock.unlock();
  if (wake) signals_->items.notify_one();
  return Outcome::kDone;
}

void BoundedQueue::arrive() {
  if (forked()) return;
  std::unique_lock<std::mutex> lock(signals_->mutex);
  ++arrivals_;
  const bool watched = watchers_ > 0;
  lock.unlock();
  if (watched) signals_->arrived.notify_all();
}

std::uint64_t BoundedQueue::arrivals() const {
  if (forked()) return 0;
  std::lock_guard<std::mutex> lock(signals_->mutex);
  return arrivals_;
}

void BoundedQueue::let_arrive(std::uint64_t seen, double seconds) {
  if (forked()) return;
  std::unique_lock<std::mutex> lock(signals_->mutex);
  double waited = 0.0;
  wait(signals_->arrived, lock, watchers_, seconds, waited, [this, seen] { return shut_ || arrivals_ != seen; });
}

Outcome BoundedQueue::get(void** item, double seconds) {
  if (forked()) return Outcome::kForked;
  std::unique_lock<std::mutex> lock(signals_->mutex);
  const bool in_time = wait(signals_->items, lock, getters_, seconds, counters_.get_seconds,
                            [this] { return shut_ || count_ > 0; });
  if (count_ == 0) return in_time ? Outcome::kShut : Outcome::kTimedOut;
  *item = ring_[head_];
  head_ = (head_ + 1) % ring_.size();
  --count_;
  ++counters_.got;
  --items;
  const bool wake = putters_ > 0;
  lock.unlock();
  if (wake) signals_->room.notify_one();
  return Outcome::kDone;
}

bool BoundedQueue::close() {
  if (forked()) return false;
  {
    std::lock_guard<std::mutex> lock(signals_->mutex);
    if (shut_) return false;
    shut_ = true;
  }
  signals_->room.notify_all();
  signals_->items.notify_all();
  signals_->arrived.notify_all();
  return true;
}

std::vector<void*> BoundedQueue::kill() {
  std::vector<void*> left;
  if (forked()) return left;
  {
    std::lock_guard<std::mutex> lock(signals_->mutex);
    shut_ = true;
    left.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i) left.push_back(ring_[(head_ + i) % ring_.size()]);
    items -= static_cast<std::int64_t>(count_);
    head_ = 0;
    count_ = 0;
  }
  signals_->room.notify_all();
  signals_->items.notify_all();
  signals_->arrived.notify_all();
  return left;
}

std::size_t BoundedQueue::size() const {
  if (forked()) return 0;
  std::lock_guard<std::mutex> lock(signals_->mutex);
  return count_;
}

bool BoundedQueue::shut() const {
  if (forked()) return true;
  std::lock_guard<std::mutex> lock(signals_->mutex);
  return shut_;
}

QueueCounters BoundedQueue::counters() const {
  if (forked()) return {};
  std::lock_guard<std::mutex> lock(signals_->mutex);
  return counters_;
}

std::int64_t BoundedQueue::live_queues() { return queues.load(); }

std::int64_t BoundedQueue::live_items() { return items.load(); }

}  // namespace fluidlite
