"""The loop over instructions: binding, running, failing, fetching, timing."""

import gc
import threading
import weakref

import numpy as np
import pytest

from fluidlite._ext import engine, kernels
from fluidlite._ext.engine import Engine, KernelFailure
from fluidlite.base.rank_table import RankTable

from ..refusals import refuses


def filled(*shape: int, value: float = 1.0) -> np.ndarray:
    return np.full(shape, value, np.float32)


@pytest.fixture
def doubling():
    """Slot 0 in, slot 1 out: out = x + x, then out = out * out."""
    plan = Engine(2)
    assert plan.add("elementwise_add.f32", [0, 0, 1], [4]) == 0
    assert plan.add("elementwise_mul.f32", [1, 1, 1], [4]) == 1
    return plan


@pytest.mark.parametrize("lengths", [[3, 1, 2], [2, 2], [0, 4, 0, 1], [0], [], [1] * 5, [7]])
def test_ranks_are_those_of_a_rank_table(lengths):
    offsets = np.cumsum([0, *lengths])
    found, expected = engine.Ranks(offsets), RankTable((offsets,))
    np.testing.assert_array_equal(found.order, expected.order)
    np.testing.assert_array_equal(found.back[found.order], np.arange(len(lengths)))
    np.testing.assert_array_equal(found.items, expected.by_step())
    np.testing.assert_array_equal(found.places, expected.places())
    np.testing.assert_array_equal(found.bounds, expected.bounds)
    np.testing.assert_array_equal(found.first, np.arange(expected.running_at(0)))
    assert found.count.tolist() == [expected.longest]
    steps = [rank for running in expected.running for rank in range(running)]
    np.testing.assert_array_equal(found.ranks, steps)


@pytest.mark.parametrize("lengths", [[3, 1, 2], [0, 2, 0], [0, 0, 0]])
def test_other_sequences_in_the_order_of_ranks(lengths):
    ranks, offsets = engine.Ranks(np.array([0, 1, 4, 6])), np.cumsum([0, *lengths])
    found, rows = engine.InOrder(offsets, ranks), np.split(np.arange(offsets[-1]), offsets[1:-1])
    assert ranks.order.tolist() == [1, 2, 0]
    np.testing.assert_array_equal(found.rows, np.concatenate([rows[1], rows[2], rows[0]]))
    np.testing.assert_array_equal(found.back[found.rows], np.arange(offsets[-1]))
    np.testing.assert_array_equal(found.offsets, np.cumsum([0, lengths[1], lengths[2], lengths[0]]))
    np.testing.assert_array_equal(found.bounds, np.cumsum([0, *found.offsets[[3, 2, 1]]]))
    refuses(lambda: engine.InOrder(np.array([0, 1, 2]), ranks), ValueError, "2 sequences in the order of 3")


def test_offsets_that_go_down_are_not_ranked():
    refuses(lambda: engine.Ranks(np.array([0, 3, 2])), ValueError, "go down after 3")
    with pytest.raises(ValueError, match="go down after 3"):
        engine.InOrder(np.array([0, 3, 2]), engine.Ranks(np.array([0, 1, 2])))


@pytest.mark.parametrize(
    ("offsets", "error", "message"),
    [
        (np.array([1, 2]), ValueError, "offsets begin with 0"),
        (np.array([], np.int64), ValueError, "offsets begin with 0"),
        (np.array([0, 1], np.int32), ValueError, "int64 in one dimension is wanted, got 1 of int32"),
        (np.array([0, 1], ">i8"), ValueError, "int64 in one dimension is wanted"),
        (np.arange(6)[::2], ValueError, "a contiguous array"),
        (np.zeros((1, 2), np.int64), ValueError, "got 2 of int64"),
        ([0, 1], TypeError, "int64 is wanted, got list"),
    ],
)
def test_what_is_no_offsets_is_not_ranked(offsets, error, message):
    refuses(lambda: engine.Ranks(offsets), error, message)
    refuses(lambda: engine.InOrder(offsets, engine.Ranks(np.array([0, 1]))), error, message)


def test_a_loop_names_what_it_does_not_have():
    body, whole = Engine(1), Engine(2)
    for wrong in ({"moving": [(0, 5, 0, 0)]}, {"sums": [(0, 9)]}, {"bodies": [(body, [(0, 3)], [], [], [])]}):
        with pytest.raises(IndexError, match="of a loop is none|a loop moves"):
            whole.add_loop(**{"slots": [0, 1], "ints": [1, 1, 1], "back": False, "moving": [], "sums": [],
                              "bodies": []} | wrong)  # fmt: skip
    assert len(whole) == 0


@pytest.mark.parametrize("back", (False, True))
def test_iterations_of_a_loop(back):
    """Running sums of rows: x [rows], packed; an iteration adds its rows to the first rows of the previous sum."""
    sizes = engine.Sizes()
    n = sizes.add(engine.Sizes.ROOT, 2)
    body = Engine(3, sizes)
    body.add("elementwise_add.f32", [0, 1, 2], [2])
    body.vary(0, 0, n)
    plan = Engine(6)
    bounds, x, out, last = np.array([0, 3, 5, 6]), np.arange(1, 7, dtype="float32"), filled(7), filled(3)
    kinds = engine.LOOP_KINDS
    moving = [(kinds["packed"], 1, 0, 3), (kinds["packed"], 3, 0, 3), (kinds["carried"], 2, 1, 0)]
    follows = [(0, 0), (1, 2), (2, 1)]
    plan.add_loop([0, 1, 2, 3], [3, 0, 3, 4], back, moving, [], [(body, follows, [], [(n, 0, 2)], [])])
    begin = filled(3, value=10.0)
    for slot, array in enumerate((bounds, x, begin, out, last, last)):
        plan.bind(slot, array)
    assert plan.loops_fit()
    plan.run()
    # Back, a turn has more rows than the one before: it finds them behind those that this has left, one of them in the
    # room at the end.
    expected = [21, 8, 19, 20, 6, 16] if back else [11, 12, 13, 15, 17, 21]
    np.testing.assert_array_equal(out[:6], expected)


def test_instructions_run_in_order_on_what_is_bound(doubling):
    out = filled(4)
    doubling.bind(1, out)
    doubling.bind(0, filled(4, value=3.0))
    doubling.run()
    assert out.tolist() == [36.0] * 4
    doubling.bind(0, filled(4, value=1.0))
    doubling.run()
    assert out.tolist() == [4.0] * 4
    assert len(doubling) == 2


def test_a_part_of_the_plan_can_run(doubling):
    out = filled(4)
    doubling.bind(0, filled(4, value=3.0))
    doubling.bind(1, out)
    doubling.run(0, 1)
    assert out.tolist() == [6.0] * 4
    doubling.run(1)
    assert out.tolist() == [36.0] * 4
    refuses(lambda: doubling.run(0, 3), IndexError, "plan of 2")


def test_addresses_and_names_are_both_accepted():
    plan = Engine(2)
    plan.add(kernels.address("relu.f32"), [0, 1], [2])
    x, out = np.array([-1, 2], np.float32), filled(2)
    plan.set_pointer(0, x.ctypes.data)
    plan.set_pointer(1, out.ctypes.data)
    assert plan.pointer(1) == out.ctypes.data
    plan.run()
    assert out.tolist() == [0, 2]


def test_operands_left_out_are_null():
    plan = Engine(2)
    plan.add("elementwise_add_mid_grad.f32", [-1, -1, -1, 0, -1, 1], [3, 2, 1])
    plan.bind(0, np.arange(6, dtype=np.float32))
    out = filled(2)
    plan.bind(1, out)
    plan.run()
    assert out.tolist() == [6, 9]


def test_python_instructions_run_between_native_ones(doubling):
    out, seen = filled(4), []
    doubling.add_python(lambda: seen.append(out.tolist()))
    doubling.add("elementwise_add.f32", [1, 0, 1], [4])
    doubling.bind(0, filled(4))
    doubling.bind(1, out)
    doubling.run()
    assert seen == [[4.0] * 4]
    assert out.tolist() == [5.0] * 4


def test_an_exception_of_a_python_instruction_passes_and_is_located(doubling):
    def broken():
        raise LookupError("mine")

    assert doubling.add_python(broken) == 2
    doubling.bind(0, filled(4))
    doubling.bind(1, filled(4))
    refuses(doubling.run, LookupError, "mine")
    assert doubling.failed == 2
    doubling.run(0, 2)
    assert doubling.failed == -1


def test_a_failing_kernel_is_located_and_explained():
    plan = Engine(3)
    plan.add("elementwise_add.f32", [0, 0, 0], [4])
    plan.add("lookup_table.f32", [0, 1, 2], [3, 2, 2, -1])
    plan.bind(0, filled(2, 2))
    plan.bind(1, np.array([0, 1, 7]))
    out = filled(3, 2, value=5.0)
    plan.bind(2, out)
    with pytest.raises(
        KernelFailure, match=r"instruction 1 failed: the value 7 at position 2 is not in \[0, 2\)"
    ) as info:
        plan.run()
    assert (info.value.index, info.value.code, info.value.err[:3]) == (1, engine.OUT_OF_RANGE, (7, 2, 2))
    assert plan.failed == 1
    assert (out == 5.0).all()


def test_a_second_run_at_the_same_time_is_refused():
    plan = Engine(1)
    inside, leave = threading.Event(), threading.Event()

    def wait():
        inside.set()
        leave.wait(30)

    plan.add_python(wait)
    runner = threading.Thread(target=plan.run)
    runner.start()
    inside.wait(30)
    try:
        refuses(plan.run, RuntimeError, "is running")
        refuses(lambda: plan.bind(0, filled(1)), RuntimeError, "is running")
        refuses(lambda: plan.add("relu.f32", [0, 0], [1]), RuntimeError, "is running")
    finally:
        leave.set()
        runner.join()
    plan.run()


def test_bound_arrays_live_as_long_as_they_are_bound():
    plan = Engine(1)

    class Watched(np.ndarray):
        pass

    first = filled(3).view(Watched)
    gone = weakref.ref(first)
    plan.bind(0, first)
    del first
    gc.collect()
    assert gone() is not None
    plan.bind(0, filled(3))
    gc.collect()
    assert gone() is None


def test_only_contiguous_arrays_are_bound():
    plan = Engine(1)
    refuses(lambda: plan.bind(0, np.zeros((4, 4))[:, ::2]), ValueError, "C-contiguous")
    refuses(lambda: plan.bind(0, [1.0]), TypeError, "numpy.ndarray, got list")
    refuses(lambda: plan.bind(1, filled(1)), IndexError, "slot 1 is outside the table of 1")


GOOD = (filled(2, 3), np.zeros((2, 1), np.int64))
BAD = {
    "too few": GOOD[:1],
    "too many": (*GOOD, filled(1)),
    "another type": (filled(2, 3).astype(np.float64), GOOD[1]),
    "another shape": (GOOD[0], np.zeros((3, 1), np.int64)),
    "another rank": (GOOD[0], np.zeros(2, np.int64)),
    "not contiguous": (np.asfortranarray(filled(2, 3)), GOOD[1]),
    "swapped bytes": (filled(2, 3).astype(">f4"), GOOD[1]),
    "not an array": ([[1.0] * 3] * 2, GOOD[1]),
    "not aligned": (np.frombuffer(bytearray(25), np.float32, offset=1).reshape(2, 3), GOOD[1]),
    "another number of the same type": (GOOD[0], GOOD[1].astype(np.longlong)),
}


@pytest.mark.parametrize("case", BAD)
def test_feeds_that_differ_from_the_signature_are_not_bound(case):
    plan = Engine(2)
    plan.set_signature([(0, np.float32, (2, 3)), (1, "int64", (2, 1))])
    assert plan.bind_arrays(list(GOOD)) is True
    plan.add("copy", [0, 0], [24])
    plan.run()
    assert plan.bind_arrays(BAD[case]) is False
    assert (plan.pointer(0), plan.pointer(1)) == (0, 0)
    with pytest.raises(RuntimeError, match="instruction 0 works on slot 0, which holds nothing"):
        plan.run()  # not on the arrays of the step before


def test_feeds_that_fit_are_bound_without_a_copy():
    plan = Engine(2)
    plan.set_signature([(1, np.dtype(np.float32), (2, 3)), (0, np.int64, (2, 1))])
    readonly = filled(2, 3)
    readonly.flags.writeable = False
    assert plan.bind_arrays((readonly, GOOD[1]))
    assert plan.pointer(1) == readonly.ctypes.data
    assert plan.pointer(0) == GOOD[1].ctypes.data


def test_what_is_written_to_must_be_writeable():
    plan = Engine(1)
    plan.set_signature([(0, np.float32, (4,))], [0])
    readonly = filled(4)
    assert plan.bind_arrays([readonly])
    readonly.flags.writeable = False
    assert not plan.bind_arrays([readonly])


def test_nothing_runs_while_an_operand_is_missing(doubling):
    out = filled(4)
    doubling.bind(1, out)
    refuses(doubling.run, RuntimeError, "instruction 0 works on slot 0")
    doubling.bind(0, filled(4))
    doubling.run()
    doubling.set_pointer(0, 0)
    doubling.run(1)  # the second instruction does without
    assert out.tolist() == [16.0] * 4
    refuses(doubling.run, RuntimeError, "slot 0")


CALLS = {
    "too few operands": ("elementwise_add.f32", [0, 1], [4], [], "2 operands"),
    "too many operands": ("relu.f32", [0, 1, 1], [4], [], "3 operands"),
    "an operand left out": ("relu.f32", [0, -1], [4], [], r"lacks \[1\]"),
    "what a gradient reads": ("relu_grad.f32", [0, -1, 0, 1], [4], [], r"lacks \[1\]"),
    "part of a group": ("sgd.f32", [0, 1, 0, 1], [4, 4], [], "4 operands"),
    "fewer sizes than groups": ("adam.f32", [0] * 13, [4], [0.9, 0.99, 1e-8], "1 integers, which must be 2"),
    "no integers": ("gemm.f32", [0, 1, 1], [], [1.0, 0.0], "0 integers, which must be 5 to 6"),
    "no floats": ("leaky_relu.f32", [0, 1], [4], [], "0 real numbers"),
    "a negative size": ("copy", [0, 1], [-4], [], r"integer -4 at position 0, which must be in \[0"),
    "another rank than said": ("transpose", [0, 1], [4, 2, 2, 2, 1], [], "5 integers, which must be 6"),
    "nine dimensions": ("transpose", [0, 1], [4, 9, *[1] * 9, *range(9)], [], "a rank of 9"),
    "more rows than counted": ("merge_rows.f32", [0, 1, 0, 1], [2**31, 4, 4], [], "integer 2147483648"),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_must_have_what_their_kernel_takes(case):
    kernel, slots, ints, floats, message = CALLS[case]
    plan = Engine(2)
    refuses(lambda: plan.add(kernel, slots, ints, floats), ValueError, message)
    assert len(plan) == 0


SIZES = {
    "elements": ("relu_grad.f32", [False, True, True, True], [3], [], [0, 12, 8, 12],
        "8 bytes as operand 2"),
    "a product": ("gemm.f32", [True] * 3, [2, 3, 4, 0, 0], [1.0, 0.0], [32, 48, 20],
        "20 bytes .* needs 24"),
    "labels": ("cross_entropy.f32", [True] * 3 + [False], [2, 3, 0], [], [24, 8, 8, 0],
        "8 bytes .* needs 16"),
    "a group": ("sgd.f64", [True] * 5, [2, 3], [], [8, 16, 16, 24, 16], "16 bytes as operand 4"),
    "a cast": ("cast.f32.i64", [True] * 2, [3], [], [12, 12],
        "12 bytes as operand 1, of which it needs 24"),
    "a slice": ("slice", [True] * 2, [4, 2, 5, 5, 1, 1, 3, 4], [], [100, 20], "20 bytes .* needs 24"),
    "parts": ("concat", [True] * 3, [2, 4, 8], [], [8, 16, 20], "20 bytes .* needs 24"),
    "times": ("expand", [True] * 2, [4, 1, 3, 2], [], [12, 20], "20 bytes .* needs 24"),
    "strides": ("gemm_batched.f32", [True] * 3, [1, 1, 1, 0, 0, 3, 1, 0, 1], [1.0, 0.0], [12, 4, 8],
        "needs 12"),
    "2 ** 64": ("relu.f32", [True] * 2, [2**62], [], [4, 4], "needs 18446744073709551616"),
}  # fmt: skip


@pytest.mark.parametrize("case", SIZES)
def test_operands_must_have_the_memory_that_the_kernel_uses(case):
    """The gradient of a relu whose output was of another shape read past its end."""
    kernel, there, ints, floats, sizes, message = SIZES[case]
    refuses(lambda: kernels.check(kernel, there, ints, floats, sizes), ValueError, message)
    kernels.check(kernel, there, ints, floats, [size * 2**64 for size in sizes])


def test_every_kernel_says_what_it_takes():
    for name in kernels.table():
        with pytest.raises(ValueError, match=name.replace(".", "[.]")):
            kernels.check(name, [], [], [])


def test_signatures_must_be_known_in_full():
    with pytest.raises(ValueError, match="neither known nor one of 0 sizes"):
        Engine(1).set_signature([(0, np.float32, (-1, 3))])
    refuses(lambda: Engine(1).set_signature([(4, np.float32, (1,))]), IndexError, "slot 4")


def test_fetches_are_copies():
    plan = Engine(2)
    source = np.arange(6, dtype=np.int64)
    plan.bind(0, source)
    one = plan.fetch(0, (2, 3), np.int64)
    plan.set_fetches([(0, np.int64, (6,)), (0, np.int64, (3, 1, 2))])
    flat, cube = plan.fetch_all()
    source[:] = -1
    assert one.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert flat.tolist() == [0, 1, 2, 3, 4, 5]
    assert cube.shape == (3, 1, 2) and cube.flags.owndata
    refuses(lambda: plan.fetch(1, (1,), np.float32), ValueError, "slot 1 holds no address")


def test_nothing_is_fetched_from_an_empty_slot_of_no_elements():
    assert Engine(1).fetch(0, (0, 4), np.float32).shape == (0, 4)


def test_times_are_recorded_only_while_profiling(doubling):
    doubling.add_python(lambda: None)
    doubling.bind(0, filled(4))
    doubling.bind(1, filled(4))
    doubling.run()
    assert doubling.times() == [0, 0, 0]
    doubling.profile(True)
    doubling.run()
    assert len(doubling.times()) == 3 and all(ns > 0 for ns in doubling.times())
    doubling.profile(False)
    doubling.run()
    assert doubling.times() == [0, 0, 0]


@pytest.mark.parametrize("release", [True, False])
def test_native_stretches_run_with_or_without_the_gil(doubling, release):
    doubling.release_gil = release
    out = filled(4)
    doubling.bind(0, filled(4))
    doubling.bind(1, out)
    doubling.run()
    assert out.tolist() == [4.0] * 4


def test_unknown_kernels_and_slots_are_refused():
    plan = Engine(1)
    refuses(lambda: plan.add("frobnicate.f32", [0], [1]), KeyError, "no kernel 'frobnicate.f32'")
    refuses(lambda: plan.add("relu.f32", [0, 1], [1]), IndexError, "slot 1 is outside")
    assert len(plan) == 0


def test_a_jump_back_repeats_what_is_between_until_its_bool_is_false():
    counted, most, go_on = np.zeros(1, "int64"), np.array([5], "int64"), np.ones(1, "bool")
    found = engine.Engine(3)
    for slot, array in enumerate([counted, most, go_on]):
        found.bind(slot, array)

    def count():
        counted[0] += 1
        go_on[0] = counted[0] < most[0]

    found.add_python(count)
    stop = found.add_jump(2)
    back = found.add_jump()
    found.set_target(stop, back + 1)
    found.set_target(back, 0)
    found.run()
    assert counted[0] == 5
    most[0] = 0  # the test stands at the end
    found.run()
    assert counted[0] == 6
    for wrong in [(4, 0), (0, 5), (-1, 0)]:
        with pytest.raises(IndexError):
            found.set_target(*wrong)


def sized(rows=4):
    """out = x + x for any number of rows, by way of a temporary; also the sizes and the register of the rows."""
    sizes = engine.Sizes()
    n = sizes.add(sizes.ROOT, rows)
    count = sizes.add(sizes.MUL, n, sizes.add(sizes.CONST, 2))
    plan = Engine(2, sizes)
    plan.add("elementwise_add.f32", [0, 0, 1], [rows * 2])
    plan.vary(0, 0, count)
    plan.add_storage(0, 1, sizes.add(sizes.MUL, count, sizes.add(sizes.CONST, 4)), [1])
    plan.set_signature([(0, np.float32, (-1 - n, 2))])
    plan.set_fetches([(1, np.float32, (-1 - n, 2))])
    return plan, sizes, n


def test_what_follows_sizes_follows_the_arrays_that_are_bound():
    plan, sizes, n = sized()
    sizes.guard(sizes.LE, n, sizes.add(sizes.CONST, 100))
    assert plan.settle()
    for rows in (4, 1, 100, 0, 3):
        x = np.random.rand(rows, 2).astype("float32")
        assert plan.bind_arrays([x])
        plan.run()
        assert plan.fetch_all()[0].tolist() == (x + x).tolist()
        assert plan.fetch(1, (-1 - n, 2), np.float32).tolist() == (x + x).tolist()
        assert not plan.bind_arrays([filled(101, 2)])
        refuses(plan.run, RuntimeError, "holds nothing")
        assert not plan.bind_arrays([filled(rows, 3)]) and not plan.bind_arrays([])


def test_sizes_that_find_no_memory_are_refused_and_others_go_on():
    sizes = engine.Sizes()
    n = sizes.add(sizes.ROOT, 4)
    plan = Engine(2, sizes)
    plan.add("copy", [0, 1], [16])
    plan.vary(0, 0, sizes.add(sizes.MUL, n, sizes.add(sizes.CONST, 4)))
    wide = sizes.add(sizes.MUL, n, sizes.add(sizes.CONST, 1 << 40))
    square = sizes.add(sizes.MUL, wide, sizes.add(sizes.FLOORDIV, n, sizes.add(sizes.CONST, 1 << 14)))
    plan.add_storage(
        0, 1, sizes.add(sizes.MAX, square, sizes.add(sizes.MUL, n, sizes.add(sizes.CONST, 4))), [1]
    )
    plan.set_signature([(0, np.float32, (-1 - n,))])
    plan.set_fetches([(1, np.float32, (-1 - n,))])
    assert plan.settle()
    for rows in (4, 9, 4):
        for huge in (1 << 14, 1 << 22):  # 2^54 bytes, 2^70
            with pytest.raises(MemoryError, match="memory"):
                plan.bind_arrays([np.zeros(huge, np.float32)])
            refuses(plan.run, (RuntimeError, MemoryError))
        x = np.random.rand(rows).astype("float32")
        assert plan.bind_arrays([x])
        plan.run()
        assert plan.fetch_all()[0].tolist() == x.tolist()


def test_wrong_uses_of_sizes_are_refused():
    plan, sizes, n = sized()
    for at, position, register in [(1, 0, n), (-1, 0, n), (0, 1, n), (0, -1, n), (0, 0, 99), (0, 0, -1)]:
        with pytest.raises((IndexError, OverflowError)):
            plan.vary(at, position, register)
    refuses(lambda: plan.vary(0, 0, n, True), IndexError)
    for first, last, register, slots in [(0, 1, 99, [1]), (0, 1, -1, [1]), (0, 1, n, [2]), (0, 1, n, [-1])]:
        with pytest.raises(IndexError):
            plan.add_storage(first, last, register, slots)
    refuses(lambda: plan.add_storage(2, 1, n, [1]), ValueError, "end before")
    for shape in [(-1 - len(sizes),), (-100,)]:
        for declare in (plan.set_signature, plan.set_fetches):
            with pytest.raises(ValueError, match="neither known"):
                declare([(0, np.float32, shape)])
    refuses(lambda: plan.set_signature([(0, np.float32, (-1 - len(sizes) + 1,))]), ValueError, "only a root")
    refuses(lambda: plan.set_root(len(sizes) - 1, 2), ValueError, "only a root")
    for register in (-1, len(sizes), 1 << 40):
        with pytest.raises(IndexError, match="is not among the"):
            plan.set_root(register, 2)
        with pytest.raises(IndexError, match="is not among the"):
            plan.array(0, np.float32, (-1 - register,) if register >= 0 else (-1 - len(sizes),))
    assert plan.bind_arrays([filled(3, 2)])
    plan.run()
    assert plan.fetch_all()[0].tolist() == filled(3, 2, value=2.0).tolist()


def test_iterations_with_rows_of_their_own():
    """Packed operands have the rows of another operand; a body may be specialised for one number of rows."""
    sizes, kinds = engine.Sizes(), engine.LOOP_KINDS
    n = sizes.add(engine.Sizes.ROOT, 2)
    some, single, plan = Engine(2, sizes), Engine(2), Engine(4)
    for body, value in ((single, 5.0), (some, 7.0)):
        body.add("scale.f32", [0, 1], [1, 1], [value, 0.0])
    some.vary(0, 0, n)
    moving = [(kinds["packed"], at, 1, 3) for at in (2, 3)]
    follows = [(0, 0), (1, 1)]
    bodies = [(single, follows, [], [], [(-1, 1, 1)]), (some, follows, [], [], [(n, 1, 3)])]
    plan.add_loop([0, 1, 2, 3], [3, 0, 1, 4], False, moving, [], bodies)
    steps, own, x, out = np.array([0, 2, 3, 4]), np.array([0, 3, 4, 7]), np.ones(7, "float32"), filled(7)
    for slot, array in enumerate((steps, own, x, out)):
        plan.bind(slot, array)
    assert plan.loops_fit()
    plan.run()
    np.testing.assert_array_equal(out, [7, 7, 7, 5, 7, 7, 7])
