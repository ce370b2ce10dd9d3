"""StaticRNN: what it appends, computes and refuses, and its gradients."""

import numpy as np
import pytest

from fluidlite import layers
from fluidlite.base.errors import EnforceNotMet
from fluidlite.data import data
from fluidlite.framework.gradients.backward import append_backward
from fluidlite.param_attr import ParamAttr
from tests.fluid.layers.slopes import check_slopes, runner


def fed(name, shape, dtype="float64"):
    var = data(name, shape, dtype)
    var.stop_gradient = False
    return var


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def network(x, start=None):
    """tanh(x W + h U), its sums, and the sums' halves."""
    rnn = layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        if start is None:
            state = rnn.memory(shape=[-1, 4], batch_ref=word, init_value=0.1)
        else:
            state = rnn.memory(init=start)
        total = rnn.memory(shape=[-1, 4], batch_ref=word)
        new = layers.fc([word, state], 4, act="tanh", param_attr=[ParamAttr("w"), ParamAttr("u")])
        summed = layers.elementwise_add(total, new)
        rnn.update_memory(state, new)
        rnn.update_memory(total, summed)
        rnn.step_output(new)
        rnn.output(summed, layers.scale(summed, 0.5))
    return rnn()


def expected(x, h, w, u, b):
    states = []
    for row in x:
        h = np.tanh(row @ w + h @ u + b)
        states.append(h)
    return np.array(states), np.cumsum(states, axis=0)


@pytest.mark.parametrize("batch", [3, None])
@pytest.mark.parametrize("given", [True, False])
def test_values_and_gradients(programs, batch, given):
    x, h = fed("x", [5, batch, 3]), fed("h", [batch, 4])
    outs = network(x, h if given else None)
    assert [out.shape for out in outs] == [(5, batch or -1, 4)] * 3
    loss = (
        layers.reduce_sum(layers.square(outs[0])) + layers.reduce_mean(outs[1]) + layers.reduce_sum(outs[2])
    )
    feed = {"x": numbers(5, 3, 3), "h": numbers(3, 4, seed=1)}
    wanted = [x, *programs[0].all_parameters(), *([h] if given else [])]
    check_slopes(programs, loss, wanted, feed)
    run = runner(programs)
    found = [np.array(value) for value in run(feed, outs)]
    w, u, b = (np.array(run.scope.find_var(name).get_tensor()) for name in ("w", "u", "fc_0.b_0"))
    states, sums = expected(feed["x"], feed["h"] if given else np.full((3, 4), 0.1), w, u, b)
    for got, want in zip(found, (states, sums, sums / 2), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_is_appended(programs):
    x = fed("x", [4, 2, 3], "float32")
    network(x)
    block = programs[0].global_block()
    assert [op.type for op in block.ops] == ["fill_constant_batch_size_like"] * 2 + ["recurrent"]
    assert block.ops[0].attr("input_dim_idx") == 1
    op = block.ops[2]
    assert op.inputs == {
        "inputs": ["x"],
        "initial_states": ["static_rnn_0@memory_boot_0", "static_rnn_0@memory_boot_1"],
        "parameters": ["w", "u", "fc_0.b_0"],
    }
    assert op.outputs["outputs"] == [f"static_rnn_0.tmp_{k}" for k in range(3)]
    assert op.attr("ex_states") == ["static_rnn_0@mem_0", "static_rnn_0@mem_1"]
    assert op.attr("states") == ["static_rnn_0.tmp_3", "static_rnn_0.tmp_4"]
    assert op.attr("has_states") and not op.attr("reverse")
    inside = op.attr("sub_block")
    assert inside.vars["x"].shape == (2, 3)
    assert [o.type for o in inside.ops] == [
        "mul", "mul", "sum", "elementwise_add", "tanh", "elementwise_add", "rnn_memory_helper", "scale",
    ] + ["rnn_memory_helper"] * 4  # fmt: skip


def test_gradient_that_is_appended(programs):
    x = fed("x", [4, 2, 3], "float32")
    outs = network(x)
    append_backward(layers.mean(outs[0]))
    (op,) = [op for op in programs[0].global_block().ops if op.type == "recurrent_grad"]
    assert op.inputs["outputs@GRAD"] == [f"static_rnn_0.tmp_{k}@GRAD" for k in range(3)]
    assert op.outputs["inputs@GRAD"] == ["x@GRAD"]
    assert op.outputs["parameters@GRAD"] == ["w@GRAD", "u@GRAD", "fc_0.b_0@GRAD"]
    inside = op.attr("sub_block")
    assert inside.forward_block_idx == 1 and inside.parent_idx == 0
    assert inside.vars["x@GRAD"].shape == (2, 3)
    assert "fc_0.tmp_4@GRAD@RENAME@block1@0" in inside.vars


def test_data_needs_no_gradient(programs):
    x = data("x", [4, 2, 3], "float64")
    outs = network(x)
    append_backward(layers.mean(outs[0]))
    (op,) = [op for op in programs[0].global_block().ops if op.type == "recurrent_grad"]
    assert op.outputs["inputs@GRAD"] == ["@EMPTY@"]
    run = runner(programs)
    (slope,) = run({"x": numbers(4, 2, 3)}, ["w@GRAD"])
    assert np.abs(np.array(slope)).max() > 0


def test_outside_of_the_block(programs):
    """An outer variable read in the block has one gradient, the sum over all steps."""
    x, shift = fed("x", [4, 2, 3]), fed("shift", [2, 3])
    rnn = layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        rnn.step_output(layers.square(layers.elementwise_mul(word, shift)))
    loss = layers.reduce_sum(rnn())
    feed = {"x": numbers(4, 2, 3), "shift": numbers(2, 3, seed=1)}
    dx, dshift = check_slopes(programs, loss, [x, shift], feed)
    np.testing.assert_allclose(dshift, (2 * feed["x"] ** 2 * feed["shift"]).sum(0), rtol=1e-6)


def test_memory_is_what_the_last_update_says(programs):
    x, start = fed("x", [4, 2]), fed("start", [2])
    rnn = layers.StaticRNN()
    with rnn.step():
        word, state = rnn.step_input(x), rnn.memory(init=start)
        rnn.update_memory(state, word)
        rnn.update_memory(state, layers.scale(word, 3.0))
        rnn.step_output(state)
    out = rnn()
    feed = {"x": numbers(4, 2), "start": numbers(2, seed=1)}
    check_slopes(programs, layers.reduce_sum(layers.square(out)), [x, start], feed)
    (found,) = runner(programs)(feed, [out])
    np.testing.assert_allclose(np.array(found), np.concatenate([feed["start"][None], 3 * feed["x"][:-1]]))


def test_input_and_start_used_double_grad(programs):
    x, start = fed("x", [3, 2]), fed("start", [2])
    rnn = layers.StaticRNN()
    with rnn.step():
        one, two = rnn.step_input(x), rnn.step_input(x)
        left, right = rnn.memory(init=start), rnn.memory(init=start)
        rnn.update_memory(left, layers.elementwise_add(left, one))
        rnn.update_memory(right, layers.elementwise_mul(right, two))
        rnn.step_output(layers.elementwise_mul(left, right))
    feed = {"x": numbers(3, 2), "start": numbers(2, seed=1)}
    check_slopes(programs, layers.reduce_sum(rnn()), [x, start], feed)


def test_unknown_number_of_steps(programs):
    x = fed("x", [-1, 2, 3])
    outs = network(x)
    assert outs[0].shape == (-1, 2, 4)
    run = runner(programs)
    for steps in (4, 1, 2):
        assert np.array(run({"x": numbers(steps, 2, 3)}, outs)[1]).shape == (steps, 2, 4)
    with pytest.raises(EnforceNotMet, match=r"recurrent: its inputs \['x'\] must have a step, got none"):
        run({"x": numbers(0, 2, 3)}, outs)


def test_inputs_of_different_lengths_at_run_time(programs):
    x, y = fed("x", [-1, 2]), fed("y", [-1, 2])
    rnn = layers.StaticRNN()
    with rnn.step():
        rnn.step_output(layers.elementwise_add(rnn.step_input(x), rnn.step_input(y)))
    with pytest.raises(
        EnforceNotMet, match="recurrent: its inputs must have equally many steps, got {'x': 3, 'y': 2}"
    ):
        runner(programs)({"x": numbers(3, 2), "y": numbers(2, 2)}, [rnn()])


def test_nested(programs):
    """A network in each step of another one."""
    x = fed("x", [3, 2, 4])
    outer = layers.StaticRNN()
    with outer.step():
        rows = outer.step_input(x)
        carried = outer.memory(shape=[4], batch_ref=rows, ref_batch_dim_idx=2)
        inner = layers.StaticRNN()
        with inner.step():
            row, state = inner.step_input(rows), inner.memory(init=carried)
            new = layers.tanh(layers.elementwise_add(row, state))
            inner.update_memory(state, new)
            inner.step_output(new)
        summed = layers.reduce_sum(inner(), dim=0)
        outer.update_memory(carried, summed)
        outer.step_output(summed)
    out = outer()
    feed = {"x": numbers(3, 2, 4)}
    check_slopes(programs, layers.reduce_sum(layers.square(out)), [x], feed)
    (found,) = runner(programs)(feed, [out])
    state, want = np.zeros(4), []
    for rows_ in feed["x"]:
        first = np.tanh(rows_[0] + state)
        state = first + np.tanh(rows_[1] + first)
        want.append(state)
    np.testing.assert_allclose(np.array(found), want, rtol=1e-6)


def inside(use):
    """A function that calls `use(rnn, x, word)` in the block of a network."""

    def build():
        x = data("x", [4, 2, 3], "float32")
        rnn = layers.StaticRNN()
        with rnn.step():
            word = rnn.step_input(x)
            rnn.step_output(word)
            use(rnn, x, word)
        return rnn()

    return build


REFUSED = {
    ValueError: [
        (lambda rnn, x, w: rnn(), "can only be retrieved after rnn block"),
        (lambda rnn, x, w: rnn.memory(), "memory at least need shape and batch_ref"),
        (lambda rnn, x, w: rnn.memory(shape=[-1, 2]), "at least need shape and batch_ref"),
        (
            lambda rnn, x, w: rnn.memory(shape=[-1, 3], batch_ref=layers.scale(w, 2.0)),
            "batch_ref of memory must be a step input or a variable from outside of the block, and 'scale_0.tmp_0' is",
        ),
        (lambda rnn, x, w: rnn.update_memory(w, w), "'x' is no memory of this StaticRNN"),
        (
            lambda rnn, x, w: rnn.step_input(data("y", [5, 2, 3], "float32")),
            "Static RNN only take fix seq_len input: 'y' has 5 steps, and 'x' has 4",
        ),
    ],
    TypeError: [
        (lambda rnn, x, w: rnn.step_input("x"), "'x' in fluid.layers.StaticRNN.step_input"),
        (lambda rnn, x, w: rnn.memory(init=3), "'init' in fluid.layers.StaticRNN.memory"),
        (lambda rnn, x, w: rnn.memory(shape=3, batch_ref=x), "'shape' in fluid.layers.Static"),
        (lambda rnn, x, w: rnn.memory(shape=[2], batch_ref=3), "'batch_ref' in fluid.layers"),
        (lambda rnn, x, w: rnn.update_memory(w, 3), "'var' in fluid.layers.StaticRNN.update"),
        (lambda rnn, x, w: rnn.step_output(3), "'o' in fluid.layers.StaticRNN.step_output"),
    ],
    AssertionError: [
        (
            lambda rnn, x, w: rnn.memory(shape=[-1, 3], batch_ref=w),
            "static_rnn_0@mem_0 should be updated in every step",
        )
    ],
}
# Outside of the block, or before its inputs.
OUTSIDE = [
    (
        lambda: layers.StaticRNN().step_input(data("x", [4, 2], "float32")),
        ValueError,
        "must invoke step_input in",
    ),
    (lambda: layers.StaticRNN().memory(shape=[1]), ValueError, "must invoke memory in rnn block"),
    (lambda: layers.StaticRNN()(), ValueError, "can only be retrieved after rnn block"),
]


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [*OUTSIDE, *((inside(use), error, message) for error, uses in REFUSED.items() for use, message in uses)],
)
def test_refused(programs, build, error, message):
    with pytest.raises(error, match=message):
        build()
    assert programs[0].current_block_idx == 0


def test_without_output(programs):
    rnn = layers.StaticRNN()
    with rnn.step():
        rnn.step_input(data("x", [4, 2, 3], "float32"))
    with pytest.raises(ValueError, match="RNN has no output"):
        rnn()
    with pytest.raises(ValueError, match="step of a StaticRNN can be entered only once"), rnn.step():
        pass
