#include "kernels/fresh_seed.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <random>

namespace fl {
namespace {

std::atomic<uint64_t> place{0}; /* in the sequence of seeds; 0: they are unpredictable */
std::atomic<uint64_t> count{0};

/* What no other process and no other call is likely to have at this moment. */
uint64_t by_the_clock() {
    const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return std::mt19937_64(now ^ reinterpret_cast<uintptr_t>(&now) ^ count.fetch_add(0x9e3779b97f4a7c15))();
}

}  // namespace

uint64_t fresh_seed() noexcept {
    if (place.load() == 0) {
        try {
            std::random_device device;
            return (static_cast<uint64_t>(device()) << 32) | device();
        } catch (const std::exception &) { /* the system has none to give, as where no more files can be opened */
            return by_the_clock();
        }
    }
    return std::mt19937_64(place.fetch_add(0x9e3779b97f4a7c15))();
}

void seeds_from(uint64_t number) { place.store(number); }

}  // namespace fl
