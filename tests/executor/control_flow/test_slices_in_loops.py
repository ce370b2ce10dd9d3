"""Loops that slice by computed bounds, with gradients, in one plan."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure

from .agreement import agree, default

layers = fluid.layers
WIDTH, MOST = 3, 9


def inputs():
    x, lengths = fluid.data("x", [None, None, WIDTH]), fluid.data("lengths", [None], "int64")
    x.stop_gradient = False
    return x, lengths


def feeds(random, count):
    for _ in range(count):
        rows, steps = random.randint(2, 6), random.randint(2, MOST)
        lengths = random.randint(1, steps + 1, rows)
        yield {"x": random.uniform(-1, 1, (rows, steps, WIDTH)).astype("float32"), "lengths": lengths}


def sliced_loop(x, lengths, dtype, take):
    """A loop until all rows are done: its trip count is data-dependent."""
    padded = layers.pad(x, [0, 0, 0, MOST + 2, 0, 0])
    at, state = layers.zeros([1], "int64"), layers.fc(layers.reduce_sum(x, dim=1), WIDTH)
    states, outs = layers.array_write(state, at), layers.create_array("float32")
    over = layers.less_equal(lengths, layers.fill_constant([1], "int64", 0))
    going = layers.logical_not(layers.reduce_all(over))
    with layers.While(going).block():
        before = layers.array_read(states, at)
        number = layers.cast(at, dtype)
        word = take(padded, number)
        new = layers.fc([before, word], WIDTH, act="tanh", param_attr=["u", "w"], bias_attr="b")
        layers.array_write(new, at, outs)
        layers.increment(at)
        layers.array_write(new, at, states)
        layers.logical_not(layers.reduce_all(layers.less_equal(lengths, at)), out=going)
    made = layers.tensor_array_to_tensor(outs, axis=1, use_stack=True)[0]
    return [made, layers.array_read(states, at), layers.reduce_sum(made * made)]


def one(padded, number):
    return layers.squeeze(layers.slice(padded, [1], [number], [number + 1]), [1])


def from_the_end(padded, number):
    shape = layers.cast(layers.slice(layers.shape(padded), [0], [1], [2]), "int32")
    return layers.squeeze(layers.slice(padded, [1], [number - shape], [number - shape + 1]), [1])


def several(padded, number):
    return layers.reduce_sum(
        layers.slice(padded, [1, 2], [number, 0], [number + 3, 2]), dim=1, keep_dim=False
    )


@pytest.mark.parametrize(
    "take, dtype", [(one, "int32"), (one, "int64"), (from_the_end, "int32"), (several, "int32")]
)
def test_iterations_slice_by_computed_bounds(take, dtype):
    x, lengths = inputs()
    *fetched, loss = sliced_loop(x, lengths, dtype, take)
    fluid.optimizer.SGD(0.01).minimize(loss)
    fetched, fed = [*fetched, loss, "x@GRAD"], [*feeds(np.random.RandomState(3), 12)]
    text = agree(default(fetched), fed, 1e-5, 1e-6)
    assert " loop(" in text and "slice_grad(" in text


def test_slices_of_varying_lengths_run_iteration_by_iteration():
    """No plan fits all iterations, which gradients require: Python runs them, with the same values."""
    x, lengths = inputs()

    def growing(padded, number):
        return layers.reduce_sum(layers.slice(padded, [1], [0 * number], [number + 2]), dim=1)

    *fetched, loss = sliced_loop(x, lengths, "int32", growing)
    fluid.optimizer.SGD(0.01).minimize(loss)
    fetched, fed = [*fetched, loss, "x@GRAD"], [*feeds(np.random.RandomState(3), 8)]
    agree(default(fetched), fed, 1e-5, 1e-6)


def test_an_empty_slice_names_operator_and_line():
    x, start = fluid.data("x", [None, WIDTH]), fluid.data("start", [1], "int32")
    part, exe = layers.slice(x, [0], [start], [start + 2]), fluid.Executor()
    value = np.arange(18, dtype="float32").reshape(6, WIDTH)
    for first in (1, 2, 0, 3):
        (found,) = exe.run(feed={"x": value, "start": np.array([first], "int32")}, fetch_list=[part])
        np.testing.assert_array_equal(found, value[first : first + 2])
    assert "slice(" in exe.describe()
    with pytest.raises(
        ValueError, match=r"operator slice .*start must be before end.*test_slices_in_loops.py:\d+"
    ):
        exe.run(feed={"x": value, "start": np.array([6], "int32")}, fetch_list=[part])


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_where_a_slice_is(kind):
    shape, numbers = [4, 5], np.array([-3, 1, 99, -1], kind)  # starts, then ends
    places = np.empty(4, np.int64)
    kernels.call(f"slice_find.i{8 * numbers.itemsize}", [numbers, places], [2, *shape, 4, 2])
    assert places.tolist() == [2, 3, 1, 2]  # lengths, then starts
    x = np.arange(20, dtype="float32").reshape(shape)
    part, back = np.empty((2, 3), "float32"), np.empty(shape, "float32")
    kernels.call("slice_at", [x, places, part], [4, 2, *shape, 2, 3])
    np.testing.assert_array_equal(part, x[1:3, 2:5])
    kernels.call("slice_at_grad", [part, places, back], [4, 2, *shape, 2, 3])
    want = np.zeros(shape, "float32")
    want[1:3, 2:5] = part
    np.testing.assert_array_equal(back, want)


@pytest.mark.parametrize("places", [[2, 2, 1, 2], [2, 3, 3, 2], [2, 3, -1, 2], [2, 3, 1, 2**62]])
def test_slices_elsewhere_touch_nothing(places):
    x, part = np.zeros((4, 5), "float32"), np.ones((2, 3), "float32")
    for name, operands in (("slice_at", [x, part]), ("slice_at_grad", [part, x])):
        with pytest.raises(KernelFailure):
            kernels.call(name, [operands[0], np.array(places, np.int64), operands[1]], [4, 2, 4, 5, 2, 3])


def test_operators_after_a_loop_without_iterations_have_the_sizes_of_the_step():
    """No iteration has resolved a size; later operators still follow the sizes of the feeds."""
    x, last, at = inputs()[0], fluid.data("last", [1], "int64"), fluid.data("at", [1], "int32")
    flat, i = layers.reshape(layers.slice(x, [1], [0], [2]), [-1, 2 * WIDTH]), layers.zeros([1], "int64")
    state = layers.scale(flat, 1.0)
    going = layers.less_than(i, last)
    with layers.While(going).block():
        part = layers.reduce_sum(layers.slice(state, [1], [at], [at + 3]), dim=1, keep_dim=True)
        layers.assign(layers.elementwise_add(state * 0.5, part), state)
        layers.increment(i)
        layers.less_than(i, last, cond=going)
    out = layers.relu(layers.matmul(state, state, transpose_y=True, alpha=0.01) + 1.0)
    loss = layers.reduce_mean(out)
    fetched = [out, loss, *fluid.gradients([loss], [x])]
    random, fed = np.random.RandomState(3), []
    for rows, trips in [(4, 2), (4, 2), (7, 2), (9, 0), (3, 0), (60, 0), (5, 2), (2, 0), (300, 0), (6, 1)]:
        x = random.uniform(-1, 1, (rows, 4, WIDTH)).astype("float32")
        fed.append({"x": x, "last": np.array([trips]), "at": np.array([2], "int32")})
    text = agree(default(fetched), fed, 1e-5, 1e-6)
    assert text.count("instructions on the CPU for") == 1
