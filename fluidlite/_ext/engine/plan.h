/* A plan: a flat list of kernel calls over a table of slots, run in order, or by jumps, without the interpreter. */
#ifndef FLUIDLITE_ENGINE_PLAN_H
#define FLUIDLITE_ENGINE_PLAN_H

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "abi.h"
#include "engine/places.h"
#include "engine/sizes.h"
#include "engine/states.h"

namespace fl {

enum StepKind : int {
    STEP_KERNEL,
    STEP_PYTHON, /* the caller of Plan::run carries it out */
    STEP_JUMP,   /* goes on at `target` */
    STEP_UNLESS, /* goes on at `target` if the first operand, a bool, is false */
    STEP_FIND,   /* takes sizes from the first operand, int64s, for what comes after it */
    STEP_LOOP    /* all turns of a loop */
};

/* Codes of Plan::run besides those of abi.h. */
enum {
    FL_PAUSE = -1, /* a loop has turned for a while: look for signals, then go on */
    FL_UNFIT = -3  /* the plan is not for the sizes that have been found */
};

/* Where a size is found: at the index that register `position` says; it goes to `size`, or must be what that says if it
 * is no root. */
struct Find {
    int64_t position, size;
};

class Loop;

struct Step {
    fl_call call{};
    fl_kernel run = nullptr;
    StepKind kind = STEP_KERNEL;
    size_t target = 0;
    std::vector<size_t> slots;
    std::vector<void *> p;
    std::vector<int64_t> i;
    std::vector<double> f;
    std::vector<std::pair<size_t, int64_t>> varying_i, varying_f; /* position, register of Sizes */
    std::vector<Find> finds;
    std::unique_ptr<Loop> loop;
    size_t stage = 0; /* how many steps before it find sizes */
    States states;
    int64_t begin = 0; /* when the last timed run began, and how long it took: nanoseconds of steady_clock */
    int64_t ns = 0;

    Step();
    Step(const Step &) = delete;
    Step &operator=(const Step &) = delete;
    ~Step();
};

/* The temporaries that begin to live in one stage: their sizes are known by then. Those of stage 0 are where the owner of
 * the plan has memory for them, the others in memory of their own. */
struct StageMemory {
    Places places;
    std::vector<int64_t> registers, bytes, offsets;
    std::vector<std::vector<int64_t>> slots;
    std::unique_ptr<char, void (*)(void *)> memory{nullptr, std::free};
    int64_t capacity = 0, needed = 0, most = 0; /* `most`: needed at most since memory was looked at last */
    bool settled = false;

    /* Has room for what is needed; false if there is no memory. */
    bool grow() noexcept;
};

class Plan {
    using clock = std::chrono::steady_clock;

  public:
    Sizes *sizes = nullptr; /* what `resize` evaluates; the caller keeps it alive */
    /* In builds for debugging: called with `owner` and a stage whose sizes are others now, before its instructions run. */
    void (*verify)(void *owner, size_t stage) = nullptr;
    void *owner = nullptr;

    /* Nothing, which takes no memory; only good for being replaced. */
    Plan() noexcept = default;
    /* Slot 0 is always NULL, so that operands left out need no test in the loop. */
    explicit Plan(size_t n_slots) : stages_(1), table_(n_slots + 1, nullptr), missing_(n_slots) {}

    size_t n_slots() const { return table_.size() - 1; }
    size_t size() const { return steps_.size(); }
    void set(size_t slot, void *address) {
        void *&place = table_[slot + 1];
        missing_ += static_cast<size_t>(address == nullptr);
        missing_ -= static_cast<size_t>(place == nullptr);
        place = address;
    }
    /* How many slots are empty. */
    size_t missing() const { return missing_; }
    /* A slot that instruction `k` works on and that is empty, or -1. */
    int64_t unbound(size_t k) const;
    void *get(size_t slot) const { return table_[slot + 1]; }
    const Step &step(size_t k) const { return *steps_[k]; }
    void clear_times() {
        for (auto &step : steps_) step->begin = step->ns = 0;
    }
    void set_time(size_t k, int64_t begin, int64_t ns) {
        steps_[k]->begin = begin;
        steps_[k]->ns = ns;
    }

    /* Appends a call; a slot of -1 is an operand left out. A null kernel marks a Python instruction. */
    void add(fl_kernel run, const std::vector<int64_t> &slots, std::vector<int64_t> ints, std::vector<double> floats);

    /* Has integer (or real) `position` of instruction `k` follow a register of `sizes`. */
    void vary(size_t k, size_t position, int64_t reg, bool real);
    /* Declares temporary memory that lives from instruction `first` to `last` and has as many bytes as register `bytes`
     * says; `slots` point there. */
    void add_storage(int64_t first, int64_t last, int64_t bytes, const std::vector<int64_t> &slots);
    /* Has the temporaries of a stage begin at `base`; nowhere if that is NULL. */
    void point(char *base, size_t stage = 0) noexcept;
    int64_t needed() const { return stages_[0].needed; } /* bytes that the temporaries of stage 0 need together */
    /* Evaluates all that follows from the roots of a stage of `sizes`. Returns how many bytes its temporaries need; -1 if a
     * guard does not hold or a formula has no value (the mean of nothing), -2 if something does not fit 64 bits. Nothing of
     * the plan has changed in these cases. */
    int64_t resize(size_t stage = 0);
    /* Has everything of a later stage follow the sizes that have been found. */
    int enter(size_t stage) noexcept;
    /* How many bytes there are for the temporary in each slot; -1 for what is no temporary. */
    std::vector<int64_t> extents() const;
    /* Gives the temporaries of later stages a place for the sizes that the plan was made for; false if there is no memory. */
    bool enter_all() noexcept;

    /* Between steps: gives memory of later stages back that has not been needed since this was called last. */
    void spare() noexcept;
    /* `spare` of a plan whose temporaries all are in memory of its own (`room`). */
    void spare_all() noexcept;
    /* Has the temporaries of stage 0 in memory of the plan's own; false if there is none. */
    bool room() noexcept;
    /* How many bytes the temporaries of later stages have. */
    int64_t found_bytes() const noexcept;

    /* Appends an instruction that takes sizes from the int64s in `slot`. What comes after it is the next stage. */
    void add_find(int64_t slot, const std::vector<Find> &finds);

    /* Appends an instruction that goes on at another one: always, or unless the bool in `slot` is true. */
    void add_jump(int64_t slot);
    void set_target(size_t k, size_t target) { steps_[k]->target = target; }

    /* Appends an instruction that takes all turns of a loop, which belongs to the plan from now on. */
    void add_loop(Loop *loop, const std::vector<int64_t> &slots, std::vector<int64_t> ints);
    /* Whether loops have turns for what is bound to what they look at first. */
    bool loops_fit();
    /* Forgets runs of loops that have been left at a pause. */
    void forget_loops() noexcept;
    Loop *loop(size_t k) { return k < steps_.size() ? steps_[k]->loop.get() : nullptr; }

    /* Whether signals have to be looked for at this jump back: that is every 50 ms, and because the clock takes as long as
     * a small turn it is not asked at each of them. */
    bool pauses() noexcept;

    /* Runs from instruction `at` up to `end`; stops with FL_PYTHON at a Python instruction, with FL_PAUSE at a jump back
     * now and then, and with the kernel's code at a failure. `at` tells where it stopped, or goes on. */
    int run(size_t &at, size_t end, bool timed) noexcept;

  private:
    /* The first sizes that it has found stand in `err` then. */
    int find(Step &step) noexcept;

    template <bool timed> int steps(size_t &at, size_t end) noexcept;

    std::vector<StageMemory> stages_; /* by stage */
    std::vector<size_t> varying_, loops_; /* numbers of instructions */
    uint32_t turns_a_look_ = 1, until_look_ = 1; /* turns between two looks at the clock, and those still to go */
    clock::time_point looked_{}, paused_{};
    std::vector<void *> table_;
    size_t missing_ = 0;
    std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace fl

#endif
