"""Alignment of dimensions in `+ - * /` on Variables, as in real Paddle 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers as L

pytestmark = pytest.mark.usefixtures("alone")

# Declared shapes of the operands, the axis that is written, the declared shape of the result.
AXES = [
    ([-1], [-1, 1], 0, (-1, 1)),
    ([-1], [-1, 3], 0, (-1, 3)),
    ([3], [-1, 3], 0, (3, 3)),
    ([-1, 1], [-1, 3, 2], 0, (-1, 3, 2)),
    ([-1, 3], [-1], 0, (-1, 3)),
    ([-1, 3], [-1, 3], 0, (-1, 3)),
    ([2, 3], [-1, 3], 0, (2, 3)),
    ([3], [-1], 0, (3,)),
    ([-1, 1], [-1], 0, (-1, 1)),
    ([-1, 3], [3], -1, (-1, 3)),
    ([-1], [3, 1], -1, (3, -1)),
]


def filled(shape, size=3):
    shape = [size if n < 0 else n for n in shape]
    return (np.arange(np.prod(shape)) + 1.0).astype("float32").reshape(shape)


@pytest.mark.parametrize("left, right, axis, shape", AXES)
def test_an_open_first_size_of_the_right_operand_lines_up_first_dimensions(left, right, axis, shape):
    x, y = fluid.data("x", left), fluid.data("y", right)
    made = [x + y, x - y, x * y, x / y]
    assert {op.attr("axis") for op in fluid.default_main_program().global_block().ops} == {axis}
    assert {z.shape for z in made} == {shape}


RUN = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y}
# Gradients of the sum of squares of [1, 2, 3] OP [[1, 2, 3], [4, 5, 6], [7, 8, 9]], as recorded.
GRADS = {
    "+": ([18.0, 42.0, 66.0], [[4.0, 6.0, 8.0], [12.0, 14.0, 16.0], [20.0, 22.0, 24.0]]),
    "-": ([-6.0, -18.0, -30.0], [[0.0, 2.0, 4.0], [4.0, 6.0, 8.0], [8.0, 10.0, 12.0]]),
    "*": ([28.0, 308.0, 1164.0], [[2.0, 4.0, 6.0], [32.0, 40.0, 48.0], [126.0, 144.0, 162.0]]),
    "/": (
        [2.722222, 0.521111, 0.290273],
        [[-2.0, -0.25, -0.074074], [-0.125, -0.064, -0.037037], [-0.052478, -0.035156, -0.024691]],
    ),
}


@pytest.mark.parametrize("symbol", RUN)
def test_rows_of_the_right_operand_get_the_numbers_of_the_left_one(symbol):
    x, y = fluid.data("x", [-1]), fluid.data("y", [-1, 3])
    x.stop_gradient = y.stop_gradient = False
    z = RUN[symbol](x, y)
    grads = fluid.gradients(L.reduce_sum(z * z), [x, y])
    feed = {"x": filled([3]), "y": filled([3, 3])}
    value, *found = fluid.Executor().run(feed=feed, fetch_list=[z, *grads])
    assert value.tolist() == RUN[symbol](feed["x"][:, None], feed["y"]).tolist()
    for got, right in zip(found, GRADS[symbol], strict=True):
        assert np.allclose(got, right, atol=1e-6)


def test_a_column_times_rows_of_it_is_a_column():
    x, y = fluid.data("x", [-1]), fluid.data("y", [-1, 1])
    for n in (3, 1, 5):
        feed = {"x": filled([n]), "y": filled([n, 1])}
        found = fluid.Executor().run(feed=feed, fetch_list=[x + y, x * y])
        assert [v.tolist() for v in found] == [(feed["y"] * 2).tolist(), (feed["y"] ** 2).tolist()]


def test_a_variable_without_dimensions_takes_a_number():
    x, y = fluid.data("x", []), fluid.data("y", [-1])
    feed = {"x": np.array(2, "float32"), "y": filled([3])}
    found = fluid.Executor().run(feed=feed, fetch_list=[x + y, x - y, x * y, x / y])
    assert [v.tolist() for v in found] == [[3, 4, 5], [1, 0, -1], [2, 4, 6], [2, 1, np.float32(2 / 3)]]
