// Messages from one process to another through shared memory, without system calls: a ring of bytes that one writes and the
// other reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fluidlite {

// Stands at the beginning of the memory; bytes were written up to `head` and read up to `tail` (both only grow).
struct Ring {
  static constexpr std::size_t kRoom = std::size_t{1} << 16;

  alignas(64) std::atomic<std::uint64_t> head;
  alignas(64) std::atomic<std::uint64_t> tail;
  alignas(64) std::atomic<std::uint32_t> asleep;  // the reader waits for a sign
  alignas(64) char bytes[kRoom];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "messages are counted across processes");

// What stands before each message.
struct RingMark {
  std::uint64_t number;
  std::uint64_t size;
};

inline std::uint64_t ring_step(std::size_t size) { return sizeof(RingMark) + (size + 7) / 8 * 8; }

inline void ring_write(Ring& ring, std::uint64_t at, const void* from, std::size_t size) {
  const std::size_t begin = at % Ring::kRoom, first = size < Ring::kRoom - begin ? size : Ring::kRoom - begin;
  std::memcpy(ring.bytes + begin, from, first);
  std::memcpy(ring.bytes, static_cast<const char*>(from) + first, size - first);
}

inline void ring_read(const Ring& ring, std::uint64_t at, void* to, std::size_t size) {
  const std::size_t begin = at % Ring::kRoom, first = size < Ring::kRoom - begin ? size : Ring::kRoom - begin;
  std::memcpy(to, ring.bytes + begin, first);
  std::memcpy(static_cast<char*>(to) + first, ring.bytes, size - first);
}

// Writes a message; false, and nothing is written, if there is no room. It is there for the reader at once as a whole, or (if
// the writer is killed meanwhile) not at all.
inline bool ring_put(Ring& ring, std::uint64_t number, const void* message, std::size_t size) {
  const std::uint64_t head = ring.head.load(std::memory_order_relaxed);
  const std::uint64_t used = head - ring.tail.load(std::memory_order_acquire);
  if (size > Ring::kRoom || ring_step(size) > Ring::kRoom - used) return false;
  const RingMark mark{number, size};
  ring_write(ring, head, &mark, sizeof mark);
  ring_write(ring, head + sizeof mark, message, size);
  ring.head.store(head + ring_step(size), std::memory_order_seq_cst);  // before the question in `ring_wanted`
  return true;
}

// Whether the reader, after a message was put, has to be woken: it is told so once.
inline bool ring_wanted(Ring& ring) {
  return ring.asleep.load(std::memory_order_seq_cst) != 0 && ring.asleep.exchange(0) != 0;
}

// Whether the next message is the one with this number; `size`: how many bytes it has.
inline bool ring_next(const Ring& ring, std::uint64_t number, std::size_t& size) {
  const std::uint64_t tail = ring.tail.load(std::memory_order_relaxed);
  if (ring.head.load(std::memory_order_acquire) == tail) return false;
  RingMark mark;
  ring_read(ring, tail, &mark, sizeof mark);
  size = mark.size;
  return mark.number == number;
}

// Takes the next message, which `ring_next` has found.
inline void ring_take(Ring& ring, void* to, std::size_t size) {
  const std::uint64_t tail = ring.tail.load(std::memory_order_relaxed);
  ring_read(ring, tail + sizeof(RingMark), to, size);
  ring.tail.store(tail + ring_step(size), std::memory_order_release);
}

// The reader is about to wait for a sign; false if it need not, because there is something already.
inline bool ring_doze(Ring& ring) {
  ring.asleep.store(1, std::memory_order_seq_cst);  // either the writer sees this, or this its message
  if (ring.head.load(std::memory_order_seq_cst) == ring.tail.load(std::memory_order_relaxed)) return true;
  ring.asleep.store(0, std::memory_order_relaxed);
  return false;
}

}  // namespace fluidlite
