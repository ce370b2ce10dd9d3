#include "block_pool.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>

namespace fluidlite {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kCacheLimit = std::int64_t{96} << 20;
constexpr std::uint64_t kWindow = 512;  // blocks released until what was in use before counts no more, twice

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
  most_live_ = std::max(most_live_, counters_.live_bytes);
  return block;
}

void BlockPool::release(void* block, std::size_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  --counters_.live_blocks;
  counters_.live_bytes -= static_cast<std::int64_t>(size);
  try {
    unused_[size].push_back(block);
  } catch (const std::bad_alloc&) {
    std::free(block);
    return;
  }
  counters_.cached_bytes += static_cast<std::int64_t>(size);
  if (counters_.live_blocks == 0) {
    most_live_ = most_live_before_ = 0;
  } else if (++released_ % kWindow == 0) {
    most_live_before_ = most_live_;
    most_live_ = counters_.live_bytes;
  }
  // Blocks of other sizes make room first: they belong to a loader that is done, or to its last, smaller batch.
  const std::int64_t limit = std::max(limit_, std::max(most_live_, most_live_before_) - counters_.live_bytes);
  for (auto entry = unused_.begin(); entry != unused_.end() && counters_.cached_bytes > limit;) {
    const bool own = entry->first == size;
    if (!own) drop(entry->first, entry->second, 0);
    entry = own ? std::next(entry) : unused_.erase(entry);
  }
  if (counters_.cached_bytes > limit) drop(size, unused_[size], limit);
}

void BlockPool::drop(std::size_t size, std::vector<void*>& blocks, std::int64_t limit) {
  while (!blocks.empty() && counters_.cached_bytes > limit) {
    std::free(blocks.back());
    blocks.pop_back();
    counters_.cached_bytes -= static_cast<std::int64_t>(size);
  }
}

void BlockPool::trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& entry : unused_) drop(entry.first, entry.second, 0);
  unused_.clear();
}

PoolCounters BlockPool::counters() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

BlockPool& block_pool() {
  // Never destroyed: arrays may outlive every static. In memory that is there, as nobody could tell of a lack of it.
  alignas(BlockPool) static char memory[sizeof(BlockPool)];
  static BlockPool* const pool = new (memory) BlockPool(kCacheLimit);
  return *pool;
}

}  // namespace fluidlite
