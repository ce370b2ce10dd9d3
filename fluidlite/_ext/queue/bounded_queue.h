// A bounded first-in first-out queue between threads that know nothing of Python.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace fluidlite {

enum class Outcome : int {
  kDone = 0,      // the item went in or came out
  kTimedOut = 1,  // nothing happened within the time given
  kShut = 2,      // put: the queue takes no more; get: closed and empty
  kForked = 3,    // get: the queue was made before a fork, in the parent of this process
};

struct QueueCounters {
  std::uint64_t put = 0;        // items that ever went in
  std::uint64_t got = 0;        // items that ever came out
  double put_seconds = 0.0;     // time producers spent waiting for room
  double get_seconds = 0.0;     // time consumers spent waiting for items
};

// Items are opaque pointers; whoever takes one out owns it. Every method may be called from any thread.
//
// In the child of a fork the queues of the parent are dead: the threads at their other ends are not there, and may have
// held the mutex. They are shut, give nothing, and keep what they hold.
class BoundedQueue {
 public:
  // Holds up to `capacity` (at least 1) items; memory grows with what is really queued.
  explicit BoundedQueue(std::size_t capacity);
  ~BoundedQueue();
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // Waits for room up to `seconds`; for ever if negative, not at all if zero.
  Outcome put(void* item, double seconds);
  // Waits for an item up to `seconds`; for ever if negative, not at all if zero.
  Outcome get(void** item, double seconds);

  // For threads that run one at a time outside of here: one that has waited in `get` may still wait for its turn. `arrive`
  // says that it has it, `arrivals` how often that was said, `let_arrive` waits until it was said after `seen`, up to
  // `seconds` (for ever if negative), or until the queue is shut.
  void arrive();
  std::uint64_t arrivals() const;
  void let_arrive(std::uint64_t seen, double seconds);

  // Takes no more items; those inside are still handed out. False if it was shut before.
  bool close();
  // Takes no more items and hands out none; gives those inside to the caller.
  std::vector<void*> kill();

  std::size_t size() const;
  std::size_t capacity() const { return capacity_; }
  bool shut() const;
  QueueCounters counters() const;

  // Over all queues of this process: how many exist, how many items they hold.
  static std::int64_t live_queues();
  static std::int64_t live_items();

 private:
  struct Signals {
    std::mutex mutex;
    std::condition_variable room;
    std::condition_variable items;
    std::condition_variable arrived;
  };

  bool forked() const;
  void grow();

  const std::size_t capacity_;
  const unsigned generation_;  // of the process: how many forks led to it
  std::unique_ptr<Signals> signals_;
  std::vector<void*> ring_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::size_t putters_ = 0;  // threads waiting for room
  std::size_t getters_ = 0;  // threads waiting for items
  std::size_t watchers_ = 0;  // threads waiting for an arrival
  std::uint64_t arrivals_ = 0;
  bool shut_ = false;
  QueueCounters counters_;
};

}  // namespace fluidlite
