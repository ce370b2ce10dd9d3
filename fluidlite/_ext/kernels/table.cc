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
#define FL_ADDRESS(NAME) &topic_##NAME,
    for (const Topic *topic : {FL_TOPICS(FL_ADDRESS)}) {
#undef FL_ADDRESS
        const fl_entry *const tables[] = {topic->baseline, topic->avx2, topic->avx512};
        for (size_t k = 0; tables[target][k].name != nullptr; ++k) { /* what a set has no kernel for, the next smaller one has */
            int from = target;
            while (tables[from][k].run == nullptr) --from;
            all.push_back(tables[from][k]);
        }
    }
    return all;
}

}  // namespace fl
