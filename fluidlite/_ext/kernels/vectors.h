/* The vectors of each instruction set. */
#ifndef FLUIDLITE_KERNELS_VECTORS_H
#define FLUIDLITE_KERNELS_VECTORS_H

namespace fl {

/* How wide the registers of each instruction set are, and the sums that products keep in them: rows, and vectors of a row. Where
 * multiply-adds read no memory, as on AArch64, elements of A need registers as well. */
namespace avx512 {
constexpr int vector_bytes = 64, tile_rows = 6, strip_vectors = 4;
}
namespace avx2 {
constexpr int vector_bytes = 32, tile_rows = 6, strip_vectors = 2;
}
namespace baseline {
#if defined(__aarch64__)
constexpr int vector_bytes = 16, tile_rows = 5, strip_vectors = 4;
#else
constexpr int vector_bytes = 16, tile_rows = 6, strip_vectors = 2;
#endif
}

}  // namespace fl

#endif
