// Storing rows, and plain numbers as elements of a given type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fluidlite {

// The element types that plain Python numbers are stored to without going through NumPy.
enum class Element : int { kOther, kFloat32, kFloat64, kInt32, kInt64 };

// Both return false if the number does not fit; nothing is stored then.
inline bool store_real(Element type, char* to, double value) {
  switch (type) {
    case Element::kFloat32: {
      const float narrow = static_cast<float>(value);
      std::memcpy(to, &narrow, sizeof narrow);
      return true;
    }
    case Element::kFloat64:
      std::memcpy(to, &value, sizeof value);
      return true;
    case Element::kInt32: {
      if (!(value > -2147483649.0 && value < 2147483648.0)) return false;
      const auto whole = static_cast<std::int32_t>(value);
      std::memcpy(to, &whole, sizeof whole);
      return true;
    }
    case Element::kInt64: {
      if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) return false;
      const auto whole = static_cast<std::int64_t>(value);
      std::memcpy(to, &whole, sizeof whole);
      return true;
    }
    default:
      return false;
  }
}

inline bool store_whole(Element type, char* to, std::int64_t value) {
  switch (type) {
    case Element::kInt64:
      std::memcpy(to, &value, sizeof value);
      return true;
    case Element::kInt32: {
      const auto narrow = static_cast<std::int32_t>(value);
      if (narrow != value) return false;
      std::memcpy(to, &narrow, sizeof narrow);
      return true;
    }
    default:
      return store_real(type, to, static_cast<double>(value));
  }
}

// Copies a row, and has the caches fetch the memory of the next one while the next sample is made. (That of batches that
// wait in a queue has left them.)
inline void copy_row(char* to, const void* source, std::size_t size) {
  std::memcpy(to, source, size);
  const char* const next = to + size;
  for (std::size_t i = 0; i < std::min<std::size_t>(size, 8192); i += 64) __builtin_prefetch(next + i, 1);
}

}  // namespace fluidlite
