#include "block_pool.h"

#include <cstdlib>

namespace fluidlite {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kCacheLimit = std::size_t{96} << 20;

}  // namespace

std::size_t BlockPool::block_size(std::size_t bytes) {
  std::size_t power = 256;
  while (power < bytes && power < (SIZE_MAX >> 1)) power <<= 1;
  const std::size_t step = power / 8 < kAlignment ? kAlignment : power / 8;
  return bytes <= 256 ? 256 : (bytes + step - 1) / step * step;
}

void* BlockPool::acquire(std::size_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  void* block = nullptr;
  const auto found = unused_.find(size);
  if (found != unused_.end() && !found->second.empty()) {
    block = found->second.back();  // the one used last is the warmest in the caches
    found->second.pop_back();
    counters_.cached_bytes -= static_cast<std::int64_t>(size);
  } else if (posix_memalign(&block, kAlignment, size) != 0) {
    return nullptr;
  }
  ++counters_.live_blocks;
  counters_.live_bytes += static_cast<std::int64_t>(size);
  return block;
}

void BlockPool::release(void* block, std::size_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  --counters_.live_blocks;
  counters_.live_bytes -= static_cast<std::int64_t>(size);
  // Blocks of other sizes make room: they belong to a loader that is done, or to its last, smaller batch.
  for (auto entry = unused_.begin(); entry != unused_.end() && cached() + size > limit_;) {
    if (entry->first == size) {
      ++entry;
      continue;
    }
    for (void* other : entry->second) {
      std::free(other);
      counters_.cached_bytes -= static_cast<std::int64_t>(entry->first);
    }
    entry = unused_.erase(entry);
  }
  if (cached() + size > limit_) {
    std::free(block);
    return;
  }
  unused_[size].push_back(block);
  counters_.cached_bytes += static_cast<std::int64_t>(size);
}

void BlockPool::trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& entry : unused_) {
    for (void* block : entry.second) std::free(block);
  }
  unused_.clear();
  counters_.cached_bytes = 0;
}

PoolCounters BlockPool::counters() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

BlockPool& block_pool() {
  // Never destroyed: arrays may outlive every static.
  static BlockPool* const pool = new BlockPool(kCacheLimit);
  return *pool;
}

}  // namespace fluidlite
