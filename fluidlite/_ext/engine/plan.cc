/* How plans and their loops run, and what follows from sizes that change. */
#include "engine/plan.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "engine/loop.h"

namespace fl {

Step::Step() = default;

Step::~Step() {
    if (call.free_state != nullptr && call.state != nullptr) call.free_state(call.state);
}

bool StageMemory::grow() noexcept {
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

int64_t Plan::unbound(size_t k) const {
    for (const size_t slot : steps_[k]->slots) {
        if (slot != 0 && table_[slot] == nullptr) return static_cast<int64_t>(slot) - 1;
    }
    return -1;
}

void Plan::add(fl_kernel run, const std::vector<int64_t> &slots, std::vector<int64_t> ints, std::vector<double> floats) {
    auto step = std::make_unique<Step>();
    step->run = run;
    step->kind = run == nullptr ? STEP_PYTHON : STEP_KERNEL;
    step->stage = stages_.size() - 1;
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

void Plan::vary(size_t k, size_t position, int64_t reg, bool real) {
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

void Plan::add_storage(int64_t first, int64_t last, int64_t bytes, const std::vector<int64_t> &slots) {
    if (bytes < 0 || bytes >= sizes->size()) throw std::out_of_range("there is no such register of sizes");
    const bool within = first >= 0 && first < static_cast<int64_t>(steps_.size());
    StageMemory &part = stages_[within ? steps_[static_cast<size_t>(first)]->stage : stages_.size() - 1];
    if (sizes->stage(bytes) > static_cast<size_t>(&part - stages_.data())) {
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

void Plan::point(char *base, size_t stage) noexcept {
    const StageMemory &part = stages_[stage];
    for (size_t k = 0; k < part.slots.size(); ++k) {
        void *const address = base == nullptr ? nullptr : base + part.offsets[k];
        for (const int64_t slot : part.slots[k]) set(static_cast<size_t>(slot), address);
    }
}

int64_t Plan::resize(size_t stage) {
    if (!sizes->evaluate(stage)) return sizes->undefined() ? -1 : -2;
    if (!sizes->holds(stage)) return -1;
    const int64_t *values = sizes->values();
    StageMemory &part = stages_[stage];
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

int Plan::enter(size_t stage) noexcept {
    StageMemory &part = stages_[stage];
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

std::vector<int64_t> Plan::extents() const {
    std::vector<int64_t> found(n_slots(), -1);
    for (const StageMemory &part : stages_) {
        for (size_t k = 0; k < part.slots.size(); ++k) {
            for (const int64_t slot : part.slots[k]) found[static_cast<size_t>(slot)] = part.bytes[k];
        }
    }
    return found;
}

bool Plan::enter_all() noexcept {
    for (size_t stage = 1; stage < stages_.size(); ++stage) {
        if (stages_[stage].memory == nullptr && enter(stage) == FL_NO_MEMORY) return false;
    }
    return true;
}

void Plan::spare() noexcept {
    for (size_t stage = 1; stage < stages_.size(); ++stage) {
        StageMemory &part = stages_[stage];
        if (part.memory != nullptr && part.most < part.capacity / 2) {
            part.memory.reset();
            part.settled = false;
            point(part.grow() ? part.memory.get() : nullptr, stage);
        }
        part.most = part.needed;
    }
    for (const size_t k : loops_) steps_[k]->loop->spare();
}

void Plan::spare_all() noexcept {
    StageMemory &part = stages_[0];
    if (part.memory != nullptr && part.most < part.capacity / 2) {
        part.memory.reset();
        point(nullptr);
    }
    part.most = 0;
    spare();
}

bool Plan::room() noexcept {
    if (!stages_[0].grow()) return false;
    point(stages_[0].memory.get());
    return true;
}

int64_t Plan::found_bytes() const noexcept {
    int64_t sum = 0;
    for (size_t stage = 1; stage < stages_.size(); ++stage) sum += stages_[stage].memory ? stages_[stage].capacity : 0;
    return sum;
}

void Plan::add_find(int64_t slot, const std::vector<Find> &finds) {
    for (const Find &find : finds) {
        if (find.position < 0 || find.position >= sizes->size() || find.size < 0 || find.size >= sizes->size()) {
            throw std::out_of_range("there is no such register of sizes");
        }
        if (sizes->is_root(find.size) && sizes->stage(find.size) != stages_.size()) {
            throw std::invalid_argument("a size is found in another stage than it belongs to");
        }
    }
    std::vector<Find> own(finds);
    sizes->outdate(stages_.size());
    stages_.reserve(stages_.size() + 1);
    add(nullptr, {slot}, {}, {});
    steps_.back()->kind = STEP_FIND;
    steps_.back()->finds = std::move(own);
    stages_.emplace_back();
}

void Plan::add_jump(int64_t slot) {
    const std::vector<int64_t> slots = slot < 0 ? std::vector<int64_t>{} : std::vector<int64_t>{slot};
    add(nullptr, slots, {}, {});
    steps_.back()->kind = slot < 0 ? STEP_JUMP : STEP_UNLESS;
}

void Plan::add_loop(Loop *loop, const std::vector<int64_t> &slots, std::vector<int64_t> ints) {
    std::unique_ptr<Loop> own{loop};
    loops_.reserve(loops_.size() + 1);
    add(nullptr, slots, std::move(ints), {});
    steps_.back()->kind = STEP_LOOP;
    steps_.back()->loop = std::move(own);
    loops_.push_back(steps_.size() - 1);
}

bool Plan::loops_fit() {
    return std::all_of(loops_.begin(), loops_.end(), [&](size_t k) {
        Step &step = *steps_[k];
        if (step.stage > 0) return true; /* its sizes are found on the way */
        for (size_t at = 0; at < step.p.size(); ++at) step.p[at] = table_[step.slots[at]];
        return step.loop->admits(step.p.data(), step.i.data());
    });
}

void Plan::forget_loops() noexcept {
    for (const size_t k : loops_) steps_[k]->loop->forget();
}

bool Plan::pauses() noexcept {
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

int Plan::find(Step &step) noexcept {
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
    if (code == FL_NO_MEMORY) step.call.err[0] = stages_[step.stage + 1].needed;
    return code;
}

namespace {

template <bool timed, class Work> int run_timed(Step &step, const Work &work) noexcept {
    if (!timed) return work();
    using std::chrono::nanoseconds;
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    const int code = work();
    step.ns = std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now() - begin).count();
    step.begin = std::chrono::duration_cast<nanoseconds>(begin.time_since_epoch()).count();
    return code;
}

}  // namespace

template <bool timed> int Plan::steps(size_t &at, size_t end) noexcept {
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
                if (const int code = run_timed<timed>(step, [&] { return step.loop->run(step); })) return code;
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

int Plan::run(size_t &at, size_t end, bool timed) noexcept {
    return timed ? steps<true>(at, end) : steps<false>(at, end);
}

namespace {

/* Where the rows of a place begin, as an operand says. */
int64_t begin_at(int64_t place, const void *bounds, const int64_t *ints) {
    return bounds == nullptr ? place * ints[1] : static_cast<const int64_t *>(bounds)[place];
}
int64_t rows_at(int64_t place, const void *bounds, const int64_t *ints) {
    return begin_at(place + 1, bounds, ints) - begin_at(place, bounds, ints);
}
int64_t carried_at(int64_t place, const void *bounds, const int64_t *ints) {
    return place == 0 ? ints[2] : rows_at(place - 1, bounds, ints);
}

}  // namespace

void Loop::forget() noexcept {
    under_way_ = false;
    for (Body &body : bodies_) body.plan->forget_loops();
}

void Loop::spare() noexcept {
    for (Body &body : bodies_) body.plan->spare_all();
}

bool Loop::admits(void *const *p, const int64_t *ints) {
    int64_t n = -1, m = -1;
    for (int64_t place = 0; place < ints[0]; ++place) {
        const int64_t rows = rows_at(place, p[0], ints), carried = carried_at(place, p[0], ints);
        if (rows == n && carried == m) continue;
        n = rows;
        m = carried;
        if (choose(n, m, place, p, ints) == bodies_.size()) return false;
    }
    return true;
}

int Loop::run(Step &step) noexcept {
    try {
        return turns(step);
    } catch (const std::exception &) {
        return fail_between(FL_NO_MEMORY);
    }
}

int Loop::turns(Step &step) {
    void *const *p = step.p.data();
    const int64_t *ints = step.i.data();
    const int64_t count = ints[0];
    if (!under_way_) {
        for (const auto &[operand, bytes] : sums_) std::memset(p[operand], 0, static_cast<size_t>(ints[bytes]));
        turn_ = 0;
        rows_ = carried_ = -1;
        body_ = bodies_.size();
        within_ = false;
        under_way_ = true;
    }
    for (; turn_ < count; ++turn_) {
        if (!within_) {
            if (const int code = prepare(step, p, ints, count)) return fail_between(code);
        }
        Plan &plan = *bodies_[body_].plan;
        const int code = plan.run(at_, plan.size(), false);
        within_ = code == FL_PAUSE || code == FL_PYTHON;
        if (within_) return code;
        if (code != FL_OK) {
            std::memcpy(step.call.err, plan.step(at_).call.err, sizeof step.call.err);
            return fail(code);
        }
        now_.swap(before_);
        if (plan.pauses()) {
            ++turn_;
            return FL_PAUSE;
        }
    }
    under_way_ = false;
    return FL_OK;
}

size_t Loop::choose(int64_t n, int64_t m, int64_t place, void *const *p, const int64_t *ints) {
    for (size_t k = 0; k < bodies_.size(); ++k) {
        Sizes &sizes = *bodies_[k].plan->sizes;
        bool fits = true;
        for (const Root &root : bodies_[k].roots) {
            fits &= root.take(sizes, root.which == 0 ? n : root.which == 1 ? m : ints[root.which - 2]);
        }
        for (const Root &span : bodies_[k].spans) fits &= span.take(sizes, rows_at(place, p[span.which], ints));
        if (fits && sizes.evaluate() && sizes.holds()) return k;
    }
    return bodies_.size();
}

int Loop::prepare(Step &step, void *const *p, const int64_t *ints, int64_t count) {
    const int64_t place = back_ ? count - 1 - turn_ : turn_;
    const int64_t rows = rows_at(place, p[0], ints), carried = carried_at(place, p[0], ints);
    const bool resized = rows != rows_ || carried != carried_;
    if (resized) {
        rows_ = rows;
        carried_ = carried;
        const size_t found = choose(rows, carried, place, p, ints);
        if (found == bodies_.size()) return FL_UNFIT;
        Plan &plan = *bodies_[found].plan;
        const int64_t need = plan.resize();
        if (need < 0 || !plan.room()) {
            step.call.err[0] = need;
            return FL_NO_MEMORY;
        }
        if (found != body_) {
            for (const auto &[slot, operand] : bodies_[found].same) plan.set(slot, p[operand]);
        }
        body_ = found;
    }
    for (size_t k = 0; k < moving_.size(); ++k) {
        const Moving &each = moving_[k];
        char *const base = static_cast<char *>(p[each.operand]);
        switch (each.kind) {
        case LOOP_PACKED: now_[k] = base + begin_at(place, p[each.other], ints) * ints[each.row]; break;
        case LOOP_EACH: now_[k] = base + place * ints[each.row]; break;
        case LOOP_CARRIED: now_[k] = turn_ == 0 ? base : before_[each.other]; break;
        case LOOP_LAST: now_[k] = (count - 1 - turn_) % 2 == 0 ? base : static_cast<char *>(p[each.other]); break;
        default: now_[k] = base;
        }
    }
    Plan &plan = *bodies_[body_].plan;
    for (const auto &[slot, k] : bodies_[body_].moving) plan.set(slot, now_[k]);
    if (resized && plan.verify != nullptr) plan.verify(plan.owner, 0);
    at_ = 0;
    return FL_OK;
}

}  // namespace fl
