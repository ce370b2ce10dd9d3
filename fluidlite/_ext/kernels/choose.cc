/* Elements chosen by conditions: where, its gradient, and the gradient of masked_select. Conditions are bytes, 0 or not. */
#ifndef FL_NS

#include "kernels/topics.h"

#define FL_SELF "kernels/choose.cc"
#include "kernels/targets.h"

namespace fl {
const Topic topic_choose = FL_TOPIC(choose_table);
}

#else

namespace fl {
namespace FL_NS {
namespace {

template <class T> void choose(fl_call *call) {
    const uint8_t *condition = at<uint8_t>(call, 0);
    const T *x = at<T>(call, 1), *y = at<T>(call, 2);
    T *out = at<T>(call, 3);
    const int64_t n = call->i[0];
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) {
        const T yes = x[k], no = y[k];
        out[k] = condition[k] ? yes : no;
    }
}

template <class T> void choose_grad(fl_call *call) {
    const uint8_t *condition = at<uint8_t>(call, 0);
    const T *g = at<T>(call, 1);
    T *dx = at<T>(call, 2), *dy = at<T>(call, 3);
    const int64_t n = call->i[0];
    for (int64_t k = 0; k < n && dx != nullptr; ++k) dx[k] = condition[k] ? g[k] : T(0);
    for (int64_t k = 0; k < n && dy != nullptr; ++k) dy[k] = condition[k] ? T(0) : g[k];
}

template <class T> void unmask(fl_call *call) {
    const T *g = at<T>(call, 0);
    const uint8_t *mask = at<uint8_t>(call, 1);
    T *dx = at<T>(call, 2);
    const int64_t n = call->i[0];
    for (int64_t k = 0; k < n; ++k) dx[k] = mask[k] ? *g++ : T(0);
}

/* Elements are moved as they are, so that only their size matters: ints[PLACE]. */
#define FL_BY_SIZE(F, PLACE)                         \
    switch (call->i[PLACE]) {                        \
        case 1: F<uint8_t>(call); break;             \
        case 2: F<uint16_t>(call); break;            \
        case 4: F<uint32_t>(call); break;            \
        case 8: F<uint64_t>(call); break;            \
        default: return too_large(call, call->i[PLACE], 8); \
    }                                                \
    return FL_OK

int where(fl_call *call) { FL_BY_SIZE(choose, 1); }

int where_grad(fl_call *call) { FL_BY_SIZE(choose_grad, 1); }

int masked_select_grad(fl_call *call) {
    const uint8_t *mask = at<uint8_t>(call, 1);
    const int64_t n = call->i[0];
    int64_t chosen = 0;
    for (int64_t k = 0; k < n; ++k) chosen += mask[k] != 0;
    if (chosen != call->i[1]) return out_of_range(call, chosen, 0, call->i[1] + 1);
    FL_BY_SIZE(unmask, 2);
}

#undef FL_BY_SIZE

}  // namespace

extern const fl_entry choose_table[] = {
    {"where", where, "xxxx|zd||a,ab,ab,ab"},
    {"where_grad", where_grad, "xxnn|zd||a,ab,ab,ab"},
    {"masked_select_grad", masked_select_grad, "xxx|zzd||bc,a,ac"},
    {nullptr, nullptr, nullptr}};

}  // namespace FL_NS
}  // namespace fl

#endif
