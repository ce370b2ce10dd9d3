"""Numbers out of range on the GPU: noted by kernels, raised when somebody waits."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.backend.cupy_ import faults
from fluidlite.ops.registry import OperatorError, find
from fluidlite.ops.value_checks import require_in_range

from .agreement import gpu, launched, lists, on_gpu, rand

WRONG = {
    "softmax_with_cross_entropy": ({"Logits": rand(4, 5)}, "Label"),
    "cross_entropy": ({"X": rand(4, 5, low=0.1)}, "Label"),
    "cross_entropy2": ({"X": rand(4, 5, low=0.1)}, "Label"),
    "cross_entropy_grad": ({"X": rand(4, 5, low=0.1), "Y@GRAD": rand(4, 1)}, "Label"),
    "softmax_with_cross_entropy_grad": ({"Softmax": rand(4, 5), "Loss@GRAD": rand(4, 1)}, "Label"),
    "lookup_table": ({"W": rand(5, 3)}, "Ids"),
    "lookup_table_v2": ({"W": rand(5, 3)}, "Ids"),
    "one_hot": ({}, "X"),
}


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("op_type", sorted(WRONG))
@pytest.mark.parametrize("numbers", [[1, 5, 7, 0], [0, 1, 2, -3], [9, 9, 9, 9]])
def test_the_error_of_the_cpu(op_type, numbers):
    given, slot = WRONG[op_type]
    for dtype in ("int64", "int32"):
        inputs = {**given, slot: np.array(numbers, dtype).reshape(4, 1)}
        with pytest.raises(OperatorError) as on_cpu:
            find(op_type).call(np, lists(inputs), {"depth": 5})
        out = launched(op_type, on_gpu(inputs), depth=5)[-1]
        assert np.isfinite(gpu().get(out)).all()  # nothing was read out of range
        with pytest.raises(OperatorError) as on_device:
            faults.raise_pending(gpu())
        assert str(on_device.value) == str(on_cpu.value)
        faults.raise_pending(gpu())  # said once


@pytest.mark.usefixtures("cuda")
def test_the_first_operator_is_named_and_the_lowest_position():
    ids = np.full(1000, 2)
    ids[[40, 700]] = 99, 77
    here = gpu()
    with here.active():
        require_in_range(here.xp, "first", "Ids", here.put(ids), 50, "rows", None)
        require_in_range(here.xp, "second", "Ids", here.put(ids[::-1].copy()), 5, "rows", None)
    here.synchronize()
    with pytest.raises(OperatorError, match=r"operator first: Ids .* 50 rows; got 99 at position 40$"):
        faults.raise_pending(here)
    faults.raise_pending(here)


@pytest.mark.usefixtures("cuda")
def test_numbers_to_ignore_and_other_types():
    here = gpu()
    with here.active():
        for ids in (
            np.array([0, -100, 4]),
            np.array([1, 3], "int16"),
            np.array([True]),
            np.zeros(0, "int64"),
        ):
            require_in_range(here.xp, "op", "X", here.put(ids), 5, "classes", -100)
        require_in_range(here.xp, "op", "X", here.put(np.array([0, 1]))[::-1], 2, "classes")
    here.synchronize()
    faults.raise_pending(here)


@pytest.mark.usefixtures("cuda")
def test_large_numbers_saturate():
    here = gpu()
    with here.active():
        require_in_range(here.xp, "op", "X", here.put(np.array([2**40])), 5, "classes")
    here.synchronize()
    with pytest.raises(OperatorError, match="got 2147483647 at position 0"):
        faults.raise_pending(here)


def test_looking_costs_nothing(simulation):
    here = gpu()
    labels = on_gpu({"Logits": rand(4, 5), "Label": np.zeros((4, 1), "int64")})
    launched("softmax_with_cross_entropy", labels)
    here.synchronize()
    simulation.counters.reset()
    launched("softmax_with_cross_entropy", labels)
    faults.raise_pending(here)
    counters = simulation.counters
    assert (counters.syncs, sum(counters.copies.values()), counters.launches) == (0, 0, 1)


@pytest.mark.usefixtures("cuda")
def test_a_program_raises_it_when_the_step_is_fetched():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x, label = fluid.data("x", [None, 4]), fluid.data("label", [None, 1], "int64")
        loss = fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(x, 3), label)
        exe = fluid.Executor(fluid.CUDAPlace(0))
        exe.run(startup)
        good = {"x": rand(2, 4), "label": np.array([[0], [2]])}
        bad = {"x": rand(2, 4), "label": np.array([[0], [3]])}
        for _ in range(2):  # the second time as a graph
            exe.run(main, feed=good, fetch_list=[loss])
            with pytest.raises(OperatorError, match=r"got 3 at position 1"):
                exe.run(main, feed=bad, fetch_list=[loss])
        exe.run(main, feed=good, fetch_list=[loss])
