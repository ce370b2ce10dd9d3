/* Places in one arena for storages of which only those that live at the same time must not share memory. */
#ifndef FLUIDLITE_ENGINE_PLACES_H
#define FLUIDLITE_ENGINE_PLACES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace fl {

/* The lives are declared once; places for other sizes can be found as often as wanted.
 *
 * The largest FITTED storages are packed tightest, which takes the square of their number; the rest, small by comparison,
 * comes behind them in the order of time. Where that wastes memory, all are tried in the order of time. */
class Places {
  public:
    static constexpr int64_t ALIGN = 64;
    static constexpr int64_t MOST = int64_t{1} << 60; /* bytes, of which sums still fit 64 bits */
    static constexpr size_t FITTED = 1024;

    explicit Places(size_t fitted = FITTED) : fitted_(fitted) {}

    /* Declares a storage, which is in use from step `first` to step `last`. */
    void add(int64_t first, int64_t last) {
        if (last < first) throw std::invalid_argument("a storage cannot end before it begins");
        if (lives_.size() >= INT32_MAX / 2) throw std::length_error("too many storages");
        lives_.push_back({first, last});
        ready_ = false;
    }

    size_t size() const { return lives_.size(); }

    /* Gives the storages of so many bytes their offsets, multiples of ALIGN, and returns how many bytes all need; -1,
     * and no offsets, for more than MOST. Offsets follow from the lives and `bytes` alone. */
    int64_t place(const int64_t *bytes, int64_t *offsets) {
        if (!ready_) prepare();
        int64_t sum = 0;
        for (Storage &storage : order_) {
            const int64_t wanted = bytes[storage.id];
            if (wanted > MOST) return -1;
            storage.bytes = (std::max(wanted, int64_t{1}) + ALIGN - 1) / ALIGN * ALIGN;
            sum += storage.bytes;
            if (sum > MOST) return -1;
        }
        sort_again();
        const size_t n = order_.size(), few = std::min(n, fitted_);
        const int64_t begin = fit(few, offsets);
        if (few == n) return begin;
        const int64_t total = begin + stack(few, begin, offsets);
        if (total == busiest()) return total;
        others_.resize(n);
        const int64_t stacked = stack(0, 0, others_.data());
        if (stacked >= total) return total;
        std::memcpy(offsets, others_.data(), n * sizeof(int64_t));
        return stacked;
    }

  private:
    struct Life {
        int64_t first, last;
    };
    struct Storage {
        int64_t bytes;
        int32_t first, last; /* numbers of moments: only which comes before which matters */
        int32_t rank;        /* which goes first of two of the same size: the longer life, the earlier */
        int32_t id;

        bool operator<(const Storage &other) const {
            return bytes != other.bytes ? bytes > other.bytes : rank < other.rank;
        }
    };
    struct Placed {
        int32_t first, last;
        int64_t begin, end;
    };
    /* A piece of the stack between its neighbours by address: a storage's, or free. */
    struct Block {
        int64_t begin, end;
        int32_t before, after;
        bool free;
    };
    struct Gap {
        int64_t size, begin;
        int32_t block;

        bool operator<(const Gap &other) const { return size != other.size ? size < other.size : begin < other.begin; }
    };

    /* What follows from the lives. */
    void prepare() {
        const size_t n = lives_.size();
        std::vector<int64_t> moments;
        for (const Life &life : lives_) moments.insert(moments.end(), {life.first, life.last});
        std::sort(moments.begin(), moments.end());
        moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
        const auto number = [&](int64_t moment) {
            return static_cast<int32_t>(std::lower_bound(moments.begin(), moments.end(), moment) - moments.begin());
        };
        order_.resize(n);
        for (size_t k = 0; k < n; ++k) {
            order_[k] = {0, number(lives_[k].first), number(lives_[k].last), 0, static_cast<int32_t>(k)};
        }
        std::sort(order_.begin(), order_.end(), [&](const Storage &a, const Storage &b) {
            const Life &x = lives_[static_cast<size_t>(a.id)], &y = lives_[static_cast<size_t>(b.id)];
            const uint64_t long_x = length(x), long_y = length(y);
            if (long_x != long_y) return long_x > long_y;
            return x.first != y.first ? x.first < y.first : a.id < b.id;
        });
        for (size_t k = 0; k < n; ++k) order_[k].rank = static_cast<int32_t>(k);
        n_moments_ = moments.size();
        placed_.resize(std::min(n, fitted_));
        ready_ = true;
    }

    static uint64_t length(const Life &life) {
        return static_cast<uint64_t>(life.last) - static_cast<uint64_t>(life.first);
    }

    /* Sorts `order_`, which mostly is nearly sorted: where one size grows others grow with it. */
    void sort_again() {
        size_t moves = 8 * order_.size();
        for (size_t k = 1; k < order_.size(); ++k) {
            if (!(order_[k] < order_[k - 1])) continue;
            const Storage storage = order_[k];
            size_t at = k;
            for (; at > 0 && storage < order_[at - 1] && moves > 0; --at, --moves) order_[at] = order_[at - 1];
            order_[at] = storage;
            if (moves == 0) {
                std::sort(order_.begin(), order_.end());
                return;
            }
        }
    }

    /* Places the first `count` of `order_`, largest first, each at the lowest offset that is free for its whole life. */
    int64_t fit(size_t count, int64_t *offsets) {
        Placed *const placed = placed_.data(); /* by offset */
        int64_t total = 0;
        for (size_t n = 0; n < count; ++n) {
            const Storage &storage = order_[n];
            int64_t begin = 0;
            for (const Placed *at = placed; at != placed + n; ++at) {
                if (at->first > storage.last || at->last < storage.first) continue;
                if (at->begin - begin >= storage.bytes) break;
                begin = std::max(begin, at->end);
            }
            Placed *const row = std::lower_bound(placed, placed + n, begin, [](const Placed &a, int64_t offset) {
                return a.begin < offset;
            });
            std::memmove(row + 1, row, static_cast<size_t>(placed + n - row) * sizeof(Placed));
            *row = {storage.first, storage.last, begin, begin + storage.bytes};
            offsets[storage.id] = begin;
            total = std::max(total, row->end);
        }
        return total;
    }

    /* Places what `order_` has from `from` on, in the order of time, at offsets from `origin`, each in the smallest gap
     * that is free by then; returns the bytes needed. Block 0 is the memory above all others, block k + 1 that of
     * order_[k]. */
    int64_t stack(size_t from, int64_t origin, int64_t *offsets) {
        in_time(&Storage::first, from, births_);
        in_time(&Storage::last, from, deaths_);
        blocks_.resize(order_.size() + 1);
        blocks_[0] = {0, MOST, 0, 0, true};
        gaps_.clear();
        int64_t total = 0;
        auto next = deaths_.begin(); /* nothing dies before it was born: `next` stays within bounds */
        for (const int32_t born : births_) {
            const Storage &storage = at(order_, born);
            for (; at(order_, *next).last < storage.first; ++next) release(*next + 1);
            offsets[storage.id] = origin + take(born + 1, storage.bytes);
            total = std::max(total, blocks_[0].begin);
        }
        return total;
    }

    /* Has block `own` begin where the smallest gap of `size` bytes begins, or above all others. */
    int64_t take(int32_t own, int64_t size) {
        const auto found = gaps_.lower_bound({size, 0, 0});
        const int32_t from = found == gaps_.end() ? 0 : found->block;
        Block &gap = at(blocks_, from);
        at(blocks_, own) = {gap.begin, gap.begin + size, gap.before, from, false};
        at(blocks_, gap.before).after = own;
        gap.before = own;
        gap.begin += size;
        if (from != 0) {
            gaps_.erase(found);
            if (gap.begin == gap.end) {
                unlink(gap);
            } else {
                gaps_.insert({gap.end - gap.begin, gap.begin, from});
            }
        }
        return at(blocks_, own).begin;
    }

    /* Frees block `own` and joins it with free neighbours. */
    void release(int32_t own) {
        Block &block = at(blocks_, own);
        if (const Block &before = at(blocks_, block.before); block.before != 0 && before.free) {
            gaps_.erase({before.end - before.begin, before.begin, 0});
            block.begin = before.begin;
            unlink(before);
        }
        if (Block &after = at(blocks_, block.after); block.after == 0) {
            after.begin = block.begin;
            unlink(block);
            return;
        } else if (after.free) {
            gaps_.erase({after.end - after.begin, after.begin, 0});
            block.end = after.end;
            unlink(after);
        }
        block.free = true;
        gaps_.insert({block.end - block.begin, block.begin, own});
    }

    void unlink(const Block &block) {
        at(blocks_, block.before).after = block.after;
        at(blocks_, block.after).before = block.before;
    }

    /* The positions in `order_`, from `from` on, by the first or last moments of their storages. */
    void in_time(int32_t Storage::*when, size_t from, std::vector<int32_t> &sorted) {
        starts_.assign(n_moments_ + 1, 0);
        for (size_t k = from; k < order_.size(); ++k) ++at(starts_, order_[k].*when + 1);
        for (size_t k = 1; k <= n_moments_; ++k) starts_[k] += starts_[k - 1];
        sorted.resize(order_.size() - from);
        for (size_t k = from; k < order_.size(); ++k) {
            at(sorted, at(starts_, order_[k].*when)++) = static_cast<int32_t>(k);
        }
    }

    /* The most bytes that live at the same time: nobody needs fewer. */
    int64_t busiest() {
        alive_.assign(n_moments_ + 1, 0);
        for (const Storage &storage : order_) {
            at(alive_, storage.first) += storage.bytes;
            at(alive_, storage.last + 1) -= storage.bytes;
        }
        int64_t now = 0, most = 0;
        for (const int64_t change : alive_) most = std::max(most, now += change);
        return most;
    }

    template <class T> static T &at(std::vector<T> &values, int32_t k) { return values[static_cast<size_t>(k)]; }

    size_t fitted_, n_moments_ = 0;
    bool ready_ = false;
    std::vector<Life> lives_;
    std::vector<Storage> order_; /* largest first, after `sort_again` */
    std::vector<Placed> placed_;
    std::vector<Block> blocks_;
    std::set<Gap> gaps_;
    std::vector<int32_t> births_, deaths_, starts_;
    std::vector<int64_t> alive_, others_;
};

}  // namespace fl

#endif
