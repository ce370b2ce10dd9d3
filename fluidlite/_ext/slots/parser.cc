#include <fcntl.h>
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "slots/records.h"

namespace fluidlite {

namespace {

constexpr size_t kChunk = size_t{1} << 18;
constexpr size_t kShown = 100;  // of a line in a message

inline bool space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

inline const char* skip_space(const char* at, const char* end) {
    if (*at == ' ') ++at;
    if (static_cast<unsigned char>(*at) > ' ') return at;
    while (at != end && space(*at)) ++at;
    return at;
}

inline const char* word_end(const char* at, const char* end) {
    while (at != end && !space(*at)) ++at;
    return at;
}

constexpr uint64_t kTens[] = {1,
                              10,
                              100,
                              1000,
                              10000,
                              100000,
                              1000000,
                              10000000,
                              100000000,
                              1000000000,
                              10000000000,
                              100000000000,
                              1000000000000,
                              10000000000000,
                              100000000000000,
                              1000000000000000};
// Digits are looked at eight at a time, so that bytes behind a word are read as well, and the character behind a line
// must be none.
constexpr size_t kPad = 8;

// How many of the eight characters from `at` on are digits, up to the first that is none; `value`: the number they are.
inline int digits(const char* at, uint64_t* value) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t chunk;
    std::memcpy(&chunk, at, sizeof chunk);
    chunk ^= 0x3030303030303030u;
    uint64_t others = ((chunk + 0x7676767676767676u) | chunk) & 0x8080808080808080u;
    int count = others ? __builtin_ctzll(others) >> 3 : 8;
    if (!count) return 0;
    chunk <<= 64 - 8 * count;  // zeros in front
    chunk = (chunk * 10 + (chunk >> 8)) & 0x00FF00FF00FF00FFu;
    chunk = (chunk * 100 + (chunk >> 16)) & 0x0000FFFF0000FFFFu;
    *value = (chunk * 10000 + (chunk >> 32)) & 0xFFFFFFFFu;
    return count;
#else
    int count = 0;
    uint64_t found = 0;
    for (unsigned digit; count < 8 && (digit = static_cast<unsigned char>(at[count]) - unsigned{'0'}) < 10; ++count)
        found = found * 10 + digit;
    *value = found;
    return count;
#endif
}

// The digits from `at` on, of which there may be `most` at the most: how many, and the number that they are.
inline int number(const char* at, int most, uint64_t* value) {
    uint64_t found = 0;
    int count = digits(at, &found);
    for (int last = count; last == 8 && count <= most;) {
        uint64_t more = 0;
        last = digits(at + count, &more);
        found = found * kTens[last] + more;
        count += last;
    }
    *value = found;
    return count;
}

// The whole number that a word is, its bits if it is beyond int64; beyond 64 bits it is the largest, as strtoull has it.
inline bool whole(const char*& at, int64_t* out) {
    const char* p = at;
    bool negative = *p == '-';
    if (negative || *p == '+') ++p;
    uint64_t value = 0;
    int count = number(p, 19, &value);
    if (!count) return false;
    if (count > 19) {
        bool over = false;
        value = 0;
        count = 0;
        for (unsigned digit; (digit = static_cast<unsigned char>(p[count]) - unsigned{'0'}) < 10; ++count) {
            over = over || value > (std::numeric_limits<uint64_t>::max() - digit) / 10;
            value = value * 10 + digit;
        }
        if (over) value = std::numeric_limits<uint64_t>::max(), negative = false;
    }
    p += count;
    if (!space(*p)) return false;
    if (negative) value = 0 - value;
    std::memcpy(out, &value, sizeof value);
    at = p;
    return true;
}

// What the C library says a word is as a float, which takes everything: many digits, exponents, nan, hexadecimal. A point
// stands before the fraction whatever the locale of the process says, which `locale.setlocale` changes.
bool any_real(const char*& at, const char* end, float* out) {
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    if (plain == nullptr) throw std::bad_alloc();
    const char* last = word_end(at, end);
    std::string word(at, last);
    char* stopped;
    *out = strtof_l(word.c_str(), &stopped, plain);
    if (word.empty() || stopped != word.c_str() + word.size()) return false;
    at = last;
    return true;
}

constexpr double kPowers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

// The float nearest to the number that a word is.
inline bool real(const char*& at, const char* end, float* out) {
    const char* p = at;
    bool negative = *p == '-';
    if (negative || *p == '+') ++p;
    uint64_t value = static_cast<unsigned char>(*p) - unsigned{'0'}, fraction = 0;
    int count = 1, behind = 0;
    if (p[1] != '.' || value > 9) count = number(p, 15, &value);  // else one digit, as most numbers have
    p += count;
    if (*p == '.') {
        behind = number(++p, 15, &fraction);
        p += behind;
    }
    // With few digits the quotient of two exact doubles is the nearest double; rounded once more it is the nearest float
    // unless it lies half way between two.
    if (count + behind == 0 || count + behind > 15 || !space(*p)) return any_real(at, end, out);
    double nearest = static_cast<double>(value * kTens[behind] + fraction) / kPowers[behind];
    uint64_t bits;
    std::memcpy(&bits, &nearest, sizeof bits);
    if ((bits & 0x1FFFFFFF) == 0x10000000) return any_real(at, end, out);
    *out = static_cast<float>(negative ? -nearest : nearest);
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
        bool text = number < skip_;
        size_t slot = text ? 0 : number - skip_;
        at = skip_space(at, end);
        const char* counted = at;
        int64_t count = static_cast<unsigned char>(*at) - int64_t{'0'};
        if (count >= 1 && count <= 9 && at[1] == ' ') {  // as most counts are
            ++at;
        } else {
            count = 0;
            bool none = at == end;
            if (!none && !whole(at, &count)) return wrong(Problem::kNumber, slot, counted, end, 0, 0);
            if (none || count < 1) return wrong(Problem::kCount, slot, counted, end, 1, count);
        }
        int64_t width = text ? -1 : widths_[slot];
        if (width >= 0 && count != width) return wrong(Problem::kWidth, slot, counted, end, width, count);
        bool reals = !text && real[slot], sparse = !text && sparse_[slot];
        uint32_t held = 0;
        for (int64_t k = 0; k < count; ++k) {
            at = skip_space(at, end);
            if (at == end) return wrong(Problem::kShort, slot, counted, end, count, k);
            const char* word = at;
            if (reals) {
                float value;
                if (!fluidlite::real(at, end, &value)) return wrong(Problem::kNumber, slot, word, end, 0, 0);
                if (sparse && std::fabs(value) < 1e-6) continue;  // what Fluid takes for zero
                std::memcpy(to, &value, sizeof value);
                to += sizeof value;
            } else if (!text) {
                int64_t value;
                if (!whole(at, &value)) return wrong(Problem::kNumber, slot, word, end, 0, 0);
                if (sparse && value == 0) continue;
                std::memcpy(to, &value, sizeof value);
                to += sizeof value;
            } else {
                at = word_end(at, end);
            }
            ++held;
        }
        if (!text) {
            if (held == 0) {
                std::memset(to, 0, width_of(reals));
                to += width_of(reals);
                held = 1;
            }
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
            text_[last_] = '\n';
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
        ssize_t got = ::read(file, text_.data() + last_, text_.size() - kPad - last_);
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
