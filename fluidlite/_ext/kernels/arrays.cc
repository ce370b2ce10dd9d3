/* Kernels of tensor arrays and of the values that loops stash; operand 0 is a TensorArray. */
#include <exception>

#include "kernels/topics.h"
#include "tensor_array.h"

namespace fl {
namespace {

/* Operands: TensorArray, the value; ints: its bytes. */
int stash_push(fl_call *call) {
    try {
        at<TensorArray>(call, 0)->push(at<char>(call, 1), call->i[0]);
    } catch (const std::exception &) {
        return no_memory(call, call->i[0]);
    }
    return FL_OK;
}

int stash_pop(fl_call *call) {
    TensorArray *array = at<TensorArray>(call, 0);
    if (array->pop(at<char>(call, 1), call->i[0])) return FL_OK;
    return out_of_range(call, array->stashed() - 1, 0, array->stashed());
}

/* Operands: TensorArray, an index, the element; ints: its bytes, or how many numbers it has. */
int array_write(fl_call *call) {
    const int64_t index = *at<int64_t>(call, 1), bytes = call->i[0];
    if (index < 0) return out_of_range(call, index, 0, at<TensorArray>(call, 0)->length());
    try {
        char *to = at<TensorArray>(call, 0)->put(index, bytes);
        if (bytes > 0) std::memcpy(to, at<char>(call, 2), static_cast<size_t>(bytes));
    } catch (const std::exception &) { /* most likely the table of the elements up to this index */
        constexpr int64_t item = sizeof(std::vector<char>) + 8;
        return no_memory(call, index > (INT64_MAX - bytes) / item ? INT64_MAX : index * item + bytes);
    }
    return FL_OK;
}

int array_read(fl_call *call) {
    const int64_t index = *at<int64_t>(call, 1), bytes = call->i[0];
    const char *found = at<TensorArray>(call, 0)->get(index, bytes);
    if (found == nullptr) return out_of_range(call, index, 0, at<TensorArray>(call, 0)->length());
    if (bytes > 0) std::memcpy(at<char>(call, 2), found, static_cast<size_t>(bytes));
    return FL_OK;
}

/* Takes an element out; zeros if there is none. */
int array_take(fl_call *call) {
    const int64_t index = *at<int64_t>(call, 1), bytes = call->i[0];
    if (at<TensorArray>(call, 0)->differs(index, bytes)) return out_of_range(call, index, 0, at<TensorArray>(call, 0)->length());
    const char *found = at<TensorArray>(call, 0)->get(index, bytes);
    if (bytes > 0 && found != nullptr) std::memcpy(at<char>(call, 2), found, static_cast<size_t>(bytes));
    if (bytes > 0 && found == nullptr) std::memset(at<char>(call, 2), 0, static_cast<size_t>(bytes));
    if (found != nullptr) at<TensorArray>(call, 0)->remove(index);
    return FL_OK;
}

/* Adds `times` blocks of `count` numbers, each so many behind the one before, to an element; writes them if there is none. */
template <class T> int add_to_element(fl_call *call, int64_t index, const T *from, int64_t times, int64_t count, int64_t step) {
    TensorArray *array = at<TensorArray>(call, 0);
    const int64_t bytes = times * count * static_cast<int64_t>(sizeof(T));
    if (index < 0 || array->differs(index, bytes)) return out_of_range(call, index, 0, array->length());
    try {
        T *to = reinterpret_cast<T *>(array->get(index, bytes));
        const bool there = to != nullptr;
        if (!there) to = reinterpret_cast<T *>(array->put(index, bytes));
        for (int64_t k = 0; k < times; ++k, to += count, from += step) {
            for (int64_t j = 0; j < count; ++j) to[j] = there ? to[j] + from[j] : from[j];
        }
    } catch (const std::exception &) {
        return no_memory(call, bytes);
    }
    return FL_OK;
}

template <class T> int array_add(fl_call *call) {
    return add_to_element(call, *at<int64_t>(call, 1), at<T>(call, 2), 1, call->i[0], 0);
}

/* TensorArray, Out; ints: how many there are, blocks of each, bytes of a block. Out has of each block of
 * the first those of the others behind it. */
int array_concat(fl_call *call) {
    const int64_t count = call->i[0], times = call->i[1], bytes = call->i[2];
    char *out = at<char>(call, 1);
    for (int64_t n = 0; n < count; ++n) {
        const char *found = at<TensorArray>(call, 0)->get(n, times * bytes);
        if (found == nullptr) return out_of_range(call, n, 0, at<TensorArray>(call, 0)->length());
        for (int64_t k = 0; k < times && bytes > 0; ++k) {
            std::memcpy(out + (k * count + n) * bytes, found + k * bytes, static_cast<size_t>(bytes));
        }
    }
    return FL_OK;
}

/* The other way round, added to what there is; ints: the same, with numbers in place of bytes. */
template <class T> int array_split_add(fl_call *call) {
    const int64_t count = call->i[0], times = call->i[1], size = call->i[2];
    for (int64_t n = 0; n < count; ++n) {
        const int code = add_to_element(call, n, at<T>(call, 1) + n * size, times, size, count * size);
        if (code != FL_OK) return code;
    }
    return FL_OK;
}

/* TensorArray, Out: the number of elements. */
int array_length(fl_call *call) {
    *at<int64_t>(call, 1) = at<TensorArray>(call, 0)->length();
    return FL_OK;
}

int array_clear(fl_call *call) {
    for (int k = 0; k < call->n_p; ++k) at<TensorArray>(call, k)->clear();
    return FL_OK;
}

const fl_entry table[] = {
    {"stash_push", stash_push, "xx|z||1B"},
    {"stash_pop", stash_pop, "xx|z||1B"},
    {"array_write", array_write, "xxx|z||1B,1L,aB"},
    {"array_read", array_read, "xxx|z||1B,1L,aB"},
    {"array_take", array_take, "xxx|z||1B,1L,aB"},
    FL_REAL("array_add", array_add, "xxx|z||1B,1L,a")
    {"array_concat", array_concat, "xx|zzz||1B,abcB"},
    FL_REAL("array_split_add", array_split_add, "xx|zzz||1B,abc")
    {"array_length", array_length, "xx|||1B,1L"},
    {"array_clear", array_clear, "(x)|||(1B)"},
    {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_arrays = {table, table, table};

}  // namespace fl
