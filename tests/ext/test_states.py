"""States of kernels are used only with the integers they were made for, and cached for the latest ones."""

import ctypes
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidlite._ext import kernels
from fluidlite._ext.engine import Engine, Sizes

MOST = 8


class Call(ctypes.Structure):
    """fl_call of abi.h."""

    _fields_ = (
        ("p", ctypes.c_void_p),
        ("i", ctypes.POINTER(ctypes.c_int64)),
        ("f", ctypes.c_void_p),
        ("n_p", ctypes.c_int),
        ("n_i", ctypes.c_int),
        ("n_f", ctypes.c_int),
        ("state", ctypes.c_void_p),
        ("free_state", ctypes.c_void_p),
        ("any_ints", ctypes.c_int),
        ("err", ctypes.c_int64 * 4),
    )


@dataclass
class Recorder:
    """A kernel that makes numbered states and writes down which it gets and which are freed."""

    any_ints: bool = False
    keeps: bool = True
    made: dict[int, list[int]] = field(default_factory=dict)
    freed: list[int] = field(default_factory=list)
    seen: int | None = None

    def __post_init__(self):
        self._run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Call))(self._kernel)
        self._free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.freed.append)
        self.address = ctypes.cast(self._run, ctypes.c_void_p).value

    def _kernel(self, pointer):
        call = pointer.contents
        if call.state is None and self.keeps:
            call.state = len(self.made) + 1
            call.free_state = ctypes.cast(self._free, ctypes.c_void_p).value
            call.any_ints = self.any_ints
            self.made[call.state] = call.i[: call.n_i]
        self.seen = call.state
        return 0

    @property
    def living(self):
        return len(self.made) - len(self.freed)


def one_call(kernel, slots, ints, floats=(), n_slots=0):
    """An engine of one instruction, whose integers are sizes: registers 0, 1, ..."""
    sizes = Sizes()
    roots = [sizes.add(sizes.ROOT, value) for value in ints]
    plan = Engine(n_slots, sizes)
    plan.add(kernel, slots, ints, floats)
    for position, root in enumerate(roots):
        plan.vary(0, position, root)
    return plan


def settle(plan, ints):
    for root, value in enumerate(ints):
        plan.sizes.set(root, value)
    assert plan.settle()


def run(plan, *ints):
    settle(plan, ints)
    plan.run()


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def plan(recorder):
    return one_call(recorder.address, [], [0, 0])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60))
def test_the_states_of_the_integers_used_last_are_kept(uses):
    recorder = Recorder()
    plan = one_call(recorder.address, [], [0, 0])
    latest, n_made = [], 0
    for ints in uses:
        n_made += ints not in latest
        latest = [ints, *(other for other in latest if other != ints)][:MOST]
        run(plan, *ints)
        assert recorder.made[recorder.seen] == list(ints) and recorder.seen not in recorder.freed
        assert len(recorder.made) == n_made
        assert recorder.living == len(latest)
    del plan
    assert sorted(recorder.freed) == sorted(recorder.made)


def test_the_same_integers_change_nothing(recorder, plan):
    for _ in range(3):
        run(plan, 1, 2)
        plan.run()
    assert recorder.made == {1: [1, 2]} and not recorder.freed


def test_a_state_made_before_the_integers_were_set_is_not_used(recorder, plan):
    plan.run()
    run(plan, 1, 2)
    assert recorder.seen == 2 and recorder.freed == [1]


def test_integers_that_left_no_state_do_not_displace_others(recorder, plan):
    run(plan, 1, 1)
    recorder.keeps = False
    for k in range(2 * MOST):
        run(plan, 2, k)
    run(plan, 1, 1)
    assert recorder.seen == 1 and not recorder.freed


def test_a_state_that_goes_with_any_integers_is_the_only_one():
    recorder = Recorder(any_ints=True)
    plan = one_call(recorder.address, [], [0])
    plan.run()
    for k in range(2 * MOST):
        run(plan, k)
        assert recorder.seen == 1
    del plan
    assert recorder.freed == [1]


def kernel(name, sizes, arrays_of, ints_of, floats=()):
    """Runs one instruction at these sizes in turn; gives its outputs and those of an engine made for each run."""
    changing = None
    for size in sizes:
        arrays, ints = arrays_of(size), ints_of(size)
        n_slots = len(arrays)
        slots = [-1 if array is None else k for k, array in enumerate(arrays)]
        if changing is None:
            changing = one_call(name, slots, ints, floats, n_slots)
        fresh = Engine(n_slots)
        fresh.add(name, slots, ints, floats)
        settle(changing, ints)
        found = []
        for plan in (changing, fresh):
            own = [None if array is None else array.copy() for array in arrays]
            for k, array in enumerate(own):
                if array is not None:
                    plan.bind(k, array)
            plan.run()
            found.append(own)
        yield found


SIZES = (3, 40, 3, 2, 17, 40, 3)


def check(*arguments):
    for got, want in kernel(*arguments):
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)


def numbers(*shape):
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(np.float32)


def blank(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def test_top_k_of_rows_that_become_longer():
    check(
        "top_k.f32",
        SIZES,
        lambda n: [numbers(4, n), blank(4, 2), blank(4, 2, dtype=np.int64)],
        lambda n: [4, n, 2],
    )


def test_seeded_masks_follow_the_number_of_elements():
    check(
        "dropout.f32",
        SIZES,
        lambda n: [numbers(n), blank(n), blank(n, dtype=np.uint8)],
        lambda n: [n, 0, 7],
        [0.5],
    )


def test_rows_that_become_more_are_merged():
    def arrays(n):
        rows = np.arange(n, dtype=np.int64) % 5
        return [rows, numbers(n, 4), blank(n, dtype=np.int64), blank(n, 4)]

    check("merge_rows.f32", SIZES, arrays, lambda n: [n, 6, 4])


def test_channels_that_become_more_are_normalised():
    def arrays(c):
        given = [numbers(2, c, 3), *(numbers(c) for _ in range(3)), numbers(c) + 1]
        return [*given, blank(2, c, 3), *(blank(c) for _ in range(4))]

    check("batch_norm.f32", SIZES, arrays, lambda c: [2, c, 3, 0], [1e-5, 0.9])


@pytest.mark.skipif(not kernels.available("conv2d.f32"), reason="needs oneDNN")
def test_convolutions_of_other_batches_and_images():
    check(
        "conv2d.f32",
        (*SIZES, 0, 3),
        lambda n: [numbers(n, 3, n + 4, 5), numbers(2, 3, 3, 3), None, blank(n, 2, n + 4, 5)],
        lambda n: [n, 3, n + 4, 5, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    )
