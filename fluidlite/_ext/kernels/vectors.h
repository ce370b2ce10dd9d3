/* The vectors of each instruction set. */
#ifndef FLUIDLITE_KERNELS_VECTORS_H
#define FLUIDLITE_KERNELS_VECTORS_H

namespace fl {

/* How wide the registers of each instruction set are. */
namespace avx512 {
constexpr int vector_bytes = 64;
}
namespace avx2 {
constexpr int vector_bytes = 32;
}
namespace baseline {
constexpr int vector_bytes = 16;
}

}  // namespace fl

#endif
