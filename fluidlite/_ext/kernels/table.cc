#include "kernels/class_scores.h"
#include "kernels/topics.h"

namespace fl {

std::vector<int> targets() {
    std::vector<int> found;
#if FL_MULTITARGET
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    if (FL_AVX512 && avx512) found.push_back(2);
    if (FL_AVX2 && avx2) found.push_back(1);
#endif
    if (FL_BASELINE) found.push_back(0);
    return found;
}

const std::vector<fl_entry> &kernels_of(int target) {
    static std::vector<fl_entry> made[3];
    std::vector<fl_entry> &all = made[target];
    if (!all.empty()) return all;
    for (const Topic *topic :
         {&topic_binary, &topic_unary, &topic_fill, &topic_reduce, &topic_softmax, &topic_losses,
          &topic_move, &topic_arrays, &topic_lookup, &topic_top_k, &topic_gemm, &topic_convolution, &topic_pool, &topic_pool3d, &topic_resize, &topic_batch_norm, &topic_norm,
          &topic_roi, &topic_dropout, &topic_optimizers, &topic_rows, &topic_sequence_pool, &topic_sequence_rows, &topic_sequence_conv, &topic_im2sequence, &topic_found,
          &topic_sequence_places, &topic_choose, &topic_lstm, &topic_cudnn_lstm, &topic_gru, &topic_crf,
          &topic_ctc, &topic_alignment, &topic_drawing, &topic_class_scores, &topic_attention, &topic_chain}) {
        const fl_entry *entry = target == 2 ? topic->avx512 : target == 1 ? topic->avx2 : topic->baseline;
        const fl_entry *once = topic->baseline;
        for (; entry->name != nullptr; ++entry, once += once != nullptr) all.push_back(entry->run != nullptr ? *entry : *once);
    }
    return all;
}

}  // namespace fl
