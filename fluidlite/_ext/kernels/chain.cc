/* Chains: kernels that work element by element, one after the other on a block at a time, which caches hold.
 *
 * A chain is a program in the integers of its call: n, operands, temporaries, steps; for each operand a count and a
 * stretch, if it is not as long as the results (count 0: it is), but stands in the middle of them: its element of a result's
 * element k is (k / stretch) % count; and for each step the number of its kernel, how many operands, which ones (-1: left out,
 * below: a temporary, from -2 on downwards), how many of the floats are its own, how many integers besides n, and these.
 */
#include <algorithm>
#include <atomic>

#include "kernels/topics.h"
#include "parallel.h"
#include "workspace.h"

namespace fl {
namespace {

/* As `check` of the module verifies. Temporaries, those of operands that are repeated among them, fit into the second cache. */
constexpr int most_operands = 24, most_temporaries = 16, most_steps = 64, most_step_operands = 10, most_step_ints = 4;
constexpr int64_t block_bytes = 1 << 13;
template <class T> constexpr int64_t block = block_bytes / sizeof(T);

struct ChainStep {
    fl_kernel run;
    const int64_t *operands, *ints;
    const double *floats;
    int n_p, n_i, n_f;
};

/* `count` elements from `begin` on, in which those of x come again and again. */
template <class T> void repeat(const T *x, int64_t n, int64_t stretch, int64_t begin, T *to, int64_t count) {
    if (stretch > 1 || n == 1) {
        for (int64_t k = 0; k < count;) {
            const int64_t place = begin + k, length = n == 1 ? count : std::min(stretch - place % stretch, count - k);
            std::fill(to + k, to + k + length, x[n == 1 ? 0 : place / stretch % n]);
            k += length;
        }
        return;
    }
    const int64_t place = begin % n, head = std::min(n - place, count), round = std::min(n, count);
    std::copy(x + place, x + place + head, to);
    std::copy(x, x + (round - head), to + head);
    for (int64_t done = round; done < count; done *= 2) std::copy(to, to + std::min(done, count - done), to + done);
}

template <int TARGET, class T> int chain(fl_call *call) {
    const int64_t *at = call->i, n = at[0];
    const int operands = static_cast<int>(at[1]), temporaries = static_cast<int>(at[2]), count = static_cast<int>(at[3]);
    const int64_t *layouts = at + 4;
    at = layouts + 2 * operands;
    const double *floats = call->f;
    ChainStep steps[most_steps];
    for (int s = 0; s < count; ++s) {
        ChainStep &step = steps[s];
        step.run = kernels_of(TARGET)[static_cast<size_t>(at[0])].run;
        step.n_p = static_cast<int>(at[1]), step.operands = at + 2, at += 2 + step.n_p;
        step.n_f = static_cast<int>(at[0]), step.floats = floats, floats += step.n_f;
        step.n_i = static_cast<int>(at[1]) + 1, step.ints = at + 2, at += 1 + step.n_i;
    }
    int repeated[most_operands], repeats = 0, whole = 0;
    for (int k = 0; k < operands; ++k) {
        if (layouts[2 * k] != 0) repeated[repeats++] = k;
        else ++whole;
    }
    std::atomic<int> failed{FL_OK};
    /* Blocks end where the longest operand that comes again begins anew, if they hold whole vectors then: so it stands as it is
     * in each of them. */
    int64_t longest = block<T>;
    for (int k = 0, length = 0; k < repeats; ++k) {
        const int64_t *layout = layouts + 2 * repeated[k], blocks = block<T> / layout[0] * layout[0];
        if (layout[1] == 1 && layout[0] > length && blocks % 16 == 0 && blocks > 0) {
            length = static_cast<int>(layout[0]);
            longest = blocks;
        }
    }
    bool stands[most_operands] = {};
    for (int k = 0; k < operands; ++k) {
        const int64_t *layout = layouts + 2 * k;
        stands[k] = layout[0] == 1 || (layout[1] == 1 && longest % layout[0] == 0);
    }
    constexpr int64_t pitch = block<T> + 64 / static_cast<int64_t>(sizeof(T)); /* each begins in another set of the cache */
    const size_t bytes = static_cast<size_t>((temporaries + repeats) * pitch) * sizeof(T);
    in_ranges(n, whole * static_cast<int64_t>(sizeof(T)), [&](int64_t from, int64_t to) {
        T *memory; /* not on the stack, of which threads may have little */
        try {
            memory = reinterpret_cast<T *>(Workspace<3>::of_this_thread(bytes));
        } catch (const std::bad_alloc &) {
            failed = FL_NO_MEMORY;
            return;
        }
        T *starts[most_operands], *places[most_operands];
        for (int k = 0; k < repeats; ++k) {
            const int64_t *layout = layouts + 2 * repeated[k];
            T *given = static_cast<T *>(call->p[repeated[k]]), *place = memory + (temporaries + k) * pitch;
            const bool whole_block = stands[repeated[k]] && layout[0] == longest;
            starts[repeated[k]] = whole_block ? given : place;
            if (stands[repeated[k]] && !whole_block) repeat(given, layout[0], layout[1], 0, place, longest);
        }
        for (int64_t begin = from, length; begin < to; begin += length) {
            const int64_t before = begin % longest;
            length = std::min(longest - before, to - begin);
            for (int k = 0; k < operands; ++k) {
                const int64_t *layout = layouts + 2 * k;
                T *given = static_cast<T *>(call->p[k]);
                places[k] = layout[0] == 0 ? given + begin : stands[k] ? starts[k] + before : starts[k];
                if (layout[0] != 0 && !stands[k]) repeat(given, layout[0], layout[1], begin, places[k], length);
            }
            for (int s = 0; s < count; ++s) {
                const ChainStep &step = steps[s];
                void *p[most_step_operands];
                int64_t i[most_step_ints] = {length};
                for (int k = 0; k < step.n_p; ++k) {
                    const int64_t which = step.operands[k];
                    p[k] = which >= 0 ? places[which] : which == -1 ? nullptr : memory + (-2 - which) * pitch;
                }
                for (int k = 1; k < step.n_i; ++k) i[k] = step.ints[k - 1];
                fl_call one{};
                one.p = p, one.i = i, one.f = step.floats;
                one.n_p = step.n_p, one.n_i = step.n_i, one.n_f = step.n_f;
                if (const int code = step.run(&one)) failed = code;
            }
        }
    });
    return failed == FL_NO_MEMORY ? no_memory(call, static_cast<int64_t>(bytes)) : failed.load();
}

template <int TARGET> constexpr fl_entry table[] = {{"chain.f32", chain<TARGET, float>, "(n)|z||?"},
                                                   {"chain.f64", chain<TARGET, double>, "(n)|z||?"},
                                                   {nullptr, nullptr, nullptr}};

}  // namespace

const Topic topic_chain = {table<0>, table<1>, table<2>};

}  // namespace fl
