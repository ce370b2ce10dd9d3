"""Segments that load elements of tensor arrays before their plans run, and store elements afterwards."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.executor.failures import Unsupported
from fluidlite.executor.interpreter.segments import separated

from .agreement import agree, default, number, run

layers = fluid.layers


def ops_of(build):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        array = build()
        return fluid.default_main_program().global_block().ops, {array.name}


def test_reads_and_writes_stand_around_the_other_operators():
    def build():
        array = layers.create_array("float32")
        i = number(0)
        x = layers.array_read(array, i)
        layers.increment(i)
        layers.array_write(layers.scale(x, 2.0), i, array)
        return array

    ops, arrays = ops_of(build)
    ops = [op for op in ops if op.type != "fill_constant"]
    accesses = separated(ops, arrays)
    assert [op.type for op in accesses.ops] == ["increment", "scale"]
    assert [load.array for load in accesses.loads] == [store.array for store in accesses.stores] == [*arrays]


def test_a_value_that_changes_after_it_was_written_is_copied():
    def build():
        array = layers.create_array("float32")
        i, x = number(0), number(1.0, "float32")
        layers.array_write(x, i, array)
        layers.increment(x)
        layers.increment(i)
        return array

    accesses = separated(*ops_of(build))
    (store,) = accesses.stores
    copies = {op.outputs["Out"][0] for op in accesses.ops if op.type == "assign"}
    assert copies == {store.value, store.at}


@pytest.mark.parametrize("case", ["element", "index"])
def test_what_is_computed_here_is_read_in_another_segment(case):
    def build():
        array = layers.create_array("float32")
        i = number(0)
        if case == "element":
            layers.array_write(number(1.0, "float32"), i, array)
        layers.array_read(array, i)
        return array

    with pytest.raises(Unsupported, match="cannot be loaded before this segment") as refusal:
        separated(*ops_of(build))
    assert refusal.value.op.type == "read_from_array"


@pytest.mark.usefixtures("alone")
def test_elements_keep_their_values_when_variables_and_feeds_change():
    """Elements of several sizes, so that no plan has the array: a variable of the scope, a feed, a result."""
    x = fluid.data("x", [None, 1], "float32")
    total = layers.create_global_var([1], 0.0, "float32", persistable=True, name="total")
    places = [fluid.data(f"i{k}", [1], "int64") for k in range(3)]
    array = layers.array_write(total, places[0])
    layers.array_write(x, places[1], array)
    layers.array_write(layers.concat([x, x], 0), places[2], array)
    layers.increment(total, 5.0)
    fetches = [layers.array_read(array, place) for place in places]
    feed = {"x": np.array([[1.0], [2.0], [3.0]], "float32")}
    feed |= {f"i{k}": np.array([k]) for k in range(3)}
    built = default([*fetches, total])
    agree(built, [feed] * 3, 0, 0)
    for step, one in enumerate(run(built, [feed] * 3, "plan")[0][:-1]):
        one = [np.array(each) for each in one]
        assert one[0] == 5.0 * step and one[3] == 5.0 * (step + 1)
        np.testing.assert_array_equal(one[1], feed["x"])
        np.testing.assert_array_equal(one[2], np.concatenate([feed["x"]] * 2))


@pytest.mark.usefixtures("alone")
def test_an_index_below_zero_names_the_operator():
    x = fluid.data("x", [None, 1], "float32")
    array = layers.array_write(x, number(0))
    layers.array_write(layers.concat([x, x], 0), layers.cast(fluid.data("i", [1], "int64"), "int64"), array)
    exe = fluid.Executor()
    feed = {"x": np.ones((2, 1), "float32"), "i": np.array([1])}
    assert exe.run(feed=feed, fetch_list=[layers.array_length(array)])[0] == 2
    with pytest.raises(fluid.core.EnforceNotMet, match=r"write_to_array[\s\S]*must not be negative, got -1"):
        exe.run(feed=feed | {"i": np.array([-1])}, fetch_list=[layers.array_length(array)])
