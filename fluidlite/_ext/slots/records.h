// Samples of slot files: how they lie in memory, how they are parsed, gathered into batches and shuffled.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fluidlite {

// A record is one sample: a uint32 count for each slot, then the numbers of the slots one behind the other, 8 bytes for
// an integer and 4 for a real. Records lie in blocks, which never move.
class Records {
  public:
    // Room for a record of at most `size` bytes; `commit` says how many it has taken.
    char* room(size_t size);
    void commit(size_t size);
    // The records that are held, in order.
    std::vector<const char*> rows;
    // Take over all records of `other`, behind those held.
    void join(Records& other);
    void clear();

    // Forget the first `count` records; `real` says how long the others are, should they have to move.
    void drop(size_t count, const std::vector<uint8_t>& real);

  private:
    struct Free {
        void operator()(char* block) const { std::free(block); }
    };
    std::vector<std::unique_ptr<char, Free>> blocks_;
    size_t used_ = 0, size_ = 0, bytes_ = 0;
};

inline uint32_t count_of(const char* record, size_t slot) {
    uint32_t count;
    std::memcpy(&count, record + slot * sizeof count, sizeof count);
    return count;
}

inline size_t width_of(uint8_t real) { return real ? sizeof(float) : sizeof(int64_t); }

size_t size_of(const char* record, const std::vector<uint8_t>& real);

enum class Problem { kNone, kCount, kShort, kNumber, kWidth };

// What is wrong with a line: which line and slot, what was found, how many numbers there should be or are.
struct Fault {
    Problem problem = Problem::kNone;
    int64_t line = 0, expected = 0, found = 0;
    size_t slot = 0;
    std::string word, text;
};

// Parses slot files: a line for each sample, each slot of it a count and as many numbers.
class SlotParser {
  public:
    // `real`: for each slot whether it holds reals. `widths`: how many numbers a slot must have; -1: any.
    // `skip`: how many leading slots are text, which is left out. `sparse`: for each slot whether its zeros are left
    // out, of which one stays where there is nothing else.
    SlotParser(std::vector<uint8_t> real, std::vector<int64_t> widths, size_t skip, std::vector<uint8_t> sparse)
        : real(std::move(real)), widths_(std::move(widths)), skip_(skip), sparse_(std::move(sparse)) {}

    // A new file begins.
    void begin();
    // Read the file descriptor until as many records as `rows` are held (false), or the file ends, or a line is no
    // sample, or `stop` is set, or reading fails, which sets `error` (true).
    bool read(int file, size_t rows);

    const std::vector<uint8_t> real;
    Records records;
    Fault fault;
    std::atomic<bool> stop{false};
    int error = 0;

  private:
    bool line(const char* at, const char* end);
    bool wrong(Problem problem, size_t slot, const char* at, const char* end, int64_t expected, int64_t found);

    std::vector<int64_t> widths_;
    size_t skip_;
    std::vector<uint8_t> sparse_;
    std::vector<char> text_;
    size_t first_ = 0, last_ = 0;
    int64_t number_ = 0;
    bool ended_ = false;
};

// How many numbers of each slot `count` records have.
void count_numbers(const char* const* rows, size_t count, size_t slots, int64_t* totals);
// The numbers of each slot of `count` records one behind the other, and the offsets at which those of a record begin.
void gather(const char* const* rows, size_t count, const std::vector<uint8_t>& real, char* const* values,
            int64_t* const* offsets);

// The random numbers by which Fluid 1.8 shuffles: x -> 16807 x modulo 2^31 - 1, from 1 on.
class ShuffleEngine {
  public:
    uint32_t operator()() { return state = static_cast<uint32_t>(uint64_t{state} * 16807 % 2147483647); }
    uint32_t state = 1;
};

// Put rows into the random order into which Fluid 1.8 puts them.
void shuffle(std::vector<const char*>& rows, ShuffleEngine& engine);

// Records like `rows`, but with the numbers of the slots in `chosen` from records drawn at random from the
// `capacity` last ones or so, as Fluid's slots_shuffle draws them.
void mix_slots(const std::vector<const char*>& rows, const std::vector<uint8_t>& real, const std::vector<uint8_t>& chosen,
               size_t capacity, ShuffleEngine& engine, Records& out);

}  // namespace fluidlite
