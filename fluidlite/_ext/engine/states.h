/* What kernels keep between runs, when the integers of their calls change from run to run. */
#ifndef FLUIDLITE_ENGINE_STATES_H
#define FLUIDLITE_ENGINE_STATES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "abi.h"

namespace fl {

/* The states of one call for the integers used last. The state of those in use stands in the call, and belongs to
 * whoever owns the call; the others belong to this table. Changes are made under the GIL: a fork in the middle would leave
 * the child with states that two own. */
class States {
  public:
    /* Keeps at most `most`, with the one in use. */
    explicit States(size_t most = 8) : most_(most) {}
    States(const States &) = delete;
    States &operator=(const States &) = delete;
    ~States() { clear(); }

    /* Puts the state that was made for these integers into the call, NULL if there is none, and keeps the one that stood
     * there. To be called whenever the integers of the call have changed, before it runs. A state that goes with any
     * integers stays; one that was made before the first `select` is freed, for nobody knows what it was made for. */
    void select(fl_call &call, const int64_t *ints, int n) noexcept {
        if (call.state != nullptr && call.any_ints) return;
        if (known_ && matches(ints_, ints, n)) return;
        try {
            change(call, ints, n);
        } catch (const std::bad_alloc &) { /* a state can be made again; one for other integers is never used */
            free_state(call);
            clear();
        }
    }

    /* How many states stand in this table. */
    size_t size() const { return kept_.size(); }

  private:
    struct Kept {
        std::vector<int64_t> ints;
        void *state;
        void (*free_state)(void *state);
    };

    static bool matches(const std::vector<int64_t> &own, const int64_t *ints, int n) {
        return own.size() == static_cast<size_t>(n) && std::equal(own.begin(), own.end(), ints);
    }

    static void free_state(fl_call &call) {
        if (call.state != nullptr && call.free_state != nullptr) call.free_state(call.state);
        call.state = nullptr;
    }

    void clear() {
        for (const Kept &kept : kept_) kept.free_state(kept.state);
        kept_.clear();
        known_ = false;
    }

    void change(fl_call &call, const int64_t *ints, int n) {
        if (!known_ || call.free_state == nullptr) free_state(call);
        if (call.state == nullptr && kept_.empty()) { /* most kernels keep nothing: this takes no memory anew */
            ints_.assign(ints, ints + n);
            known_ = true;
            return;
        }
        std::vector<int64_t> wanted(ints, ints + n);
        kept_.reserve(most_);
        Kept next{{}, nullptr, nullptr};
        const auto found =
            std::find_if(kept_.begin(), kept_.end(), [&](const Kept &kept) { return matches(kept.ints, ints, n); });
        if (found != kept_.end()) {
            next = std::move(*found);
            kept_.erase(found);
        }
        if (call.state != nullptr) {
            if (kept_.size() == most_ - 1) {
                kept_.back().free_state(kept_.back().state);
                kept_.pop_back();
            }
            kept_.insert(kept_.begin(), Kept{std::move(ints_), call.state, call.free_state});
        }
        ints_ = std::move(wanted);
        known_ = true;
        call.state = next.state;
        if (next.state != nullptr) call.free_state = next.free_state;
    }

    size_t most_;
    std::vector<Kept> kept_;    /* most recently used first */
    std::vector<int64_t> ints_; /* those in use */
    bool known_ = false;
};

}  // namespace fl

#endif
