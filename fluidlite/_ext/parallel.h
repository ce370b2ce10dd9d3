/* Work in pieces, which the threads of one pool take (`threads/pool.cc`).
 *
 * How work is cut depends on its size alone, never on how many threads there are, so that neither do results.
 */
#ifndef FLUIDLITE_PARALLEL_H
#define FLUIDLITE_PARALLEL_H

#include <cstdint>

namespace fl {

/* The functions of the pool, which each extension is handed when it is imported; alone it works on the calling thread. */
struct Threads {
    void (*run)(int64_t pieces, void (*piece)(void *work, int64_t which), void *work) =
        [](int64_t pieces, void (*piece)(void *, int64_t), void *work) {
            for (int64_t k = 0; k < pieces; ++k) piece(work, k);
        };
    bool (*inside)() = [] { return false; }; /* whether the calling thread is at such a piece, beside others */
};

inline Threads threads;

/* Takes the addresses of a `Threads` of another extension. */
inline void set_threads(void *found) { threads = *static_cast<Threads *>(found); }

/* Calls f(k) for k from 0 to pieces - 1, in any order and on several threads; returns when all are done. */
template <class F> void in_pieces(int64_t pieces, const F &f) {
    if (pieces == 1) return f(0);
    threads.run(
        pieces, [](void *work, int64_t which) { (*static_cast<const F *>(work))(which); },
        const_cast<F *>(&f));
}

/* A piece touches about so many bytes: some ten microseconds, which is what waking a thread takes. */
constexpr int64_t piece_bytes = 1 << 18;

/* Calls f(begin, end) for parts of [0, n), of which each element has so many bytes to be read and written. Parts begin at
 * multiples of 64, so that loops of vectors find the same elements together however long a part is. */
template <class F> void in_ranges(int64_t n, int64_t bytes, const F &f) {
    if (n * bytes < 2 * piece_bytes) return f(int64_t(0), n);
    int64_t length = bytes < piece_bytes ? piece_bytes / bytes : 1;
    if (length > 64) length -= length % 64;
    in_pieces((n + length - 1) / length, [n, length, &f](int64_t k) {
        f(k * length, (k + 1) * length < n ? (k + 1) * length : n);
    });
}

}  // namespace fl

#endif
