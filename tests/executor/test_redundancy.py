"""Copy propagation and common subexpression elimination in plans for the CPU."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

from .test_native_fusion import both, instructions

DATA = np.random.RandomState(1).randn(5, 6).astype("float32")


def test_what_is_computed_twice():
    x = fluid.data("x", [None, 6])
    out = layers.softmax(x) - layers.scale(layers.softmax(x), 2.0)
    exe = fluid.Executor()
    for data in (DATA, DATA[:3], DATA[:1]):
        both(exe, {"x": data}, [out])
    assert instructions(exe).count("softmax") == len(exe.describe().split(" on the CPU for ")) - 1
    assert "common_subexpressions 1" in exe.describe()


def test_chains_of_repeats_and_views():
    x = fluid.data("x", [None, 6])

    def made():
        return layers.reduce_sum(layers.softmax(layers.reshape(layers.transpose(x, [1, 0]), [-1, 3])), dim=1)

    out = made() * 2.0 + layers.reshape(made(), [-1])
    exe = fluid.Executor()
    both(exe, {"x": DATA[:3]}, [out])
    assert instructions(exe).count("softmax") == 1
    assert "common_subexpressions 3" in exe.describe()


@pytest.mark.parametrize("change", ["axis", "factor", "input", "zero"])
def test_what_differs_stays(change):
    x, y = fluid.data("x", [5, 6]), fluid.data("y", [5, 6])
    first = layers.scale(layers.reduce_max(x, dim=0, keep_dim=True), 0.0)
    second = layers.scale(
        layers.reduce_max(y if change == "input" else x, dim=1 if change == "axis" else 0, keep_dim=True),
        {"factor": 0.5, "zero": -0.0}.get(change, 0.0),
    )
    exe = fluid.Executor()
    both(exe, {"x": DATA, "y": DATA + 1}, [layers.reduce_sum(first), layers.reduce_sum(second)])
    assert instructions(exe).count("reduce_max") == (2 if change in ("axis", "input") else 1)


def test_variables_that_change_in_between():
    x = layers.create_global_var([3], 2.0, "float32", persistable=True, name="state")
    first = layers.softmax(x * 3.0)
    layers.assign(x * 1.5 * layers.assign(np.array([1.0, 2.0, 3.0], "float32")), x)
    out = first + layers.softmax(x * 3.0)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    (got,) = exe.run(fetch_list=[out])
    moved = np.exp(np.array([9.0, 18.0, 27.0]) - 27)
    np.testing.assert_allclose(got, 1 / 3 + moved / moved.sum(), rtol=1e-6)


def test_what_is_drawn_is_drawn_twice():
    x = fluid.data("x", [None, 6])
    difference = layers.dropout(x, 0.5) - layers.dropout(x, 0.5)
    exe = fluid.Executor()
    exe.run(feed={"x": DATA}, fetch_list=[difference])
    assert instructions(exe).count("dropout") == 2


def test_what_is_fetched_has_its_own():
    x = fluid.data("x", [None, 6])
    pair = [layers.softmax(x), layers.softmax(x)]
    exe = fluid.Executor()
    a, b = both(exe, {"x": DATA}, pair)
    np.testing.assert_array_equal(a, b)


def test_recomputation_is_no_common_subexpression():
    x = fluid.data("x", [None, 6])
    hidden = layers.fc(x, 6, act="tanh")
    kept = layers.fc(layers.softmax(hidden), 6, act="tanh")
    loss = layers.mean(layers.softmax(kept))
    optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
    optimizer._set_checkpoints([kept])
    optimizer.minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": DATA}, fetch_list=[loss])
    program = fluid.default_main_program().global_block()
    again = [op.type for op in program.ops].count("softmax")
    assert again == 3 and instructions(exe).count("softmax") == again


def test_the_switch(monkeypatch):
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "common_subexpressions")
    x = fluid.data("x", [None, 6])
    exe = fluid.Executor()
    exe.run(feed={"x": DATA}, fetch_list=[layers.softmax(x) + layers.softmax(x)])
    assert instructions(exe).count("softmax") == 2


def trained(make):
    """A step's loss and gradients by a plan and by the interpreter, of a model with one input."""
    x = fluid.data("x", [None, 6])
    loss = layers.mean(layers.square(make(layers.fc(x, 6))))
    gradients = [gradient.name for _, gradient in fluid.backward.append_backward(loss)]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for data in (DATA, DATA[:3]):
        both(exe, {"x": data}, [loss, *gradients])
    return exe


@pytest.mark.parametrize("switch", ["", "copy_propagation"])
def test_gradients_of_sums_are_those_of_what_was_added(switch, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", f"chains,{switch}".rstrip(","))

    def summed(hidden):
        return layers.softmax(layers.softmax(hidden) + layers.sigmoid(hidden) - layers.tanh(hidden))

    exe = trained(summed)
    plan = instructions(exe)
    plans = exe.describe().count(" on the CPU for ")
    assert plan.count("elementwise_add_grad") == plans * (1 + bool(switch))  # that of the bias stays
    assert "elementwise_sub_grad" in plan  # which is the gradient of one of them still
    assert ("copy_propagation 1" in exe.describe()) == (not switch)


def test_gradients_of_a_bias_alone():
    exe = trained(lambda hidden: layers.tanh(layers.fc(layers.softmax(hidden), 6, bias_attr=True)))
    lines = [line for line in exe.describe().splitlines() if "elementwise_add_grad" in line]
    assert lines and all(line.partition(" -> ")[2].count("@GRAD") == 1 for line in lines)


def test_a_product_with_one_is_an_alias():
    x = fluid.data("x", [None, 6])
    out = layers.softmax(
        layers.dropout(layers.tanh(x), 0.3, is_test=True, dropout_implementation="upscale_in_train")
    )
    given = layers.softmax(layers.scale(x, 1.0))
    exe = fluid.Executor()
    both(exe, {"x": DATA}, [out, given])
    assert "copy_propagation 2" in exe.describe() and not {"dropout", "scale"} & set(instructions(exe))


def test_copies_that_are_fetched_or_of_what_changes_stay():
    x = layers.create_global_var([3], 2.0, "float32", persistable=True, name="state")
    before = layers.scale(x, 1.0)
    layers.assign(x * 3.0, x)
    out = layers.scale(layers.softmax(before), 1.0)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        got, seen = exe.run(fetch_list=[out, before])
        np.testing.assert_allclose(got, np.full(3, 1 / 3), rtol=1e-6)
    np.testing.assert_array_equal(seen, np.full(3, 6, "float32"))
    assert instructions(exe).count("scale") == 3


def test_a_sum_that_is_added_to_itself_and_used_in_place():
    def doubled(hidden):
        both_ways = layers.relu(hidden)
        return layers.relu(both_ways + both_ways) + layers.relu(both_ways * 2.0)

    trained(doubled)
