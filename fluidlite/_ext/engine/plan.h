/* A plan: a flat list of kernel calls over a table of slots, run in order without the interpreter. */
#ifndef FLUIDLITE_ENGINE_PLAN_H
#define FLUIDLITE_ENGINE_PLAN_H

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "abi.h"
#include "engine/states.h"

namespace fl {

struct Step {
    fl_call call{};
    fl_kernel run = nullptr; /* null: a Python instruction, which the caller of Plan::run carries out */
    std::vector<size_t> slots;
    std::vector<void *> p;
    std::vector<int64_t> i;
    std::vector<double> f;
    States states; /* those that wait for their integers to come again */
    int64_t begin = 0; /* when the last timed run began, and how long it took: nanoseconds of steady_clock */
    int64_t ns = 0;

    Step() = default;
    Step(const Step &) = delete;
    Step &operator=(const Step &) = delete;
    ~Step() {
        if (call.free_state != nullptr && call.state != nullptr) call.free_state(call.state);
    }
};

class Plan {
  public:
    /* Slot 0 is always NULL, so that operands left out need no test in the loop. */
    explicit Plan(size_t n_slots = 0) : table_(n_slots + 1, nullptr), missing_(n_slots) {}

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

    /* Changes the integers of an instruction, as many as it has. */
    void set_ints(size_t k, const int64_t *ints) {
        Step &step = *steps_[k];
        std::copy_n(ints, step.i.size(), step.i.data());
        step.states.select(step.call, ints, step.call.n_i);
    }

    /* Runs from instruction `at` up to `end`; stops with FL_PYTHON at a Python instruction and with the kernel's
     * code at a failure. `at` tells where it stopped. */
    int run(size_t &at, size_t end, bool timed) noexcept {
        return timed ? loop<true>(at, end) : loop<false>(at, end);
    }

  private:
    template <bool timed> int loop(size_t &at, size_t end) noexcept {
        using clock = std::chrono::steady_clock;
        for (; at < end; ++at) {
            Step &step = *steps_[at];
            if (step.run == nullptr) return FL_PYTHON;
            const size_t n = step.p.size();
            for (size_t k = 0; k < n; ++k) step.p[k] = table_[step.slots[k]];
            clock::time_point begin;
            if (timed) begin = clock::now();
            const int code = step.run(&step.call);
            if (timed) {
                using std::chrono::nanoseconds;
                step.ns = std::chrono::duration_cast<nanoseconds>(clock::now() - begin).count();
                step.begin = std::chrono::duration_cast<nanoseconds>(begin.time_since_epoch()).count();
            }
            if (code != FL_OK) return code;
        }
        return FL_OK;
    }

    std::vector<void *> table_;
    size_t missing_;
    std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace fl

#endif
