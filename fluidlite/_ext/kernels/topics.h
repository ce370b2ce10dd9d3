/* The topics of kernels; table.cc joins them. */
#ifndef FLUIDLITE_KERNELS_TOPICS_H
#define FLUIDLITE_KERNELS_TOPICS_H

#include <vector>

#include "kernels/common.h"

namespace fl {

extern const Topic topic_binary, topic_unary, topic_fill, topic_reduce, topic_softmax,
    topic_losses, topic_move, topic_arrays, topic_lookup, topic_top_k, topic_gemm, topic_convolution, topic_pool, topic_pool3d, topic_resize, topic_batch_norm, topic_norm, topic_roi, topic_dropout,
    topic_optimizers, topic_rows, topic_sequence_pool, topic_sequence_rows, topic_sequence_conv, topic_im2sequence, topic_found,
    topic_sequence_places, topic_choose, topic_lstm, topic_cudnn_lstm,
    topic_gru, topic_crf, topic_ctc, topic_alignment, topic_attention, topic_chain;

/* Instruction sets that this machine can run and this build has, best first: 2 AVX-512, 1 AVX2, 0 the compiler's default;
 * none if it was built for another machine alone. */
std::vector<int> targets();

/* Every kernel, compiled for one of `targets()`, in the same order for each; made at the first call for a target, under the GIL. */
const std::vector<fl_entry> &kernels_of(int target);

}  // namespace fl

#endif
