#include "kernels/fresh_seed.h"

#include <atomic>
#include <random>

namespace fl {
namespace {

std::atomic<uint64_t> place{0}; /* in the sequence of seeds; 0: they are unpredictable */

}  // namespace

uint64_t fresh_seed() {
    if (place.load() == 0) {
        std::random_device device;
        return (static_cast<uint64_t>(device()) << 32) | device();
    }
    return std::mt19937_64(place.fetch_add(0x9e3779b97f4a7c15))();
}

void seeds_from(uint64_t number) { place.store(number); }

}  // namespace fl
