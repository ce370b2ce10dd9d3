"""Switching dygraph mode on and off; tensors from arrays."""

import threading

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph
from fluidlite.base import unique_name
from fluidlite.framework import default_main_program

ONES = np.ones((2, 3), "float32")


def test_guard_is_on_inside_only():
    assert not fluid.in_dygraph_mode() and not dygraph.enabled()
    with dygraph.guard():
        assert fluid.in_dygraph_mode() and dygraph.enabled()
        with dygraph.guard(fluid.CPUPlace()):
            assert dygraph.enabled()
        assert dygraph.enabled()
    assert not dygraph.enabled()


def test_guard_decorates():
    @dygraph.guard()
    def enabled():
        return dygraph.enabled()

    assert enabled() and enabled() and not dygraph.enabled()


def test_guard_ends_when_its_block_raises():
    with pytest.raises(KeyError), dygraph.guard():
        raise KeyError("x")
    assert not dygraph.enabled()


def test_guard_counts_names_anew_and_has_programs_of_its_own():
    program = default_main_program()

    def names():
        with dygraph.guard():
            assert default_main_program() is not program
            x = dygraph.to_variable(ONES)
            return dygraph.Linear(1, 1).weight.name, x.name, (x + x).name

    assert names() == names() == ("linear_0.w_0", "generated_var_0", "tmp_1")
    assert default_main_program() is program


def test_guard_refuses_what_is_no_place():
    with pytest.raises(TypeError, match="CPUPlace"):
        dygraph.guard(3).__enter__()
    assert not dygraph.enabled()


def test_enable_and_disable():
    program, before = default_main_program(), unique_name.generate("key")
    fluid.enable_dygraph(fluid.CPUPlace())
    try:
        fluid.enable_dygraph()
        assert fluid.in_dygraph_mode() and default_main_program() is not program
        assert unique_name.generate("key") == "key_0"
    finally:
        fluid.disable_dygraph()
    fluid.disable_dygraph()
    assert not fluid.in_dygraph_mode() and default_main_program() is program
    assert int(unique_name.generate("key").split("_")[1]) == int(before.split("_")[1]) + 1


def test_other_threads_see_enable_dygraph():
    seen = []
    fluid.enable_dygraph()
    try:
        thread = threading.Thread(target=lambda: seen.append(fluid.in_dygraph_mode()))
        thread.start()
        thread.join()
    finally:
        fluid.disable_dygraph()
    assert seen == [True]


def test_to_variable_shares_or_copies():
    with dygraph.guard():
        source = np.zeros(3, "float32")
        shared, copied = dygraph.to_variable(source), dygraph.to_variable(source, zero_copy=False)
        source[0] = 7
        assert shared.numpy().tolist() == [7, 0, 0] and copied.numpy().tolist() == [0, 0, 0]
        turned = dygraph.to_variable(np.arange(6).reshape(2, 3).T)
        assert turned.array.flags.c_contiguous and turned.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_to_variable_names_and_types():
    with dygraph.guard():
        named = dygraph.to_variable(ONES, name="mine")
        assert named.name == "mine" and named.stop_gradient and not named.persistable
        assert dygraph.to_variable(named, name="other") is named and named.name == "mine"
        assert dygraph.to_variable(np.array(1.0)).shape == []
        assert isinstance(named, fluid.Variable)


@pytest.mark.parametrize("value", [[1, 2], 3, "a", np.float32(1)])
def test_to_variable_takes_arrays_only(value):
    with dygraph.guard(), pytest.raises(TypeError, match="expected type is 'ndarray'"):
        dygraph.to_variable(value)


@pytest.mark.parametrize("value", [np.array([1j]), np.array(["a"]), np.array([1], "uint64")])
def test_to_variable_takes_fluids_types_only(value):
    with dygraph.guard(), pytest.raises(TypeError, match="unknown data type"):
        dygraph.to_variable(value)


def test_to_variable_outside_of_dygraph():
    with pytest.raises(AssertionError, match=r"fluid.dygraph.guard\(\)"):
        dygraph.to_variable(ONES)


def test_eval_and_train_switch_recording_under_a_guard():
    """As in Fluid 1.8: for everything, until the next train() or guard."""
    with dygraph.guard():
        layer, other, x = dygraph.Linear(3, 2), dygraph.Linear(3, 2), dygraph.to_variable(ONES)
        layer.eval()
        assert layer(x).stop_gradient and other(x).stop_gradient
        with dygraph.guard():
            assert not dygraph.Linear(3, 2)(dygraph.to_variable(ONES)).stop_gradient
        assert layer(x).stop_gradient
        other.train()
        assert not layer(x).stop_gradient and not layer.training
        layer.eval()
    with dygraph.guard():
        assert not dygraph.Linear(3, 2)(dygraph.to_variable(ONES)).stop_gradient


def test_eval_leaves_recording_alone_outside_of_a_guard():
    layer = dygraph.Linear(3, 2)
    layer.eval()
    assert not (layer.weight * 2.0).stop_gradient
