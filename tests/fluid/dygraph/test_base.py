"""Switching dygraph mode on and off; tensors from arrays."""

import threading

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
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
        transposed = dygraph.to_variable(np.arange(6).reshape(2, 3).T)
        assert transposed.array.flags.c_contiguous and transposed.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


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


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([1], "uint64")])
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


def test_eval_decides_for_dropout_under_a_guard():
    """As in Fluid: `is_test` of the function has no effect there, the last `eval` or `train` has."""
    layer = dygraph.Linear(1, 1)
    with dygraph.guard():
        ones = dygraph.to_variable(np.ones(64, "float32"))
        assert set(layers.dropout(ones, 0.5, is_test=True).numpy()) == {0.0, 1.0}
        layer.eval()
        assert set(layers.dropout(ones, 0.5).numpy()) == {0.5}
        with dygraph.guard():
            assert set(layers.dropout(ones, 0.5).numpy()) == {0.0, 1.0}, "a guard begins with training"
        assert set(layers.dropout(ones, 0.5).numpy()) == {0.5}


def test_a_star_import_leaves_other_names_alone():
    names: dict = {}
    exec("from fluidlite import layers\nfrom fluidlite.dygraph import *", names)
    assert names["layers"] is layers and names["Linear"] is dygraph.Linear


def test_global_variables_are_tensors():
    with dygraph.guard():
        made = layers.create_global_var([2], 3.0, "float32", persistable=True, name="counter")
        assert made.numpy().tolist() == [3, 3] and made.name == "counter"
        assert made.stop_gradient and made.persistable
        assert layers.create_global_var([1], 1, "int64").name == "generated_var_0"


def test_names_of_results():
    with dygraph.guard():
        x = dygraph.to_variable(np.ones((2, 2), "float32"))
        made = [layers.ones([1], "float32"), layers.matmul(x, x), layers.relu(x), x.detach(), x.detach()]
        names = ["generated_var_1", "generated_var_2", "tmp_3", "generated_var_00", "generated_var_01"]
        assert [tensor.name for tensor in made] == names


def test_gradients_of_frozen_parameters():
    with dygraph.guard():
        layer = dygraph.Linear(2, 2, param_attr=fluid.ParamAttr(trainable=False))
        layers.reduce_sum(layer(dygraph.to_variable(np.ones((1, 2), "float32")))).backward()
        assert layer.weight.gradient().tolist() == [[1, 1], [1, 1]], "computed, though not used"
        before = layer.weight.numpy()
        sgd = fluid.optimizer.SGD(0.1, parameter_list=layer.parameters())
        sgd.minimize(layer.weight)
        assert (layer.weight.numpy() == before).all() and np.allclose(layer.bias.numpy(), -0.1)
    fixed = dygraph.Linear(2, 2, param_attr=fluid.ParamAttr(trainable=False)).weight
    assert fixed.stop_gradient, "as with the names of Paddle 2.0"
