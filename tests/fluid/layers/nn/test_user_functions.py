"""py_func: functions of the user's in programs, forward and backward."""

import numpy as np
import pytest

import fluidlite as fluid
from tests.refusals import refuses

layers = fluid.layers
X = np.arange(6, dtype="float32").reshape(2, 3)


pytestmark = pytest.mark.usefixtures("alone")


def made(name, shape=(-1, 3), dtype="float32"):
    return fluid.default_main_program().current_block().create_var(name=name, shape=shape, dtype=dtype)


def data(name="x", **kwargs):
    x = fluid.data(name, [None, 3], "float32", **kwargs)
    x.stop_gradient = False
    return x


def run(fetches, **feed):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetches)


def test_forward_and_backward_get_what_they_should():
    given = []

    def cube(x):
        given.append(x.lod())
        return np.array(x) ** 3

    def slope(*arguments):
        x, y, dy = map(np.array, arguments)
        np.testing.assert_array_equal(y, x**3)
        return 3 * x**2 * dy

    x = data(lod_level=1)
    out = layers.py_func(cube, x, made("cubed"), backward_func=slope)
    fluid.backward.append_backward(layers.reduce_sum(out * out))
    got = run([out, "x@GRAD"], x=fluid.create_lod_tensor(X, [[1, 1]], fluid.CPUPlace()))
    np.testing.assert_allclose(got[0], X**3)
    np.testing.assert_allclose(got[1], 6 * X**5)
    assert given == [[[0, 1, 2]]]
    ops = fluid.default_main_program().global_block().ops
    back = ops[-1]
    assert back.type == "py_func" and back.input("X") == ["x", "cubed", "cubed@GRAD"]
    assert back.attr("forward_callable_id") == ops[0].attr("backward_callable_id")


def test_what_a_function_writes_into_its_input_stays_there():
    def scribble(x):
        array = np.array(x, copy=False)
        array[...] = 7
        return array

    doubled = fluid.data("x", [2, 3]) * 2.0
    seen = layers.py_func(scribble, doubled, made("seen"))
    got = run([seen, doubled + 1.0, doubled], x=X)
    np.testing.assert_array_equal(got[0], np.full_like(X, 7))
    np.testing.assert_array_equal(got[1], 2 * X + 1)
    np.testing.assert_array_equal(got[2], 2 * X)


def test_several_inputs_and_outputs_of_which_some_are_skipped():
    def both(x, y):
        return np.array(x) * np.array(y), np.array(x) - np.array(y)

    def slopes(x, y, d_product, d_rest):
        x, y, d_product, d_rest = map(np.array, (x, y, d_product, d_rest))
        return d_product * y + d_rest, d_product * x - d_rest

    x, y = data(), data("y")
    product, rest = made("product"), made("rest")
    layers.py_func(both, [x, y], [product, rest], slopes, skip_vars_in_backward_input=[product, rest])
    fluid.backward.append_backward(layers.reduce_sum(product + 2.0 * rest))
    got = run(["x@GRAD", "y@GRAD"], x=X, y=X + 1)
    np.testing.assert_allclose(got[0], X + 1 + 2)
    np.testing.assert_allclose(got[1], X - 2)


def test_without_a_backward_function_no_gradient_goes_through():
    x = data()
    out = layers.py_func(lambda v: np.array(v) * 5, x, made("out"))
    fluid.backward.append_backward(layers.reduce_sum(out + x))
    np.testing.assert_array_equal(run(["x@GRAD"], x=X)[0], np.ones((2, 3)))


def test_is_called_though_its_results_are_unused():
    seen = []
    x = data()
    assert layers.py_func(lambda v: seen.append(float(np.array(v).sum())), x, None) is None
    exe = fluid.Executor(fluid.CPUPlace())
    for _ in range(3):
        exe.run(feed={"x": X}, fetch_list=[x + 1.0])
    assert seen == [15.0] * 3


def test_sizes_and_sequences_that_depend_on_the_function():
    def longer(v):
        out = fluid.LoDTensor()
        out.set(np.repeat(np.array(v), 2, axis=0), fluid.CPUPlace())
        out.set_lod([[0, 1, 2 * len(np.array(v))]])
        return out

    out = layers.py_func(longer, data(), made("out"))
    pooled = layers.sequence_pool(out, "sum")
    for rows in (X, X[:1], np.tile(X, (3, 1))):
        np.testing.assert_allclose(run([pooled], x=rows)[0], [rows[0], 2 * rows.sum(axis=0) - rows[0]])


@pytest.mark.parametrize(
    ("result", "message"),
    [(None, r"must return 1 results, got 1 \(None\)"), ((X, X), "must return 1 results, got 2")],
)
def test_a_wrong_number_of_results(result, message):
    out = layers.py_func(lambda _: result, data(), made("out"))
    refuses(lambda: run([out], x=X), fluid.core.EnforceNotMet, message)


def test_errors_of_the_function_come_through():
    out = layers.py_func(lambda _: {}["no such key"], data(), made("out"))
    refuses(lambda: run([out], x=X), KeyError, "no such key")


def test_wrong_arguments():
    refuses(lambda: layers.py_func(3, None, None), TypeError, "func must be a Python function")
    refuses(lambda: layers.py_func(len, 3, None), TypeError, "The type of 'X' in py_func must be")
    with pytest.raises(ValueError, match="Output shapes of py_func op"):
        layers.py_func(len, data(), made("bare", None))
    with pytest.raises(ValueError, match="Variable other is not found in forward inputs and outputs"):
        layers.py_func(len, data("z"), made("out"), len, skip_vars_in_backward_input=made("other"))
