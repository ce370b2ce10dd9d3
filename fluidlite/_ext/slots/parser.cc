#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "slots/records.h"

namespace fluidlite {

namespace {

constexpr size_t kChunk = size_t{1} << 18;
constexpr size_t kShown = 100;  // of a line in a message

inline bool space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

inline const char* skip_space(const char* at, const char* end) {
    while (at != end && space(*at)) ++at;
    return at;
}

inline const char* word_end(const char* at, const char* end) {
    while (at != end && !space(*at)) ++at;
    return at;
}

// The whole number that a word is, its bits if it is beyond int64; beyond 64 bits it is the largest, as strtoull has it.
inline bool whole(const char*& at, const char* end, int64_t* out) {
    const char* p = at;
    bool negative = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    const char* first = p;
    uint64_t value = 0;
    bool over = false;
    for (unsigned digit; p != end && (digit = static_cast<unsigned char>(*p) - unsigned{'0'}) < 10; ++p) {
        if (p - first >= 19)
            over = over || value > (std::numeric_limits<uint64_t>::max() - digit) / 10;
        value = value * 10 + digit;
    }
    if (p == first || (p != end && !space(*p))) return false;
    if (over) value = std::numeric_limits<uint64_t>::max();
    else if (negative) value = 0 - value;
    std::memcpy(out, &value, sizeof value);
    at = p;
    return true;
}

// What the C library says a word is as a float, which takes everything: many digits, exponents, nan, hexadecimal.
bool any_real(const char*& at, const char* end, float* out) {
    const char* last = word_end(at, end);
    std::string word(at, last);
    char* stopped;
    *out = std::strtof(word.c_str(), &stopped);
    if (word.empty() || stopped != word.c_str() + word.size()) return false;
    at = last;
    return true;
}

constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// The float nearest to the number that a word is.
inline bool real(const char*& at, const char* end, float* out) {
    const char* p = at;
    bool negative = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    uint64_t digits = 0;
    int count = 0, behind = 0;
    bool point = false;
    for (; p != end; ++p) {
        unsigned digit = static_cast<unsigned char>(*p) - unsigned{'0'};
        if (digit < 10) {
            digits = digits * 10 + digit;
            count += digits != 0;
            behind += point;
        } else if (*p == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    bool seen = p - at > (negative || *at == '+') + point;
    // With few digits the quotient of two exact doubles is the nearest double; rounded once more it is the nearest float
    // unless it lies half way between two.
    if (!seen || (p != end && !space(*p)) || count > 15 || behind > 22) return any_real(at, end, out);
    double value = static_cast<double>(digits) / kPowers[behind];
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bool half = (bits & 0x1FFFFFFF) == 0x10000000;
    if (half || (value != 0 && (value < 1e-37 || value > 3e38))) return any_real(at, end, out);
    *out = static_cast<float>(negative ? -value : value);
    at = p;
    return true;
}

}  // namespace

void SlotParser::begin() {
    first_ = last_ = 0;
    number_ = 0;
    ended_ = false;
    error = 0;
    fault = Fault();
}

bool SlotParser::wrong(Problem problem, size_t slot, const char* at, const char* end, int64_t expected, int64_t found) {
    fault.problem = problem;
    fault.slot = slot;
    fault.expected = expected;
    fault.found = found;
    at = skip_space(at, end);
    fault.word.assign(at, std::min(word_end(at, end), at + std::min<size_t>(kShown, static_cast<size_t>(end - at))));
    return false;
}

bool SlotParser::line(const char* at, const char* end) {
    size_t slots = real.size();
    // A word and the space behind it take two characters at least.
    size_t room = slots * sizeof(uint32_t) + (static_cast<size_t>(end - at) / 2 + 1) * sizeof(int64_t);
    char* record = records.room(room);
    char* to = record + slots * sizeof(uint32_t);
    for (size_t number = 0; number < skip_ + slots; ++number) {
        size_t slot = number < skip_ ? 0 : number - skip_;
        int64_t count = 0;
        at = skip_space(at, end);
        const char* counted = at;
        bool none = at == end;
        if (!none && !whole(at, end, &count)) return wrong(Problem::kNumber, slot, counted, end, 0, 0);
        if (none || count < 1) return wrong(Problem::kCount, slot, counted, end, 1, count);
        int64_t width = number < skip_ ? -1 : widths_[slot];
        if (width >= 0 && count != width) return wrong(Problem::kWidth, slot, counted, end, width, count);
        for (int64_t k = 0; k < count; ++k) {
            at = skip_space(at, end);
            if (at == end) return wrong(Problem::kShort, slot, counted, end, count, k);
            const char* word = at;
            if (number < skip_) {
                at = word_end(at, end);
            } else if (real[slot]) {
                float value;
                if (!fluidlite::real(at, end, &value)) return wrong(Problem::kNumber, slot, word, end, 0, 0);
                std::memcpy(to, &value, sizeof value);
                to += sizeof value;
            } else {
                int64_t value;
                if (!whole(at, end, &value)) return wrong(Problem::kNumber, slot, word, end, 0, 0);
                std::memcpy(to, &value, sizeof value);
                to += sizeof value;
            }
        }
        if (number >= skip_) {
            uint32_t held = static_cast<uint32_t>(count);
            std::memcpy(record + slot * sizeof held, &held, sizeof held);
        }
    }
    records.commit(static_cast<size_t>(to - record));
    return true;
}

bool SlotParser::read(int file, size_t rows) {
    while (records.rows.size() < rows) {
        if (stop.load(std::memory_order_relaxed)) return true;
        char* begin = text_.data() + first_;
        const char* end = text_.data() + last_;
        const char* stopped = first_ == last_ ? nullptr : static_cast<const char*>(std::memchr(begin, '\n', last_ - first_));
        if (!stopped && ended_) {
            if (first_ == last_) return true;
            stopped = end;
        }
        if (stopped) {
            ++number_;
            first_ = static_cast<size_t>(std::min(stopped + 1, end) - text_.data());
            if (!line(begin, stopped)) {
                fault.line = number_;
                fault.text.assign(begin, std::min(static_cast<size_t>(stopped - begin), kShown));
                return true;
            }
            continue;
        }
        // The rest of a line goes to the front, and more of it behind.
        if (first_) {
            std::memmove(text_.data(), begin, last_ - first_);
            last_ -= first_;
            first_ = 0;
        }
        if (text_.size() - last_ < kChunk / 2) text_.resize(std::max(kChunk, 2 * text_.size()));
        ssize_t got = ::read(file, text_.data() + last_, text_.size() - last_);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            error = errno;
            return true;
        }
        ended_ = got == 0;
        last_ += static_cast<size_t>(got);
    }
    return false;
}

}  // namespace fluidlite
