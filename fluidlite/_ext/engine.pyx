"""The loop over the instructions of a plan.

An `Engine` owns a table of slots (addresses of buffers) and a flat list of instructions. Native instructions are
kernels of the C interface in `abi.h` and run without the GIL, one after another; Python instructions are callables
without arguments and run with it.
"""
import math
import time
import traceback

import numpy as np
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from cpython.buffer cimport PyBUF_WRITE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport abort
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.algorithm cimport sort
from libcpp.utility cimport pair
from libcpp.vector cimport vector

cnp.import_array()


cdef extern from "abi.h":
    enum:
        FL_OK
        FL_OUT_OF_RANGE
        FL_NO_MEMORY
        FL_LIBRARY
        FL_PYTHON
        FL_TOO_LARGE
        FL_MISSING
    ctypedef struct fl_call:
        int n_i
        int64_t err[4]
    ctypedef int (*fl_kernel)(fl_call *call) noexcept nogil


include "vectors.pxi"
include "engine/places.pxi"
include "engine/sizes.pxi"


cdef extern from "engine/loop.h" namespace "fl" nogil:
    enum:
        FL_PAUSE
        FL_UNFIT
    cdef struct Find:
        int64_t position
        int64_t size
    enum:
        LOOP_PACKED
        LOOP_EACH
        LOOP_SAME
        LOOP_CARRIED
        LOOP_LAST
    cdef cppclass Loop:
        Loop() except +
        void move(int kind, size_t operand, size_t other, size_t row) except +
        void clear(size_t operand, size_t bytes) except +
        void set_back(cbool back)
        void add_body(Plan *plan) except +
        void follow(size_t slot, size_t moving) except +
        void stay(size_t slot, size_t operand) except +
        void root(int64_t reg, size_t which, int64_t value) except +
        void span(int64_t reg, size_t operand, int64_t value) except +
        size_t stopped_body()
        size_t stopped_at()
        void go_on() noexcept
    enum:
        STEP_KERNEL
    cdef cppclass Step:
        fl_call call
        fl_kernel run
        int kind
        size_t stage
        vector[size_t] slots
        vector[int64_t] i
        vector[double] f
        int64_t begin
        int64_t ns
    cdef cppclass Plan:
        Plan() noexcept
        Plan(size_t n_slots) except +
        size_t n_slots()
        size_t size()
        void set(size_t slot, void *address)
        size_t missing()
        int64_t unbound(size_t k)
        void *get(size_t slot)
        const Step &step(size_t k)
        CSizes *sizes
        void (*verify)(void *owner, size_t stage) noexcept
        void *owner
        vector[int64_t] extents() except +
        void vary(size_t k, size_t position, int64_t reg, cbool real) except +
        void add_storage(int64_t first, int64_t last, int64_t bytes, const vector[int64_t] &slots) except +
        void point(char *base) noexcept
        int64_t needed()
        int64_t resize() except +
        cbool enter_all() noexcept
        void spare() noexcept
        int64_t found_bytes() noexcept
        void add_find(int64_t slot, const vector[Find] &finds) except +
        void add_jump(int64_t slot) except +
        void set_target(size_t k, size_t target)
        void add_loop(Loop *loop, const vector[int64_t] &slots, vector[int64_t] ints) except +
        cbool loops_fit() except +
        void forget_loops() noexcept
        Loop *loop(size_t k)
        void clear_times()
        void set_time(size_t k, int64_t begin, int64_t ns)
        void add(fl_kernel run, const vector[int64_t] &slots, vector[int64_t] ints, vector[double] floats) except +
        int run(size_t &at, size_t end, cbool timed) noexcept


LOOP_KINDS = {"packed": LOOP_PACKED, "each": LOOP_EACH, "same": LOOP_SAME, "carried": LOOP_CARRIED, "last": LOOP_LAST}

cdef extern from *:
    """
    #if defined(FL_VERIFY)
    #define FL_VERIFIES 1
    #else
    #define FL_VERIFIES 0
    #endif
    """
    bint VERIFIES "FL_VERIFIES"  # whether calls are verified again when their sizes change: in builds for debugging


cdef void verify_stage(void *owner, size_t stage) noexcept with gil:
    """What a plan calls whose sizes change while it runs; there is no way on from what must not be."""
    try:
        (<Engine> owner).verify(stage)
    except BaseException:
        traceback.print_exc()
        abort()


include "engine/failure.pxi"
include "engine/layouts.pxi"
include "engine/tensor_arrays.pxi"
include "engine/memory.pxi"
include "engine/bindings.pxi"


cdef class Engine(Bindings):
    """A plan that runs: slots, instructions, and the arrays fed to and fetched from it.

    Args:
        n_slots: length of the slot table; every slot is NULL at first.
        sizes: registers for what changes from step to step.

    Attributes:
        generation: goes up when sizes, and with them the memory of temporaries, have changed.
        release_gil: whether native instructions run without the GIL (the default). Very short plans beside busy
            Python threads may do better to keep it, because taking it back can cost a whole switch interval.
        failed: position of the instruction that failed in the last `run`, or -1.
    """

    cdef list callables  # by instruction: what it calls, or the engines of the turns of a loop; None
    cdef bint timed
    cdef public bint release_gil
    cdef readonly Py_ssize_t failed
    cdef Py_ssize_t verified  # the last generation whose calls have been verified

    def __cinit__(self, Py_ssize_t n_slots, Sizes sizes=None):
        self.callables = []
        self.release_gil = True
        self.failed = -1
        if VERIFIES:
            self.plan.verify, self.plan.owner = verify_stage, <void *> self

    def __len__(self) -> int:
        """Number of instructions."""
        return self.plan.size()

    def add(self, kernel, slots, ints=(), floats=()) -> int:
        """Append a native instruction.

        Args:
            kernel: name of a kernel in `kernels.table()`, or the address of an `fl_kernel`.
            slots: slot of each operand in the kernel's order; -1 for one left out.
            ints: the kernel's integer arguments.
            floats: the kernel's real arguments.

        Returns:
            The position of the instruction.

        Raises:
            KeyError: there is no kernel of that name.
            IndexError: a slot outside the table.
            ValueError: the kernel takes other numbers of operands, integers or floats (`kernels.check`; not verified
                for an address).
        """
        cdef vector[int64_t] places
        cdef vector[int64_t] integers
        cdef vector[double] reals
        self.check_idle()
        if isinstance(kernel, str):
            from . import kernels

            kernels.check(kernel, [slot != -1 for slot in slots], ints, floats)
            kernel = kernels.address(kernel)
        for slot in slots:
            if slot != -1:
                self.check_slot(slot)
        take_integers(places, slots)
        take_integers(integers, ints)
        take_reals(reals, floats)
        self.plan.add(<fl_kernel> <uintptr_t> kernel, places, integers, reals)
        self.callables.append(None)
        return self.plan.size() - 1

    def add_python(self, function) -> int:
        """Append an instruction that calls `function()` with the GIL held; returns its position."""
        cdef vector[int64_t] none
        cdef vector[double] nothing
        self.check_idle()
        self.plan.add(NULL, none, none, nothing)
        self.callables.append(function)
        return self.plan.size() - 1

    def add_jump(self, slot=None) -> int:
        """Append an instruction that goes on elsewhere: always, or if the bool in `slot` is false. `set_target` says where.

        Returns its position.
        """
        self.check_idle()
        if slot is not None:
            self.check_slot(slot)
        self.plan.add_jump(-1 if slot is None else slot)
        self.callables.append(None)
        return self.plan.size() - 1

    def add_find(self, slot, finds) -> int:
        """Append an instruction that takes sizes from the int64s in `slot`, for the instructions behind it.

        Args:
            finds: pairs of registers: one that says at which index, and a root of `sizes`, of the stage that begins, which
                gets what stands there; or any other register, which must have that value, or the plan is not for these
                sizes.

        Returns:
            The position of the instruction.
        """
        cdef vector[Find] wanted
        cdef Find one
        self.check_idle()
        self.check_slot(slot)
        for one.position, one.size in finds:
            wanted.push_back(one)
        self.plan.add_find(slot, wanted)
        self.finds = True
        self.callables.append(None)
        return self.plan.size() - 1

    def add_loop(self, slots, ints, back, moving, sums, bodies) -> int:
        """Append an instruction that takes all turns of a loop.

        Args:
            slots: of its operands. The first (-1 without it) has where the rows of each place begin, and the last ones
                end, in what is packed; see `engine/loop.h`.
            ints: its integers: how many places there are, how many rows each has without the first operand, how many
                rows what is carried has at place 0; then others, which `moving`, `sums` and `bodies` name by position.
            back: whether turns go from the last place to the first.
            moving: what points somewhere else in each turn: (kind, operand, other, integer); `LOOP_KINDS` has the kinds.
                `other`, of what is packed: the operand that has where its rows begin.
            sums: pairs of an operand and the integer that says how many bytes of it are zero before the first turn.
            bodies: engines of the turns, of which the first is taken whose guards hold, each with pairs of a slot of its
                own and a number in `moving`; pairs of a slot and an operand that stays; roots of its sizes (-1: it is
                for one alone), where they come from (0 for rows, 1 for rows of what is carried, 2 + k for integer k),
                and that one; the same with operands that have where rows begin.

        Returns:
            The position of the instruction.
        """
        cdef Loop *loop
        cdef Engine body
        self.check_idle()
        for slot in slots:
            if slot != -1:
                self.check_slot(slot)
        operands, numbers = range(len(slots)), range(len(ints))
        cdef vector[int64_t] places
        cdef vector[int64_t] integers
        take_integers(places, slots)
        take_integers(integers, ints)
        loop = new Loop()
        try:
            loop.set_back(back)
            for kind, operand, other, row in moving:
                known = range(len(moving)) if kind == LOOP_KINDS["carried"] else operands
                if operand not in operands or other not in known or row not in numbers:
                    raise IndexError(f"operand {operand}, {other} or integer {row} of a loop is none")
                loop.move(kind, operand, other, row)
            for operand, size in sums:
                if operand not in operands or size not in numbers:
                    raise IndexError(f"operand {operand} or integer {size} of a loop is none")
                loop.clear(operand, size)
            for body, follows, stays, roots, spans in bodies:
                if body is self:
                    raise ValueError("a loop is no turn of itself")
                body.release()
                loop.add_body(&body.plan)
                for slot, number in follows:
                    body.check_slot(slot)
                    if not 0 <= number < len(moving):
                        raise IndexError(f"a loop moves {len(moving)} things, not {number}")
                    loop.follow(slot, number)
                for slot, operand in stays:
                    body.check_slot(slot)
                    if operand not in operands:
                        raise IndexError(f"operand {operand} of a loop is none")
                    loop.stay(slot, operand)
                for register, which, value in (*roots, *spans):
                    if register != -1:
                        body.sizes.check_root(register)
                for register, which, value in roots:
                    if not 0 <= which < 2 + len(ints):
                        raise IndexError(f"integer {which - 2} of a loop is none")
                    loop.root(register, which, value)
                for register, operand, value in spans:
                    if operand not in operands:
                        raise IndexError(f"operand {operand} of a loop is none")
                    loop.span(register, operand, value)
        except BaseException:
            del loop
            raise
        self.plan.add_loop(loop, places, integers)
        self.callables.append([each[0] for each in bodies])
        return self.plan.size() - 1

    cdef int release(self) except -1:
        """Give the memory of temporaries back: a loop has its own for them."""
        self.allocate(0)
        return 0

    def loops_fit(self) -> bool:
        """Whether loops before all sizes that are found have a body for each turn, for the arrays that have been bound."""
        self.check_idle()
        return self.plan.loops_fit()

    cdef object stopped_turn(self, size_t at):
        """Which body stopped, if an instruction is a loop, at which of its instructions, and the same of that."""
        cdef Loop *loop = self.plan.loop(at)
        if loop == NULL:
            return None
        body, position = loop.stopped_body(), loop.stopped_at()
        bodies = self.callables[at]
        inner = (<Engine> bodies[body]).stopped_turn(position) if body < <size_t> len(bodies) else None
        return body, position, inner

    cdef int call_stopped(self, size_t at) except -1:
        """Call what has stopped the turns of a loop, perhaps in turns of another one there."""
        cdef Loop *loop = self.plan.loop(at)
        cdef Engine body = self.callables[at][loop.stopped_body()]
        cdef size_t position = loop.stopped_at()
        if body.plan.loop(position) != NULL:
            body.call_stopped(position)
        else:
            body.callables[position]()
            loop.go_on()
        return 0

    def set_target(self, Py_ssize_t at, Py_ssize_t target) -> None:
        """Say where the jump at position `at` goes on: at the instruction `target`."""
        self.check_idle()
        if not 0 <= at < <Py_ssize_t> self.plan.size() or not 0 <= target <= <Py_ssize_t> self.plan.size():
            raise IndexError(f"a jump from {at} to {target} in a plan of {self.plan.size()} instructions")
        self.plan.set_target(at, target)

    def set_root(self, int64_t register, int64_t value) -> None:
        """Change a root of `sizes`; whatever follows from it is found when arrays are bound or instructions run."""
        self.check_idle()
        self.sizes.check_root(register)
        if self.sizes.sizes.get(register) != value:
            self.sizes.sizes.set(register, value)
            self.unsettled = True

    def vary(self, Py_ssize_t at, Py_ssize_t position, int64_t register, bint real=False) -> None:
        """Have an integer (or a real number) of the instruction `at` follow a register of `sizes`."""
        self.check_idle()
        if not 0 <= at < <Py_ssize_t> self.plan.size():
            raise IndexError(f"there is no instruction {at}")
        self.plan.vary(at, position, register, real)

    cdef int verify(self, size_t stage) except -1:
        """Verify the calls of a stage for the numbers and the memory that they have now; ValueError if one is wrong."""
        cdef vector[int64_t] extents = self.plan.extents()
        cdef const Step *step
        cdef size_t k
        from . import kernels

        for k in range(self.plan.size()):
            step = &self.plan.step(k)
            if step.kind != STEP_KERNEL or step.stage != stage:
                continue
            sizes, slots = [], list(step.slots)
            for slot in slots:
                held = self.held[slot - 1] if slot else None
                size = extents[slot - 1] if slot and held is None else 0 if held is None else held.nbytes
                sizes.append(2**63 - 1 if size < 0 else size)
            kernels.verify(<uintptr_t> step.run, [slot != 0 for slot in slots], step.i, step.f, sizes)
        return 0

    cdef int check_bound(self, size_t at, size_t stop) except -1:
        """Raise if an instruction of these works on an empty slot."""
        cdef int64_t slot
        for at in range(at, stop):
            slot = self.plan.unbound(at)
            if slot >= 0:
                raise RuntimeError(
                    f"instruction {at} works on slot {slot}, which holds nothing: the arrays given to this plan "
                    "were refused, or none were given")
        return 0

    def run(self, Py_ssize_t begin=0, Py_ssize_t end=-1) -> None:
        """Run the instructions from `begin` up to, not including, `end` (-1: all).

        Raises:
            KernelFailure: a native instruction failed.
            RuntimeError: the engine is running already, in another thread or in one of its own instructions; or an
                instruction works on a slot that is empty. Nothing has run then.
            Exception: whatever a Python instruction raised; `failed` tells which.
        """
        cdef size_t at = begin
        cdef size_t stop
        cdef int code
        cdef bint timed = self.timed
        cdef int64_t since
        self.check_idle()
        if end < 0:
            end = self.plan.size()
        if not 0 <= begin <= end <= <Py_ssize_t> self.plan.size():
            raise IndexError(f"instructions {begin}..{end} are outside the plan of {self.plan.size()}")
        stop = end
        if self.plan.missing():
            self.check_bound(at, stop)
        if self.unsettled and not self.settle():
            raise RuntimeError("this plan is not for the sizes that were given to it")
        if begin == 0:
            self.spare()
        if VERIFIES and self.verified != self.generation:
            self.verify(0)
            self.verified = self.generation
        self.plan.forget_loops()
        self.running = True
        self.failed = -1
        try:
            while at < stop:
                if self.release_gil:
                    with nogil:
                        code = self.plan.run(at, stop, timed)
                else:
                    code = self.plan.run(at, stop, timed)
                if code == FL_OK:
                    break
                if code == FL_PAUSE:
                    PyErr_CheckSignals()
                    continue
                self.failed = at
                if code != FL_PYTHON:
                    raise KernelFailure(at, code, tuple([self.plan.step(at).call.err[k] for k in range(4)]),
                                        self.stopped_turn(at))
                if self.plan.loop(at) != NULL:
                    self.call_stopped(at)
                    self.failed = -1
                    continue
                since = time.perf_counter_ns() if timed else 0
                self.callables[at]()
                if timed:
                    self.plan.set_time(at, since, time.perf_counter_ns() - since)
                self.failed = -1
                at += 1
        finally:
            self.running = False

    def profile(self, bint on) -> None:
        """Switch the timing of single instructions on or off; either way the recorded times are cleared."""
        self.check_idle()
        self.timed = on
        self.plan.clear_times()

    def times(self) -> list:
        """Nanoseconds each instruction took in the last run with profiling on; 0 where it did not run."""
        return [self.plan.step(k).ns for k in range(self.plan.size())]

    def spans(self) -> list:
        """(begin, end) of each instruction in the last run with profiling on, in nanoseconds of `time.perf_counter_ns`;
        (0, 0) where it did not run.
        """
        return [
            (self.plan.step(k).begin, self.plan.step(k).begin + self.plan.step(k).ns) for k in range(self.plan.size())
        ]
