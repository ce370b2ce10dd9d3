/* Optimizer updates, each over any number of parameters. */
#ifndef FL_NS

#include "kernels/topics.h"
#include "parallel.h"

#define FL_SELF "kernels/optimizers.cc"
#include "kernels/targets.h"

const fl::Topic fl::topic_optimizers = FL_TOPIC(optimizers_table);

#else

namespace fl::FL_NS {
namespace {

template <class T> int sgd(fl_call *call) {
    constexpr int64_t width = sizeof(T);
    const T rate = *at<T>(call, 0);
    const int count = (call->n_p - 1) / 2;
    for (int which = 0; which < count; ++which) {
        T *param = at<T>(call, 1 + 2 * which);
        const T *grad = at<T>(call, 2 + 2 * which);
        const int64_t n = call->i[which];
        in_ranges(n, 3 * width, [=](int64_t begin, int64_t end) {
            FL_LOOP
            for (int64_t k = begin; k < end; ++k) param[k] -= rate * grad[k];
        });
    }
    return FL_OK;
}

template <class T> int momentum(fl_call *call) {
    constexpr int64_t width = sizeof(T);
    const T rate = *at<T>(call, 0), mu = static_cast<T>(call->f[0]);
    const int count = (call->n_p - 1) / 3;
    for (int which = 0; which < count; ++which) {
        T *param = at<T>(call, 1 + 3 * which), *velocity = at<T>(call, 3 + 3 * which);
        const T *grad = at<T>(call, 2 + 3 * which);
        const int64_t n = call->i[1 + which];
        if (call->i[0]) {
            in_ranges(n, 5 * width, [=](int64_t begin, int64_t end) {
                FL_LOOP
                for (int64_t k = begin; k < end; ++k) {
                    const T v = mu * velocity[k] + grad[k];
                    velocity[k] = v;
                    param[k] -= (grad[k] + mu * v) * rate;
                }
            });
        } else {
            in_ranges(n, 5 * width, [=](int64_t begin, int64_t end) {
                FL_LOOP
                for (int64_t k = begin; k < end; ++k) {
                    const T v = mu * velocity[k] + grad[k];
                    velocity[k] = v;
                    param[k] -= rate * v;
                }
            });
        }
    }
    return FL_OK;
}

template <class T> int adam(fl_call *call) {
    constexpr int64_t width = sizeof(T);
    const T rate = *at<T>(call, 0);
    const T beta1 = static_cast<T>(call->f[0]), beta2 = static_cast<T>(call->f[1]);
    const T epsilon = static_cast<T>(call->f[2]);
    const int count = (call->n_p - 1) / 6;
    for (int which = 0; which < count; ++which) {
        const int p = 1 + 6 * which;
        T *param = at<T>(call, p), *moment1 = at<T>(call, p + 2), *moment2 = at<T>(call, p + 3);
        const T *grad = at<T>(call, p + 1);
        T &power1 = *at<T>(call, p + 4), &power2 = *at<T>(call, p + 5);
        const int64_t n = call->i[which];
        const T step = rate * std::sqrt(T(1) - power2) / (T(1) - power1);
        in_ranges(n, 7 * width, [=](int64_t begin, int64_t end) {
            FL_LOOP
            for (int64_t k = begin; k < end; ++k) {
                const T g = grad[k];
                const T m1 = beta1 * moment1[k] + (T(1) - beta1) * g;
                const T m2 = beta2 * moment2[k] + (T(1) - beta2) * g * g;
                moment1[k] = m1;
                moment2[k] = m2;
                param[k] -= step * (m1 / (std::sqrt(m2) + epsilon));
            }
        });
        power1 *= beta1;
        power2 *= beta2;
    }
    return FL_OK;
}

template <class T> int adagrad(fl_call *call) {
    constexpr int64_t width = sizeof(T);
    const T rate = *at<T>(call, 0), epsilon = static_cast<T>(call->f[0]);
    const int count = (call->n_p - 1) / 3;
    for (int which = 0; which < count; ++which) {
        T *param = at<T>(call, 1 + 3 * which), *moment = at<T>(call, 3 + 3 * which);
        const T *grad = at<T>(call, 2 + 3 * which);
        const int64_t n = call->i[which];
        in_ranges(n, 5 * width, [=](int64_t begin, int64_t end) {
            FL_LOOP
            for (int64_t k = begin; k < end; ++k) {
                const T m = moment[k] + grad[k] * grad[k];
                moment[k] = m;
                param[k] -= rate * grad[k] / (std::sqrt(m) + epsilon);
            }
        });
    }
    return FL_OK;
}

template <class T> int rmsprop(fl_call *call) {
    constexpr int64_t width = sizeof(T);
    const T rate = *at<T>(call, 0), decay = static_cast<T>(call->f[0]);
    const T momentum = static_cast<T>(call->f[1]), epsilon = static_cast<T>(call->f[2]);
    const int count = (call->n_p - 1) / 5;
    for (int which = 0; which < count; ++which) {
        const int p = 1 + 5 * which;
        T *param = at<T>(call, p), *moment = at<T>(call, p + 2);
        T *mean_square = at<T>(call, p + 3), *mean = at<T>(call, p + 4);
        const T *grad = at<T>(call, p + 1);
        const int64_t n = call->i[1 + which];
        if (call->i[0]) {
            in_ranges(n, 7 * width, [=](int64_t begin, int64_t end) {
                FL_LOOP
                for (int64_t k = begin; k < end; ++k) {
                    const T g = grad[k];
                    const T square = decay * mean_square[k] + (T(1) - decay) * g * g;
                    const T m = decay * mean[k] + (T(1) - decay) * g;
                    const T v = momentum * moment[k] + rate * g / std::sqrt(square - m * m + epsilon);
                    mean_square[k] = square;
                    mean[k] = m;
                    moment[k] = v;
                    param[k] -= v;
                }
            });
        } else {
            in_ranges(n, 7 * width, [=](int64_t begin, int64_t end) {
                FL_LOOP
                for (int64_t k = begin; k < end; ++k) {
                    const T g = grad[k];
                    const T square = decay * mean_square[k] + (T(1) - decay) * g * g;
                    const T v = momentum * moment[k] + rate * g / std::sqrt(square + epsilon);
                    mean_square[k] = square;
                    moment[k] = v;
                    param[k] -= v;
                }
            });
        }
    }
    return FL_OK;
}

/* Sums of a parameter over a window of steps. ints: n, shortest window, longest window, steps in one sum. */
template <class T> int average_accumulates(fl_call *call) {
    const T *param = at<T>(call, 0);
    T *sum1 = at<T>(call, 1), *sum2 = at<T>(call, 2), *sum3 = at<T>(call, 3);
    int64_t &count = *at<int64_t>(call, 4), &old = *at<int64_t>(call, 5), &updates = *at<int64_t>(call, 6);
    const int64_t n = call->i[0];
    ++count;
    ++updates;
    FL_LOOP
    for (int64_t k = 0; k < n; ++k) sum1[k] += param[k];
    if (updates % call->i[3] == 0) {
        FL_LOOP
        for (int64_t k = 0; k < n; ++k) {
            sum2[k] += sum1[k];
            sum1[k] = 0;
        }
    }
    const int64_t share = static_cast<int64_t>(static_cast<float>(updates) * static_cast<float>(call->f[0]));
    if (count >= call->i[1] && count >= (share < call->i[2] ? share : call->i[2])) {
        FL_LOOP
        for (int64_t k = 0; k < n; ++k) {
            sum3[k] = sum1[k] + sum2[k];
            sum1[k] = sum2[k] = 0;
        }
        old = count;
        count = 0;
    }
    return FL_OK;
}

}  // namespace

extern const fl_entry optimizers_table[] = {
    FL_REAL("sgd", sgd, "x(xx)|(z)||1(@,@)")
    FL_REAL("momentum", momentum, "x(xxx)|i(z)|f|1(@,@,@)")
    FL_REAL("adam", adam, "x(xxxxxx)|(z)|fff|1(@,@,@,@,1,1)")
    FL_REAL("adagrad", adagrad, "x(xxx)|(z)|f|1(@,@,@)")
    FL_REAL("rmsprop", rmsprop, "x(xxxxx)|i(z)|fff|1(@,@,@,@,@)")
    FL_REAL("average_accumulates", average_accumulates, "xxxxxxx|ziid|f|a,a,a,a,1L,1L,1L")
    {nullptr, nullptr, nullptr}};

}  // namespace fl::FL_NS

#endif
