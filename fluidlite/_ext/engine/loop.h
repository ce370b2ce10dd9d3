/* A loop in a plan, whose turns are plans of their own: what moves points somewhere else in each turn. */
#ifndef FLUIDLITE_ENGINE_LOOP_H
#define FLUIDLITE_ENGINE_LOOP_H

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/plan.h"

namespace fl {

/* How something moves from turn to turn. */
enum MovingKind : int {
    LOOP_PACKED,  /* the rows of all places one behind the other */
    LOOP_EACH,    /* what all places have of one size, one behind the other */
    LOOP_SAME,    /* the first rows of one array at all places */
    LOOP_CARRIED, /* what the turn before has left; in the first one the operand */
    LOOP_LAST     /* left for the next turn alone: two arrays take turns, so that the last turn writes to the operand */
};

/* Operand 0 of the instruction: where the rows of each place begin, and the last ones end, in what has those of all
 * places one behind the other; without it all places have as many. Other operands say the same of what has rows of its
 * own, that of sequences. ints: how many places there are, how many rows each has without operand 0, how many rows what
 * is carried has at place 0 (behind it those of the place before), others. */
class Loop {
  public:
    /* `other`: of CARRIED which of `moving` the turn before has left, of LAST the second operand, of PACKED which operand
     * says where rows begin; `row`: which integer says how many bytes a row of PACKED, or all of EACH, has. */
    void move(int kind, size_t operand, size_t other, size_t row) {
        moving_.push_back({kind, operand, other, row});
        now_.push_back(nullptr);
        before_.push_back(nullptr);
    }
    /* An operand of which so many bytes, as integer `bytes` says, are zero before the first turn. */
    void clear(size_t operand, size_t bytes) { sums_.emplace_back(operand, bytes); }
    void set_back(bool back) { back_ = back; }

    /* Appends a plan for turns whose sizes its guards admit; the others go before it. */
    void add_body(Plan *plan) { bodies_.push_back({plan, {}, {}, {}, {}}); }
    /* Have a slot of the last body follow what moves, or be an operand that stays. */
    void follow(size_t slot, size_t moving) { bodies_.back().moving.emplace_back(slot, moving); }
    void stay(size_t slot, size_t operand) { bodies_.back().same.emplace_back(slot, operand); }
    /* Have a root of the sizes of the last body be the number of rows (0), those of what is carried (1), or integer
     * `which - 2`. Without a root (-1) the body is for `value` alone. */
    void root(int64_t reg, size_t which, int64_t value) { bodies_.back().roots.push_back({reg, which, value}); }
    /* The same with the number of rows that an operand says where they begin of. */
    void span(int64_t reg, size_t operand, int64_t value) { bodies_.back().spans.push_back({reg, operand, value}); }

    /* Which body stopped, and at which of its instructions; the number of bodies if the loop did between two turns. */
    size_t stopped_body() const { return body_; }
    size_t stopped_at() const { return at_; }
    /* The instruction at which it stopped has been carried out. */
    void go_on() noexcept { ++at_; }

    /* Forgets a run that has been left at a pause, or at an instruction that has failed. */
    void forget() noexcept;
    void spare() noexcept;

    /* Whether there is a body for each turn. */
    bool admits(void *const *p, const int64_t *ints);

    int run(Step &step) noexcept;

  private:
    struct Moving {
        int kind;
        size_t operand, other, row;
    };
    struct Root {
        int64_t reg;
        size_t which;
        int64_t value;

        bool take(Sizes &sizes, int64_t found) const {
            if (reg >= 0) sizes.set(reg, found);
            return reg >= 0 || found == value;
        }
    };
    struct Body {
        Plan *plan;
        std::vector<std::pair<size_t, size_t>> moving, same; /* slot, which of `moving_` or operand */
        std::vector<Root> roots, spans;
    };

    int turns(Step &step);

    int fail(int code) noexcept {
        under_way_ = false;
        return code;
    }
    int fail_between(int code) noexcept {
        body_ = bodies_.size();
        return fail(code);
    }

    /* The number of a body for so many rows, whose sizes are those of a place from now on; that of all bodies if there is
     * none. What has other rows than these has as many wherever these are as many. */
    size_t choose(int64_t n, int64_t m, int64_t place, void *const *p, const int64_t *ints);

    /* Has everything point where turn `turn_` finds it. */
    int prepare(Step &step, void *const *p, const int64_t *ints, int64_t count);

    bool back_ = false;
    std::vector<Moving> moving_;
    std::vector<std::pair<size_t, size_t>> sums_;
    std::vector<Body> bodies_;
    /* Of the run under way. */
    bool under_way_ = false, within_ = false;
    int64_t turn_ = 0, rows_ = -1, carried_ = -1;
    size_t body_ = 0, at_ = 0;
    std::vector<char *> now_, before_; /* where what moves is in this turn, and was in the one before */
};

}  // namespace fl

#endif
