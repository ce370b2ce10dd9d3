/* A plan: a flat list of kernel calls over a table of slots, run in order, or by jumps, without the interpreter. */
#ifndef FLUIDLITE_ENGINE_PLAN_H
#define FLUIDLITE_ENGINE_PLAN_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
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

/* All turns of a loop, each of which is a run of another plan; see loop.h. */
class Loop;
struct Step;
int run_loop(Loop &loop, Step &step) noexcept;
void spare_loop(Loop &loop) noexcept;
void forget_loop(Loop &loop) noexcept;
void free_loop(Loop *loop) noexcept;
bool loop_admits(Loop &loop, const Step &step);

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
    std::unique_ptr<Loop, void (*)(Loop *)> loop{nullptr, free_loop};
    size_t stage = 0; /* how many steps before it find sizes */
    States states;
    int64_t begin = 0; /* when the last timed run began, and how long it took: nanoseconds of steady_clock */
    int64_t ns = 0;

    Step() = default;
    Step(const Step &) = delete;
    Step &operator=(const Step &) = delete;
    ~Step() {
        if (call.free_state != nullptr && call.state != nullptr) call.free_state(call.state);
    }
};

/* The temporaries that begin to live in one stage: their sizes are known by then. Those of stage 0 are where the owner of
 * the plan has memory for them, the others in memory of their own. */
struct Part {
    Places places;
    std::vector<int64_t> registers, bytes, offsets;
    std::vector<std::vector<int64_t>> slots;
    std::unique_ptr<char, void (*)(void *)> memory{nullptr, std::free};
    int64_t capacity = 0, needed = 0, most = 0; /* `most`: needed at most since memory was looked at last */
    bool settled = false;

    /* Has room for what is needed; false if there is no memory. */
    bool grow() noexcept {
        most = std::max(most, needed);
        if (memory != nullptr && needed <= capacity) return true;
        if (needed > INT64_MAX / 2) return false;
        const int64_t room = (std::max(needed + needed / 4, int64_t{1}) + Places::ALIGN - 1) / Places::ALIGN * Places::ALIGN;
        void *found = std::aligned_alloc(static_cast<size_t>(Places::ALIGN), static_cast<size_t>(room));
        if (found == nullptr) return false;
        memory.reset(static_cast<char *>(found));
        capacity = room;
        return true;
    }
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
    explicit Plan(size_t n_slots) : parts_(1), table_(n_slots + 1, nullptr), missing_(n_slots) {}

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
    int64_t unbound(size_t k) const {
        for (const size_t slot : steps_[k]->slots) {
            if (slot != 0 && table_[slot] == nullptr) return static_cast<int64_t>(slot) - 1;
        }
        return -1;
    }
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
    void add(fl_kernel run, const std::vector<int64_t> &slots, std::vector<int64_t> ints, std::vector<double> floats) {
        auto step = std::make_unique<Step>();
        step->run = run;
        step->kind = run == nullptr ? STEP_PYTHON : STEP_KERNEL;
        step->stage = parts_.size() - 1;
        for (int64_t slot : slots) step->slots.push_back(static_cast<size_t>(slot + 1));
        step->p.resize(slots.size());
        step->i = std::move(ints);
        step->f = std::move(floats);
        step->call.p = step->p.data();
        step->call.i = step->i.data();
        step->call.f = step->f.data();
        step->call.n_p = static_cast<int>(step->p.size());
        step->call.n_i = static_cast<int>(step->i.size());
        step->call.n_f = static_cast<int>(step->f.size());
        steps_.push_back(std::move(step));
    }

    /* Has integer (or real) `position` of instruction `k` follow a register of `sizes`. */
    void vary(size_t k, size_t position, int64_t reg, bool real) {
        if (position >= (real ? steps_[k]->f.size() : steps_[k]->i.size())) {
            throw std::out_of_range("the instruction has no such number");
        }
        if (reg < 0 || reg >= (real ? sizes->n_reals() : sizes->size())) {
            throw std::out_of_range("there is no such register of sizes");
        }
        auto &varying = real ? steps_[k]->varying_f : steps_[k]->varying_i;
        if (steps_[k]->varying_i.empty() && steps_[k]->varying_f.empty()) varying_.push_back(k);
        varying.emplace_back(position, reg);
    }
    /* Declares temporary memory that lives from instruction `first` to `last` and has as many bytes as register `bytes`
     * says; `slots` point there. */
    void add_storage(int64_t first, int64_t last, int64_t bytes, const std::vector<int64_t> &slots) {
        if (bytes < 0 || bytes >= sizes->size()) throw std::out_of_range("there is no such register of sizes");
        const bool within = first >= 0 && first < static_cast<int64_t>(steps_.size());
        Part &part = parts_[within ? steps_[static_cast<size_t>(first)]->stage : parts_.size() - 1];
        if (sizes->stage(bytes) > static_cast<size_t>(&part - parts_.data())) {
            throw std::invalid_argument("a storage begins before its size is found");
        }
        const size_t count = part.registers.size();
        try {
            part.registers.push_back(bytes);
            part.slots.push_back(slots);
            part.bytes.push_back(0);
            part.offsets.push_back(0);
            part.places.add(first, last);
        } catch (...) {
            part.registers.resize(count);
            part.slots.resize(count);
            part.bytes.resize(count);
            part.offsets.resize(count);
            throw;
        }
    }
    /* Has the temporaries of a stage begin at `base`; nowhere if that is NULL. */
    void point(char *base, size_t stage = 0) noexcept {
        const Part &part = parts_[stage];
        for (size_t k = 0; k < part.slots.size(); ++k) {
            void *const address = base == nullptr ? nullptr : base + part.offsets[k];
            for (const int64_t slot : part.slots[k]) set(static_cast<size_t>(slot), address);
        }
    }
    int64_t needed() const { return parts_[0].needed; } /* bytes that the temporaries of stage 0 need together */
    /* Evaluates all that follows from the roots of a stage of `sizes`. Returns how many bytes its temporaries need; -1 if a
     * guard does not hold or a formula has no value (the mean of nothing), -2 if something does not fit 64 bits. Nothing of
     * the plan has changed in these cases. */
    int64_t resize(size_t stage = 0) {
        if (!sizes->evaluate(stage)) return sizes->undefined() ? -1 : -2;
        if (!sizes->holds(stage)) return -1;
        const int64_t *values = sizes->values();
        Part &part = parts_[stage];
        for (size_t k = 0; k < part.bytes.size(); ++k) part.bytes[k] = values[part.registers[k]];
        const int64_t need = part.places.place(part.bytes.data(), part.offsets.data());
        if (need < 0) return -2;
        part.needed = need;
        for (const size_t k : varying_) {
            Step &step = *steps_[k];
            if (step.stage != stage) continue;
            for (const auto &[position, reg] : step.varying_i) step.i[position] = values[reg];
            for (const auto &[position, reg] : step.varying_f) step.f[position] = sizes->real(reg);
            if (step.kind == STEP_KERNEL) step.states.select(step.call, step.i.data(), static_cast<int>(step.i.size()));
        }
        return need;
    }
    /* Has everything of a later stage follow the sizes that have been found. */
    int enter(size_t stage) noexcept {
        Part &part = parts_[stage];
        if (part.settled && !sizes->stale(stage)) return FL_OK;
        part.settled = false;
        try {
            const int64_t need = resize(stage);
            if (need == -1) return FL_UNFIT;
            if (need < 0) return FL_NO_MEMORY;
        } catch (const std::bad_alloc &) {
            return FL_NO_MEMORY;
        }
        if (!part.grow()) return FL_NO_MEMORY;
        point(part.memory.get(), stage);
        part.settled = true;
        if (verify != nullptr) verify(owner, stage);
        return FL_OK;
    }
    /* How many bytes there are for the temporary in each slot; -1 for what is no temporary. */
    std::vector<int64_t> extents() const {
        std::vector<int64_t> found(n_slots(), -1);
        for (const Part &part : parts_) {
            for (size_t k = 0; k < part.slots.size(); ++k) {
                for (const int64_t slot : part.slots[k]) found[static_cast<size_t>(slot)] = part.bytes[k];
            }
        }
        return found;
    }
    /* Gives the temporaries of later stages a place for the sizes that the plan was made for; false if there is no memory. */
    bool enter_all() noexcept {
        for (size_t stage = 1; stage < parts_.size(); ++stage) {
            if (parts_[stage].memory == nullptr && enter(stage) == FL_NO_MEMORY) return false;
        }
        return true;
    }

    /* Between steps: gives memory of later stages back that has not been needed since this was called last. */
    void spare() noexcept {
        for (size_t stage = 1; stage < parts_.size(); ++stage) {
            Part &part = parts_[stage];
            if (part.memory != nullptr && part.most < part.capacity / 2) {
                part.memory.reset();
                part.settled = false;
                point(part.grow() ? part.memory.get() : nullptr, stage);
            }
            part.most = part.needed;
        }
        for (const size_t k : loops_) spare_loop(*steps_[k]->loop);
    }
    /* `spare` of a plan whose temporaries all are in memory of its own (`room`). */
    void spare_all() noexcept {
        Part &part = parts_[0];
        if (part.memory != nullptr && part.most < part.capacity / 2) {
            part.memory.reset();
            point(nullptr);
        }
        part.most = 0;
        spare();
    }
    /* Has the temporaries of stage 0 in memory of the plan's own; false if there is none. */
    bool room() noexcept {
        if (!parts_[0].grow()) return false;
        point(parts_[0].memory.get());
        return true;
    }
    /* How many bytes the temporaries of later stages have. */
    int64_t found_bytes() const noexcept {
        int64_t sum = 0;
        for (size_t stage = 1; stage < parts_.size(); ++stage) sum += parts_[stage].memory ? parts_[stage].capacity : 0;
        return sum;
    }

    /* Appends an instruction that takes sizes from the int64s in `slot`. What comes after it is the next stage. */
    void add_find(int64_t slot, const std::vector<Find> &finds) {
        for (const Find &find : finds) {
            if (find.position < 0 || find.position >= sizes->size() || find.size < 0 || find.size >= sizes->size()) {
                throw std::out_of_range("there is no such register of sizes");
            }
            if (sizes->is_root(find.size) && sizes->stage(find.size) != parts_.size()) {
                throw std::invalid_argument("a size is found in another stage than it belongs to");
            }
        }
        std::vector<Find> own(finds);
        sizes->outdate(parts_.size());
        parts_.reserve(parts_.size() + 1);
        add(nullptr, {slot}, {}, {});
        steps_.back()->kind = STEP_FIND;
        steps_.back()->finds = std::move(own);
        parts_.emplace_back();
    }

    /* Appends an instruction that goes on at another one: always, or unless the bool in `slot` is true. */
    void add_jump(int64_t slot) {
        const std::vector<int64_t> slots = slot < 0 ? std::vector<int64_t>{} : std::vector<int64_t>{slot};
        add(nullptr, slots, {}, {});
        steps_.back()->kind = slot < 0 ? STEP_JUMP : STEP_UNLESS;
    }
    void set_target(size_t k, size_t target) { steps_[k]->target = target; }

    /* Appends an instruction that takes all turns of a loop, which belongs to the plan from now on. */
    void add_loop(Loop *loop, const std::vector<int64_t> &slots, std::vector<int64_t> ints) {
        std::unique_ptr<Loop, void (*)(Loop *)> own{loop, free_loop};
        loops_.reserve(loops_.size() + 1);
        add(nullptr, slots, std::move(ints), {});
        steps_.back()->kind = STEP_LOOP;
        steps_.back()->loop = std::move(own);
        loops_.push_back(steps_.size() - 1);
    }
    /* Whether loops have turns for what is bound to what they look at first. */
    bool loops_fit() {
        return std::all_of(loops_.begin(), loops_.end(), [&](size_t k) {
            Step &step = *steps_[k];
            if (step.stage > 0) return true; /* its sizes are found on the way */
            for (size_t at = 0; at < step.p.size(); ++at) step.p[at] = table_[step.slots[at]];
            return loop_admits(*step.loop, step);
        });
    }
    /* Forgets runs of loops that have been left at a pause. */
    void forget_loops() noexcept {
        for (const size_t k : loops_) forget_loop(*steps_[k]->loop);
    }
    Loop *loop(size_t k) { return k < steps_.size() ? steps_[k]->loop.get() : nullptr; }

    /* Whether signals have to be looked for at this jump back: that is every 50 ms, and because the clock takes as long as
     * a small turn it is not asked at each of them. */
    bool pauses() noexcept {
        if (--until_look_ != 0) return false;
        const clock::time_point now = clock::now();
        const auto since_look = now - looked_;
        if (since_look < std::chrono::milliseconds(1)) {
            turns_a_look_ = std::min<uint32_t>(2 * turns_a_look_, 1024);
        } else if (since_look > std::chrono::milliseconds(10)) {
            turns_a_look_ = 1;
        }
        until_look_ = turns_a_look_;
        looked_ = now;
        if (now - paused_ < std::chrono::milliseconds(50)) return false;
        paused_ = now;
        return true;
    }

    /* Runs from instruction `at` up to `end`; stops with FL_PYTHON at a Python instruction, with FL_PAUSE at a jump back
     * now and then, and with the kernel's code at a failure. `at` tells where it stopped, or goes on. */
    int run(size_t &at, size_t end, bool timed) noexcept {
        return timed ? steps<true>(at, end) : steps<false>(at, end);
    }

  private:
    /* The first sizes that it has found stand in `err` then. */
    int find(Step &step) noexcept {
        const int64_t *found = static_cast<const int64_t *>(table_[step.slots[0]]);
        for (size_t k = 0; k < std::min<size_t>(step.finds.size(), 4); ++k) {
            step.call.err[k] = found[sizes->get(step.finds[k].position)];
        }
        for (const Find &each : step.finds) {
            const int64_t value = found[sizes->get(each.position)];
            if (sizes->is_root(each.size)) {
                sizes->set(each.size, value);
            } else if (sizes->get(each.size) != value) {
                return FL_UNFIT;
            }
        }
        const int code = enter(step.stage + 1);
        if (code == FL_NO_MEMORY) step.call.err[0] = parts_[step.stage + 1].needed;
        return code;
    }

    template <bool timed, class Work> static int run_timed(Step &step, const Work &work) noexcept {
        if (!timed) return work();
        using std::chrono::nanoseconds;
        const clock::time_point begin = clock::now();
        const int code = work();
        step.ns = std::chrono::duration_cast<nanoseconds>(clock::now() - begin).count();
        step.begin = std::chrono::duration_cast<nanoseconds>(begin.time_since_epoch()).count();
        return code;
    }

    template <bool timed> int steps(size_t &at, size_t end) noexcept {
        for (; at < end; ++at) {
            Step &step = *steps_[at];
            if (step.kind != STEP_KERNEL) {
                if (step.kind == STEP_PYTHON) return FL_PYTHON;
                if (step.kind == STEP_FIND) {
                    if (const int code = find(step)) return code;
                    continue;
                }
                if (step.kind == STEP_LOOP) {
                    for (size_t k = 0; k < step.p.size(); ++k) step.p[k] = table_[step.slots[k]];
                    if (const int code = run_timed<timed>(step, [&] { return run_loop(*step.loop, step); })) return code;
                    continue;
                }
                const bool go_on =
                    step.kind == STEP_UNLESS && *static_cast<const uint8_t *>(table_[step.slots[0]]) != 0;
                if (go_on) continue;
                const bool back = step.target <= at;
                at = step.target;
                if (back && pauses()) return FL_PAUSE;
                --at;
                continue;
            }
            const size_t n = step.p.size();
            for (size_t k = 0; k < n; ++k) step.p[k] = table_[step.slots[k]];
            if (const int code = run_timed<timed>(step, [&] { return step.run(&step.call); })) return code;
        }
        return FL_OK;
    }

    std::vector<Part> parts_; /* by stage */
    std::vector<size_t> varying_, loops_; /* numbers of instructions */
    uint32_t turns_a_look_ = 1, until_look_ = 1; /* turns between two looks at the clock, and those still to go */
    clock::time_point looked_{}, paused_{};
    std::vector<void *> table_;
    size_t missing_ = 0;
    std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace fl

#include "engine/loop.h"

#endif
