/* The topics of kernels, which table.cc joins. */
#ifndef FLUIDLITE_KERNELS_TOPICS_H
#define FLUIDLITE_KERNELS_TOPICS_H

#include <vector>

#include "kernels/common.h"

namespace fl {

/* All topics, in the order of the table. */
#define FL_TOPICS(X) \
    X(binary) X(unary) X(fill) X(reduce) X(softmax) X(losses) X(move) X(arrays) X(lookup) X(top_k) X(gemm) \
    X(convolution) X(pool) X(pool3d) X(resize) X(batch_norm) X(norm) X(roi) X(dropout) X(optimizers) X(rows) \
    X(sequence_pool) X(sequence_rows) X(sequence_conv) X(im2sequence) X(found) X(sequence_places) X(choose) \
    X(lstm) X(cudnn_lstm) X(gru) X(crf) X(ctc) X(alignment) X(drawing) X(class_scores) X(attention) X(chain)

#define FL_DECLARED(NAME) extern const Topic topic_##NAME;
FL_TOPICS(FL_DECLARED)
#undef FL_DECLARED

/* Instruction sets that this machine can run and this build has, best first: 2 AVX-512, 1 AVX2, 0 the compiler's default;
 * none if it was built for another machine alone. */
std::vector<int> targets();

/* Every kernel, compiled for one of `targets()`, in the same order for each; made at the first call for a target, under the GIL. */
const std::vector<fl_entry> &kernels_of(int target);

}  // namespace fl

#endif
