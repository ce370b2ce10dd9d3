/* Seeds of kernels that are random and were given none. */
#ifndef FLUIDLITE_KERNELS_FRESH_SEED_H
#define FLUIDLITE_KERNELS_FRESH_SEED_H

#include <cstdint>

namespace fl {

/* A seed that nothing else shares: unpredictable, or the next one that follows from the number given last. */
uint64_t fresh_seed() noexcept;

/* Have fresh seeds follow from `number`, and be unpredictable again after 0. */
void seeds_from(uint64_t number);

}  // namespace fl

#endif
