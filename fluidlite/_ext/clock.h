// The clock that loaders measure with.
#pragma once

#include <chrono>

namespace fluidlite {

// Seconds on a clock that never goes back.
inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace fluidlite
