// Memory for batches: blocks that are handed out again instead of going back to the system, which would have
// to clear their pages anew for every batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace fluidlite {

struct PoolCounters {
  std::int64_t live_blocks = 0;   // blocks in use
  std::int64_t live_bytes = 0;    // their size
  std::int64_t cached_bytes = 0;  // size of the blocks kept for the next user
};

class BlockPool {
 public:
  // Keeps unused blocks up to `limit` bytes altogether. As long as any is in use, there may be as much as was in use lately:
  // who fills a queue and has it emptied, again and again, gets the same memory each time.
  explicit BlockPool(std::int64_t limit) : limit_(limit) {}
  ~BlockPool() { trim(); }
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // The size of the block that a request for `bytes` gets; a few sizes per power of two, so that blocks are
  // reused.
  static std::size_t block_size(std::size_t bytes);

  // A block of `size` bytes (a result of `block_size`), aligned to 64; null if there is no memory.
  void* acquire(std::size_t size);
  void release(void* block, std::size_t size);
  // Gives the unused blocks back to the system.
  void trim();
  PoolCounters counters() const;

 private:
  // Gives blocks of `size` bytes back to the system until no more than `limit` bytes are kept.
  void drop(std::size_t size, std::vector<void*>& blocks, std::int64_t limit);

  const std::int64_t limit_;
  std::int64_t most_live_ = 0;         // bytes in use at a time, lately
  std::int64_t most_live_before_ = 0;  // the same, in the time before that
  std::uint64_t released_ = 0;         // how many blocks ever were
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> unused_;
  PoolCounters counters_;
};

// The pool of the process; it lives as long as arrays on its blocks may.
BlockPool& block_pool();

}  // namespace fluidlite
