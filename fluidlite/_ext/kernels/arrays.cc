/* Kernels of tensor arrays, whose elements an Elements keeps: those of a step one behind the other, and those in slots by index. */
#include <exception>

#include "elements.h"
#include "kernels/topics.h"

namespace fl {
namespace {

/* Operands of what reads or writes an element: Elements, an index, the element, the offsets of its levels; ints: the bytes
 * of the element, and of the offsets of each level. */
struct Levels {
    const int64_t *offsets[Elements::most_levels];
    int64_t counts[Elements::most_levels];
};

constexpr int64_t offset_bytes = sizeof(int64_t);

int element_read(fl_call *call) {
    const Elements *elements = at<Elements>(call, 0);
    const int64_t index = *at<int64_t>(call, 1), bytes = call->i[0];
    const size_t n = static_cast<size_t>(call->n_p - 3);
    Levels levels;
    const Element found = elements->find(index, levels.offsets, levels.counts);
    bool same = found.bytes == bytes && found.n_levels == n;
    for (size_t k = 0; same && k < n; ++k) same = found.counts[k] * offset_bytes == call->i[1 + k];
    if (!same) return out_of_range(call, index, 0, elements->count());
    if (bytes > 0) std::memcpy(at<char>(call, 2), found.data, static_cast<size_t>(bytes));
    for (size_t k = 0; k < n; ++k) {
        std::memcpy(call->p[3 + k], found.offsets[k], static_cast<size_t>(call->i[1 + k]));
    }
    return FL_OK;
}

/* Writes at `index` the element that stands at operand `at_operand`, with its levels behind it. */
int write_element(fl_call *call, int64_t index, int at_operand) {
    Elements *elements = at<Elements>(call, 0);
    const int64_t bytes = call->i[0];
    const size_t n = static_cast<size_t>(call->n_p - at_operand - 1);
    if (n > Elements::most_levels) return out_of_range(call, index, 0, 0);
    Levels levels;
    for (size_t k = 0; k < n; ++k) {
        levels.offsets[k] = static_cast<const int64_t *>(call->p[static_cast<size_t>(at_operand) + 1 + k]);
        levels.counts[k] = call->i[1 + k] / offset_bytes;
    }
    const Element element{at<char>(call, at_operand), bytes, n, levels.offsets, levels.counts};
    if (!elements->admits(index, element)) return out_of_range(call, index, 0, elements->count());
    try {
        elements->write(index, element);
    } catch (const std::exception &) {
        return no_memory(call, bytes);
    }
    return FL_OK;
}

int element_write(fl_call *call) { return write_element(call, *at<int64_t>(call, 1), 2); }

/* The same behind all others, without an index. */
int element_keep(fl_call *call) { return write_element(call, at<Elements>(call, 0)->count(), 1); }

/* Takes away what stands behind all others, which has so many bytes and no levels. */
int element_pop(fl_call *call) {
    Elements *elements = at<Elements>(call, 0);
    const int64_t bytes = call->i[0], last = elements->count() - 1;
    if (last < 0 || elements->bytes_of(last) != bytes) return out_of_range(call, last, 0, elements->count());
    elements->pop(at<char>(call, 1));
    return FL_OK;
}

/* ints: bytes of a row, most levels, room in Found. Found: rows and levels of the element at an index, and how many offsets each level
 * has. */
int element_find(fl_call *call) {
    const Elements *elements = at<Elements>(call, 0);
    const int64_t index = *at<int64_t>(call, 1);
    int64_t *out = at<int64_t>(call, 2);
    Levels levels;
    const Element found = elements->find(index, levels.offsets, levels.counts);
    if (found.bytes < 0) return out_of_range(call, index, 0, elements->count());
    out[0] = found.bytes / call->i[0];
    out[1] = static_cast<int64_t>(found.n_levels);
    for (int64_t k = 0; k < call->i[1]; ++k) out[2 + k] = k < static_cast<int64_t>(found.n_levels) ? found.counts[k] : 0;
    return FL_OK;
}

/* Operands of what works on slots: Elements, an index, the element; ints: its bytes, or how many numbers it has. */
int slot_put(fl_call *call) {
    const int64_t index = *at<int64_t>(call, 1), bytes = call->i[0];
    if (index < 0) return out_of_range(call, index, 0, at<Elements>(call, 0)->length());
    try {
        char *to = at<Elements>(call, 0)->put(index, bytes);
        if (bytes > 0) std::memcpy(to, at<char>(call, 2), static_cast<size_t>(bytes));
    } catch (const std::exception &) { /* the slots before it, most likely */
        constexpr int64_t item = sizeof(Elements::Slot);
        return no_memory(call, index > (INT64_MAX - bytes) / item ? INT64_MAX : index * item + bytes);
    }
    return FL_OK;
}

int slot_get(fl_call *call) {
    const int64_t index = *at<int64_t>(call, 1), bytes = call->i[0];
    const char *found = at<Elements>(call, 0)->get(index, bytes);
    if (found == nullptr) return out_of_range(call, index, 0, at<Elements>(call, 0)->length());
    if (bytes > 0) std::memcpy(at<char>(call, 2), found, static_cast<size_t>(bytes));
    return FL_OK;
}

/* Takes an element out; zeros if there is none. */
int slot_take(fl_call *call) {
    const int64_t index = *at<int64_t>(call, 1), bytes = call->i[0];
    if (at<Elements>(call, 0)->differs(index, bytes)) return out_of_range(call, index, 0, at<Elements>(call, 0)->length());
    const char *found = at<Elements>(call, 0)->get(index, bytes);
    if (bytes > 0 && found != nullptr) std::memcpy(at<char>(call, 2), found, static_cast<size_t>(bytes));
    if (bytes > 0 && found == nullptr) std::memset(at<char>(call, 2), 0, static_cast<size_t>(bytes));
    if (found != nullptr) at<Elements>(call, 0)->take_out(index);
    return FL_OK;
}

/* Adds `times` blocks of `count` numbers, each so many behind the one before, to the element in a slot; puts them there if there
 * is none. */
template <class T> int add_to_slot(fl_call *call, int64_t index, const T *from, int64_t times, int64_t count, int64_t step) {
    Elements *elements = at<Elements>(call, 0);
    const int64_t bytes = times * count * static_cast<int64_t>(sizeof(T));
    if (index < 0 || elements->differs(index, bytes)) return out_of_range(call, index, 0, elements->length());
    try {
        T *to = reinterpret_cast<T *>(elements->get(index, bytes));
        const bool there = to != nullptr;
        if (!there) to = reinterpret_cast<T *>(elements->put(index, bytes));
        for (int64_t k = 0; k < times; ++k, to += count, from += step) {
            for (int64_t j = 0; j < count; ++j) to[j] = there ? to[j] + from[j] : from[j];
        }
    } catch (const std::exception &) {
        return no_memory(call, bytes);
    }
    return FL_OK;
}

template <class T> int slot_add(fl_call *call) {
    return add_to_slot(call, *at<int64_t>(call, 1), at<T>(call, 2), 1, call->i[0], 0);
}

/* Elements, Out; ints: how many there are, blocks of each, bytes of a block. Out has of each block of
 * the first those of the others behind it. */
int slots_join(fl_call *call) {
    const int64_t count = call->i[0], times = call->i[1], bytes = call->i[2];
    char *out = at<char>(call, 1);
    for (int64_t n = 0; n < count; ++n) {
        const char *found = at<Elements>(call, 0)->get(n, times * bytes);
        if (found == nullptr) return out_of_range(call, n, 0, at<Elements>(call, 0)->length());
        for (int64_t k = 0; k < times && bytes > 0; ++k) {
            std::memcpy(out + (k * count + n) * bytes, found + k * bytes, static_cast<size_t>(bytes));
        }
    }
    return FL_OK;
}

/* The other way round, added to what there is; ints: the same, with numbers in place of bytes. */
template <class T> int slots_part(fl_call *call) {
    const int64_t count = call->i[0], times = call->i[1], size = call->i[2];
    for (int64_t n = 0; n < count; ++n) {
        const int code = add_to_slot(call, n, at<T>(call, 1) + n * size, times, size, count * size);
        if (code != FL_OK) return code;
    }
    return FL_OK;
}

/* Elements, Out: how many slots there are. */
int slots_length(fl_call *call) {
    *at<int64_t>(call, 1) = at<Elements>(call, 0)->length();
    return FL_OK;
}

int element_clear(fl_call *call) {
    for (int k = 0; k < call->n_p; ++k) at<Elements>(call, k)->begin();
    return FL_OK;
}

/* What has been written so far stays, whatever the turn comes to that begins here. */
int element_turn(fl_call *call) {
    for (int k = 0; k < call->n_p; ++k) at<Elements>(call, k)->turn();
    return FL_OK;
}

const fl_entry table[] = {
    {"element_read", element_read, "xx(x)|(z)||1B,1L,(@B)"},
    {"element_write", element_write, "xx(x)|(z)||1B,1L,(@B)"},
    {"element_keep", element_keep, "xx|z||1B"},
    {"element_pop", element_pop, "xx|z||1B"},
    {"slot_put", slot_put, "xxx|z||1B,1L,aB"},
    {"slot_get", slot_get, "xxx|z||1B,1L,aB"},
    {"slot_take", slot_take, "xxx|z||1B,1L,aB"},
    {"slot_add.f32", slot_add<float>, "xxx|z||1B,1L,a"},
    {"slot_add.f64", slot_add<double>, "xxx|z||1B,1L,a"},
    {"slots_join", slots_join, "xx|zzz||1B,abcB"},
    {"slots_part.f32", slots_part<float>, "xx|zzz||1B,abc"},
    {"slots_part.f64", slots_part<double>, "xx|zzz||1B,abc"},
    {"slots_length", slots_length, "xx|||1B,1L"},
    {"element_clear", element_clear, "(x)|||(1B)"},
    {"element_find", element_find, "xxx|dzz||1B,1L,cL"},
    {"element_turn", element_turn, "(x)|||(1B)"},
    {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_arrays = {table, table, table};

}  // namespace fl
