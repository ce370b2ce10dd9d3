// Hammers the bounded queue from many threads; meant to be built with -fsanitize=thread. Exits with 1 on a
// lost item.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "queue/bounded_queue.h"

using fluidlite::BoundedQueue;
using fluidlite::Outcome;

namespace {

using Item = int;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::exit(1);
}

// Every item put is taken exactly once, whatever the timeouts.
void all_items_arrive(std::size_t capacity, int producers, int consumers, int each) {
  BoundedQueue queue(capacity);
  std::vector<long> sums(consumers, 0);
  std::vector<std::thread> threads;
  for (int c = 0; c < consumers; ++c) {
    threads.emplace_back([&queue, &sums, c] {
      void* raw = nullptr;
      for (;;) {
        const Outcome outcome = queue.get(&raw, c % 2 ? -1.0 : 0.0005);
        queue.arrive();
        if (outcome == Outcome::kShut) return;
        if (outcome != Outcome::kDone) continue;
        std::unique_ptr<Item> item(static_cast<Item*>(raw));
        sums[c] += *item;
      }
    });
  }
  std::vector<std::thread> makers;
  for (int p = 0; p < producers; ++p) {
    makers.emplace_back([&queue, p, each] {
      for (int i = 1; i <= each; ++i) {
        auto item = std::make_unique<Item>(i);
        Outcome outcome = Outcome::kTimedOut;
        while (outcome == Outcome::kTimedOut) outcome = queue.put(item.get(), p % 2 ? -1.0 : 0.0005);
        if (outcome != Outcome::kDone) fail("put on an open queue");
        item.release();
        if (i % 3 == 0) queue.let_arrive(queue.arrivals(), p % 2 ? 0.01 : 0.0005);
      }
    });
  }
  for (auto& maker : makers) maker.join();
  queue.close();
  for (auto& thread : threads) thread.join();
  long total = 0;
  for (long sum : sums) total += sum;
  if (total != static_cast<long>(producers) * each * (each + 1) / 2) fail("items were lost or doubled");
}

// Killing at a random moment wakes everybody and gives the rest back.
void kill_at_random(unsigned seed) {
  std::mt19937 random(seed);
  BoundedQueue queue(1 + random() % 4);
  std::vector<std::thread> threads;
  for (int p = 0; p < 3; ++p) {
    threads.emplace_back([&queue] {
      for (;;) {
        auto item = std::make_unique<Item>(1);
        if (queue.put(item.get(), -1.0) != Outcome::kDone) return;
        item.release();
      }
    });
  }
  for (int c = 0; c < 2; ++c) {
    threads.emplace_back([&queue] {
      void* raw = nullptr;
      while (queue.get(&raw, -1.0) == Outcome::kDone) delete static_cast<Item*>(raw);
    });
  }
  threads.emplace_back([&queue] {
    while (!queue.shut()) {
      if (queue.size() > queue.capacity()) fail("more items than fit");
      queue.counters();
      std::this_thread::yield();
    }
  });
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
  for (void* raw : queue.kill()) delete static_cast<Item*>(raw);
  for (auto& thread : threads) thread.join();
  if (queue.size() != 0) fail("a killed queue holds items");
}

// Whoever puts something for a thread that waits goes on when that one has arrived with it, or when the queue is killed.
void waits_for_arrivals(bool kill) {
  BoundedQueue queue(8);
  std::atomic<bool> taken{false};
  const std::uint64_t seen = queue.arrivals();
  std::thread consumer([&queue, &taken] {
    void* raw = nullptr;
    while (queue.get(&raw, -1.0) == Outcome::kDone) {
      taken = true;
      queue.arrive();
    }
  });
  Item item = 1;
  std::thread killer;
  if (kill) killer = std::thread([&queue] { queue.kill(); });
  queue.put(&item, -1.0);
  queue.let_arrive(seen, -1.0);
  if (!taken && !queue.shut()) fail("went on before the item was taken");
  queue.close();
  consumer.join();
  if (kill) killer.join();
  queue.let_arrive(queue.arrivals(), -1.0);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  for (int round = 0; round < rounds; ++round) {
    all_items_arrive(1 + round % 5, 1 + round % 4, 1 + round % 3, 400);
    kill_at_random(round);
    waits_for_arrivals(round % 2 == 1);
  }
  if (BoundedQueue::live_queues() != 0 || BoundedQueue::live_items() != 0) fail("live counters are not zero");
  std::puts("ok");
  return 0;
}
