// Sends messages of all sizes through a ring from one thread to another; meant to be built with -fsanitize=thread. Exits with
// 1 on a message that is lost or damaged, and hangs if a sign is lost.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "shm/ring.h"

using namespace fluidlite;

namespace {

std::size_t size_of(std::uint64_t number) { return number % 97 == 0 ? 20000 + number % 7 : number * 7919 % 300; }

class Signs {
 public:
  void give() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++signs_;
    }
    given_.notify_one();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    given_.wait(lock, [this] { return signs_ > 0; });
    --signs_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  int signs_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  auto ring = std::make_unique<Ring>();
  Signs signs;
  std::thread writer([&] {
    for (std::uint64_t number = 0; number < count; ++number) {
      const std::vector<char> message(size_of(number), static_cast<char>(number));
      while (!ring_put(*ring, number, message.data(), message.size())) std::this_thread::yield();
      if (ring_wanted(*ring)) signs.give();
    }
  });
  std::vector<char> message;
  for (std::uint64_t number = 0; number < count;) {
    std::size_t size = 0;
    if (!ring_next(*ring, number, size)) {
      if (ring_doze(*ring)) signs.wait();
      continue;
    }
    message.resize(size);
    ring_take(*ring, message.data(), size);
    if (size != size_of(number)) return std::puts("a size is wrong"), 1;
    for (const char byte : message) {
      if (byte != static_cast<char>(number)) return std::puts("a message is damaged"), 1;
    }
    ++number;
  }
  writer.join();
  std::puts("ok");
}
