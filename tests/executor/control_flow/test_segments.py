"""Programs in segments: fallback operators, feeds that share memory, sums over iterations."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.executor.interpreter.control import add_to
from tests.executor.control_flow.agreement import number
from tests.executor.control_flow.test_loop_plans import by_operators

layers = fluid.layers


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operators_on_their_own_get_what_was_fed_instead_of_what_was_declared(dtype):
    x = layers.data("x", [3])
    i = number(0)
    states = layers.array_write(x, i)
    read = layers.array_read(states, i)
    exe = fluid.Executor(fluid.CPUPlace())
    feed = {"x": np.arange(6.0, dtype=dtype).reshape(2, 3)}
    expected = by_operators([read, layers.array_length(states)], feed)
    for _ in range(2):
        found = exe.run(feed=feed, fetch_list=[read, layers.array_length(states)])
        np.testing.assert_array_equal(found[0], expected[0])
        assert found[0].dtype == expected[0].dtype and found[1] == expected[1]


def test_what_is_fed_does_not_change_with_the_parameter_whose_memory_it_is():
    x = fluid.data("x", [2, 3])
    weight = layers.create_parameter(
        [2, 3], "float32", "w", default_initializer=fluid.initializer.Constant(1.0)
    )
    layers.assign(layers.scale(weight, 2.0), weight)
    states = layers.array_write(x, number(0))  # a fallback operator between the update and the read of x
    read = layers.array_read(states, number(0))
    y = layers.scale(x, 1.0)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    tensor = fluid.global_scope().find_var("w").get_tensor()
    for before in (1.0, 2.0, 4.0):
        found = exe.run(feed={"x": tensor}, fetch_list=[y, read])
        for value in found:
            np.testing.assert_array_equal(value, np.full((2, 3), before))
        if before == 2.0:
            tensor.set(np.full((2, 3), 4.0, "float32"), fluid.CPUPlace())
            tensor.replace(np.asarray(tensor).copy())


def test_sums_write_into_nothing_that_they_are_given():
    sums = {}
    parts = [np.full(2, value, "float32") for value in (1.0, 2.0, 3.0, 4.0)]
    for part in parts:
        add_to(sums, "x", part, np)
    np.testing.assert_array_equal(sums["x"], [10.0, 10.0])
    assert [part[0] for part in parts] == [1.0, 2.0, 3.0, 4.0]
    for _ in range(3):
        add_to(sums, "scalar", np.float32(2.0), np)
    assert sums["scalar"] == 6.0
    for _ in range(3):
        add_to(sums, "rows", SelectedRows(np.array([1]), np.ones((1, 2), "float32"), 3), np)
    np.testing.assert_array_equal(sums["rows"].dense(), [[0, 0], [3, 3], [0, 0]])
    add_to(sums, "rows", np.ones((3, 2), "float32"), np)
    np.testing.assert_array_equal(sums["rows"], [[1, 1], [4, 4], [1, 1]])


def test_an_array_that_is_written_outside_of_loops_is_fetched():
    x = fluid.data("x", [-1, 2])
    total = fluid.layers.reduce_sum(x)
    array = fluid.layers.array_write(total, fluid.layers.zeros([1], "int64"))
    exe = fluid.Executor()
    feed = {"x": np.array([[1, 2], [3, 4]], "float32")}
    for fetches in ([total.name, array.name], [total, array]):
        number, items = exe.run(feed=feed, fetch_list=fetches)
        assert number.tolist() == [10] and [item.tolist() for item in items] == [[10]]
