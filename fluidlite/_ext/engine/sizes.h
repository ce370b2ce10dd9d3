/* Formulas of sizes: small programs over registers that give every size of a plan from the few that a run may change. */
#ifndef FLUIDLITE_ENGINE_SIZES_H
#define FLUIDLITE_ENGINE_SIZES_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace fl {

/* What an integer register holds. ROOT: what `set` puts there; CONST: never changes; the others: a function of two
 * registers before it, with the meaning that Python's integers give it. */
enum SizeOp : int {
    OP_ROOT,
    OP_CONST,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_FLOORDIV,
    OP_MOD,
    OP_MIN,
    OP_MAX,
};

/* What a real register holds. OF: an integer register as a real number; the others: a function of one (SQRT) or two real
 * registers before it, with the meaning that Python's floats give it. */
enum RealOp : int { REAL_OF, REAL_ADD, REAL_SUB, REAL_MUL, REAL_DIV, REAL_SQRT };

enum SizeCompare : int { CMP_EQ, CMP_NE, CMP_LT, CMP_LE };

/* Registers and guards belong to stages: what is known when a run begins to stage 0, what follows from roots that a run
 * finds later to the stage of the last one. Stages are evaluated one after the other. */
class Sizes {
  public:
    /* Appends an integer register and returns its number. For ROOT and CONST `a` is the value, and `b` of ROOT its
     * stage. */
    int64_t add(int op, int64_t a, int64_t b) {
        if (op < OP_ROOT || op > OP_MAX) throw std::invalid_argument("there is no such operation on sizes");
        const bool given = op == OP_ROOT || op == OP_CONST;
        if (!given) {
            check(a, values_.size());
            check(b, values_.size());
        }
        if (op == OP_ROOT && (b < 0 || b > INT16_MAX)) throw std::invalid_argument("there is no such stage");
        const size_t own = given ? static_cast<size_t>(op == OP_ROOT ? b : 0) : std::max(stage(a), stage(b));
        const int64_t out = size();
        try {
            values_.push_back(given ? a : 0);
            is_root_.push_back(op == OP_ROOT);
            stage_.push_back(own);
            outdate(own);
            if (!given) stages_[own].code.push_back({op, narrow(out), narrow(a), narrow(b)});
        } catch (...) {
            values_.resize(static_cast<size_t>(out));
            is_root_.resize(static_cast<size_t>(out));
            stage_.resize(static_cast<size_t>(out));
            throw;
        }
        return out;
    }

    /* Appends a real register and returns its number; these are counted on their own. `a` of OF is an integer
     * register. */
    int64_t add_real(int op, int64_t a, int64_t b) {
        if (op < REAL_OF || op > REAL_SQRT) throw std::invalid_argument("there is no such operation on reals");
        check(a, op == REAL_OF ? values_.size() : reals_.size());
        if (op == REAL_OF || op == REAL_SQRT) b = a;
        check(b, op == REAL_OF ? values_.size() : reals_.size());
        const int64_t out = add_real_const(0.0);
        const size_t own = op == REAL_OF ? stage(a) : std::max(real_stage(a), real_stage(b));
        real_stage_.back() = own;
        outdate(own);
        stages_[own].real_code.push_back({op, narrow(out), narrow(a), narrow(b)});
        return out;
    }

    int64_t add_real_const(double value) {
        real_stage_.reserve(reals_.size() + 1);
        reals_.push_back(value);
        real_stage_.push_back(0);
        return static_cast<int64_t>(reals_.size()) - 1;
    }

    /* Appends the condition that two integer registers compare like this. */
    void guard(int compare, int64_t a, int64_t b) {
        if (compare < CMP_EQ || compare > CMP_LE) throw std::invalid_argument("there is no such comparison of sizes");
        check(a, values_.size());
        check(b, values_.size());
        const size_t own = std::max(stage(a), stage(b));
        outdate(own);
        stages_[own].guards.push_back({compare, n_guards_++, narrow(a), narrow(b)});
    }

    int64_t size() const { return static_cast<int64_t>(values_.size()); }

    bool is_root(int64_t at) const { return is_root_[static_cast<size_t>(at)]; }
    size_t stage(int64_t at) const { return stage_[static_cast<size_t>(at)]; }

    /* Changes a root. */
    void set(int64_t root, int64_t value) {
        check(root, values_.size());
        if (!is_root_[static_cast<size_t>(root)]) throw std::invalid_argument("only a root of sizes can be set");
        if (values_[static_cast<size_t>(root)] == value) return;
        values_[static_cast<size_t>(root)] = value;
        outdate(stage(root));
    }

    /* Has a stage, and those after it, be evaluated again; from now on there is such a stage. */
    void outdate(size_t stage) {
        if (stage >= stages_.size()) stages_.resize(stage + 1);
        for (; stage < stages_.size(); ++stage) stages_[stage].stale = true;
    }

    /* Whether a root that a stage may depend on has been set since it was evaluated. */
    bool stale(size_t stage) const { return stage < stages_.size() && stages_[stage].stale; }

    /* Gives all registers of a stage their values. False if one has none: it does not fit 64 bits, a division by zero, the
     * root of a negative number. */
    bool evaluate(size_t stage = 0) noexcept {
        if (stale(stage)) {
            undefined_ = false;
            stages_[stage].stale = !(run(stages_[stage]) && run_reals(stages_[stage]));
        }
        return !stale(stage);
    }

    /* Whether the last `evaluate` returned false for a division by zero or the root of a negative number. */
    bool undefined() const { return undefined_; }

    /* The registers after an `evaluate` that returned true. */
    int64_t get(int64_t at) const { return values_[static_cast<size_t>(at)]; }
    double real(int64_t at) const { return reals_[static_cast<size_t>(at)]; }
    const int64_t *values() const { return values_.data(); }
    const double *reals() const { return reals_.data(); }
    int64_t n_reals() const { return static_cast<int64_t>(reals_.size()); }

    /* Whether the last `evaluate` of a stage returned true, nothing was set since, and all its guards hold. */
    bool holds(size_t stage = 0) noexcept {
        failed_ = -1;
        if (stage >= stages_.size()) return true;
        if (stages_[stage].stale) return false;
        for (const Line &guard : stages_[stage].guards) {
            if (!compare(guard)) {
                failed_ = guard.out;
                return false;
            }
        }
        return true;
    }

    /* The first guard that the last `holds` found broken, or -1. */
    int64_t failed() const { return failed_; }

  private:
    struct Line {
        int32_t op, out, a, b; /* `out` of a guard is its number */
    };
    struct Stage {
        std::vector<Line> code, real_code, guards;
        bool stale = true;
    };

    size_t real_stage(int64_t at) const { return real_stage_[static_cast<size_t>(at)]; }


    static int32_t narrow(int64_t at) {
        if (at > INT32_MAX) throw std::length_error("too many sizes");
        return static_cast<int32_t>(at);
    }

    static void check(int64_t at, size_t n) {
        if (at < 0 || at >= static_cast<int64_t>(n)) throw std::out_of_range("there is no such register of sizes");
    }

    bool compare(const Line &line) const noexcept {
        const int64_t a = values_[static_cast<size_t>(line.a)], b = values_[static_cast<size_t>(line.b)];
        switch (line.op) {
            case CMP_EQ: return a == b;
            case CMP_NE: return a != b;
            case CMP_LT: return a < b;
            default: return a <= b;
        }
    }

    /* Python rounds quotients down and gives remainders the sign of the divisor; C rounds towards zero. */
    static bool floor_divide(int64_t a, int64_t b, int64_t &quotient, int64_t &rest) noexcept {
        if (b == 0) return false;
        if (b == -1) { /* the quotient of the least integer does not fit, its remainder does */
            rest = 0;
            return !__builtin_sub_overflow(int64_t{0}, a, &quotient);
        }
        quotient = a / b;
        rest = a % b;
        if (rest != 0 && (rest < 0) != (b < 0)) {
            --quotient;
            rest += b;
        }
        return true;
    }

    bool run(const Stage &stage) noexcept {
        int64_t *const values = values_.data();
        for (const Line &line : stage.code) {
            const int64_t a = values[line.a], b = values[line.b];
            int64_t &out = values[line.out];
            int64_t other = 0;
            bool fits = true;
            switch (line.op) {
                case OP_ADD: fits = !__builtin_add_overflow(a, b, &out); break;
                case OP_SUB: fits = !__builtin_sub_overflow(a, b, &out); break;
                case OP_MUL: fits = !__builtin_mul_overflow(a, b, &out); break;
                case OP_FLOORDIV: fits = floor_divide(a, b, out, other); break;
                case OP_MOD: fits = floor_divide(a, b, other, out) || b == -1; break;
                case OP_MIN: out = b < a ? b : a; break;
                default: out = b > a ? b : a; break;
            }
            if (!fits) {
                undefined_ = b == 0 && (line.op == OP_FLOORDIV || line.op == OP_MOD);
                return false;
            }
        }
        return true;
    }

    /* All that can go wrong here is what is undefined. */
    bool run_reals(const Stage &stage) noexcept {
        double *const reals = reals_.data();
        undefined_ = true;
        for (const Line &line : stage.real_code) {
            if (line.op == REAL_OF) {
                reals[line.out] = static_cast<double>(values_[static_cast<size_t>(line.a)]);
                continue;
            }
            const double a = reals[line.a], b = reals[line.b];
            double &out = reals[line.out];
            switch (line.op) {
                case REAL_ADD: out = a + b; break;
                case REAL_SUB: out = a - b; break;
                case REAL_MUL: out = a * b; break;
                case REAL_DIV:
                    if (b == 0.0) return false;
                    out = a / b;
                    break;
                default:
                    if (a < 0.0) return false;
                    out = std::sqrt(a);
            }
        }
        undefined_ = false;
        return true;
    }

    std::vector<int64_t> values_;
    std::vector<bool> is_root_;
    std::vector<double> reals_;
    std::vector<size_t> stage_, real_stage_; /* of each register */
    std::vector<Stage> stages_; /* there is none before something belongs to it */
    int32_t n_guards_ = 0;
    int64_t failed_ = -1;
    bool undefined_ = false;
};

}  // namespace fl

#endif
