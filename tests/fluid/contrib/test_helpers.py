"""fluid.contrib: memory of programs and readers for several trainers; the operator "random_crop"."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.layer_helper import LayerHelper


def test_memory_usage_counts_results(programs):
    fluid.layers.fc(fluid.data("x", [None, 10], "float32"), 20, act="relu")
    program = fluid.default_main_program()
    least, most, unit = fluid.contrib.memory_usage(program, 1)
    assert (least, most) == pytest.approx((252, 264)) and unit == "B"


@pytest.mark.parametrize(
    ("batch", "least", "unit"), [(10, 2400 * 1.05 / 1024, "KB"), (5000, 1.05 * 1.2e6 / 2**20, "MB")]
)
def test_units_of_memory(programs, batch, least, unit):
    fluid.layers.fc(fluid.data("x", [None, 10], "float32"), 20, act="relu")
    found = fluid.contrib.memory_usage(fluid.default_main_program(), batch)
    assert (
        found[0] == pytest.approx(least)
        and found[1] == pytest.approx(least * 1.1 / 1.05)
        and found[2] == unit
    )


def test_memory_that_is_not_known():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        fluid.layers.relu(fluid.data("x", [None, None, 3], "float32"))
    with pytest.raises(ValueError, match="several open dimensions"):
        fluid.contrib.memory_usage(program, 3)
    with pytest.raises(ValueError, match="batch_size must be positive, got 0"):
        fluid.contrib.memory_usage(program, 0)
    with pytest.raises(TypeError, match="takes a Program, got str"):
        fluid.contrib.memory_usage("x", 3)


def test_batches_of_one_trainer(monkeypatch):
    def batches():
        return iter(range(7))

    assert list(fluid.contrib.reader.distributed_batch_reader(batches)()) == list(range(7))
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "3")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    assert list(fluid.contrib.reader.distributed_batch_reader(batches)()) == [1, 4]
    monkeypatch.setenv("PADDLE_TRAINER_ID", "3")
    with pytest.raises(ValueError, match="PADDLE_TRAINER_ID must be from 0 to 2, got 3"):
        fluid.contrib.reader.distributed_batch_reader(batches)


def test_random_crop():
    def run(seed):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
            x = fluid.data("x", [None, 2, 5, 6], "float32")
            cut = fluid.layers.random_crop(x, [2, 3, 4], seed)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            image = np.arange(8 * 60, dtype="float32").reshape(8, 2, 5, 6)
            return [exe.run(feed={"x": image}, fetch_list=[cut])[0] for _ in range(2)]

    first, second = run(5)
    begins = first[:, 0, 0, 0].astype(int) - 60 * np.arange(8)
    assert first.shape == (8, 2, 3, 4) and len(set(begins)) > 1
    for k, begin in enumerate(begins):
        row, column = divmod(begin, 6)
        assert row <= 2 and column <= 2
        whole = np.arange(60 * k, 60 * k + 60).reshape(2, 5, 6)
        np.testing.assert_array_equal(first[k], whole[:, row : row + 3, column : column + 4])
    assert (first != second).any()
    np.testing.assert_array_equal(run(5), [first, second])
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(fluid.core.EnforceNotMet, match=r"shape must fit into \[5\], got \[6\]"):
            fluid.layers.random_crop(fluid.data("x", [3, 5], "float32"), [6])


def test_attributes_that_an_operator_does_not_have_are_left_out():
    with fluid.dygraph.guard():
        helper = LayerHelper("relu")
        x = fluid.dygraph.to_variable(np.array([-1, 2], "float32"))
        out = helper.create_variable_for_type_inference("float32")
        helper.append_op(
            type="relu", inputs={"X": [x]}, outputs={"Out": [out]}, attrs={"is_test": True, "other": 1}
        )
        assert out.numpy().tolist() == [0, 2]
