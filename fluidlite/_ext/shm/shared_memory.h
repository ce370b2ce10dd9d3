// The system calls behind shm.pyx, and the counter by which two processes agree on who uses a slot.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace fluidlite {

// Stands at the beginning of each slot: how many leases on it the receiving process has. A lock-free counter
// works wherever the page is mapped.
struct SlotHeader {
  std::atomic<std::int32_t> leases;
};
static_assert(std::atomic<std::int32_t>::is_always_lock_free, "leases are counted across processes");

// Room for the header; what follows is aligned for every kind of array.
constexpr std::size_t kHeaderSize = 64;
static_assert(sizeof(SlotHeader) <= kHeaderSize);

inline void lease(void* slot) { static_cast<SlotHeader*>(slot)->leases.fetch_add(1, std::memory_order_relaxed); }

// What the holder of the lease read or wrote is done before the sender finds the slot unused.
inline void give_back(void* slot) { static_cast<SlotHeader*>(slot)->leases.fetch_sub(1, std::memory_order_release); }

inline bool leased(const void* slot) {
  return static_cast<const SlotHeader*>(slot)->leases.load(std::memory_order_acquire) != 0;
}

// A part of a file, mapped with its pages present where the system can do that; null (and errno) if it fails.
inline void* map_shared(int file, std::size_t offset, std::size_t size) {
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  if (address == MAP_FAILED) return nullptr;
#ifdef MADV_POPULATE_WRITE
  // One call instead of a fault for every page. Where it does not work, there are faults.
  (void)!madvise(address, size, MADV_POPULATE_WRITE);
#endif
  return address;
}

// Gives the pages of a part of a file back to the system; where that is not possible they stay.
inline void drop_pages(int file, std::size_t offset, std::size_t size) {
#ifdef FALLOC_FL_PUNCH_HOLE
  (void)!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                   static_cast<off_t>(size));
#else
  (void)file, (void)offset, (void)size;
#endif
}

// Sizes of slots: a few per power of two, so that batches of about the same size use the same slots.
inline std::size_t slot_size(std::size_t bytes) {
  std::size_t step = 4096;
  while (step * 16 < bytes + kHeaderSize) step *= 2;
  return (bytes + kHeaderSize + step - 1) / step * step;
}

}  // namespace fluidlite
